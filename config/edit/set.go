package edit

import (
	"fmt"
	"slices"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// Refused says why the file is not changed by a program, and what a person can do.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

func byHand(format string, args ...any) error {
	return &Refused{Why: fmt.Sprintf(format, args...) + "; change fairlead.yaml by hand"}
}

// follow goes down a path through mappings that are written in lines. It returns the last of them, the line behind it,
// and the rest of the path from a key of that mapping on.
func (s *source) follow(path []string) (m *file.YAMLNode, limit int, rest []string, err error) {
	m, limit, rest = s.root, s.end(), path
	switch {
	case len(m.Fields) == 0:
		return nil, 0, nil, byHand("the file has no keys")
	case inBraces(m):
		return nil, 0, nil, byHand("the whole file is within braces")
	}
	for {
		if m.Tied {
			return nil, 0, nil, shared(m)
		}
		i := fieldAt(m, rest[0])
		if i < 0 || len(rest) == 1 || inBraces(m.Fields[i].Value) || len(m.Fields[i].Value.Fields) == 0 {
			return m, limit, rest, nil
		}
		b, err := s.blockOf(m, i, limit)
		if err != nil {
			return nil, 0, nil, err
		}
		m, limit, rest = m.Fields[i].Value, b.behind, rest[1:]
	}
}

func fieldAt(m *file.YAMLNode, name string) int {
	return slices.IndexFunc(m.Fields, func(f file.YAMLField) bool { return f.Name == name })
}

// set gives the key at a path a value, and makes the mappings on the path that are missing. Without a value it removes
// the key, and a mapping that becomes empty by it.
func set(b []byte, path []string, v *value) ([]byte, error) {
	s, err := parse(b)
	if err != nil {
		return nil, err
	}
	if v == nil {
		if path = s.emptied(path); path == nil {
			return b, nil
		}
	}
	m, limit, rest, err := s.follow(path)
	if err != nil {
		return nil, err
	}
	i := fieldAt(m, rest[0])
	if i < 0 {
		return s.insert(m, limit, path[:len(path)-len(rest)], rest[0], v.above(rest, s.step()))
	}
	f := &m.Fields[i]
	own, err := s.blockOf(m, i, limit)
	switch {
	case err != nil:
		return nil, err
	case v == nil && len(rest) == 1:
		return s.remove(m, f, own)
	case len(rest) == 1 || len(f.Value.Fields) == 0:
		return s.replace(f, own, v.above(rest, s.step()))
	}
	if err := s.checkBraces(f.Value, own); err != nil {
		return nil, err
	}
	whole := nodeFrom(f.Value)
	put(whole, rest[1:], v)
	return s.replace(f, own, &value{node: whole})
}

// emptied returns the path of what is removed with a key: the outermost mapping that only has this key, except agents.
// nil: there is no such key.
func (s *source) emptied(path []string) []string {
	above := []*file.YAMLNode{s.root}
	for _, key := range path {
		n := above[len(above)-1].Get(key)
		if n == nil {
			return nil
		}
		above = append(above, n)
	}
	for len(path) > 1 && len(above[len(path)-1].Fields) == 1 && !slices.Equal(path[:len(path)-1], []string{"agents"}) {
		path = path[:len(path)-1]
	}
	return path
}

// step is how deep the file indents.
func (s *source) step() int {
	agents := s.root.Get("agents")
	if agents == nil || len(agents.Fields) == 0 || agents.Tied || inBraces(agents) {
		return 2
	}
	return max(1, agents.Fields[0].Column-1)
}
