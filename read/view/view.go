package view

import (
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
)

// TeamView is the team as `fairlead ps --json` and GET /agents show it.
type TeamView struct {
	Hold     bool        `json:"hold" doc:"The team is held: no session starts until the hold is lifted"`
	Note     string      `json:"hold_note,omitempty" doc:"Why"`
	Stopping bool        `json:"stopping" doc:"The daemon is stopping: no session starts"`
	Head     uint64      `json:"head" doc:"The answer is the state at this sequence"`
	Team     string      `json:"team" doc:"Its name"`
	Agents   []AgentView `json:"agents" doc:"In the order of fairlead.yaml"`
	Past
}

// Past says that an answer may not be the present state: it is of a copy of the journal, or of a leader that is cut off.
type Past struct {
	AsOf          *time.Time `json:"as_of,omitempty" doc:"The answer is as of then, not of now: no leader or no daemon answers"`
	NoLeaderSince *time.Time `json:"no_leader_since,omitempty" doc:"Since then no leader of the team answers"`
}

// AgentView is one agent. Badge comes from current_state alone (seed 000); contradicting evidence is
// in Doubt (J5).
type AgentView struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	Driver        string            `json:"driver"`
	Loop          string            `json:"loop" doc:"fairlead: Fairlead runs its sessions; foreign: another program does"`
	DesiredState  string            `json:"desired_state" doc:"What the agent should do: pause, continuous, run_once or run_cleanup"`
	CurrentState  string            `json:"current_state" doc:"What the agent reports that it does: pause, continuous, run_once, run_cleanup, or unknown"`
	Status        Status            `json:"status" enum:"unknown,stopping,waiting,rate_limited,running,backing_off,failed,idle" doc:"What it does, from evidence; the first that applies, in this order"`
	StatusWhy     string            `json:"status_why" doc:"What the status rests on: the doubt, what it waits for, until when, its process, the failure"`
	IdleReason    IdleReason        `json:"idle_reason,omitempty" doc:"Only with status idle: paused, held, limit, queued or disabled"`
	Badge         string            `json:"badge" doc:"RUNNING or IDLE, from current_state alone (seed 000)"`
	Program       bool              `json:"program" doc:"Loop foreign: Fairlead keeps its program running"`
	Held          bool              `json:"held" doc:"It should run, and the hold of the team prevents that"`
	Disabled      bool              `json:"disabled" doc:"A person disabled it in channels"`
	OverLimit     string            `json:"over_limit,omitempty" doc:"The daily limit that is used up"`
	LimitOfTeam   bool              `json:"-"` // OverLimit is a limit of the whole team
	GaveUp        *time.Time        `json:"gave_up" doc:"When failures ended its desired state; null: they did not, or there is a newer one"`
	Presence      string            `json:"presence" doc:"Status of the visible crew document with this name; 'lead' for the agent that leads the crew; empty without a document"`
	Turn          map[string]string `json:"turn" doc:"The agent's state in each channel, by the channel's name"`
	TurnWhy       string            `json:"turn_why,omitempty" doc:"Why its turn in a channel goes on although it has answered, and what ends it"`
	SetBy         string            `json:"set_by" doc:"Who set desired_state: human, agent, fairlead (after a one-shot, a give-up, a limit or a broken file), or file: a write to agent_state.json, which does not prove who wrote it"`
	Note          string            `json:"note" doc:"Why desired_state was set"`
	Timestamp     time.Time         `json:"timestamp,omitzero" doc:"When desired_state was set"`
	Session       *SessionView      `json:"session" doc:"The open session; of an agent with instances, that of slot 0"`
	Sessions      []SessionView     `json:"sessions" doc:"All open sessions, by slot"`
	EvidenceAgeMS *int64            `json:"evidence_age_ms" doc:"Age of the evidence; null if no session is open"`
	Doubt         string            `json:"doubt" doc:"Evidence that contradicts the badge, or is missing; shown beside the badge, never instead of it"`
	Certainty     string            `json:"certainty" doc:"known, or unknown: then doubt says what contradicts the badge"`
	Failures      int               `json:"failures" doc:"Consecutive sessions that failed"`
	RetryAt       *time.Time        `json:"retry_at" doc:"When the next session starts after failures"`
	WaitingBehind string            `json:"waiting_behind" doc:"What uses the agent's slot at present"`
	UsageToday    UsageView         `json:"usage_today" doc:"Usage that the agent reported today (UTC)"`
	Limits        LimitsView        `json:"limits" doc:"The agent's limits"`
	Removed       bool              `json:"removed" doc:"It is no longer configured, but still runs"`

	Asks         int               `json:"asks" doc:"Number of its questions that wait for a person"`
	AsksWhat     string            `json:"asks_what,omitempty" doc:"The oldest of these questions, in one sentence"`
	Denied       int               `json:"denied" doc:"Number of calls that were denied to its open session"`
	LimitedUntil *time.Time        `json:"limited_until" doc:"Its provider's rate limit ends then; null: it is not rate limited"`
	LimitedWhy   string            `json:"limited_why,omitempty"`
	Says         *SaysView         `json:"says" doc:"The agent's report about itself"`
	Conversation *ConversationView `json:"conversation" doc:"The current or last conversation with its program"`

	Wall   string   `json:"wall,omitempty" enum:"namespaces,landlock,nothing" doc:"What its wall is made of: in its open sessions, and without one what this machine would make; nothing: it has no wall. Left out: not known"`
	Unheld []string `json:"unheld" doc:"What its wall does not hold: write, attributes, inside, read, names, socket, process, git, root, network"`
	Holes  []string `json:"holes" doc:"Openings in its wall that fairlead.yaml makes, a sentence each"`

	Contacts []ContactView `json:"contacts" doc:"Hosts of the network that its programs reached or were refused, through the proxy; the newest last, 100 at most"`

	FileBehind bool `json:"file_behind" doc:"agent_state.json is older than the journal; a write is pending or fails"`
}

