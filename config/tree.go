package config

import (
	"bytes"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

const (
	fileBytesMax = 1 << 20 // ten times a file with a thousand detailed agents
	nodesMax     = 50_000  // after aliases are followed, which stops an alias bomb
	depthMax     = 32      // the schema has a depth of five
)

type kindOf int

const (
	broken kindOf = iota // already reported; not checked further
	object
	list
	text
	number
	boolean
	null
)

// place is a position in the file; both numbers start at 1.
type place struct{ line, column int }

// node is one value of the file. Aliases are followed and merges are done: a value that is used twice is two
// nodes.
type node struct {
	place
	kind   kindOf
	path   string
	text   string // a scalar as written; a string without its quotes
	fields []field
	index  map[string]int // index into fields, by name
	items  []*node
}

type field struct {
	place // of the key
	name  string
	value *node
}

// get returns a field's value, or nil.
func (n *node) get(name string) *node {
	if f := n.field(name); f != nil {
		return f.value
	}
	return nil
}

func (n *node) field(name string) *field {
	if n == nil {
		return nil
	}
	if i, ok := n.index[name]; ok {
		return &n.fields[i]
	}
	return nil
}

func (n *node) put(f field) {
	if n.index == nil {
		n.index = map[string]int{}
	}
	n.index[f.name] = len(n.fields)
	n.fields = append(n.fields, f)
}

// parseNumber returns an int64 or a finite float64.
func parseNumber(s string) (any, bool) {
	s = strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(s, 0, 64); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// parseTree reads YAML into nodes. It returns nil if that is not possible and adds the reason to found.
func parseTree(b []byte, found *findings) *node {
	if !legible(b, found) {
		return nil
	}
	shielded, restore := shieldReferences(b)
	loader, err := yaml.NewLoader(bytes.NewReader(shielded))
	if err != nil {
		panic("config: yaml loader without options: " + err.Error())
	}
	var doc, second yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		found.add(place{1, 1}, "", "is empty; it needs at least the line `version: 1`")
		return nil
	case err != nil:
		syntaxFault(b, err, found)
		return nil
	}
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		syntaxFault(b, err, found)
		return nil
	default:
		found.add(place{second.Line, second.Column}, "", "a second document begins here; the file holds one, take out the line ---")
		return nil
	}
	t := &treeReader{found: found, restore: restore}
	root := t.read(doc.Content[0], "", 0)
	if t.stopped {
		return nil
	}
	if root.kind == null {
		found.add(place{1, 1}, "", "is empty; it needs at least the line `version: 1`")
		return nil
	}
	return root
}

// legible rejects files that are too large, are not UTF-8 or hold control characters.
func legible(b []byte, found *findings) bool {
	if len(b) > fileBytesMax {
		found.add(place{}, "", "is larger than 1 MiB; prompts and scripts belong in files of their own")
		return false
	}
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			found.add(placeOf(b, i), "", "is not UTF-8 from here on; save the file as UTF-8")
			return false
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f:
			found.add(placeOf(b, i), "", "holds a control character (%U); take it out or write it as \"\\x%02x\" in quotes", r, r)
			return false
		}
		i += size
	}
	return true
}

