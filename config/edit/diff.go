package edit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/lazy"
)

const hidden = "[hidden]"

// Diff returns the change of the file as a unified diff, empty if there is none. Values of environments and all that
// notify says are hidden, except references such as ${NAME}. Lines end in LF.
func Diff(before, after []byte) (string, error) {
	old, err := shown(before)
	if err != nil {
		return "", err
	}
	now, err := shown(after)
	if err != nil {
		return "", err
	}
	return string(diff.Diff("a/"+config.FileName, []byte(old), "b/"+config.FileName, []byte(now))), nil
}

var (
	passedOn = lazy.Regexp(`^\s*[A-Za-z_][A-Za-z0-9_]*:\s+"?\$\{[A-Za-z_][A-Za-z0-9_]*\}"?\s*$`)
	keyOnly  = lazy.Regexp(`^\s*(- )?["']?[A-Za-z_][A-Za-z0-9_]*["']?:(\s|$)`)
)

// span is a part of the text.
type span struct{ from, to int }

// shown returns the text of the file with its secrets hidden.
func shown(b []byte) (string, error) {
	s, err := parse(b)
	if err != nil {
		return "", err
	}
	var secret []file.YAMLField // keys of which the values are hidden
	if f := s.root.Field("notify"); f != nil {
		secret = append(secret, *f)
	}
	for _, agent := range fieldsOf(s.root.Get("agents")) {
		if f := agent.Value.Field("env"); f != nil {
			secret = append(secret, *f)
		}
	}
	public := map[int]bool{}
	keysOf(s.root, secret, public)
	var spans []span
	for _, f := range secret {
		spans = append(spans, s.secrets(f, public)...)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var out strings.Builder
	at := 0
	for _, sp := range spans {
		if sp.from >= at && sp.to > sp.from {
			out.WriteString(s.text[at:sp.from] + hidden)
		}
		at = max(at, sp.to)
	}
	out.WriteString(s.text[at:])
	return strings.ReplaceAll(out.String(), "\r\n", "\n"), nil
}

// keysOf collects the lines of all keys that are not below a secret one.
func keysOf(n *file.YAMLNode, secret []file.YAMLField, public map[int]bool) {
	for _, f := range n.Fields {
		public[f.Line] = true
		hide := false
		for _, g := range secret {
			hide = hide || g.Place == f.Place
		}
		if !hide {
			keysOf(f.Value, secret, public)
		}
	}
	for _, item := range n.Items {
		keysOf(item, secret, public)
	}
}

// secrets returns the parts of the text that a key's value hides. All lines up to the next key that is not below it
// are its own.
func (s *source) secrets(f file.YAMLField, public map[int]bool) (spans []span) {
	lineEnd := func(n int) int { return s.start(n) + len(s.line(n)) }
	at := s.offset(f.Place)
	colon := s.behindKey(at)
	if colon < 0 || colon > lineEnd(f.Line) {
		colon = at
	}
	value := strings.TrimSpace(s.text[colon:lineEnd(f.Line)])
	block := value == "" || strings.HasPrefix(value, "#")
	if !block {
		if items, _, end, err := s.itemsOf(f.Value); err == nil && !tied(f.Value) && end < lineEnd(f.Line) {
			for _, it := range items {
				if ref := s.text[it.value:it.end]; reference().FindString(strings.Trim(ref, `"`)) != strings.Trim(ref, `"`) {
					spans = append(spans, span{it.value, it.end})
				}
			}
			return spans
		}
		begin := colon + len(s.text[colon:lineEnd(f.Line)]) - len(strings.TrimLeft(s.text[colon:lineEnd(f.Line)], " \t"))
		spans = append(spans, span{begin, lineEnd(f.Line)})
	}
	for n := f.Line + 1; n < s.end() && !public[n]; n++ {
		line := s.line(n)
		from := s.start(n) + len(line) - len(strings.TrimLeft(line, " \t"))
		switch {
		case strings.TrimSpace(line) == "" || block && passedOn().MatchString(line):
			continue
		case block && isComment(line) && indentOf(line) < f.Column:
			continue // it belongs to what follows
		case block && keyOnly().MatchString(line):
			behind := s.start(n) + strings.IndexByte(line, ':') + 1
			if from = behind + len(line) - (behind - s.start(n)) - len(strings.TrimLeft(line[behind-s.start(n):], " \t")); from >= lineEnd(n) {
				continue
			}
		}
		spans = append(spans, span{from, lineEnd(n)})
	}
	return spans
}
