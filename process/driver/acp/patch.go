package acp

import (
	"encoding/json"
	"slices"
	"strings"
)

// A patch is one call that concerns several files. Programs name the files in a list, in the
// patch's text, or in both. Some also send one comma-separated text that is not a file name.

// patchTexts are arguments that hold a patch as text.
var patchTexts = []string{"patchText", "patch_text", "patch", "input", "diff", "unified_diff"}

// patchHeads are the prefixes of patch lines that name a file.
var patchHeads = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}

// diffHeads are the prefixes of two consecutive lines of a unified diff, which name a file before and after.
var diffHeads = []string{"--- ", "+++ "}

const patchBegins = "*** Begin Patch"

// isPatch reports whether a call is a patch.
func (c toolCall) isPatch() bool {
	for _, name := range []string{"changes", "files"} {
		if c.input.has(name) {
			return true
		}
	}
	for _, name := range patchTexts {
		if strings.Contains(c.input.text(name), patchBegins) {
			return true
		}
	}
	return strings.Contains(c.plainText(), patchBegins)
}

// plainText returns rawInput if it is only a text.
func (c toolCall) plainText() (text string) {
	_ = json.Unmarshal(c.plain, &text) // other types are not a patch
	return text
}

// unreadPatch reports whether a text that is applied as a patch names no file.
func (c toolCall) unreadPatch() bool {
	for _, name := range patchTexts {
		if text := c.input.text(name); strings.Contains(text, patchBegins) && len(patchNames(text)) == 0 {
			return true
		}
	}
	text := c.plainText()
	return strings.Contains(text, patchBegins) && len(patchNames(text)) == 0
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
		all = append(all, patchNames(c.input.text(name))...)
	}
	return append(all, patchNames(c.plainText())...)
}

// patchNames returns the files that the text of a patch names.
func patchNames(patch string) (all []string) {
	before := ""
	for line := range strings.SplitSeq(patch, "\n") {
		for _, head := range patchHeads {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), head); ok {
				all = append(all, strings.TrimSpace(path))
			}
		}
		if old, now := diffName(before, diffHeads[0]), diffName(line, diffHeads[1]); old != "" && now != "" {
			if strings.HasPrefix(old, "a/") && strings.HasPrefix(now, "b/") || old == devNull && strings.HasPrefix(now, "b/") ||
				strings.HasPrefix(old, "a/") && now == devNull {
				old, now = strings.TrimPrefix(old, "a/"), strings.TrimPrefix(now, "b/")
			}
			all = append(all, old, now)
		}
		before = line
	}
	return slices.DeleteFunc(all, func(path string) bool { return path == devNull })
}

const devNull = "/dev/null"

// diffName returns the file that a line of a unified diff names; empty: none.
func diffName(line, head string) string {
	name, ok := strings.CutPrefix(line, head)
	if name, _, _ = strings.Cut(name, "\t"); !ok {
		return ""
	}
	return strings.TrimSpace(name)
}
