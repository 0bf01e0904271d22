package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect judges one redirect. In strict mode, only one to /dev/null or to another descriptor is allowed.
func (s *shell) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		s.cannot("redirect", "a redirect that assigns a variable is not supported", "leave it out")
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
		if v.static() {
			s.reads(v)
		}
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
	if s.strict {
		s.cannot("write files from the shell", "the redirect to "+v.show()+" writes", "leave it out, or write the file with the tool Write")
		return
	}
	s.writes(v, false)
}

// isDescriptor reports whether a word after >& is a descriptor: 2, - or 2-.
func isDescriptor(word string) bool {
	digits := strings.TrimSuffix(word, "-")
	return word != "" && len(digits) <= 2 && strings.Trim(digits, "0123456789") == ""
}

// reads denies MAIN reading what never ends.
func (s *shell) reads(v value) {
	if !s.strict || v.text == "" || s.stop != nil {
		return
	}
	known, _, _ := strings.Cut(v.text, string(hole))
	if i := strings.IndexAny(known, "*?["); v.glob && i >= 0 {
		known = known[:i]
	}
	if known == "" {
		return
	}
	if s.looks++; s.looks > looksMax {
		s.cannot("read so many files at once", "there are more files in it than are looked at", "split it, or name a folder")
		return
	}
	for _, abs := range s.abs(known) {
		if s.j.isDevice(abs) || known != v.text && strings.HasPrefix(abs, "/dev/") {
			s.stopFor(deviceDenial(v.show()))
			return
		}
	}
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
