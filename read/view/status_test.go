package view

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
)

// SPEC, corrections, "status": one word from evidence, the first that applies, with its reason.
func TestStatus(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	later, earlier := now.Add(time.Minute), now.Add(-time.Minute)
	running := func(v *AgentView) {
		v.Session, v.Badge = &SessionView{ID: "a-1", PID: 7, Phase: "running", For: team.ForControl, Kind: string(control.Work)},
			BadgeRunning
		v.CurrentState, v.DesiredState = "continuous", "continuous"
	}
	foreign := func(v *AgentView) {
		v.Loop, v.Badge, v.CurrentState, v.DesiredState = "foreign", BadgeRunning, "continuous", "continuous"
	}
	cases := []struct {
		name     string
		do       []func(*AgentView)
		stopping bool
		want     string
	}{
		{"nothing", nil, false, "idle paused"},
		{"runs", []func(*AgentView){running}, false, "running"},
		{
			"contradicted comes first",
			[]func(*AgentView){running, func(v *AgentView) { v.Asks = 1; v.Contradicted("no answer") }},
			false,
			"unknown",
		},
		{"told to end", []func(*AgentView){running, func(v *AgentView) { v.Session.Ending, v.Asks = "limit", 1 }}, false, "stopping"},
		{"pause is wanted next", []func(*AgentView){running, func(v *AgentView) { v.DesiredState = "pause" }}, false, "stopping"},
		{"the daemon stops", []func(*AgentView){running}, true, "stopping"},
		{"a turn of a paused agent is no stop", []func(*AgentView){running, func(v *AgentView) {
			v.Session.For, v.Badge, v.CurrentState, v.DesiredState = team.ForChannels, BadgeIdle, "pause", "pause"
		}}, false, "running"},
		{"asks", []func(*AgentView){running, func(v *AgentView) { v.Asks, v.LimitedUntil = 1, &later }}, false, "waiting"},
		{"rate limited", []func(*AgentView){func(v *AgentView) { v.LimitedUntil, v.RetryAt = &later, &later }}, false, "rate_limited"},
		{"a limit that has passed", []func(*AgentView){func(v *AgentView) { v.LimitedUntil = &earlier }}, false, "idle paused"},
		{
			"backs off",
			[]func(*AgentView){func(v *AgentView) { v.RetryAt, v.GaveUp, v.DesiredState = &later, &now, "continuous" }},
			false,
			"backing_off",
		},
		{"gave up", []func(*AgentView){func(v *AgentView) { v.GaveUp = &now }}, false, "failed"},
		{"about to start", []func(*AgentView){running, func(v *AgentView) { v.Session.Phase = "opened" }}, false, "idle queued"},
		{
			"waits for its slot",
			[]func(*AgentView){func(v *AgentView) { v.DesiredState, v.WaitingBehind = "run_once", "a step" }},
			false,
			"idle queued",
		},
		{"held", []func(*AgentView){func(v *AgentView) { v.DesiredState, v.Held = "continuous", true }}, false, "idle held"},
		{"limit", []func(*AgentView){func(v *AgentView) { v.OverLimit = "tokens_per_day" }}, false, "idle limit"},
		{"disabled", []func(*AgentView){func(v *AgentView) { v.Disabled, v.OverLimit = true, "x" }}, false, "idle disabled"},
		{"a foreign loop reports", []func(*AgentView){foreign}, false, "running"},
		{
			"a foreign loop that Fairlead starts is known by its process",
			[]func(*AgentView){foreign, func(v *AgentView) { v.Program, v.RetryAt = true, &later }},
			false, "backing_off",
		},
		{"and by nothing else", []func(*AgentView){foreign, func(v *AgentView) { v.Program = true }}, false, "idle queued"},
		{"its program has written nothing yet", []func(*AgentView){running, func(v *AgentView) {
			v.Loop, v.Program, v.Session.Kind, v.Badge, v.CurrentState, v.DesiredState = "foreign", true, string(control.Program),
				BadgeIdle, NotReported, "pause"
		}}, false, "running"},
		{"its program waits for an order", []func(*AgentView){running, func(v *AgentView) {
			v.Loop, v.Program, v.Session.Kind, v.Badge, v.CurrentState, v.DesiredState = "foreign", true, string(control.Program),
				BadgeIdle, "pause", "pause"
		}}, false, "idle paused"},
	}
	for _, c := range cases {
		v := AgentView{
			Name: "a", Loop: "fairlead", Badge: BadgeIdle, CurrentState: "pause", DesiredState: "pause",
			Certainty: CertaintyKnown,
		}
		for _, do := range c.do {
			do(&v)
		}
		v.SetStatus(c.stopping, now)
		got := string(v.Status)
		if v.IdleReason != "" {
			got += " " + string(v.IdleReason)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if c.want == "backing_off" && !strings.HasPrefix(v.StatusWhy, "the last session failed; ") {
			t.Errorf("%s: %q", c.name, v.StatusWhy)
		}
		if v.Word() == "" || v.Status == StatusRunning && v.StatusWhy == "" {
			t.Errorf("%s: word %q, why %q", c.name, v.Word(), v.StatusWhy)
		}
	}
}
