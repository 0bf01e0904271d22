package acp

import (
	"encoding/json"
	"strings"
)

// A patch is one call about several files. Its program names them in a list, in the patch's own text, or
// in both, and besides in one text with commas, which is the name of no file.

// patchTexts are arguments that hold a patch as text.
var patchTexts = []string{"patchText", "patch", "input"}

// patchHeads begin the lines of such a text that name a file.
var patchHeads = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}

// isPatch says whether a call is one.
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

// patched are the files that a patch names, as the program spells them, also those that it moves some to.
func (c toolCall) patched() (all []string) {
	for path, change := range c.input.object("changes") {
		all = append(all, path, objectOf(change).text("move_path"))
	}
	for _, raw := range c.input.list("files") {
		of, plain := objectOf(raw), ""
		_ = json.Unmarshal(raw, &plain) // a name alone
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
