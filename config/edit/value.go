package edit

import (
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/lazy"
)

// lineMax is how long a list may be in one line; a longer one gets a line for each item.
const lineMax = 100

// value is what a key gets.
type value struct {
	flow string   // in one line, as within braces
	line string   // what is on the key's line
	body []string // the lines below it, indented as below a key that is not indented
	// written are whole lines with the key and comments above it, as a person wrote them. They replace the key with all that is its own.
	written []string
}

func text(s string) value {
	v := value{flow: quoted(s, true), line: quoted(s, false)}
	if body, ok := literal(s); ok {
		v.line, v.body = "|-", body
		if strings.HasSuffix(s, "\n") {
			v.line = "|"
		}
	}
	return v
}

func plain(s string) value { return value{flow: s, line: s} }

func texts(list []string) value {
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

// below wraps a value into a mapping with one key.
func below(key string, v value, step int) value {
	indent := strings.Repeat(" ", step)
	lines := v.written
	if lines == nil {
		lines = v.lines(key)
	}
	w := value{flow: "{" + quoted(key, true) + ": " + v.flow + "}"}
	for _, line := range lines {
		w.body = append(w.body, strings.TrimRight(indent+line, " "))
	}
	return w
}

// lines returns the key with the value, not indented.
func (v value) lines(key string) []string {
	if v.written != nil {
		return v.written
	}
	return append([]string{strings.TrimRight(quoted(key, false)+": "+v.line, " ")}, v.body...)
}

// literal returns the lines of a text of several lines as a literal block; false: only quotes can hold it.
func literal(s string) ([]string, bool) {
	inner := strings.TrimSuffix(s, "\n")
	if !strings.Contains(inner, "\n") || strings.HasSuffix(inner, "\n") || strings.HasPrefix(inner, " ") || strings.HasPrefix(inner, "\n") || strings.HasPrefix(inner, "\t") {
		return nil, false
	}
	var lines []string
	for line := range strings.SplitSeq(inner, "\n") {
		if strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) || line != "" && strings.TrimSpace(line) == "" {
			return nil, false
		}
		if line != "" {
			line = "  " + line
		}
		lines = append(lines, line)
	}
	return lines, true
}

var (
	simple = lazy.Regexp(`^[^\s].*[^\s]$|^[^\s]$`)
	words  = lazy.Regexp(`^(?i:y|n|yes|no|on|off|true|false|null|~)$`) // other readers take these for something else
)

// quoted returns a text as a scalar: without quotes where every reader takes it for the same text.
func quoted(s string, flow bool) string {
	if simple().MatchString(s) && !words().MatchString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) && plainReads(s, flow) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// plainReads asks the reader of the file whether a text needs quotes.
func plainReads(s string, flow bool) bool {
	doc := "k: " + s + "\nl: 1\n"
	if flow {
		doc = "{k: [" + s + "], l: 1}\n"
	}
	root, err := config.Tree([]byte(doc))
	if err != nil || len(root.Fields) != 2 || root.Fields[0].Name != "k" {
		return false
	}
	n := root.Fields[0].Value
	if flow {
		if n.Kind != file.YAMLList || len(n.Items) != 1 {
			return false
		}
		n = n.Items[0]
	}
	return n.Kind == file.YAMLText && n.Text == s && !n.Tied && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
}

// rendered writes a value of the tree in one line.
func rendered(n *file.YAMLNode) string {
	var parts []string
	switch n.Kind {
	case file.YAMLObject:
		for _, f := range n.Fields {
			parts = append(parts, quoted(f.Name, true)+": "+rendered(f.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case file.YAMLList:
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

// same reports whether two values are equal, wherever and however they are written.
func same(a, b *file.YAMLNode) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || len(a.Fields) != len(b.Fields) || len(a.Items) != len(b.Items) {
		return false
	}
	if a.Kind != file.YAMLNull && a.Text != b.Text {
		return false
	}
	for i := range a.Fields {
		if a.Fields[i].Name != b.Fields[i].Name || !same(a.Fields[i].Value, b.Fields[i].Value) {
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
