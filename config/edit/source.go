package edit

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/lazy"
)

// source is the text of a file with its tree.
type source struct {
	text  string
	lines []int // the offsets at which the lines begin
	eol   string
	root  *file.YAMLNode
}

// oddBreaks are line breaks that YAML knows besides LF and CR LF.
const oddBreaks = "\u0085\u2028\u2029"

func parse(b []byte) (*source, error) {
	root, err := config.Tree(b)
	if err != nil {
		return nil, err
	}
	s := &source{text: string(b), lines: []int{0}, eol: "\n", root: root}
	if strings.ContainsAny(s.text, oddBreaks) || strings.Contains(strings.ReplaceAll(s.text, "\r\n", ""), "\r") {
		return nil, byHand("the file has line breaks that are neither LF nor CR LF")
	}
	if strings.Contains(s.text, "\r\n") {
		s.eol = "\r\n"
	}
	for i := range len(s.text) {
		if s.text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s, nil
}

// start returns the offset of a line, counted from 1; behind the last line it is the end of the text.
func (s *source) start(line int) int {
	if line > len(s.lines) {
		return len(s.text)
	}
	return s.lines[line-1]
}

// line returns a line without its ending.
func (s *source) line(line int) string {
	return strings.TrimRight(s.text[s.start(line):s.start(line+1)], "\r\n")
}

// end returns the number behind the last line that has characters.
func (s *source) end() int {
	if s.start(len(s.lines)) == len(s.text) {
		return len(s.lines)
	}
	return len(s.lines) + 1
}

// offset returns the byte at a place.
func (s *source) offset(at file.Place) int {
	i := s.start(at.Line)
	for range at.Column - 1 {
		_, size := utf8.DecodeRuneInString(s.text[i:])
		i += size
	}
	return i
}

// chunk is the part of the text that is one key of a mapping with its value.
type chunk struct {
	key    int  // offset of the key
	colon  int  // offset behind the colon
	value  int  // offset of the value on the key's line; that of the line's end if it begins on a later line, or is empty
	after  int  // offset behind that part of the value, before a comment on the same line
	first  int  // line of the key
	head   int  // line of the first comment directly above the key
	behind int  // line behind the value's last one
	body   bool // the value goes on, or begins, on later lines
	indent int
}

// chunkOf finds a key of a block mapping. limit is the line at which something else begins for sure.
func (s *source) chunkOf(m *file.YAMLNode, i, limit int) (chunk, error) {
	f := &m.Fields[i]
	for _, other := range m.Fields {
		if other.Line > f.Line {
			limit = min(limit, other.Line)
		}
	}
	c := chunk{key: s.offset(f.Place), first: f.Line, head: f.Line, behind: limit, indent: f.Column - 1}
	if limit <= f.Line || strings.Trim(s.text[s.start(f.Line):c.key], " ") != "" {
		return c, byHand("%s is not on a line of its own", f.Value.Path)
	}
	for c.behind > c.first+1 && s.between(c.behind-1, c.indent) {
		c.behind--
	}
	for c.head > 1 && isComment(s.line(c.head-1)) && indentOf(s.line(c.head-1)) == c.indent {
		c.head--
	}
	if c.colon = s.behindKey(c.key); c.colon < 0 {
		return c, byHand("%s is written in a way that only a person can change", f.Value.Path)
	}
	s.placeValue(&c, f.Value)
	return c, nil
}

// between reports whether a line is blank, or a comment that is not indented deeper than a key and so belongs to what follows.
func (s *source) between(line, indent int) bool {
	text := s.line(line)
	return strings.TrimSpace(text) == "" || isComment(text) && indentOf(text) <= indent
}

func isComment(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") }

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// behindKey returns the offset behind the colon of a key; -1: there is none.
func (s *source) behindKey(at int) int {
	end := at
	switch s.text[at] {
	case '"', '\'':
		if end = scanQuoted(s.text, at); end < 0 {
			return -1
		}
	}
	for ; end < len(s.text) && s.text[end] != '\n'; end++ {
		if s.text[end] == ':' && (end+1 == len(s.text) || strings.IndexByte(" \t\r\n{[\"'", s.text[end+1]) >= 0) {
			return end + 1
		}
	}
	return -1
}

// placeValue finds which part of a value is on the line of its key.
func (s *source) placeValue(c *chunk, v *file.YAMLNode) {
	lineEnd := s.start(c.first) + len(s.line(c.first))
	empty := c.colon
	c.body = c.behind > c.first+1
	if v.Line != c.first || v.Kind == file.YAMLNull && v.Text == "" || s.offset(v.Place) >= lineEnd {
		c.value, c.after = empty, empty
		return
	}
	c.value = s.offset(v.Place)
	switch end := s.scalarEnd(v, c.value, lineEnd); {
	case end < 0: // a plain scalar of several lines
		c.after = lineEnd
	case end > lineEnd:
		c.after = lineEnd
	default:
		c.after = end
		c.body = c.body && v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	}
}

// scalarEnd returns the offset behind a value that begins at an offset; -1: not known.
func (s *source) scalarEnd(v *file.YAMLNode, at, lineEnd int) int {
	switch {
	case s.text[at] == '"' || s.text[at] == '\'':
		return scanQuoted(s.text, at)
	case s.text[at] == '{' || s.text[at] == '[':
		return scanFlow(s.text, at)
	case v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return at + len(firstWord(s.text[at:lineEnd]))
	}
	line := s.text[at:lineEnd]
	if i := strings.Index(line, " #"); i >= 0 {
		line = line[:i]
	}
	if i := strings.Index(line, "\t#"); i >= 0 {
		line = line[:i]
	}
	if line = strings.TrimRight(line, " \t"); line != v.Text {
		return -1
	}
	return at + len(line)
}

func firstWord(s string) string {
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i]
	}
	return s
}

