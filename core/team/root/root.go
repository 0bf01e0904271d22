// Package root is the folder of a team's repository, as a part of the paths in the team's state.
//
// Each machine has the repository in a folder of its own, and a journal names files of the machine that leads. When
// another one leads, a [Move] gives the paths that the files have there. A path outside of the repository names nothing
// on another machine: it stays as it is, and the caller learns that.
//
// The one promise: a move and the move back give the same paths, as long as none of them is below both folders.
package root

import (
	"encoding/json"
	"strings"
)

// Move is a change from one folder to another. Both are absolute, and have no / at the end. Its zero value changes nothing.
type Move struct{ From, To string }

// Path is a path after the move; false: it is not below the folder, and stays.
func (m Move) Path(path string) (string, bool) {
	rest, is := strings.CutPrefix(path, m.From)
	if m.From == "" || !is || rest != "" && rest[0] != '/' {
		return path, false
	}
	return m.To + rest, true
}

// Of is Path for a caller that leaves other paths as they are.
func (m Move) Of(path string) string {
	path, _ = m.Path(path)
	return path
}

// JSON is a text in JSON whose strings are moved, if they are paths as a whole. The text is one that encoding/json wrote.
func (m Move) JSON(text string) string {
	from, to := inner(m.From), inner(m.To)
	if m.From == "" || !strings.Contains(text, from) {
		return text
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, `"`+from)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('"')
		// A quote with a backslash before it is one of a text, and opens no string.
		if !strings.HasSuffix(before, `\`) && after != "" && (after[0] == '/' || after[0] == '"') {
			b.WriteString(to)
		} else {
			b.WriteString(from)
		}
		text = after
	}
}

// inner is a text as JSON writes it, without the quotes.
func inner(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("root: a text is always JSON: " + err.Error())
	}
	return string(quoted[1 : len(quoted)-1])
}
