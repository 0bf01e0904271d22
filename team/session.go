package team

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/control"
)

// Session is one life of an agent's process.
type Session struct {
	ID        string          `json:"id"`   // coder-17; of a step without an agent of ours: build@f8c1-3
	N         uint64          `json:"n"`    // 17
	Kind      control.Kind    `json:"kind"` //
	For       Purpose         `json:"for"`
	Lease     uint64          `json:"lease,omitempty"` // of the step that asked: which attempt it is
	Phase     Phase           `json:"phase"`
	OpenedAt  time.Time       `json:"opened_at"`
	StartedAt time.Time       `json:"started_at,omitzero"`
	EndedAt   time.Time       `json:"ended_at,omitzero"`
	PID       int             `json:"pid,omitempty"`
	Ending    string          `json:"ending,omitempty"`  // why it was asked to end; empty: it was not
	Now       bool            `json:"now,omitempty"`     // without a grace period
	CutOff    bool            `json:"cut_off,omitempty"` // it was ended with the daemon, in the middle of what it was wanted for; it goes on as after a crash
	Offset    int64           `json:"offset,omitempty"`  // bytes of output whose facts are in the journal
	Usage     Usage           `json:"usage"`
	Stop      *Stop           `json:"stop,omitempty"` // the terminal event, where one came
	Outcome   control.Outcome `json:"outcome,omitempty"`
	Why       string          `json:"why,omitempty"`
	Bytes     int64           `json:"bytes,omitempty"` // of output, when it ended
	Talk      *Talk           `json:"talk,omitempty"`  // of a session for channels: what it was told last
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

// Phase is how far a session is.
type Phase string

const (
	None    Phase = "none"
	Opened  Phase = "opened"  // journaled; its process may not exist yet
	Running Phase = "running" // its process was seen
)

// sessionEvent names what happens to a session.
type sessionEvent string

const (
	opened    sessionEvent = "opened"
	started   sessionEvent = "started"
	adopted   sessionEvent = "adopted"
	endAsked  sessionEvent = "end_asked"
	reported  sessionEvent = "reported"
	told      sessionEvent = "told"
	named     sessionEvent = "named"
	saidSo    sessionEvent = "status_said"
	ended     sessionEvent = "ended"
	lost      sessionEvent = "lost"
	withdrawn sessionEvent = "withdrawn"

	claimed  sessionEvent = "claimed"       // somebody stands in line for the seat
	declined sessionEvent = "claim_dropped" // and is not to have it any more
)

type sessionAct string

// SessionTable is the life of a session, the same for whoever asked for it.
var SessionTable = machine.Table[Phase, sessionEvent, sessionAct]{
	None: {
		opened:   {ID: "J1", To: Opened, Why: "one at a time; durable before its process is started"},
		claimed:  {ID: "J1", To: None, Why: "whoever came before has not sat down yet, or nobody may"},
		declined: {ID: "J1", To: None},
	},
	Opened: {
		started:   {ID: "S1", To: Running},
		adopted:   {ID: "S2", To: Running, Why: "started just before a crash, and found"},
		endAsked:  {ID: "S3", To: Opened},
		ended:     {ID: "S4", To: None, Why: "it could not start, or was over before it was seen"},
		lost:      {ID: "S5", To: None},
		withdrawn: {ID: "S6", To: None, Why: "intent is checked last: it is not wanted any more"},
		claimed:   {ID: "J1", To: Opened, Why: "one at a time: whoever else asks stands in line"},
		declined:  {ID: "J1", To: Opened, Why: "it is not wanted any more"},
	},
	Running: {
		started:  {ID: "S1", To: Running, Why: "said twice after a crash"},
		adopted:  {ID: "S2", To: Running},
		endAsked: {ID: "S3", To: Running},
		reported: {ID: "S7", To: Running, Why: "usage and terminal events, with the place in the output"},
		told:     {ID: "S8", To: Running, Why: "an errand of a channel is in its input, and is not written again"},
		named:    {ID: "S9", To: Running, Why: "the program says what its conversation is called, by which it is resumed"},
		saidSo:   {ID: "S10", To: Running},
		ended:    {ID: "S4", To: None},
		lost:     {ID: "S5", To: None, Why: "it ran, and nobody can say how it ended"},
		claimed:  {ID: "J1", To: Running},
		declined: {ID: "J1", To: Running},
	},
}

// sessionID names the n-th session of an agent.
func sessionID(agent string, n uint64) string { return fmt.Sprintf("%s-%d", agent, n) }

// phase is where the agent's seat stands.
func (a *Agent) phase() Phase {
	if a.Session == nil {
		return None
	}
	return a.Session.Phase
}

// cutsOff says whether a session that is ended for a reason is cut off by it: Fairlead is stopped at
// once, and nobody had said that the agent itself is to stop.
func (a *Agent) cutsOff(s *Session, why string, now bool) bool {
	if why != stopWords || !now || s.Ending != "" {
		return false
	}
	wish := a.Control.Wish
	return s.For != ForControl || wish.Desired != control.WordPause && !wish.Unknown && !wish.Rested
}

// controls says whether control has a session here, or stands in line for one.
func (a *Agent) controls() bool {
	return a.Session != nil && a.Session.For == ForControl || slices.ContainsFunc(a.Line, func(c Claim) bool { return c.For == ForControl })
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
