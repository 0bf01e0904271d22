package agents

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
)

// Span is a part of what happened: of one agent, and between two times. Its zero value is everything.
type Span struct {
	Agent    string
	From, To time.Time
}

// SpanOf reads a span as a person wrote it. A clock time for the end is the first one after the beginning, so that
// 22:00 to 07:00 is one night.
func SpanOf(agent, since, until string, now time.Time) (Span, error) {
	span := Span{Agent: agent}
	for _, one := range []struct {
		flag, text string
		to         *time.Time
	}{{"--since", since, &span.From}, {"--until", until, &span.To}} {
		at, ok := cli.TimeOf(one.text, now)
		if one.text != "" && !ok {
			return span, fmt.Errorf("%s %q is not a time; write how long ago, as in 90m or 7d, a time as in 22:00, or a date as in 2026-11-25", one.flag, one.text)
		}
		if one.text != "" {
			*one.to = at
		}
	}
	if next := span.To.AddDate(0, 0, 1); clockTime(until) && span.To.Before(span.From) && next.After(span.From) {
		span.To = next
	}
	if !span.To.IsZero() && span.To.Before(span.From) {
		return span, fmt.Errorf("--until %s is before --since %s", until, since)
	}
	return span, nil
}

// clockTime reports whether a time is written without a day.
func clockTime(text string) bool {
	return strings.Contains(text, ":") && !strings.ContainsAny(text, "-T")
}

func (s Span) empty() bool { return s == Span{} }

// over reports whether a change and all later ones are after the span.
func (s Span) over(ch api.Change) bool { return !s.To.IsZero() && ch.Time.After(s.To) }

// has reports whether a change is in the span.
func (s Span) has(ch api.Change) bool {
	if ch.Time.Before(s.From) || s.over(ch) {
		return false
	}
	if s.Agent == "" {
		return true
	}
	if _, name, _ := strings.Cut(ch.Entity, "/"); name == s.Agent && (strings.HasPrefix(ch.Entity, "control/") || strings.HasPrefix(ch.Entity, "session/")) {
		return true
	}
	if ch.Actor.Kind == "agent" && ch.Actor.ID == s.Agent {
		return true
	}
	var about struct {
		Question struct {
			Question struct {
				Agent string `json:"agent"`
			} `json:"question"`
		} `json:"question"`
		Turn struct {
			Agent string `json:"agent"`
		} `json:"turn"`
	}
	if json.Unmarshal(ch.Data, &about) != nil {
		return false // unreadable data names no agent
	}
	return about.Question.Question.Agent == s.Agent || about.Turn.Agent == s.Agent
}
