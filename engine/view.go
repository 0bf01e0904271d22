package engine

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// TeamView is the team as `fairlead ps --json` and GET /agents show it.
type TeamView struct {
	Hold     bool        `json:"hold"`
	Note     string      `json:"hold_note,omitempty"`
	Stopping bool        `json:"stopping"`
	Head     uint64      `json:"head"` // the Seq as of which this is true
	Team     string      `json:"team"`
	Agents   []AgentView `json:"agents"`
}

// AgentView is one agent. Badge comes from current_state alone (seed 000); what speaks
// against it stands in Doubt (J5).
type AgentView struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	Driver        string            `json:"driver"`
	Loop          string            `json:"loop"`
	DesiredState  string            `json:"desired_state"`
	CurrentState  string            `json:"current_state"`
	Badge         string            `json:"badge"`
	Presence      string            `json:"presence" doc:"lead for the one that leads the team; else the status of the team's agent of this name, if there is one"`
	Turn          map[string]string `json:"turn"`
	SetBy         string            `json:"set_by"`
	Note          string            `json:"note"`
	Timestamp     time.Time         `json:"timestamp,omitzero"`
	Session       *SessionView      `json:"session"`
	EvidenceAgeMS *int64            `json:"evidence_age_ms"`
	Doubt         string            `json:"doubt"`
	Certainty     string            `json:"certainty" doc:"known, or unknown: then doubt says what contradicts the badge"` // known, or unknown: then Doubt says what contradicts the badge
	Failures      int               `json:"failures"`
	RetryAt       *time.Time        `json:"retry_at"`
	WaitingBehind string            `json:"waiting_behind"`
	UsageToday    UsageView         `json:"usage_today"`
	Limits        LimitsView        `json:"limits"`
	Removed       bool              `json:"removed"`

	Asks         int               `json:"asks" doc:"Questions of it that wait for a person"`
	AsksWhat     string            `json:"asks_what,omitempty" doc:"The oldest of them, in one sentence"`
	Denied       int               `json:"denied" doc:"What its open session asked for and was not allowed"`
	LimitedUntil *time.Time        `json:"limited_until" doc:"Its provider takes nothing more until then; null: it does"`
	LimitedWhy   string            `json:"limited_why,omitempty"`
	Says         *SaysView         `json:"says" doc:"What it says of itself"`
	Conversation *ConversationView `json:"conversation" doc:"With its program, the open one or the last"`

	FileBehind bool `json:"file_behind" doc:"agent_state.json does not say yet what the journal does; a write is under way, or fails"`
}

// SessionView is the session that is open.
type SessionView struct {
	ID        string       `json:"id"`
	PID       int          `json:"pid"`
	StartedAt *time.Time   `json:"started_at"`
	Kind      string       `json:"kind"`
	Phase     string       `json:"phase"`
	Ending    string       `json:"ending,omitempty"`
	For       team.Purpose `json:"for" doc:"What it is for: control, channels, lead, run/RUN/STEP or dispatch/FOLDER/WORK"`
}

// UsageView is what an agent said it used on this day (UTC).
type UsageView struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CostUSD      float64 `json:"cost_usd"`
}

// LimitsView is what it may use; zero is no limit.
type LimitsView struct {
	Session       string  `json:"session"`
	TokensPerDay  int64   `json:"tokens_per_day"`
	CostPerDayUSD float64 `json:"cost_per_day_usd"`
}

// The seed's two badges.
const (
	BadgeRunning = "RUNNING"
	BadgeIdle    = "IDLE"
)

// evidenceWait bounds how long a shim may take to answer before that is evidence itself.
const evidenceWait = 500 * time.Millisecond

