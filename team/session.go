package team

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/session"
)

// Session is one life of an agent's process.
type Session struct {
	ID        string          `json:"id"`   // coder-17; of a step without an agent of ours: build@f8c1-3
	N         uint64          `json:"n"`    // 17
	Kind      control.Kind    `json:"kind"` //
	For       Purpose         `json:"for"`
	Lease     uint64          `json:"lease,omitempty"` // of the step that asked: which attempt it is
	Phase     session.Phase   `json:"phase"`
	OpenedAt  time.Time       `json:"opened_at"`
	StartedAt time.Time       `json:"started_at,omitzero"`
	EndedAt   time.Time       `json:"ended_at,omitzero"`
	PID       int             `json:"pid,omitempty"`
	Ending    string          `json:"ending,omitempty"`     // why it was asked to end; empty: it was not
	EndReason EndReason       `json:"end_reason,omitempty"` // the code that Ending is the sentence of
	Now       bool            `json:"now,omitempty"`        // without a grace period
	CutOff    bool            `json:"cut_off,omitempty"`    // it was ended with the daemon, in the middle of what it was wanted for; it goes on as after a crash
	Offset    int64           `json:"offset,omitempty"`     // bytes of output whose facts are in the journal
	Usage     Usage           `json:"usage"`
	Stop      *Stop           `json:"stop,omitempty"` // the terminal event, where one came
	Outcome   control.Outcome `json:"outcome,omitempty"`
	Why       string          `json:"why,omitempty"`
	Bytes     int64           `json:"bytes,omitempty"` // of output, when it ended
	Delivery  *Delivery       `json:"talk,omitempty"`  // of a session for channels: what it was told last
	UUID      string          `json:"uuid,omitempty"`  // of a lead session: its name on every machine

	// Folder is, of a session that works for a session folder, when that was begun: another folder may
	// come to lie in its place, and ask for a work of the same name.
	Folder time.Time `json:"folder_began,omitzero"`

	Denied     int        `json:"denied,omitempty"`      // calls that it asked for and was not allowed
	DeniedWhat []string   `json:"denied_what,omitempty"` // the first of them in words, deniedShown at most
	RateLimit  *RateLimit `json:"rate_limit,omitempty"`  // what its provider said last

	Launch *LaunchRecord `json:"launch,omitempty"` // how its process was started; nil: before records were kept, or it is over
}

// Stop is a driver's terminal event, kept so that a session adopted after it is judged by it.
type Stop struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// cut bounds what a driver passes on of an agent's own words.
func (s *Stop) cut() *Stop {
	if s == nil {
		return nil
	}
	return &Stop{OK: s.OK, Reason: cutLine(s.Reason), Detail: cutLine(s.Detail)}
}

// sessionID names the n-th session of an agent.
func sessionID(agent string, n uint64) string { return fmt.Sprintf("%s-%d", agent, n) }

// phase is where the agent's seat stands.
func (a *Agent) phase() session.Phase {
	if a.Session == nil {
		return session.None
	}
	return a.Session.Phase
}

// cutsOff says whether a session that is ended for a reason is cut off by it: Fairlead is stopped at
// once, and nobody had said that the agent itself is to stop.
func (a *Agent) cutsOff(s *Session, reason EndReason, now bool) bool {
	if reason != EndShutdown || !now || s.Ending != "" {
		return false
	}
	desired := a.Control.Desired
	return s.For != ForControl || desired.State != control.WordPause && !desired.Unknown && !desired.Rested
}

// controls says whether control has a session here, or stands in line for one.
func (a *Agent) controls() bool {
	return a.Session != nil && a.Session.For == ForControl || slices.ContainsFunc(a.Queue, func(c Request) bool { return c.For == ForControl })
}

// sessionLimit is the wall-clock that a session of this agent may take: the shorter of its own and the team's.
func (t *Team) sessionLimit(a *Agent) time.Duration {
	own, all := a.Settings.Limits.Session, t.Limits.Session
	if own == 0 || (all != 0 && all < own) {
		return all
	}
	return own
}

// OverLimit names a limit of the day that is used up, or nothing.
func (t *Team) OverLimit(a *Agent, at time.Time) string {
	if !a.Settings.Limits.ofDay() && !t.Limits.ofDay() {
		return "" // as for most, and asked of each event
	}
	day := dayOf(at)
	if name := a.Settings.Limits.over(a.Usage.on(day)); name != "" {
		return name + " of " + a.Name
	}
	if name := t.Limits.over(t.Usage.on(day)); name != "" {
		return name + " of the team"
	}
	return ""
}

func (l Limits) ofDay() bool { return l.TokensPerDay > 0 || l.CostPerDayUSD > 0 }

func (l Limits) over(u Usage) string {
	if tokens := u.InputTokens + u.OutputTokens; l.TokensPerDay > 0 && tokens >= l.TokensPerDay {
		return fmt.Sprintf("tokens_per_day %d (%d used)", l.TokensPerDay, tokens)
	}
	if l.CostPerDayUSD > 0 && u.CostUSD >= l.CostPerDayUSD {
		return fmt.Sprintf("cost_per_day_usd %g (%.2f used)", l.CostPerDayUSD, u.CostUSD)
	}
	return ""
}
