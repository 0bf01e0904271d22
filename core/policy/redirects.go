package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect judges one redirect.
func (s *shell) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		s.cannot("a redirect that assigns a variable is not supported")
	}
	var values []value
	if r.Word != nil {
		values = s.word(r.Word)
	}
	var v value
	if len(values) == 1 {
		v = values[0]
	} else {
		v = unknownValue()
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc != nil {
			for _, body := range s.word(r.Hdoc) {
				s.stdin += body.text
			}
		}
	case syntax.WordHdoc:
		s.stdin += v.text
	case syntax.RdrIn:
	case syntax.DplIn, syntax.DplOut:
		if v.static() && isDescriptor(v.text) {
			return
		}
		s.redirectTo(v)
	default:
		s.redirectTo(v)
	}
}

func (s *shell) redirectTo(v value) {
	if v.static() && v.text == "/dev/null" {
		return
	}
	s.acts = true
	s.writes(v, false)
}

// isDescriptor reports whether a word after >& is a descriptor: 2, - or 2-.
func isDescriptor(word string) bool {
	digits := strings.TrimSuffix(word, "-")
	return word != "" && len(digits) <= 2 && strings.Trim(digits, "0123456789") == ""
}

// abs returns the paths that a relative path may mean, in every folder that the command may be in.
func (s *shell) abs(p string) []string {
	if strings.HasPrefix(p, "/") {
		return []string{p}
	}
	all := make([]string, 0, len(s.dirs))
	for _, dir := range s.dirs {
		all = append(all, join(dir, p))
	}
	return all
}
