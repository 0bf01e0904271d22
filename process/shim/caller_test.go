package shim

import "testing"

// A tree that changes during the walk is walked again; one that never rests is not believed.
func TestCallerInAChangingTree(t *testing.T) {
	at := Birth{PID: 7, Start: 70}
	whole := []Birth{at, {PID: 5, Start: 50}}
	walks := 0
	moving := func(int) ([]Birth, bool) {
		if walks++; walks < 3 {
			return whole[:1], false // its parent exits just now
		}
		return whole, true
	}
	none := func(int) []string { return nil }
	if is := caller(7, none, moving, "w.", nil); is != (Origin{Who: at}) {
		t.Errorf("it came to rest: %+v", is)
	}
	asked := 0
	late := func(int) []string {
		if asked++; asked == 2 {
			return []string{"w.coder-17"}
		}
		return []string{"w.forged-1"} // the walk ended below the shim
	}
	walks = 1
	if is := caller(7, late, moving, "w.", nil); is.Session != "coder-17" {
		t.Errorf("handed to the shim meanwhile: %+v", is)
	}
	again := uint64(0)
	reused := func(int) ([]Birth, bool) { again++; return []Birth{{PID: 7, Start: again}}, true }
	if is := caller(7, none, reused, "w.", nil); !is.Unseen {
		t.Error("a number that is used again and again was believed")
	}
	if is := caller(7, none, func(int) ([]Birth, bool) { return nil, false }, "w.", nil); !is.Unseen {
		t.Error("a process that is gone was believed")
	}
}

// The marks of a process and its ancestors, innermost first, and the marks of the process that asks.
func TestSessionIn(t *testing.T) {
	for name, c := range map[string]struct {
		marks, around []string
		session       string
		foreign       string
	}{
		"a person":                    {},
		"an agent":                    {marks: []string{"w.coder-17", "w.coder-17"}, session: "coder-17"},
		"an agent that names another": {marks: []string{"w.reviewer-2", "w.coder-17"}, session: "coder-17"},
		"of another repository":       {marks: []string{"v.coder-17"}, foreign: "coder-17"},
		"one there that names us":     {marks: []string{"w.reviewer-2", "v.coder-17"}, foreign: "coder-17"},
		"its daemon asks":             {marks: []string{"v.coder-17"}, around: []string{"v.coder-17"}},
		"an agent of a daemon in an agent": {
			marks: []string{"w.coder-1", "v.coder-17"}, around: []string{"v.coder-17"},
			session: "coder-1",
		},
		"another agent of the daemon around": {marks: []string{"v.other-1"}, around: []string{"v.coder-17"}, foreign: "other-1"},
		"the agent that started our daemon":  {marks: []string{"w.coder-17"}, around: []string{"w.coder-17"}, session: "coder-17"},
		"an agent of a daemon that an agent of this repository started": {
			marks: []string{"w.reviewer-2", "w.coder-17"}, around: []string{"w.coder-17"}, session: "reviewer-2",
		},
		"nonsense":             {marks: []string{"nonsense"}, foreign: "?"},
		"a session of no name": {marks: []string{"w."}},
		"control characters":   {marks: []string{"v.a\n\x1b[2Jb"}, foreign: "a??[2Jb"},
	} {
		if is := sessionIn(c.marks, "w.", c.around); is.Session != c.session || is.Foreign != c.foreign {
			t.Errorf("%s: %+v, want %q, %q", name, is, c.session, c.foreign)
		}
	}
}
