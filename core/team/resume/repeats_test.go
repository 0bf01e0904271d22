package resume

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
)

// TestRepeats checks which sessions repeat those before.
func TestRepeats(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	past := func(ago time.Duration, alone, reason string) team.Session {
		return team.Session{EndedAt: now.Add(-ago), Stop: &team.Stop{OK: reason == "", Reason: reason, Alone: alone}}
	}
	for name, c := range map[string]struct {
		past  []team.Session
		alone string
		want  bool
	}{
		"the third":                 {[]team.Session{past(20*time.Second, "a", ""), past(10*time.Second, "a", "")}, "a", true},
		"the second":                {[]team.Session{past(10*time.Second, "a", "")}, "a", false},
		"slower":                    {[]team.Session{past(31*time.Second, "a", ""), past(10*time.Second, "a", "")}, "a", false},
		"another text":              {[]team.Session{past(20*time.Second, "a", ""), past(10*time.Second, "a", "")}, "b", false},
		"another between":           {[]team.Session{past(20*time.Second, "a", ""), past(10*time.Second, "b", "")}, "a", false},
		"work":                      {[]team.Session{past(20*time.Second, "", ""), past(10*time.Second, "", "")}, "", false},
		"without a terminal event":  {[]team.Session{past(20*time.Second, "a", ""), {EndedAt: now}}, "a", false},
		"after a back-off":          {[]team.Session{past(time.Hour, "a", session.ReasonSameAnswer)}, "a", true},
		"after a back-off, another": {[]team.Session{past(time.Hour, "a", session.ReasonSameAnswer)}, "b", false},
	} {
		if got := Repeats(&team.Agent{Past: c.past}, c.alone, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
