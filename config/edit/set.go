package edit

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// Refused says why the file is not changed by a program, and what a person can do.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

func byHand(format string, args ...any) error {
	return &Refused{Why: fmt.Sprintf(format, args...) + "; change fairlead.yaml by hand"}
}

// order is the order in which keys are added. Keys that are not in it come last.
var order = []string{
	"version", "team", "agents",
	"description", "driver", "command", "script", "workspace", "loop", "model", "mode", "session_prompt", "cleanup_prompt", "cleanup_every",
	"instances", "ports", "env", "limits", "permissions", "sandbox",
}

func rank(key string) int {
	if i := slices.Index(order, key); i >= 0 {
		return i
	}
	return len(order)
}

// spot is what is found at a path.
type spot struct {
	in    *file.YAMLNode // the last mapping on the path
	at    int            // the index in it of the key that the path names next; -1: there is none
	known int            // how many keys of the path are there
	limit int            // the line at which something else than in begins
	flow  bool           // in is within braces
}

// find follows a path as far as it exists. It stops at a mapping without keys, so that its key is the last one known.
func (s *source) find(path []string) (spot, error) {
	sp := spot{in: s.root, at: -1, limit: s.end()}
	if len(s.root.Fields) == 0 {
		return sp, byHand("the file has no keys")
	}
	for n := s.root; ; {
		if n.Style&yaml.FlowStyle != 0 {
			if n == s.root {
				return sp, byHand("the whole file is within braces")
			}
			sp.flow = true
		}
		if n.Tied {
			return sp, byHand("%s has an anchor (&), an alias (*) or a merge key (<<), so other keys may share its values", n.Path)
		}
		sp.in, sp.at = n, slices.IndexFunc(n.Fields, func(f file.YAMLField) bool { return f.Name == path[sp.known] })
		if sp.at < 0 {
			return sp, nil
		}
		sp.known++
		v := n.Fields[sp.at].Value
		if sp.known == len(path) || v.Kind != file.YAMLObject || len(v.Fields) == 0 {
			return sp, nil
		}
		if !sp.flow {
			c, err := s.chunkOf(n, sp.at, sp.limit)
			if err != nil {
				return sp, err
			}
			sp.limit = c.behind
		}
		n = v
	}
}

// set gives the key at a path a value, and makes the mappings on the path that are missing.
func set(b []byte, path []string, v value) ([]byte, error) {
	s, err := parse(b)
	if err != nil {
		return nil, err
	}
	sp, err := s.find(path)
	if err != nil {
		return nil, err
	}
	step := s.step()
	rest := path[sp.known:]
	if sp.at >= 0 { // the value of a key is replaced
		if n := sp.in.Fields[sp.at].Value; n.Tied || tied(n) {
			return nil, byHand("%s has an anchor (&), an alias (*) or a merge key (<<), so other keys may share its values", n.Path)
		}
		for _, key := range slices.Backward(rest) {
			v = below(key, v, step)
		}
		return s.replace(sp, v)
	}
	for _, key := range slices.Backward(rest[1:]) {
		v = below(key, v, step)
	}
	return s.insert(sp, path[:sp.known], rest[0], v)
}

// step is how deep the file indents.
func (s *source) step() int {
	if agents := s.root.Get("agents"); agents != nil && len(agents.Fields) > 0 && !agents.Tied && agents.Style&yaml.FlowStyle == 0 && agents.Fields[0].Column > 1 {
		return agents.Fields[0].Column - 1
	}
	return 2
}

func tied(n *file.YAMLNode) bool {
	return n.Tied || slices.ContainsFunc(n.Fields, func(f file.YAMLField) bool { return tied(f.Value) }) || slices.ContainsFunc(n.Items, tied)
}

func (s *source) replace(sp spot, v value) ([]byte, error) {
	if sp.flow {
		items, _, _, err := s.itemsOf(sp.in)
		if err != nil {
			return nil, err
		}
		it := items[sp.at]
		return s.splice(it.value, it.end, v.flow), nil
	}
	c, err := s.chunkOf(sp.in, sp.at, sp.limit)
	if err != nil {
		return nil, err
	}
	if v.written != nil {
		return s.splice(s.start(c.head), s.start(c.behind), s.joined(v.written, c.indent)), nil
	}
	lineEnd := s.start(c.first) + len(s.line(c.first))
	tail := s.text[c.after:lineEnd] // a comment
	line := s.text[s.start(c.first):c.colon]
	if v.line != "" {
		gap := s.text[c.colon:c.value]
		if strings.Trim(gap, " \t") != "" || gap == "" {
			gap = " "
		}
		line += gap + v.line
	}
	if tail != "" && !strings.HasPrefix(tail, " ") && !strings.HasPrefix(tail, "\t") {
		tail = " " + tail
	}
	out := strings.TrimRight(line+tail, " \t") + s.eol + s.joined(v.body, c.indent)
	end := s.start(c.first + 1)
	if c.body {
		end = s.start(c.behind)
	}
	return s.splice(s.start(c.first), end, s.ended(out, end)), nil
}

