package team

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
)

// Session is one execution of an agent's program.
type Session struct {
	ID        string        `json:"id"`             // coder-17; of a step without an agent: build@f8c1-3
	N         uint64        `json:"n"`              // 17
	Slot      int           `json:"slot,omitempty"` // of its agent
	Kind      control.Kind  `json:"kind"`           //
	For       Purpose       `json:"for"`
	Lease     uint64        `json:"lease,omitempty"` // of the step: identifies the attempt
	Phase     session.Phase `json:"phase"`
	OpenedAt  time.Time     `json:"opened_at"`
	StartedAt time.Time     `json:"started_at,omitzero"`
	EndedAt   time.Time     `json:"ended_at,omitzero"`
	PID       int           `json:"pid,omitempty"`
	Ending    string        `json:"ending,omitempty"`     // why it was asked to end; empty: it was not
	EndReason EndReason     `json:"end_reason,omitempty"` // the code of Ending
	Now       bool          `json:"now,omitempty"`        // without a grace period
	// it was ended with the daemon before its work was done; it continues as after a crash
	CutOff   bool            `json:"cut_off,omitempty"`
	Offset   int64           `json:"offset,omitempty"` // bytes of output whose facts are in the journal
	Usage    change.Usage    `json:"usage"`
	Context  int             `json:"context_percent,omitempty"` // how full the model's context is; 0: unknown
	Stop     *Stop           `json:"stop,omitempty"`            // the terminal event, if there was one
	Outcome  control.Outcome `json:"outcome,omitempty"`
	Why      string          `json:"why,omitempty"`
	Bytes    int64           `json:"bytes,omitempty"`    // length of the output at its end
	Limit    session.Limit   `json:"limit,omitempty"`    // the limit of its processes that ended it
	Use      session.Use     `json:"use,omitzero"`       // what its processes have used, at its end
	Delivery *Delivery       `json:"delivery,omitempty"` // of a session for channels: the last delivery
	UUID     string          `json:"uuid,omitempty"`     // of a lead session: its name on every machine

	// Folder is the start of the dispatch, for a session of a dispatch folder: another folder may
	// replace it later and have a work of the same name.
	Folder time.Time `json:"dispatch_began,omitzero"`

	FirstTells []Tell `json:"told,omitempty"` // by a person, during the session before; it begins with them

	Denied     int        `json:"denied,omitempty"`      // number of denied calls
	DeniedWhat []string   `json:"denied_what,omitempty"` // descriptions of the first ones, deniedShown at most
	RateLimit  *RateLimit `json:"rate_limit,omitempty"`  // the last rate limit of its provider
	Provider   *Provider  `json:"provider,omitempty"`    // its provider does not answer; nil: it does, as far as the program says

	// TokenHashes are the hashes of the tokens that its processes may have for the team's tools: one, or
	// several if its start was tried again.
	TokenHashes []string `json:"token_hashes,omitempty"`

	Launch *LaunchRecord `json:"launch,omitempty"` // how its process was started; nil: it has not been, or it has ended
}

// Stop is a driver's terminal event, kept for the evaluation of a session that is adopted after it.
type Stop struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`

	ContextPercent int    `json:"context_percent,omitempty"` // how full the model's context was; 0: unknown
	Called         bool   `json:"called,omitempty"`          // the session has called a tool, or asked to: a model has answered
	Alone          string `json:"alone,omitempty"`           // hash of the session's text, if nothing else shows that a model has answered
}

// cut limits the size of an agent's own words.
func (s *Stop) cut() *Stop {
	if s == nil {
		return nil
	}
	return &Stop{
		OK: s.OK, Reason: cutLine(s.Reason), Detail: cutLine(s.Detail), ContextPercent: s.ContextPercent, Alone: cutLine(s.Alone),
		Called: s.Called,
	}
}

// sessionID returns the ID of an agent's n-th session.
func sessionID(agent string, n uint64) string { return fmt.Sprintf("%s-%d", agent, n) }

// phase returns the state of the agent's slot.
func (a *Agent) phase() session.Phase {
	if a.Session == nil {
		return session.None
	}
	return a.Session.Phase
}

// cutsOff reports whether ending a session for this reason interrupts its work: Fairlead is stopped
// immediately, and the agent itself was not asked to stop.
func (a *Agent) cutsOff(s *Session, reason EndReason, now bool) bool {
	if reason != EndShutdown || !now || s.Ending != "" {
		return false
	}
	desired := a.Control.Desired
	return s.For != ForControl || desired.State != control.WordPause && !desired.Unknown && !desired.Rested
}

// controls reports whether control has a session here, or a request in the queue.
func (a *Agent) controls() bool {
	return a.Session != nil && a.Session.For == ForControl ||
		slices.ContainsFunc(a.Queue, func(c Request) bool { return c.For == ForControl })
}

// SessionLimit is the wall-clock limit for a session of this agent, or for each answer in a session for channels
// or of the crew: the shorter one of its own and the team's; 0: none.
func (t *Team) SessionLimit(a *Agent) time.Duration {
	own, all := a.Settings.Limits.Session, t.Limits.Session
	if own == 0 || (all != 0 && all < own) {
		return all
	}
	return own
}

// OverLimit returns a daily limit that is used up, or an empty string.
func (t *Team) OverLimit(a *Agent, at time.Time) string {
	limit, _ := t.LimitOver(a, at)
	return limit
}

// LimitOver is OverLimit, and whether the limit is that of the team.
func (t *Team) LimitOver(a *Agent, at time.Time) (limit string, ofTeam bool) {
	if !a.Settings.Limits.ofDay() && !t.Limits.ofDay() {
		return "", false // the common case, checked at each event
	}
	day := dayOf(at)
	if name := a.Settings.Limits.over(a.Usage.On(day).Usage); name != "" {
		return name + " of " + a.Name, false
	}
	if name := t.Limits.over(t.Usage.On(day).Usage); name != "" {
		return name + " of the team", true
	}
	return "", false
}

func (l Limits) ofDay() bool { return l.TokensPerDay > 0 || l.CostPerDayUSD > 0 }

func (l Limits) over(u change.Usage) string {
	if tokens := u.InputTokens + u.OutputTokens; l.TokensPerDay > 0 && tokens >= l.TokensPerDay {
		return fmt.Sprintf("tokens_per_day %d (%d used)", l.TokensPerDay, tokens)
	}
	if l.CostPerDayUSD > 0 && u.CostUSD >= l.CostPerDayUSD {
		return fmt.Sprintf("cost_per_day_usd %g (%.2f used)", l.CostPerDayUSD, u.CostUSD)
	}
	return ""
}
