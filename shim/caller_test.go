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
	none := func() (string, bool) { return "", false }
	if id, who, unseen := caller(7, none, moving); id != "" || who != at || unseen {
		t.Errorf("it came to rest: %q %v %v", id, who, unseen)
	}
	asked := 0
	late := func() (string, bool) { asked++; return "coder-17", asked == 2 }
	walks = 0
	if id, _, _ := caller(7, late, moving); id != "coder-17" {
		t.Errorf("handed to the shim meanwhile: %q", id)
	}
	again := uint64(0)
	reused := func(int) ([]Birth, bool) { again++; return []Birth{{PID: 7, Start: again}}, true }
	if _, _, unseen := caller(7, none, reused); !unseen {
		t.Error("a number that is used again and again was believed")
	}
	if _, _, unseen := caller(7, none, func(int) ([]Birth, bool) { return nil, false }); !unseen {
		t.Error("a process that is gone was believed")
	}
}
