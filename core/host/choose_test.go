package host

import (
	"slices"
	"strings"
	"testing"
)

// TestChoose is the policy of placement, with the words that `fairlead why` shows.
func TestChoose(t *testing.T) {
	team := func(edit func(s *story)) *Hosts {
		s := begin(t)
		for _, name := range []string{"a", "b", "c"} {
			in := invited(name)
			if name == "c" {
				in.Labels, in.Capacity = []string{"gpu"}, 8
			}
			s.must(in)
		}
		s.must(Place{Session: "s1", Host: "a"}, Place{Session: "s2", Host: "c"}, Place{Session: "s3", Host: "b"},
			Place{Session: "s4", Host: "b"})
		if edit != nil {
			edit(s)
		}
		return &s.hosts
	}
	for _, c := range []struct {
		name  string
		needs Needs
		edit  func(*story)
		want  string
	}{
		{"least loaded", Needs{}, nil, "on c: the least loaded; 1 of 8 places taken (a: 1 of 4 places taken; b: 2 of 4 places taken)"},
		{
			"by name",
			Needs{},
			func(s *story) { s.must(Place{Session: "s5", Host: "c"}) },
			"on a: the least loaded; 1 of 4 places taken (b: 2 of 4 places taken; c: 2 of 8 places taken)",
		},
		{
			"worktree",
			Needs{Worktree: "b"},
			nil,
			"on b: it has the worktree; 2 of 4 places taken (a: 1 of 4 places taken; c: 1 of 8 places taken)",
		},
		{
			"only there",
			Needs{Worktree: "b", Only: "c"},
			nil,
			"on c: the only one that can take it; 1 of 8 places taken (a: another step works in the same folder on c; b: another step works in the same folder on c)",
		},
		{
			"worktree lost",
			Needs{Worktree: "b"},
			func(s *story) { s.must(Lose{"b"}) },
			"on c: the least loaded; 1 of 8 places taken (a: 1 of 4 places taken; b: it is lost)",
		},
		{
			"label",
			Needs{Labels: []string{"gpu"}, Worktree: "b"},
			nil,
			"on c: the only one that can take it; 1 of 8 places taken (a: it lacks the label gpu; b: it lacks the label gpu)",
		},
		{
			"labels",
			Needs{Labels: []string{"tpu", "gpu"}},
			nil,
			"waits for a host: a: it lacks the label gpu, tpu; b: it lacks the label gpu, tpu; c: it lacks the label tpu",
		},
		{"full", Needs{Labels: []string{"gpu"}}, func(s *story) {
			s.must(Join{Name: "c", Boot: "boot1", Labels: []string{"gpu"}, Capacity: 1}, Drain{"b"}, Leave{"a"})
		}, "waits for a host: b: it is draining; c: it is full: 1 of 1 places taken"},
		{"not started", Needs{}, func(s *story) {
			s.must(Leave{"a"}, Leave{"b"}, Leave{"c"}, Join{Name: "d", Boot: "boot1", Invited: true})
		}, "waits for a host: d: its daemon has not started yet"},
		{"disk", Needs{}, func(s *story) {
			s.must(Note{Name: "c", Incarnation: 1, Lacks: []Lack{{What: Disk}}})
		}, "on a: the least loaded; 1 of 4 places taken (b: 2 of 4 places taken; c: its disk is almost full)"},
		{"disk is free again", Needs{}, func(s *story) {
			s.must(Note{Name: "c", Incarnation: 1, Lacks: []Lack{{What: Disk}}}, Note{Name: "c", Incarnation: 1})
		}, "on c: the least loaded; 1 of 8 places taken (a: 1 of 4 places taken; b: 2 of 4 places taken)"},
		{"what it uses is missing", Needs{Uses: []Lack{{Program, "claude"}, {Variable, "KEY"}}}, func(s *story) {
			s.must(Note{Name: "c", Incarnation: 1, Lacks: []Lack{{Variable, "KEY"}}},
				Note{Name: "a", Incarnation: 1, Lacks: []Lack{{Program, "claude"}, {Program, "claude"}}})
		}, "on b: the only one that can take it; 2 of 4 places taken (a: it has no program claude in its PATH; c: its environment has no KEY)"},
		{"what others use is missing", Needs{Uses: []Lack{{Program, "codex"}}}, func(s *story) {
			s.must(Note{Name: "c", Incarnation: 1, Lacks: []Lack{{Variable, "KEY"}, {Program, "claude"}}})
		}, "on c: the least loaded; 1 of 8 places taken (a: 1 of 4 places taken; b: 2 of 4 places taken)"},
		{"of an older incarnation", Needs{}, func(s *story) {
			s.must(Note{Name: "c", Incarnation: 9, Lacks: []Lack{{What: Disk}}})
		}, "on c: the least loaded; 1 of 8 places taken (a: 1 of 4 places taken; b: 2 of 4 places taken)"},
		{"alone", Needs{}, func(s *story) { s.must(Leave{"a"}, Leave{"b"}) }, "on c: the only one that can take it; 1 of 8 places taken"},
	} {
		hosts := team(c.edit)
		choice := hosts.Choose(c.needs)
		if got := choice.String(); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
		if choice.Host != "" && (choice.Reasons[0].Host != choice.Host || !choice.Reasons[0].Takes) {
			t.Errorf("%s: %+v", c.name, choice)
		}
	}
	if got := new(Hosts).Choose(Needs{}).String(); got != "waits: the team has no host" {
		t.Error(got)
	}
}

// TestLacks notes what a host lacks once, in each state in which it may be heard.
func TestLacks(t *testing.T) {
	s := begin(t)
	s.must(invited("a"))
	disk, key := Lack{What: Disk}, Lack{What: Variable, Name: "KEY"}
	note := func(lacks ...Lack) Note { return Note{Name: "a", Incarnation: 1, Lacks: lacks} }
	s.must(note(key, disk, key))
	if got := s.hosts.Hosts["a"].Lacks; !slices.Equal(got, []Lack{disk, key}) {
		t.Errorf("%v", got)
	}
	s.nothing(note(disk, key))
	s.must(Doubt{"a"}, note(disk), Drain{"a"})
	s.nothing(note())
	if got := Lacks([]Lack{{What: LackOf(strings.Repeat("x", 100)), Name: strings.Repeat("y", 1000)}}); len(got[0].What) > wordMax ||
		len(got[0].Name) > lackMax {
		t.Errorf("%v", got)
	}
	if got := Lacks(make([]Lack, 2*lacksMax)); len(got) != 1 {
		t.Errorf("%d of the same", len(got))
	}
	if got := (Lack{What: "gpu", Name: "0"}).String(); got != "it has no gpu 0" {
		t.Error(got)
	}
	s.must(invited("b"), Place{Session: "s1", Host: "b"}, Drain{"b"}, Note{Name: "b", Incarnation: 1, Lacks: []Lack{disk}})
}