// scanQuoted returns the offset behind a quoted scalar, or -1.
func scanQuoted(text string, at int) int {
	quote := text[at]
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return -1
}

var reference = lazy.Regexp(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// scanFlow returns the offset behind a value in braces or brackets, or -1.
func scanFlow(text string, at int) int { end, _ := scanBraces(text, at); return end }

// scanBraces is scanFlow, and reports whether there is a comment in the value.
func scanBraces(text string, at int) (end int, comment bool) {
	depth, fresh := 0, true // fresh: a value may begin here
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case fresh && (c == '"' || c == '\''):
			if i = scanQuoted(text, i) - 1; i < 0 {
				return -1, comment
			}
			fresh = false
		case c == '$' && reference().MatchString(text[i:]):
			i += len(reference().FindString(text[i:])) - 1
			fresh = false
		case c == '{' || c == '[':
			depth++
			fresh = true
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1, comment
			}
			fresh = false
		case c == ',' || c == ':':
			fresh = true
		case c == '#' && strings.ContainsRune(" \t\n", rune(text[i-1])):
			comment = true
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				return -1, comment
			}
			i += n
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			fresh = false
		}
	}
	return -1, comment
}

// item is a key of a mapping in braces, from the key to the end of its value.
type item struct{ key, value, end int }

// itemsOf finds the keys of a mapping in braces, in the order of the text. end is the offset of the closing brace.
func (s *source) itemsOf(m *file.YAMLNode) (items []item, open, end int, err error) {
	odd := byHand("%s is written in a way that only a person can change", m.Path)
	open = s.offset(m.Place)
	if open >= len(s.text) || s.text[open] != '{' {
		return nil, 0, 0, odd
	}
	end, comment := scanBraces(s.text, open)
	if end--; end < 0 {
		return nil, 0, 0, odd
	}
	if comment {
		return nil, 0, 0, byHand("%s has a comment between its braces", m.Path)
	}
	for i := range m.Fields {
		at := s.offset(m.Fields[i].Place)
		if at <= open || at >= end || i > 0 && at < items[i-1].end {
			return nil, 0, 0, odd
		}
		it := item{key: at, value: s.behindKey(at)}
		if it.value < 0 || it.value > end {
			return nil, 0, 0, odd
		}
		for it.value < end && strings.IndexByte(" \t\r\n", s.text[it.value]) >= 0 {
			it.value++
		}
		it.end = s.itemEnd(it.value, end)
		if it.end < 0 {
			return nil, 0, 0, odd
		}
		items = append(items, it)
	}
	return items, open, end, nil
}

// itemEnd returns the offset behind a value within braces.
func (s *source) itemEnd(at, limit int) int {
	switch {
	case s.text[at] == '"' || s.text[at] == '\'':
		return scanQuoted(s.text, at)
	case s.text[at] == '{' || s.text[at] == '[':
		return scanFlow(s.text, at)
	}
	i := at
	for i < limit && strings.IndexByte(",}]", s.text[i]) < 0 {
		i += max(1, len(reference().FindString(s.text[i:])))
	}
	return at + len(strings.TrimRight(s.text[at:i], " \t\r\n"))
}
