package edit

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// lineMax is how long a list may be in one line; a longer one gets a line for each item.
const lineMax = 100

// value is what a key gets.
type value struct {
	flow string   // in one line, as within braces
	line string   // what is on the key's line
	body []string // the lines below it, indented as below a key that is not indented
	// written are whole lines with the key and comments above it, as a person wrote them. They replace the key's block.
	written []string
}

// text, texts and number return nil for a value that says nothing, so that the key is removed.
func text(s string) *value {
	if s == "" {
		return nil
	}
	v := &value{flow: quoted(s, true), line: quoted(s, false)}
	if line, body := literal(s); line != "" {
		v.line, v.body = line, body
	}
	return v
}

func texts(list []string) *value {
	if len(list) == 0 {
		return nil
	}
	parts := make([]string, len(list))
	var body []string
	for i, one := range list {
		parts[i] = quoted(one, true)
		body = append(body, "- "+quoted(one, false))
	}
	v := plain("[" + strings.Join(parts, ", ") + "]")
	if len(v.line) > lineMax {
		v.line, v.body = "", body
	}
	return v
}

func number(n float64) *value {
	if n == 0 {
		return nil
	}
	return plain(strconv.FormatFloat(n, 'f', -1, 64))
}

func plain(s string) *value { return &value{flow: s, line: s} }

// below wraps a value into the mappings of a path.
func (v *value) below(path []string, step int) *value {
	if len(path) == 0 {
		return v
	}
	v = v.below(path[1:], step)
	return &value{
		flow: "{" + quoted(path[0], true) + ": " + v.flow + "}",
		body: indented(strings.Repeat(" ", step), v.lines(path[0])),
	}
}

// lines returns the key with the value, not indented.
func (v *value) lines(key string) []string {
	if v.written != nil {
		return v.written
	}
	return append([]string{strings.TrimRight(quoted(key, false)+": "+v.line, " ")}, v.body...)
}

func indented(indent string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		if line != "" {
			out[i] = indent + line
		}
	}
	return out
}

// literal returns a text of several lines as a literal block; empty if only quotes can hold it.
func literal(s string) (line string, body []string) {
	inner, ended := strings.CutSuffix(s, "\n")
	if line = "|-"; ended {
		line = "|"
	}
	body = indented("  ", strings.Split(inner, "\n"))
	unprintable := func(r rune) bool { return r != '\t' && r != '\n' && !unicode.IsPrint(r) }
	if len(body) < 2 || strings.ContainsFunc(s, unprintable) || !reads("k: "+line+"\n"+strings.Join(body, "\n")+"\n", s) {
		return "", nil
	}
	return line, body
}

// words are those that other readers take for something else than a text.
var words = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null|~)$`)

// quoted returns a text as a scalar: without quotes where every reader takes it for the same text.
func quoted(s string, flow bool) string {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if words.MatchString(s) || strings.ContainsFunc(s, unprintable) || flow && strings.ContainsAny(s, "{}[],") || !reads("k: "+s, s) {
		return strconv.Quote(s) // YAML reads all escapes of Go
	}
	if flow && !reads("{k: "+s+"}", s) {
		return strconv.Quote(s)
	}
	return s
}

// reads asks the reader of the file whether a document with the one key k, and without quotes, has this text.
func reads(doc, s string) bool {
	root, err := config.Tree([]byte(doc))
	if err != nil || len(root.Fields) != 1 || root.Fields[0].Name != "k" {
		return false
	}
	n := root.Fields[0].Value
	return n.Kind == file.YAMLText && n.Text == s && !n.Tied && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
}

// rendered writes a value of the tree in one line.
func rendered(n *file.YAMLNode) string {
	switch n.Kind {
	case file.YAMLObject:
		return braces(n, nil, nil)
	case file.YAMLList:
		var parts []string
		for _, item := range n.Items {
			parts = append(parts, rendered(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case file.YAMLText:
		return quoted(n.Text, true)
	case file.YAMLNull:
		return "null"
	}
	return n.Text
}

// braces writes a mapping in one line. If there is a path, its key gets a value, or is left out if that is nil.
func braces(n *file.YAMLNode, path []string, v *value) string {
	var parts []string
	write := func(name, value string) { parts = append(parts, quoted(name, true)+": "+value) }
	for _, f := range n.Fields {
		switch {
		case len(path) == 0 || f.Name != path[0]:
			write(f.Name, rendered(f.Value))
		case len(path) > 1:
			write(f.Name, braces(f.Value, path[1:], v))
		case v != nil:
			write(f.Name, v.flow)
		}
	}
	if len(path) > 0 && v != nil && n.Field(path[0]) == nil {
		write(path[0], v.below(path[1:], 0).flow)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// same reports whether two values are equal, wherever and however they are written.
func same(a, b *file.YAMLNode) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || len(a.Fields) != len(b.Fields) || len(a.Items) != len(b.Items) || a.Kind != file.YAMLNull && a.Text != b.Text {
		return false
	}
	for i := range a.Fields {
		other := b.Fields[i]
		if other.Name != a.Fields[i].Name { // the keys may be in another order
			other.Value = b.Get(a.Fields[i].Name)
		}
		if !same(a.Fields[i].Value, other.Value) {
			return false
		}
	}
	for i := range a.Items {
		if !same(a.Items[i], b.Items[i]) {
			return false
		}
	}
	return true
}
