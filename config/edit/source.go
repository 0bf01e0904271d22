package edit

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// source is the text of a file as lines, with its tree. Lines are counted from 1, as in the tree.
type source struct {
	lines []string // each with its ending
	eol   string
	open  bool // the file does not end in a line break; the last of lines has one
	root  *file.YAMLNode
}

// oddBreaks are line breaks that YAML knows besides LF and CR LF.
const oddBreaks = "\u0085\u2028\u2029"

func parse(b []byte) (*source, error) {
	root, err := config.Tree(b)
	if err != nil {
		return nil, err
	}
	text := string(b)
	if strings.ContainsAny(text, oddBreaks) || strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r") {
		return nil, byHand("the file has line breaks that are neither LF nor CR LF")
	}
	s := &source{eol: "\n", root: root}
	if strings.Contains(text, "\r\n") {
		s.eol = "\r\n"
	}
	if s.open = !strings.HasSuffix(text, "\n"); s.open {
		text += s.eol
	}
	s.lines = slices.Collect(strings.Lines(text))
	return s, nil
}

// end returns the number behind the last line.
func (s *source) end() int { return len(s.lines) + 1 }

// line returns a line without its ending.
func (s *source) line(n int) string { return strings.TrimRight(s.lines[n-1], "\r\n") }

// with returns the text with other lines in place of those from one to before another.
func (s *source) with(from, to int, lines ...string) []byte {
	var b strings.Builder
	b.WriteString(strings.Join(s.lines[:from-1], ""))
	for _, line := range lines {
		b.WriteString(line + s.eol)
	}
	b.WriteString(strings.Join(s.lines[to-1:], ""))
	if s.open {
		return []byte(strings.TrimSuffix(b.String(), s.eol))
	}
	return []byte(b.String())
}

// sameWith reports whether the file says the same with other lines.
func (s *source) sameWith(from, to int, lines ...string) bool {
	root, err := config.Tree(s.with(from, to, lines...))
	return err == nil && same(root, s.root)
}

// block is the lines of one key of a mapping, with its value.
type block struct {
	head   int // the first comment directly above the key
	first  int // the key
	behind int // behind the last line of the value and of the comments that are deeper than the key
	limit  int // behind the blank lines and comments that follow
	indent string
}

// blockOf finds the lines of a key of a mapping that is not within braces. limit is the line behind the mapping.
func (s *source) blockOf(m *file.YAMLNode, i, limit int) (block, error) {
	f := &m.Fields[i]
	for _, other := range m.Fields {
		if other.Line > f.Line {
			limit = min(limit, other.Line)
		}
	}
	b := block{head: f.Line, first: f.Line, behind: limit, limit: limit, indent: upTo(s.line(f.Line), f.Column)}
	if limit <= f.Line || strings.Trim(b.indent, " ") != "" {
		return b, byHand("%s is not on a line of its own", f.Value.Path)
	}
	for b.behind > b.first+1 && s.between(b.behind-1, len(b.indent)) {
		b.behind--
	}
	for b.head > 1 && isComment(s.line(b.head-1)) && indentOf(s.line(b.head-1)) == len(b.indent) {
		b.head--
	}
	return b, nil
}

// upTo returns the part of a line before a column, which counts characters.
func upTo(line string, column int) string {
	runes := []rune(line)
	return string(runes[:min(len(runes), column-1)])
}

