package demo

import "testing"

// The summary says when it does not know how all sessions ended.
func TestSessionWords(t *testing.T) {
	for want, agent := range map[string]demoAgent{
		"0 sessions":                                 {},
		"1 session: 1 ok, 12 bytes said":             {Total: 1, Sessions: map[string]int{"ok": 1}, Bytes: 12},
		"3 sessions: 1 open, 2 failed, 5 bytes said": {Total: 3, Sessions: map[string]int{"": 1, "failed": 2}, Bytes: 5},
		"57 sessions; of the newest 20: 2 failed, 18 ok, 9 bytes said": {
			Total: 57, Sessions: map[string]int{"ok": 18, "failed": 2},
			Bytes: 9,
		},
	} {
		if got := sessionWords(agent); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
