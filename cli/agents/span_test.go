package agents

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
)

// A night is named by two clock times, whether it is over or not, and only what concerns the agent is in its part.
func TestSpan(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 30, 0, 0, time.UTC) }
	for _, c := range []struct {
		now      time.Time
		from, to time.Time
	}{
		{at(25, 9), at(24, 22).Add(-30 * time.Minute), at(25, 7).Add(-30 * time.Minute)},
		{at(25, 5), at(24, 22).Add(-30 * time.Minute), at(25, 7).Add(-30 * time.Minute)},
	} {
		span, err := SpanOf("coder", "22:00", "07:00", c.now)
		if err != nil || !span.From.Equal(c.from) || !span.To.Equal(c.to) {
			t.Errorf("at %s: %+v, %v", c.now, span, err)
		}
	}
	for _, bad := range [][2]string{{"yesterday", ""}, {"", "soon"}, {"1h", "2h"}, {"2026-11-25", "2026-11-24"}} {
		if span, err := SpanOf("", bad[0], bad[1], at(25, 9)); err == nil {
			t.Errorf("%q: %+v", bad, span)
		}
	}
	span := Span{Agent: "coder", From: at(24, 22), To: at(25, 7)}
	change := func(day, hour int, entity, actor, data string) api.Change {
		ch := api.Change{Entity: entity, Time: at(day, hour), Data: api.Raw(data)}
		ch.Actor.Kind, ch.Actor.ID = "agent", actor
		return ch
	}
	for _, c := range []struct {
		ch   api.Change
		want bool
	}{
		{change(25, 1, "session/coder", "", ""), true},
		{change(25, 1, "control/coder", "", "{"), true},
		{change(25, 1, "question/q1", "", `{"question":{"question":{"agent":"coder"}}}`), true},
		{change(25, 1, "turn/quay", "", `{"turn":{"agent":"coder"}}`), true},
		{change(25, 1, "run/r1", "coder", `{}`), true},
		{change(25, 1, "session/ada", "ada", `{"turn":{"agent":"ada"}}`), false},
		{change(25, 1, "run/coder", "", `7`), false},
		{change(24, 21, "session/coder", "", ""), false},
		{change(25, 8, "session/coder", "", ""), false},
	} {
		if span.has(c.ch) != c.want {
			t.Errorf("%s at %s: %t", c.ch.Entity, c.ch.Time, !c.want)
		}
	}
}