// ended cuts the last line ending if the text that is replaced had none.
func (s *source) ended(out string, end int) string {
	if end == len(s.text) && !strings.HasSuffix(s.text, "\n") {
		return strings.TrimSuffix(out, s.eol)
	}
	return out
}

// joined indents lines and ends each.
func (s *source) joined(lines []string, indent int) string {
	var b strings.Builder
	for _, line := range lines {
		if line != "" {
			b.WriteString(strings.Repeat(" ", indent) + line)
		}
		b.WriteString(s.eol)
	}
	return b.String()
}

func (s *source) splice(from, to int, with string) []byte {
	return []byte(s.text[:from] + with + s.text[to:])
}

func (s *source) insert(sp spot, at []string, key string, v value) ([]byte, error) {
	if sp.flow {
		items, open, end, err := s.itemsOf(sp.in)
		if err != nil {
			return nil, err
		}
		add := quoted(key, true) + ": " + v.flow
		if len(items) == 0 {
			return s.splice(open+1, end, add), nil
		}
		last := items[len(items)-1].end
		return s.splice(last, last, ", "+add), nil
	}
	agent := len(at) == 1 && at[0] == "agents"
	after := len(sp.in.Fields) - 1
	if !agent && rank(key) < len(order) {
		for i, f := range sp.in.Fields {
			if rank(f.Name) < rank(key) {
				after = i
			}
		}
	}
	c, err := s.chunkOf(sp.in, after, sp.limit)
	if err != nil {
		return nil, err
	}
	from := s.start(c.behind)
	lines := v.lines(key)
	if len(at) == 0 || agent && len(sp.in.Fields) > 1 && c.head > 1 && strings.TrimSpace(s.line(c.head-1)) == "" {
		lines = append([]string{""}, lines...) // a blank line between sections, and between agents where the file has them
	}
	add := s.joined(lines, c.indent)
	if from > 0 && s.text[from-1] != '\n' {
		add = s.eol + strings.TrimSuffix(add, s.eol)
	}
	return s.splice(from, from, add), nil
}

// unset removes the key at a path, and a mapping that becomes empty by it. It is no error if the key is not there.
func unset(b []byte, path []string) ([]byte, error) {
	s, err := parse(b)
	if err != nil {
		return nil, err
	}
	sp, err := s.find(path)
	if err != nil || sp.at < 0 || sp.known < len(path) {
		return b, err
	}
	if n := sp.in.Fields[sp.at].Value; tied(n) {
		return nil, byHand("%s has an anchor (&), an alias (*) or a merge key (<<), so other keys may share its values", n.Path)
	}
	if len(sp.in.Fields) == 1 && len(path) > 1 && !slices.Equal(path[:len(path)-1], []string{"agents"}) {
		return unset(b, path[:len(path)-1])
	}
	if sp.flow {
		items, open, _, err := s.itemsOf(sp.in)
		if err != nil {
			return nil, err
		}
		switch {
		case sp.at+1 < len(items):
			return s.splice(items[sp.at].key, items[sp.at+1].key, ""), nil
		case sp.at > 0:
			return s.splice(items[sp.at-1].end, items[sp.at].end, ""), nil
		}
		return s.splice(open+1, items[sp.at].end, ""), nil
	}
	c, err := s.chunkOf(sp.in, sp.at, sp.limit)
	if err != nil {
		return nil, err
	}
	from, to := c.head, c.behind
	first := !slices.ContainsFunc(sp.in.Fields, func(f file.YAMLField) bool { return f.Line < c.first })
	if len(sp.in.Fields) > 1 && from > 1 && (first || strings.TrimSpace(s.line(from-1)) == "") { // or a blank line would follow the first one, or another blank line
		for to < s.end() && strings.TrimSpace(s.line(to)) == "" {
			to++
		}
	}
	return s.splice(s.start(from), s.start(to), ""), nil
}
