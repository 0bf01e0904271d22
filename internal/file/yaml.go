package file

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/internal/encode"
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
	Path   string // as YAMLFormat.Path names it; empty without that function
	Style  yaml.Style
	Text   string // a scalar as written; a string without its quotes
	Tied   bool   // it has an anchor, is an alias, or has fields from a merge key
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
	if f := n.Field(name); f != nil {
		return f.Value
	}
	return nil
}

// Field returns a field, or nil.
func (n *YAMLNode) Field(name string) *YAMLField {
	if n == nil {
		return nil
	}
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return &n.Fields[i]
		}
	}
	return nil
}

// YAMLFormat is what differs between kinds of files: limits, the messages about them, and paths.
type YAMLFormat struct {
	BytesMax int
	NodesMax int // values, after aliases are followed, which stops an alias bomb
	DepthMax int

	TooLarge string // the message about a file of more than BytesMax bytes
	TooMuch  string // the message about more than NodesMax values or DepthMax levels
	Empty    string // the message about a file without a value

	// Restore is applied to each key and scalar; nil changes nothing.
	Restore func(string) string
	// Path extends the path of a mapping by a key, for messages; nil: messages about a key that is
	// written twice name the key, all others no path.
	Path func(path, key string) string
	// NumbersMustFit reports numbers that are neither an int64 nor a finite float64.
	NumbersMustFit bool
}

// yamlReader converts nodes and reports faults.
type yamlReader struct {
	YAMLFormat
	add   func(at Place, path, text string)
	nodes int
	full  bool // a limit was exceeded, which was reported
}

// Read parses one document. It returns nil if that is not possible, after it called add with the reason.
// Messages quote nothing of the file except names of anchors, because it may hold a mistyped secret.
func (f YAMLFormat) Read(b []byte, add func(at Place, path, text string)) *YAMLNode {
	if at, fault := f.illegible(b); fault != "" {
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
		add(Place{1, 1}, "", f.Empty)
		return nil
	case err != nil:
		at, text := yamlFault(b, err)
		add(at, "", text)
		return nil
	}
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		at, text := yamlFault(b, err)
		add(at, "", text)
		return nil
	default:
		add(Place{max(1, second.Line), max(1, second.Column)}, "",
			"a second document begins here; the file holds one, take out the line ---")
		return nil
	}
	r := &yamlReader{YAMLFormat: f, add: add}
	if r.Restore == nil {
		r.Restore = func(s string) string { return s }
	}
	root := r.read(doc.Content[0], "", 0)
	if r.full {
		return nil
	}
	return root
}