// WallNothing is the Wall of an agent that has none.
const WallNothing = "nothing"

// NoWall marks an agent without a wall wherever it is shown.
const NoWall = "no wall"

// Marked is a remark about an agent with the mark of one that has no wall.
func (v *AgentView) Marked(remark string) string {
	switch {
	case v.Wall != WallNothing:
		return remark
	case remark == "":
		return NoWall
	}
	return NoWall + "; " + remark
}

// SessionView is an open session.
type SessionView struct {
	ID        string        `json:"id" doc:"AGENT-NUMBER"`
	PID       int           `json:"pid" doc:"PID of the agent's process; 0 if it has none yet"`
	StartedAt *time.Time    `json:"started_at"`
	Kind      string        `json:"kind" doc:"session, cleanup or foreign"`
	Phase     string        `json:"phase" doc:"opened: recorded in the journal; running: its process was seen"`
	Ending    string        `json:"ending,omitempty" doc:"Why it was told to end"`
	For       team.Purpose  `json:"for" doc:"Its purpose: control, channels, lead, run/RUN/STEP or dispatch/FOLDER/WORK"`
	Slot      int           `json:"slot" doc:"0, or above for further instances of the agent"`
	Ports     []int         `json:"ports,omitempty" doc:"TCP ports leased for it, PORT_1 first"`
	Host      string        `json:"host,omitempty" doc:"The host on which it runs; empty: the leader's machine"`
	Waits     string        `json:"waits,omitempty" doc:"Why no host takes it yet"`
	Provider  *ProviderView `json:"provider,omitempty" doc:"Its provider does not answer, as the program says; left out: nothing is said"`
	Context   int           `json:"context_percent,omitempty" doc:"How full the model's context is, as the program reported last; left out if it reports nothing"`
}

// ProviderView is what a program says about a provider that does not answer.
type ProviderView struct {
	Code  string    `json:"code" enum:"authentication,billing,rate_limit,network,unavailable,context_full"`
	Why   string    `json:"why" doc:"In the program's words"`
	Since time.Time `json:"since"`
}

// Words say what the program reports, with its own words.
func (v *ProviderView) Words() string {
	return strings.TrimSuffix(ProviderWords(v.Code)+": "+v.Why, ": ")
}

// Provider is the view of what a session's program says about its provider; nil: nothing.
func Provider(p *team.Provider) *ProviderView {
	if p == nil {
		return nil
	}
	return &ProviderView{Code: p.Code, Why: p.Why, Since: p.Since}
}

// AwayProvider is what the first of an agent's sessions says whose provider does not answer; nil: none.
func (v *AgentView) AwayProvider() *ProviderView {
	for _, s := range v.Sessions {
		if s.Provider != nil {
			return s.Provider
		}
	}
	return nil
}

// Next says what an open session without a process waits for.
func (s *SessionView) Next() string {
	if s.Waits != "" {
		return "session " + s.ID + " " + s.Waits
	}
	return "session " + s.ID + " is about to start"
}

// Others returns the open sessions in the slots above 0.
func (v *AgentView) Others() []SessionView {
	if v.Session != nil && len(v.Sessions) > 0 {
		return v.Sessions[1:]
	}
	return v.Sessions
}

// UsageView is the usage that an agent reported for today (UTC).
type UsageView struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CostUSD      float64 `json:"cost_usd"`
}

// LimitsView is what limits an agent; 0: no limit.
type LimitsView struct {
	Session           string  `json:"session" doc:"Wall-clock time for one session, or for each answer in a session for channels or of the crew: the agent's limit or the team's; empty: no limit"`
	TokensPerDay      int64   `json:"tokens_per_day" doc:"The agent's own"`
	CostPerDayUSD     float64 `json:"cost_per_day_usd" doc:"The agent's own"`
	TeamTokensPerDay  int64   `json:"team_tokens_per_day" doc:"Of all agents together"`
	TeamCostPerDayUSD float64 `json:"team_cost_per_day_usd" doc:"Of all agents together"`
}

// The seed's two badges.
const (
	BadgeRunning = "RUNNING"
	BadgeIdle    = "IDLE"
)

// Moment returns a time for a view: nil, JSON's null, for the zero time.
func Moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// Some returns the list, or an empty one for nil, so that JSON has [] and not null.
func Some(list []string) []string {
	if list == nil {
		return []string{}
	}
	return slices.Clone(list)
}
