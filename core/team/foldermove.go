package team

import (
	"encoding/json"
	"strings"
)

// FolderMove is the repository's folder on the machine that led, and on the one that leads now. The journal names files of the machine
// that leads; a FolderMove gives the paths that they have there after another one leads. A path outside of the folder names nothing on
// another machine: it stays as it is, and the caller learns that.
//
// Both folders are absolute, and have no / at the end. The zero value changes nothing. A move and the move back give the same paths, as
// long as none of them is below both folders.
type FolderMove struct{ From, To string }

// Path is a path after the move; false: it is not below the folder, and stays.
func (m FolderMove) Path(path string) (string, bool) {
	rest, is := strings.CutPrefix(path, m.From)
	if m.From == "" || !is || rest != "" && rest[0] != '/' {
		return path, false
	}
	return m.To + rest, true
}

// Of is Path for a caller that leaves other paths as they are.
func (m FolderMove) Of(path string) string {
	path, _ = m.Path(path)
	return path
}

// JSON is a text in JSON whose strings are moved, if they are paths as a whole. The text is one that encoding/json wrote.
func (m FolderMove) JSON(text string) string {
	from, to := jsonInner(m.From), jsonInner(m.To)
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

// jsonInner is a text as JSON writes it, without the quotes.
func jsonInner(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("team: a text is always JSON: " + err.Error())
	}
	return string(quoted[1 : len(quoted)-1])
}
