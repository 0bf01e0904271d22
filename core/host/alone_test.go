package host

import "testing"

// TestAlone makes ordinary hosts of all engine hosts but one, in each state. A host that has left stays as it is.
func TestAlone(t *testing.T) {
	s := begin(t)
	engine := func(name string) Join {
		j := invited(name)
		j.Engine = name + ":4222"
		return j
	}
	s.must(engine("a"), engine("b"), engine("c"), engine("d"), engine("e"), engine("f"), invited("g"), Doubt{"c"}, Doubt{"d"}, Lose{"d"},
		Leave{"e"}, Place{Session: "s1", Host: "f"}, Drain{"f"})
	s.must(Alone{"a"})
	for name, want := range map[string]State{"a": Joined, "b": Joined, "c": Doubted, "d": Lost, "e": Left, "f": Draining, "g": Joined} {
		s.is(name, want, 1)
		if h := s.hosts.Hosts[name]; (h.Engine != "") != (name == "a" || name == "e") {
			t.Errorf("host %s: %+v", name, h)
		}
	}
	s.nothing(Alone{"a"})
}