// illegible rejects input that is too large, is not UTF-8 or holds control characters.
func (f YAMLFormat) illegible(b []byte) (Place, string) {
	if len(b) > f.BytesMax {
		return Place{}, f.TooLarge
	}
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return placeAt(b, i), "is not UTF-8 from here on; save the file as UTF-8"
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f:
			return placeAt(b, i), fmt.Sprintf("holds a control character (%U); take it out, or write it as \"\\x%02x\" in quotes", r, r)
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
func yamlFault(b []byte, err error) (Place, string) {
	var fault *yaml.LoadError
	if !errors.As(err, &fault) {
		return Place{1, 1}, "is not YAML"
	}
	at := Place{fault.Mark.Line, fault.Mark.Column}
	lines := strings.Split(string(b), "\n")
	text := "is not YAML from here on: " + fault.Message
	switch {
	case strings.Contains(fault.Message, "anchor"):
		text = "an alias (*name) has no anchor (&name) before it; put a text that begins with * or & in quotes"
	case at.Line >= 1 && at.Line <= len(lines) && tabIndented(lines[at.Line-1]):
		text = "a tab cannot indent YAML; use spaces"
		at.Column = strings.IndexByte(lines[at.Line-1], '\t') + 1
	case strings.Contains(fault.Message, "mapping values are not allowed"):
		text = "a key cannot begin here; look at the indentation, or put a text with a colon in quotes"
	case strings.Contains(fault.Message, "cannot start any token"):
		text = "a value cannot begin with this character; put it in quotes"
	}
	return Place{max(1, at.Line), max(1, at.Column)}, text
}

func tabIndented(line string) bool {
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return strings.Contains(indent, "\t")
}

// ParseYAMLNumber returns an int64 or a finite float64.
func ParseYAMLNumber(s string) (any, bool) {
	s = strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(s, 0, 64); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// Float returns a node's number; otherwise if the node is nil or no number.
func (n *YAMLNode) Float(otherwise float64) float64 {
	if n == nil || n.Kind != YAMLNumber {
		return otherwise
	}
	switch v, _ := ParseYAMLNumber(n.Text); v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return otherwise
}

func (r *yamlReader) read(y *yaml.Node, path string, depth int) *YAMLNode {
	n := &YAMLNode{Place: Place{max(1, y.Line), max(1, y.Column)}, Path: path, Style: y.Style, Tied: y.Anchor != ""}
	if r.nodes++; !r.full && (r.nodes > r.NodesMax || depth > r.DepthMax) {
		r.full = true
		r.add(n.Place, path, r.TooMuch)
	}
	if r.full {
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		at := n.Place
		n = r.read(y.Alias, path, depth+1)
		n.Place, n.Style, n.Tied = at, 0, true
	case yaml.MappingNode:
		n.Kind = YAMLObject
		r.readFields(n, y, depth)
	case yaml.SequenceNode:
		n.Kind = YAMLList
		n.Items = make([]*YAMLNode, 0, len(y.Content))
		for i, c := range y.Content {
			item := ""
			if r.Path != nil {
				item = path + "[" + strconv.Itoa(i) + "]"
			}
			n.Items = append(n.Items, r.read(c, item, depth+1))
		}
	case yaml.ScalarNode:
		r.readScalar(n, y)
	}
	return n
}

func (r *yamlReader) readScalar(n *YAMLNode, y *yaml.Node) {
	n.Text = r.Restore(y.Value)
	switch y.ShortTag() {
	case "!!str", "!!timestamp":
		n.Kind = YAMLText
	case "!!null":
		n.Kind = YAMLNull
	case "!!bool":
		n.Kind = YAMLBool
	case "!!int", "!!float":
		n.Kind = YAMLNumber
		if _, ok := ParseYAMLNumber(y.Value); !ok && r.NumbersMustFit {
			n.Kind = YAMLBroken
			r.add(n.Place, n.Path, "is not a number that can be counted with")
		}
	default:
		r.add(n.Place, n.Path, "has a tag (!…); tags mean nothing here, put the value in quotes if it is text")
	}
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
			r.add(at, n.Path, "a key is one word, not a list or a mapping")
			continue
		}
		if key.ShortTag() == "!!merge" {
			n.Tied = true
			sources, ok := r.mergeSources(value, n.Path, depth)
			if !ok {
				n.Kind = YAMLBroken
			}
			merged = append(merged, sources...)
			continue
		}
		name, path := r.Restore(key.Value), ""
		if r.Path != nil {
			path = r.Path(n.Path, name)
		}
		if line, twice := seen[name]; twice {
			r.add(at, cmp.Or(path, name), "is written twice; it is on line "+strconv.Itoa(line)+" already")
			continue
		}
		seen[name] = at.Line
		n.Fields = append(n.Fields, YAMLField{at, name, r.read(value, path, depth+1)})
	}
	for _, source := range merged {
		for _, f := range source.Fields {
			if _, there := seen[f.Name]; !there {
				seen[f.Name] = f.Line
				n.Fields = append(n.Fields, f)
			}
		}
	}
}

// mergeSources reads the value of `<<:`, which is one mapping or a list of them.
func (r *yamlReader) mergeSources(y *yaml.Node, path string, depth int) ([]*YAMLNode, bool) {
	source := r.read(y, path, depth+1)
	all := []*YAMLNode{source}
	if source.Kind == YAMLList {
		all = source.Items
	}
	for _, s := range all {
		if s.Kind != YAMLObject && !r.full {
			r.add(Place{max(1, y.Line), max(1, y.Column)}, path, "<< takes a mapping, or a list of mappings, by alias")
			return nil, false
		}
	}
	return all, true
}

// YAMLToJSON converts a value to JSON on one line, with its keys in order. A fault is a place and what is
// wrong there.
func YAMLToJSON(n *YAMLNode) (text string, at Place, fault string) {
	var w strings.Builder
	at, fault = appendJSON(&w, n)
	return w.String(), at, fault
}

func appendJSON(w *strings.Builder, n *YAMLNode) (Place, string) {
	switch n.Kind {
	case YAMLObject:
		w.WriteByte('{')
		for i, f := range n.Fields {
			if i > 0 {
				w.WriteByte(',')
			}
			w.Write(encode.JSON(f.Name))
			w.WriteByte(':')
			if at, fault := appendJSON(w, f.Value); fault != "" {
				return at, fault
			}
		}
		w.WriteByte('}')
	case YAMLList:
		w.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				w.WriteByte(',')
			}
			if at, fault := appendJSON(w, item); fault != "" {
				return at, fault
			}
		}
		w.WriteByte(']')
	case YAMLText:
		w.Write(encode.JSON(n.Text))
	case YAMLNumber:
		number, ok := jsonNumber(n.Text)
		if !ok {
			return n.Place, "is not a number that JSON knows; put it in quotes if it is text"
		}
		w.WriteString(number)
	case YAMLBool:
		w.WriteString(strings.ToLower(n.Text))
	default:
		w.WriteString("null")
	}
	return Place{}, ""
}

// jsonNumber keeps a number as written where that is valid JSON.
func jsonNumber(s string) (string, bool) {
	if json.Valid([]byte(s)) {
		return s, true
	}
	v, ok := ParseYAMLNumber(s)
	if i, whole := v.(int64); whole {
		return strconv.FormatInt(i, 10), true
	}
	if f, _ := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64), true
	}
	return "", false
}