// placeOf returns the line and column of an offset.
func placeOf(b []byte, offset int) place {
	before := b[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return place{bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1}
}

// syntaxFault rewords the parser's message. The message quotes nothing of the file except names of anchors,
// because the file may hold a mistyped secret.
func syntaxFault(b []byte, err error, found *findings) {
	var fault *yaml.LoadError
	if !errors.As(err, &fault) {
		found.add(place{1, 1}, "", "is not YAML")
		return
	}
	at := place{fault.Mark.Line, fault.Mark.Column}
	lines := strings.Split(string(b), "\n")
	message := fault.Message
	switch {
	case strings.Contains(message, "anchor"):
		message = "an alias (*name) has no anchor (&name) before it; put a text that begins with * or & in quotes"
	case at.line >= 1 && at.line <= len(lines) && tabIndented(lines[at.line-1]):
		message = "a tab cannot indent YAML; use spaces"
		at.column = strings.IndexByte(lines[at.line-1], '\t') + 1
	case strings.Contains(message, "mapping values are not allowed"):
		message = "a key cannot begin here; look at the indentation, or put a text with a colon in quotes"
	case strings.Contains(message, "cannot start any token"):
		message = "a value cannot begin with this character; put it in quotes"
	default:
		message = "is not YAML from here on: " + message
	}
	if at.line == 0 {
		at = place{1, 1}
	}
	found.add(at, "", "%s", message)
}

func tabIndented(line string) bool {
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return strings.Contains(indent, "\t")
}

var referencePattern = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// shieldReferences lets ${NAME} stand without quotes in a flow mapping such as {key: ${NAME}}, where YAML
// would read its braces as syntax. It replaces the braces by two private-use characters, which restore
// replaces back in every scalar. Places stay the same. A file that already holds those characters is read as
// plain YAML.
func shieldReferences(b []byte) ([]byte, func(string) string) {
	const open, shut = "\uf8d0", "\uf8d1" // from Unicode's private-use area
	if bytes.Contains(b, []byte(open)) || bytes.Contains(b, []byte(shut)) {
		return b, func(s string) string { return s }
	}
	shielded := referencePattern.ReplaceAllFunc(b, func(ref []byte) []byte {
		return []byte("$" + open + string(ref[2:len(ref)-1]) + shut)
	})
	return shielded, strings.NewReplacer(open, "{", shut, "}").Replace
}

type treeReader struct {
	found   *findings
	restore func(string) string
	nodes   int
	stopped bool
}

// read converts a YAML node and everything below it.
func (t *treeReader) read(y *yaml.Node, path string, depth int) *node {
	n := &node{place: place{y.Line, y.Column}, path: path}
	if t.nodes++; t.nodes > nodesMax || depth > depthMax {
		if !t.stopped {
			t.found.add(n.place, path, "holds more than any team needs (%d values, %d deep, with aliases followed)", nodesMax, depthMax)
		}
		t.stopped = true
	}
	if t.stopped {
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		n = t.read(y.Alias, path, depth+1)
		n.place = place{y.Line, y.Column}
	case yaml.MappingNode:
		n.kind = object
		t.readFields(n, y, depth)
	case yaml.SequenceNode:
		n.kind = list
		for i, c := range y.Content {
			n.items = append(n.items, t.read(c, path+"["+strconv.Itoa(i)+"]", depth+1))
		}
	case yaml.ScalarNode:
		t.readScalar(n, y)
	}
	return n
}

func (t *treeReader) readScalar(n *node, y *yaml.Node) {
	n.text = t.restore(y.Value)
	switch y.ShortTag() {
	case "!!str", "!!timestamp":
		n.kind = text
	case "!!null":
		n.kind = null
	case "!!bool":
		n.kind = boolean
	case "!!int", "!!float":
		n.kind = number
		if _, ok := parseNumber(y.Value); !ok {
			n.kind = broken
			t.found.add(n.place, n.path, "is not a number that can be counted with")
		}
	default:
		t.found.add(n.place, n.path, "has a tag (!…); tags mean nothing here, put the value in quotes if it is text")
	}
}

func (t *treeReader) readFields(n *node, y *yaml.Node, depth int) {
	var merged []*node
	for i := 0; i+1 < len(y.Content) && !t.stopped; i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		at := place{key.Line, key.Column}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			t.found.add(at, n.path, "a key is one word, not a list or a mapping")
			continue
		case key.ShortTag() == "!!merge":
			sources, ok := t.mergeSources(value, n.path, depth)
			if !ok {
				n.kind = broken
			}
			merged = append(merged, sources...)
			continue
		}
		name := t.restore(key.Value)
		child := join(n.path, name)
		if first := n.field(name); first != nil {
			t.found.add(at, child, "is written twice; it stands on line %d already", first.line)
			continue
		}
		n.put(field{at, name, t.read(value, child, depth+1)})
	}
	for _, source := range merged {
		for _, f := range source.fields {
			if n.field(f.name) == nil {
				n.put(f)
			}
		}
	}
}

// mergeSources reads the value of `<<:`, which is one mapping or a list of them.
func (t *treeReader) mergeSources(y *yaml.Node, path string, depth int) ([]*node, bool) {
	source := t.read(y, path, depth+1)
	all := []*node{source}
	if source.kind == list {
		all = source.items
	}
	for _, s := range all {
		if s.kind != object && !t.stopped {
			t.found.add(place{y.Line, y.Column}, path, "<< takes a mapping, or a list of mappings, by alias")
			return nil, false
		}
	}
	return all, true
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// join extends a path. A key that is not a plain word is quoted and shortened. In an environment, everything
// from an equals sign on is removed, because it may be a secret value written in the wrong place.
func join(path, key string) string {
	if path == "env" || strings.HasSuffix(path, ".env") {
		if name, _, cut := strings.Cut(key, "="); cut {
			key = name + "=…"
		}
	}
	if !plainKey.MatchString(key) {
		key = quoteShort(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// quoteShort quotes text of the file for a message: one line, no control characters, limited length.
func quoteShort(s string) string {
	const runesMax = 64 // leaves room for the message on a terminal line
	if r := []rune(s); len(r) > runesMax {
		s = string(r[:runesMax]) + "…"
	}
	return strconv.Quote(s)
}
