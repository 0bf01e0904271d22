package host

import "testing"

// H18: branches of a host that has led have come, once, from a host that is not lost.
func TestFetched(t *testing.T) {
	s := begin(t)
	s.must(invited("b"), Place{Session: "s1", Host: "b"})
	s.nothing(Fetched{"b", 1}) // it has not led
	for _, now := range []struct {
		in   Input
		some bool
	}{{nil, true}, {Doubt{"b"}, true}, {Lose{"b"}, false}, {join("b", "boot2"), true}, {Drain{"b"}, true}, {Leave{"b"}, false}} {
		if now.in != nil {
			s.must(now.in)
		}
		h := *s.hosts.Hosts["b"]
		h.Branches = true
		s.hosts.Hosts["b"] = &h
		s.nothing(Fetched{"b", h.Incarnation + 1})
		if !now.some {
			s.nothing(Fetched{"b", h.Incarnation})
			continue
		}
		if s.must(Fetched{"b", h.Incarnation}); s.hosts.Hosts["b"].Branches || s.hosts.Hosts["b"].State != h.State {
			t.Errorf("%+v", s.hosts.Hosts["b"])
		}
		s.nothing(Fetched{"b", h.Incarnation})
	}
}
