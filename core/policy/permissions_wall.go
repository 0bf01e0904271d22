package policy

import (
	"path"
	"slices"
	"strings"
)

// RuleWall is the deciding line of a call that a wall holds: see [Permissions.Writable].
const RuleWall = "wall: it stays inside what its view lets it read, write and reach"

// reaching are programs of the small language that reach other hosts, or start what a setting names: git asks a remote, and the
// others look names up.
const reaching = "git hostname netstat who w"

// walled reports whether a call does nothing but read, or write in one of the folders, and reaches no more of the network than the wall
// lets it. Where the network is not held, each part of a shell command has to be a plain one that reads. Files that govern the agent
// are asked about as without a wall.
func (r *reading) walled(writable []string, network bool, deny []Pattern) bool {
	switch tool := r.call.Tool; {
	case tool == "Bash" && network:
		return r.shell != nil && !r.governs() && !r.hidesDenied(deny)
	case tool == "Bash":
		return r.shellReads(deny)
	case readsFiles(tool):
		return len(r.filesAllowed([]Pattern{{text: "Read", tool: tool}}, deny)) > 0
	case changesFiles(tool):
		allow := make([]Pattern, 0, len(writable))
		for _, folder := range writable {
			allow = append(allow, Pattern{text: "Write", tool: tool, kind: fileArg, arg: quoteGlob(folder) + "/**"})
		}
		return len(r.filesAllowed(allow, deny)) > 0
	}
	return false
}

// shellReads reports whether a command line is plain and each of its commands only reads.
func (r *reading) shellReads(deny []Pattern) bool {
	l := r.shell
	if l == nil || l.closed || l.doubt != "" || len(l.commands) == 0 || r.governs() || r.hidesDenied(deny) {
		return false
	}
	return !slices.ContainsFunc(l.commands, func(c command) bool {
		name := c.words[0]
		base := path.Base(name.text)
		return !c.free && (!name.static() || !isSystems(name.text) || has(reaching, base) || smallCall(base, c.words[1:]) != nil)
	})
}

// quoteGlob is a path as a pattern that matches it alone.
func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(path)
}
