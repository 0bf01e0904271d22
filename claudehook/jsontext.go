package claudehook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// jsonDepthMax bounds the nesting of a settings file.
const jsonDepthMax = 200

// node is one value of a JSON text, by its position.
type node struct {
	kind       byte // {, [, or anything else for a plain value
	start, end int
	items      []item // of an object or array, in order
}

// item is a member of an object, or an element of an array.
type item struct {
	key   string // of a member
	start int    // of the key, or of the element
	value node
}

func (n node) member(key string) (node, int) {
	for i, it := range n.items {
		if it.key == key {
			return it.value, i
		}
	}
	return node{}, -1
}

// parse reads a text that encoding/json found to be valid.
func parse(text []byte) (node, error) {
	if !json.Valid(text) {
		return node{}, invalid(text)
	}
	p := &parser{text: text}
	return p.value(0)
}

// invalid returns where a text is not JSON.
func invalid(text []byte) error {
	var any json.RawMessage
	err := json.Unmarshal(text, &any)
	var at *json.SyntaxError
	if !errors.As(err, &at) {
		return errors.New("it is not JSON")
	}
	line := 1 + bytes.Count(text[:min(int(at.Offset), len(text))], []byte("\n"))
	return fmt.Errorf("it is not JSON, at line %d: %w (JSON has no comments and no comma after the last item)", line, at)
}

type parser struct {
	text []byte
	at   int
}

func (p *parser) blank() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// value reads one value of a valid text.
func (p *parser) value(depth int) (node, error) {
	if depth > jsonDepthMax {
		return node{}, fmt.Errorf("it is nested deeper than %d levels", jsonDepthMax)
	}
	p.blank()
	n := node{kind: p.text[p.at], start: p.at}
	switch n.kind {
	case '{', '[':
		p.at++
		for {
			p.blank()
			switch p.text[p.at] {
			case '}', ']':
				p.at++
				n.end = p.at
				return n, nil
			case ',':
				p.at++
				continue
			}
			it, err := p.item(n.kind == '{', depth)
			if err != nil {
				return node{}, err
			}
			n.items = append(n.items, it)
		}
	case '"':
		p.quoted()
	default:
		for p.at < len(p.text) && strings.IndexByte(" \t\r\n,]}", p.text[p.at]) < 0 {
			p.at++
		}
	}
	n.end = p.at
	return n, nil
}

func (p *parser) item(member bool, depth int) (it item, err error) {
	it.start = p.at
	if member {
		p.quoted()
		if err := json.Unmarshal(p.text[it.start:p.at], &it.key); err != nil {
			return it, fmt.Errorf("read a key: %w", err)
		}
		p.blank()
		p.at++ // the colon
	}
	it.value, err = p.value(depth + 1)
	return it, err
}

func (p *parser) quoted() {
	for p.at++; p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			p.at++
		}
	}
	p.at++
}

// style is a text's layout.
type style struct {
	line string // line end
	unit string // one level of indentation
}

func styleOf(text []byte, root node) style {
	s := style{line: "\n", unit: "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		s.line = "\r\n"
	}
	if len(root.items) > 0 {
		before := string(text[root.start+1 : root.items[0].start])
		if i := strings.LastIndexByte(before, '\n'); i >= 0 && len(before[i+1:]) <= 16 {
			s.unit = before[i+1:]
		}
	}
	return s
}

// put adds an item at the end of an object or array. key is empty for an element; deep is the indentation
// level if the container shows none.
//
// If the container was empty, an empty line follows the item, so that take can distinguish a container that
// existed before from one that put created.
func put(text []byte, into node, key string, value any, s style, deep int) []byte {
	indent := strings.Repeat(s.unit, deep)
	if n := len(into.items); n > 0 {
		last := into.items[n-1]
		from := into.start + 1
		if n > 1 {
			from = into.items[n-2].value.end
		}
		gap := strings.TrimLeft(string(text[from:last.start]), ", \t")
		if i := strings.LastIndexByte(gap, '\n'); i >= 0 {
			indent = gap[i+1:]
			indent = indent[:len(indent)-len(strings.TrimLeft(indent, " \t"))] // a comma may be at the beginning of a line
			return splice(text, last.value.end, last.value.end, ","+s.line+indent+render(key, value, s.line, indent, s.unit))
		}
		return splice(text, last.value.end, last.value.end, ", "+render(key, value, "", "", "")) // everything on one line
	}
	return splice(text, into.start+1, into.start+1, s.line+indent+render(key, value, s.line, indent, s.unit)+s.line+s.line)
}

// render formats a value. An empty line end means one line.
func render(key string, value any, line, indent, unit string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if line != "" {
		enc.SetIndent(indent, unit)
	}
	if err := enc.Encode(value); err != nil {
		panic("claude: settings do not encode as JSON: " + err.Error())
	}
	text := strings.TrimSpace(out.String())
	if line != "" && line != "\n" {
		text = strings.ReplaceAll(text, "\n", line)
	}
	if key == "" {
		return text
	}
	name, err := json.Marshal(key)
	if err != nil {
		panic("claude: a key does not encode as JSON: " + err.Error())
	}
	return string(name) + ": " + text
}

// take removes an item. hollow means that a container which put created is empty now, so that it should be
// removed too.
func take(text []byte, from node, i int) (left []byte, hollow bool) {
	it := from.items[i]
	switch {
	case len(from.items) == 1:
		rest := text[it.value.end:]
		for _, line := range []string{"\r\n", "\n"} {
			if bytes.HasPrefix(rest, []byte(line+line)) { // the container was empty before
				return splice(text, from.start+1, it.value.end+2*len(line), ""), false
			}
		}
		return text, true
	case i > 0:
		return splice(text, from.items[i-1].value.end, it.value.end, ""), false
	default:
		return splice(text, it.start, from.items[1].start, ""), false
	}
}

func splice(text []byte, from, to int, with string) []byte {
	out := make([]byte, 0, len(text)+len(with))
	out = append(out, text[:from]...)
	out = append(out, with...)
	return append(out, text[to:]...)
}
