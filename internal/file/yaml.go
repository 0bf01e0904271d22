package file

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

const (
	YAMLBytesMax = 4 << 20   // 10,000 steps of ten lines; the parser needs a hundred times as much memory
	yamlNodesMax = 1_000_000 // after aliases are followed, which stops an alias bomb
	yamlDepthMax = 64        // as for JSON
)

// YAMLKind is the kind of a YAML node.
type YAMLKind int

const (
	YAMLBroken YAMLKind = iota // already reported; not checked further
	YAMLObject
	YAMLList
	YAMLText
	YAMLNumber
	YAMLBool
	YAMLNull
)

// YAMLKindWords name the kinds in messages.
var YAMLKindWords = map[YAMLKind]string{
	YAMLObject: "a mapping", YAMLList: "a list", YAMLText: "a text", YAMLNumber: "a number", YAMLBool: "true or false", YAMLNull: "empty",
}

// Place is a position in a file: line and column in characters, both from 1.
type Place struct{ Line, Column int }

// YAMLNode is one value of a file. Aliases are followed: a value that is used twice is two nodes.
type YAMLNode struct {
	Place
	Kind   YAMLKind
	Style  yaml.Style
	Text   string // a scalar as written; a string without its quotes
	Fields []YAMLField
	Items  []*YAMLNode
}

// YAMLField is one key of a YAML mapping with its value.
type YAMLField struct {
	Place // of the key
	Name  string
	Value *YAMLNode
}

// Get returns a field's value, or nil.
func (n *YAMLNode) Get(name string) *YAMLNode {
	if n == nil {
		return nil
	}
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return n.Fields[i].Value
		}
	}
	return nil
}

// yamlReader converts nodes and reports faults.
type yamlReader struct {
	add   func(at Place, path, text string)
	nodes int
	full  bool // a limit was exceeded, which was reported
}

// ReadYAML parses one document. It returns nil if that is not possible, after it called add with the reason.
func ReadYAML(b []byte, add func(at Place, path, text string)) *YAMLNode {
	if at, fault := illegible(b); fault != "" {
		add(at, "", fault)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(b))
	if err != nil {
		panic("file: a loader without options: " + err.Error())
	}
	var doc, second yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		add(Place{1, 1}, "", "is empty; a workflow has a name and steps")
		return nil
	case err != nil:
		at, text := yamlFault(err)
		add(at, "", text)
		return nil
	}
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		at, text := yamlFault(err)
		add(at, "", text)
		return nil
	default:
		add(Place{max(1, second.Line), max(1, second.Column)}, "", "a second document begins here; the file holds one, take out the line ---")
		return nil
	}
	r := &yamlReader{add: add}
	root := r.read(doc.Content[0], 0)
	if r.full {
		return nil
	}
	return root
}

// illegible rejects input that is too large, is not UTF-8 or holds control characters.
func illegible(b []byte) (Place, string) {
	if len(b) > YAMLBytesMax {
		return Place{1, 1}, "is larger than " + strconv.Itoa(YAMLBytesMax>>20) + " MiB; split the workflow"
	}
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return placeAt(b, i), "is not UTF-8 from here on; save the file as UTF-8"
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f:
			return placeAt(b, i), "holds a control character; take it out, or write it as \"\\x" + strconv.FormatInt(int64(r)+0x100, 16)[1:] + "\" in quotes"
		}
		i += size
	}
	return Place{}, ""
}

// placeAt returns the place of an offset.
func placeAt(b []byte, offset int) Place {
	before := b[:offset]
	begin := bytes.LastIndexByte(before, '\n') + 1
	return Place{bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[begin:]) + 1}
}

// yamlFault rewords the parser's message.
func yamlFault(err error) (Place, string) {
	var fault *yaml.LoadError
	if !errors.As(err, &fault) {
		return Place{1, 1}, "is not YAML"
	}
	text := "is not YAML from here on: " + fault.Message
	switch {
	case strings.Contains(fault.Message, "anchor"):
		text = "an alias (*name) has no anchor (&name) before it; put a text that begins with * or & in quotes"
	case strings.Contains(fault.Message, "mapping values are not allowed"):
		text = "a key cannot begin here; look at the indentation, or put a text with a colon in quotes"
	case strings.Contains(fault.Message, "cannot start any token"):
		text = "a value cannot begin with this character; put it in quotes, and indent with spaces"
	}
	return Place{max(1, fault.Mark.Line), max(1, fault.Mark.Column)}, text
}

func (r *yamlReader) read(y *yaml.Node, depth int) *YAMLNode {
	n := &YAMLNode{Place: Place{max(1, y.Line), max(1, y.Column)}, Style: y.Style}
	if r.nodes++; !r.full && (r.nodes > yamlNodesMax || depth > yamlDepthMax) {
		r.full = true
		r.add(n.Place, "", "holds more than any workflow needs (1,000,000 values, 64 deep, with aliases followed)")
	}
	if r.full {
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		at := n.Place
		n = r.read(y.Alias, depth+1)
		n.Place, n.Style = at, 0
	case yaml.MappingNode:
		n.Kind = YAMLObject
		r.readFields(n, y, depth)
	case yaml.SequenceNode:
		n.Kind = YAMLList
		n.Items = make([]*YAMLNode, 0, len(y.Content))
		for _, c := range y.Content {
			n.Items = append(n.Items, r.read(c, depth+1))
		}
	case yaml.ScalarNode:
		n.Text = y.Value
		switch y.ShortTag() {
		case "!!str", "!!timestamp":
			n.Kind = YAMLText
		case "!!null":
			n.Kind = YAMLNull
		case "!!bool":
			n.Kind = YAMLBool
		case "!!int", "!!float":
			n.Kind = YAMLNumber
		default:
			r.add(n.Place, "", "has a tag (!…); tags mean nothing here, put the value in quotes if it is text")
		}
	}
	return n
}

func (r *yamlReader) readFields(n *YAMLNode, y *yaml.Node, depth int) {
	seen := make(map[string]int, len(y.Content)/2)
	var merged []*YAMLNode
	for i := 0; i+1 < len(y.Content) && !r.full; i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		at := Place{max(1, key.Line), max(1, key.Column)}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			r.add(at, "", "a key is one word, not a list or a mapping")
			continue
		}
		if key.ShortTag() == "!!merge" {
			source := r.read(value, depth+1)
			if source.Kind == YAMLList {
				merged = append(merged, source.Items...)
			} else {
				merged = append(merged, source)
			}
			continue
		}
		if line, twice := seen[key.Value]; twice {
			r.add(at, key.Value, "is written twice; it stands on line "+strconv.Itoa(line)+" already")
			continue
		}
		seen[key.Value] = at.Line
		n.Fields = append(n.Fields, YAMLField{at, key.Value, r.read(value, depth+1)})
	}
	for _, source := range merged {
		if source.Kind != YAMLObject && !r.full {
			r.add(source.Place, "", "<< takes a mapping, or a list of mappings, by alias")
		}
		for _, f := range source.Fields {
			if _, there := seen[f.Name]; !there {
				seen[f.Name] = f.Line
				n.Fields = append(n.Fields, f)
			}
		}
	}
}
