package acp

import (
	"encoding/json"
	"strings"
)

// A patch is one call that concerns several files. Programs name the files in a list, in the patch's
// text, or in both. In addition, some send one comma-separated text that is not a file name.

// patchTexts are arguments that hold a patch as text.
var patchTexts = []string{"patchText", "patch", "input"}

// patchHeads are the prefixes of patch lines that name a file.
var patchHeads = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}

// isPatch reports whether a call is a patch.
func (c toolCall) isPatch() bool {
	for _, name := range []string{"changes", "files"} {
		if c.input.has(name) {
			return true
		}
	}
	for _, name := range patchTexts {
		if strings.Contains(c.input.text(name), "*** Begin Patch") {
			return true
		}
	}
	return false
}

// patched returns the files that a patch names, as the program spells them, including the targets of
// moves.
func (c toolCall) patched() (all []string) {
	for path, change := range c.input.object("changes") {
		all = append(all, path, objectOf(change).text("move_path"))
	}
	for _, raw := range c.input.list("files") {
		of, plain := objectOf(raw), ""
		_ = json.Unmarshal(raw, &plain) // a bare name
		all = append(all, of.text("filePath"), of.text("movePath"), plain)
	}
	for _, name := range patchTexts {
		for line := range strings.SplitSeq(c.input.text(name), "\n") {
			for _, head := range patchHeads {
				if path, ok := strings.CutPrefix(strings.TrimSpace(line), head); ok {
					all = append(all, strings.TrimSpace(path))
				}
			}
		}
	}
	return all
}
