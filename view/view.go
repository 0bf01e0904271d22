package view

import (
	"time"

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