// Team is the whole team, in the order of fairlead.yaml, with evidence asked for just now.
func (e *Engine) Team(ctx context.Context) (TeamView, error) {
	var view TeamView
	err := e.View(ctx, func(t *team.Team) {
		view = TeamView{Hold: t.Hold.On, Note: t.Hold.Note, Stopping: t.Stopping, Head: e.Head(), Team: e.name()}
		view.Agents = make([]AgentView, 0, len(t.Agents))
		for _, name := range e.order(t) {
			view.Agents = append(view.Agents, e.agentView(t.Agents[name]))
		}
	})
	if err != nil {
		return TeamView{}, err
	}
	var asking sync.WaitGroup
	for i := range view.Agents {
		if view.Agents[i].Session != nil {
			asking.Go(func() { _, _ = e.prove(ctx, &view.Agents[i]) }) // what it found stands in the view
		}
	}
	asking.Wait()
	return view, nil
}

// Agent is one agent, with its evidence.
func (e *Engine) Agent(ctx context.Context, name string) (AgentView, error) {
	var view AgentView
	var unknown error
	err := e.View(ctx, func(t *team.Team) {
		a, ok := t.Agents[name]
		if !ok {
			unknown = &team.Unknown{What: "agent", Name: name, Known: t.Names()}
			return
		}
		view = e.agentView(a)
	})
	if err != nil || unknown != nil {
		return AgentView{}, cmp.Or(err, unknown)
	}
	_, _ = e.prove(ctx, &view) // what it found stands in the view
	return view, nil
}

// order is that of the configuration; who is configured no more comes last.
func (e *Engine) order(t *team.Team) []string {
	names := make([]string, 0, len(t.Agents))
	configured := make(map[string]bool, len(e.opts.Config.Agents))
	for _, a := range e.opts.Config.Agents {
		names = append(names, a.Name)
		configured[a.Name] = true
	}
	for _, name := range t.Names() {
		if !configured[name] && t.Agents[name].Session != nil {
			names = append(names, name)
		}
	}
	return names
}

// agentView runs in the loop.
func (e *Engine) agentView(a *team.Agent) AgentView {
	file := e.State().File(a)
	day := e.Now().Format(time.DateOnly)
	view := AgentView{
		Name: a.Name, Driver: a.Settings.Driver, Loop: string(config.LoopFairlead), Turn: e.turnsOf(a.Name),
		DesiredState: file.Desired, CurrentState: file.Current, Badge: BadgeIdle,
		SetBy: file.By, Note: file.Note, Timestamp: file.Stamp, Failures: a.Control.Failures, Removed: a.Removed,
		Certainty: CertaintyKnown,
		Limits:    LimitsView{TokensPerDay: a.Settings.Limits.TokensPerDay, CostPerDayUSD: a.Settings.Limits.CostPerDayUSD},
	}
	if a.Settings.Policy.Foreign {
		view.Loop = string(config.LoopForeign)
	}
	if view.CurrentState == "" {
		view.CurrentState = "unknown"
		view.contradicted("nobody has written a current_state yet")
	}
	switch view.CurrentState {
	case control.WordContinuous, control.WordRunOnce, control.WordRunCleanup:
		view.Badge = BadgeRunning
	}
	if limit := a.Settings.Limits.Session; limit > 0 {
		view.Limits.Session = limit.String()
	}
	if a.Usage.Day == day {
		view.UsageToday = UsageView{InputTokens: a.Usage.InputTokens, OutputTokens: a.Usage.OutputTokens, CostUSD: a.Usage.CostUSD}
	}
	view.WaitingBehind = e.State().ControlWaits(a.Name)
	if retry := a.Control.RetryAt; !retry.IsZero() && a.Session == nil {
		view.RetryAt = &retry
	}
	if s := a.Session; s != nil {
		view.Session = &SessionView{ID: s.ID, PID: s.PID, Kind: string(s.Kind), Phase: string(s.Phase), Ending: s.Ending, For: s.For}
		if !s.StartedAt.IsZero() {
			view.Session.StartedAt = &s.StartedAt
		}
	}
	e.viewTalk(&view, a)
	view.Presence = e.presenceOf(a.Name)
	if m := e.files[a.Name]; m != nil {
		view.Description = m.conf.Description
		view.FileBehind = m.writing || e.fileDue(m, a)
		e.doubtFile(&view, m, a)
	}
	if strange := e.strange(a.Name); strange != "" {
		view.contradicted("%s", strange)
	}
	return view
}

func (e *Engine) name() string { return e.opts.Name }
