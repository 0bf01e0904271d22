package edit

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// lineMax is how long a list may be in one line; a longer one gets a line for each item.
const lineMax = 100

// value is what a key gets; nil: the key is removed.
type value struct {
	node *yaml.Node
	// written are whole lines with the key and comments above it, as a person wrote them. They replace the key's block.
	written []string
}

// valueOf returns nil for a value that says nothing.
func valueOf(v any) *value {
	of := reflect.ValueOf(v)
	if of.IsZero() || of.Kind() == reflect.Slice && of.Len() == 0 {
		return nil
	}
	n := nodeOf(v)
	if n.Kind == yaml.SequenceNode {
		if n.Style = yaml.FlowStyle; len(inline(n)) > lineMax {
			n.Style = 0
		}
	}
	return &value{node: n}
}

// nodeOf returns the node of a text, a list of texts or a number. A text that cannot be printed as it is gets escapes.
func nodeOf(v any) *yaml.Node {
	n := &yaml.Node{}
	if err := n.Dump(v, yaml.WithQuotePreference(yaml.QuoteDouble)); err != nil {
		panic("edit: a node for a text or a number: " + err.Error())
	}
	for _, scalar := range append(n.Content, n) {
		if strings.ContainsFunc(scalar.Value, func(r rune) bool { return r != '\t' && r != '\n' && !unicode.IsPrint(r) }) {
			scalar.Style = yaml.DoubleQuotedStyle
		}
	}
	return n
}

func mapping(key string, n *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{nodeOf(key), n}}
}

// above returns the value of the first key of a path whose last key has this value.
func (v *value) above(path []string, step int) *value {
	for i := len(path) - 1; i > 0; i-- {
		outer := &value{node: mapping(path[i], v.node)}
		if v.written != nil {
			outer.written = append([]string{path[i-1] + ":"}, indented(strings.Repeat(" ", step), v.written)...)
		}
		v = outer
	}
	return v
}

// lines returns the key with the value, not indented. step is how deep the file indents.
func (v *value) lines(key string, step int) []string {
	if v.written != nil {
		return v.written
	}
	return dumped(mapping(key, v.node), step)
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

func dumped(n *yaml.Node, step int) []string {
	b, err := yaml.Dump(n, yaml.WithIndent(min(max(step, 2), 9)), yaml.WithLineWidth(-1), yaml.WithQuotePreference(yaml.QuoteDouble))
	if err != nil {
		panic("edit: a node of this package can be written: " + err.Error())
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// inline writes a value in one line, as within braces.
func inline(n *yaml.Node) string {
	line := dumped(&yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{n}}, 2)[0]
	return line[1 : len(line)-1]
}

// nodeFrom returns the node of a value of the tree, for one line.
func nodeFrom(n *file.YAMLNode) *yaml.Node {
	out := &yaml.Node{Kind: yaml.ScalarNode, Value: n.Text}
	switch n.Kind {
	case file.YAMLObject:
		out = &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		for _, f := range n.Fields {
			out.Content = append(out.Content, nodeOf(f.Name), nodeFrom(f.Value))
		}
	case file.YAMLList:
		out = &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range n.Items {
			out.Content = append(out.Content, nodeFrom(item))
		}
	case file.YAMLText:
		return nodeOf(n.Text)
	case file.YAMLNull:
		out.Value = "null"
	case file.YAMLBroken: // [hidden]
		return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{nodeOf("hidden")}}
	}
	return out
}

// put gives the key at a path of a mapping a value, or takes it away.
func put(m *yaml.Node, path []string, v *value) {
	i := 0
	for i < len(m.Content) && m.Content[i].Value != path[0] {
		i += 2
	}
	switch there := i < len(m.Content); {
	case there && len(path) > 1 && m.Content[i+1].Kind == yaml.MappingNode:
		put(m.Content[i+1], path[1:], v)
	case there && v == nil:
		m.Content = slices.Delete(m.Content, i, i+2)
	case there:
		m.Content[i+1] = v.above(path, 0).node
	case v != nil:
		m.Content = append(m.Content, nodeOf(path[0]), v.above(path, 0).node)
	}
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