// between reports whether a line is blank, or a comment that is not deeper than a key and so belongs to what follows.
func (s *source) between(n, indent int) bool {
	return blank(s.line(n)) || isComment(s.line(n)) && indentOf(s.line(n)) <= indent
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

func isComment(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") }

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// cut returns the parts of a line before and from the comment at its end, with the space before it. The reader of the
// file decides what is a comment: the file says the same without it.
func (s *source) cut(n int) (string, string) {
	line := s.line(n)
	for i := range len(line) {
		if line[i] != '#' || i > 0 && line[i-1] != ' ' && line[i-1] != '\t' {
			continue
		}
		if before := strings.TrimRight(line[:i], " \t"); s.sameWith(n, n+1, before) {
			return before, line[len(before):]
		}
	}
	return line, ""
}

// replace gives a key another value. A comment behind the old value stays, and so do comments below a value of one line.
func (s *source) replace(f *file.YAMLField, b block, v *value) ([]byte, error) {
	switch {
	case tied(f.Value):
		return nil, shared(f.Value)
	case v.written != nil:
		return s.with(b.head, b.behind, indented(b.indent, v.written)...), nil
	}
	before, comment := s.cut(b.first)
	key := before
	if f.Value.Line == b.first && (f.Value.Kind != file.YAMLNull || f.Value.Text != "") {
		key = upTo(before, f.Value.Column)
	}
	bare := strings.TrimRight(key, " \t")
	if !strings.HasSuffix(bare, ":") {
		return nil, byHand("%s is written in a way that only a person can change", f.Value.Path)
	}
	if key == bare {
		key += " "
	}
	end := b.behind
	if s.sameWith(b.first+1, end) {
		end = b.first + 1
	}
	lines := v.lines("k", s.step())
	first := strings.TrimRight(key+strings.TrimPrefix(strings.TrimPrefix(lines[0], "k:"), " "), " \t")
	return s.with(b.first, end, append([]string{first + comment}, indented(b.indent, lines[1:])...)...), nil
}

// checkBraces refuses a value in braces that has a comment before its last line, which would be lost.
func (s *source) checkBraces(n *file.YAMLNode, b block) error {
	for last := b.behind - 1; last > n.Line; last-- {
		if s.sameWith(last, b.behind) {
			continue // a comment below the value
		}
		for at := n.Line; at < last; at++ {
			if _, comment := s.cut(at); comment != "" {
				return byHand("%s has a comment between its braces", n.Path)
			}
		}
		return nil
	}
	return nil
}

// insert adds a key to a mapping that is not within braces. at is the path of the mapping, limit the line behind it.
func (s *source) insert(m *file.YAMLNode, limit int, at []string, key string, v *value) ([]byte, error) {
	after, keys := len(m.Fields)-1, config.Keys(at...)
	if rank := slices.Index(keys, key); rank >= 0 {
		for i, f := range m.Fields {
			if slices.Contains(keys[:rank], f.Name) {
				after = i
			}
		}
	}
	b, err := s.blockOf(m, after, limit)
	if err != nil {
		return nil, err
	}
	lines := indented(b.indent, v.lines(key, s.step()))
	if len(at) == 0 || slices.Equal(at, []string{"agents"}) && len(m.Fields) > 1 && b.head > 1 && blank(s.line(b.head-1)) {
		lines = append([]string{""}, lines...) // a blank line between sections, and between agents where the file has them
	}
	return s.with(b.behind, b.behind, lines...), nil
}

// remove takes a key away, with the comments directly above it.
func (s *source) remove(m *file.YAMLNode, f *file.YAMLField, b block) ([]byte, error) {
	if tied(f.Value) {
		return nil, shared(f.Value)
	}
	from, to := b.head, b.behind
	first := !slices.ContainsFunc(m.Fields, func(other file.YAMLField) bool { return other.Line < b.first })
	if len(m.Fields) > 1 && from > 1 && (first || blank(s.line(from-1))) { // or blank lines would be first, or would meet
		for to < s.end() && blank(s.line(to)) {
			to++
		}
	}
	return s.with(from, to), nil
}

// inBraces reports whether a value is a mapping or a list in braces or brackets.
func inBraces(n *file.YAMLNode) bool { return n.Style&yaml.FlowStyle != 0 }

func tied(n *file.YAMLNode) bool {
	return n.Tied || slices.ContainsFunc(n.Fields, func(f file.YAMLField) bool { return tied(f.Value) }) ||
		slices.ContainsFunc(n.Items, tied)
}

func shared(n *file.YAMLNode) error {
	return byHand("%s has an anchor (&), an alias (*) or a merge key (<<), so other keys may share its values", n.Path)
}
