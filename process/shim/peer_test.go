package shim

import "testing"

// What was read of a process counts only if the process that made the connection was there before and after.
func TestSecondLookAtAPeer(t *testing.T) {
	person := Origin{Who: Birth{PID: 7, Start: 70}}
	for name, c := range map[string]struct {
		ended []bool // at each look
		read  int    // how often the process is read
		want  Origin
	}{
		"it lives":                 {ended: []bool{false, false}, read: 1, want: person},
		"it had ended":             {ended: []bool{true}, want: Origin{Unseen: true}},
		"it ends while it is read": {ended: []bool{false, true}, read: 1, want: Origin{Unseen: true}},
	} {
		looks, read := 0, 0
		p := peerProcess{pid: 7, ended: func() bool { looks++; return c.ended[looks-1] }}
		is := p.origin(func(pid int) Origin {
			if read++; pid != 7 {
				t.Errorf("%s: process %d is read", name, pid)
			}
			return person
		})
		if is != c.want || looks != len(c.ended) || read != c.read {
			t.Errorf("%s: %+v after %d looks and %d reads", name, is, looks, read)
		}
	}
}
