package interop

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
	workflowBytesMax = 4 << 20   // 10,000 steps of ten lines each; the parser takes a hundred times as much memory
	yamlNodesMax     = 1_000_000 // after aliases are followed: a bomb of aliases stops here
	yamlDepthMax     = 64        // as for JSON
)

type yamlKind int

const (
	yamlBroken yamlKind = iota // said already; look no further
	yamlObject
	yamlList
	yamlText
	yamlNumber
	yamlBool
	yamlNull
)

// kindWords are what a value is called when it is of the wrong kind.
var kindWords = map[yamlKind]string{
	yamlObject: "a mapping", yamlList: "a list", yamlText: "a text", yamlNumber: "a number", yamlBool: "true or false", yamlNull: "empty",
}

// place is where something stands in a file: line and column in characters, both from 1.
type place struct{ line, column int }

// yamlNode is one value of a file. Aliases are followed: what stands in two places is two nodes.
type yamlNode struct {
	place
	kind   yamlKind
	style  yaml.Style
	text   string // a scalar as it was written, a text without its quotes
	fields []yamlField
	items  []*yamlNode
}

type yamlField struct {
	place // of the key
	name  string
	value *yamlNode
}

// get finds a field; nil where there is none.
func (n *yamlNode) get(name string) *yamlNode {
	if n == nil {
		return nil
	}
	for i := range n.fields {
		if n.fields[i].name == name {
			return n.fields[i].value
		}
	}
	return nil
}

// yamlReader makes nodes, and says what is wrong with them.
type yamlReader struct {
	add   func(at place, path, text string)
	nodes int
	full  bool // too much of it: said, and over
}

// readYAML reads one document. Nil: nothing could be made of it, and it was said why.
func readYAML(b []byte, add func(at place, path, text string)) *yamlNode {
	if at, fault := illegible(b); fault != "" {
		add(at, "", fault)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(b))
	if err != nil {
		panic("interop: a loader without options: " + err.Error())
	}
	var doc, second yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		add(place{1, 1}, "", "is empty; a workflow has a name and steps")
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
		add(place{max(1, second.Line), max(1, second.Column)}, "", "a second document begins here; the file holds one, take out the line ---")
		return nil
	}
	r := &yamlReader{add: add}
	root := r.read(doc.Content[0], 0)
	if r.full {
		return nil
	}
	return root
}

// illegible looks for what no parser should be troubled with.
func illegible(b []byte) (place, string) {
	if len(b) > workflowBytesMax {
		return place{1, 1}, "is larger than " + strconv.Itoa(workflowBytesMax>>20) + " MiB; split the workflow"
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
	return place{}, ""
}

// placeAt is the place of an offset.
func placeAt(b []byte, offset int) place {
	before := b[:offset]
	begin := bytes.LastIndexByte(before, '\n') + 1
	return place{bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[begin:]) + 1}
}

// yamlFault says in our words what the parser says in its own.
func yamlFault(err error) (place, string) {
	var fault *yaml.LoadError
	if !errors.As(err, &fault) {
		return place{1, 1}, "is not YAML"
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
	return place{max(1, fault.Mark.Line), max(1, fault.Mark.Column)}, text
}

func (r *yamlReader) read(y *yaml.Node, depth int) *yamlNode {
	n := &yamlNode{place: place{max(1, y.Line), max(1, y.Column)}, style: y.Style}
	if r.nodes++; !r.full && (r.nodes > yamlNodesMax || depth > yamlDepthMax) {
		r.full = true
		r.add(n.place, "", "holds more than any workflow needs (1,000,000 values, 64 deep, with aliases followed)")
	}
	if r.full {
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		at := n.place
		n = r.read(y.Alias, depth+1)
		n.place, n.style = at, 0
	case yaml.MappingNode:
		n.kind = yamlObject
		r.readFields(n, y, depth)
	case yaml.SequenceNode:
		n.kind = yamlList
		n.items = make([]*yamlNode, 0, len(y.Content))
		for _, c := range y.Content {
			n.items = append(n.items, r.read(c, depth+1))
		}
	case yaml.ScalarNode:
		n.text = y.Value
		switch y.ShortTag() {
		case "!!str", "!!timestamp":
			n.kind = yamlText
		case "!!null":
			n.kind = yamlNull
		case "!!bool":
			n.kind = yamlBool
		case "!!int", "!!float":
			n.kind = yamlNumber
		default:
			r.add(n.place, "", "has a tag (!…); tags mean nothing here, put the value in quotes if it is text")
		}
	}
	return n
}

func (r *yamlReader) readFields(n *yamlNode, y *yaml.Node, depth int) {
	seen := make(map[string]int, len(y.Content)/2)
	var merged []*yamlNode
	for i := 0; i+1 < len(y.Content) && !r.full; i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		at := place{max(1, key.Line), max(1, key.Column)}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			r.add(at, "", "a key is one word, not a list or a mapping")
			continue
		}
		if key.ShortTag() == "!!merge" {
			source := r.read(value, depth+1)
			if source.kind == yamlList {
				merged = append(merged, source.items...)
			} else {
				merged = append(merged, source)
			}
			continue
		}
		if line, twice := seen[key.Value]; twice {
			r.add(at, key.Value, "is written twice; it stands on line "+strconv.Itoa(line)+" already")
			continue
		}
		seen[key.Value] = at.line
		n.fields = append(n.fields, yamlField{at, key.Value, r.read(value, depth+1)})
	}
	for _, source := range merged {
		if source.kind != yamlObject && !r.full {
			r.add(source.place, "", "<< takes a mapping, or a list of mappings, by alias")
		}
		for _, f := range source.fields {
			if _, there := seen[f.name]; !there {
				seen[f.name] = f.line
				n.fields = append(n.fields, f)
			}
		}
	}
}
