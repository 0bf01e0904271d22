package team

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
)

// TestRepeats checks which sessions repeat those before.
func TestRepeats(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	past := func(ago time.Duration, alone, reason string) Session {
		return Session{EndedAt: now.Add(-ago), Stop: &Stop{OK: reason == "", Reason: reason, Alone: alone}}
	}
	for name, c := range map[string]struct {
		past  []Session
		alone string
		want  bool
	}{
		"the third":                 {[]Session{past(20*time.Second, "a", ""), past(10*time.Second, "a", "")}, "a", true},
		"the second":                {[]Session{past(10*time.Second, "a", "")}, "a", false},
		"slower":                    {[]Session{past(31*time.Second, "a", ""), past(10*time.Second, "a", "")}, "a", false},
		"another text":              {[]Session{past(20*time.Second, "a", ""), past(10*time.Second, "a", "")}, "b", false},
		"another between":           {[]Session{past(20*time.Second, "a", ""), past(10*time.Second, "b", "")}, "a", false},
		"work":                      {[]Session{past(20*time.Second, "", ""), past(10*time.Second, "", "")}, "", false},
		"without a terminal event":  {[]Session{past(20*time.Second, "a", ""), {EndedAt: now}}, "a", false},
		"after a back-off":          {[]Session{past(time.Hour, "a", session.ReasonSameAnswer)}, "a", true},
		"after a back-off, another": {[]Session{past(time.Hour, "a", session.ReasonSameAnswer)}, "b", false},
	} {
		if got := (&Agent{Past: c.past}).RepeatsAnswer(c.alone, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
