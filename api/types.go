package api

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/view"
)

// Change is one fact of the journal as programs read it.
type Change struct {
	Seq     uint64    `json:"seq" doc:"Place in the journal, from 1, without holes"`
	Time    time.Time `json:"time" doc:"UTC"`
	Machine string    `json:"machine" doc:"Whose rule it is: control, session, presence, turn, run, team, question"`
	Entity  string    `json:"entity" example:"control/coder" doc:"What it happened to: MACHINE/NAME"`
	Row     string    `json:"row" example:"C5" doc:"The rule that made it"`
	From    string    `json:"from" doc:"State before"`
	To      string    `json:"to" doc:"State afterwards"`
	Trigger string    `json:"trigger" doc:"What happened"`
	Actor   Actor     `json:"actor" doc:"Who made it happen"`
	Data    Raw       `json:"data" doc:"What changed, as the journal keeps it; null where it keeps nothing"`
}

// Actor is who made a change happen.
type Actor struct {
	Kind string `json:"kind" doc:"human, agent or engine"`
	ID   string `json:"id" doc:"Who exactly"`
}

// Raw is JSON that is passed through as it is.
type Raw json.RawMessage

// MarshalJSON gives the value as it is; nothing is null.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps the value as it is.
func (r *Raw) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}

// Schema says that it may be anything.
func (Raw) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "Any JSON value"}
}

// ChangeOf is a journal change as the API shows it.
func ChangeOf(c journal.Change) Change {
	return Change{
		Seq: c.Seq, Time: c.Time.UTC(), Machine: c.Machine, Entity: c.Entity, Row: c.Row, From: c.From, To: c.To,
		Trigger: c.Trigger, Actor: Actor(c.Actor), Data: Raw(c.Data),
	}
}

// Refusal is why something cannot be had in the present state.
type Refusal struct {
	Subject string   `json:"subject" doc:"Who refuses: an agent, the team"`
	Event   string   `json:"event" doc:"What was asked"`
	State   string   `json:"state" doc:"What the state is"`
	Row     string   `json:"row" doc:"The rule that forbids it; empty where no rule takes it"`
	Reason  string   `json:"reason" doc:"In words"`
	Takes   []string `json:"takes" nullable:"false" doc:"What would be taken now"`
}

func refusalOf(r *machine.Refusal) *Refusal {
	wire := Refusal(*r)
	if wire.Takes == nil {
		wire.Takes = []string{}
	}
	return &wire
}

// Commanded is the answer to an order to an agent.
type Commanded struct {
	Seq   uint64         `json:"seq" doc:"The last change that the order made; it is durable"`
	Agent view.AgentView `json:"agent"`
}

// Held is the answer to hold and release.
type Held struct {
	Seq  uint64 `json:"seq"`
	Hold bool   `json:"hold"`
}

// Page is a part of the journal.
type Page struct {
	Changes []Change `json:"changes" nullable:"false"`
	Head    uint64   `json:"head" doc:"The last sequence of the whole journal"`
}

// Fact is what a driver understood of a session's output.
type Fact struct {
	Kind   string       `json:"kind" doc:"said, thought, tool_called, permission_asked, permission_answered, permission_withdrawn, conversation_named, rate_limited, usage_reported, listening, stopped or faulted"`
	Offset int64        `json:"offset" doc:"Bytes of output up to and including it"`
	Text   string       `json:"text"`
	Part   bool         `json:"part,omitempty" doc:"The text goes on in the next fact of this kind"`
	Tool   string       `json:"tool" doc:"The tool that was called, or whose output this is"`
	Usage  *UsageReport `json:"usage" doc:"Of usage_reported; since the last report"`
	Stop   *StopReport  `json:"stop,omitempty" doc:"Of stopped"`
	Ask    *driver.Ask  `json:"ask,omitempty" doc:"Of permission_asked, permission_answered and permission_withdrawn"`

	Conversation *driver.Conversed `json:"conversation,omitempty" doc:"Of conversation_named"`
	Until        *time.Time        `json:"until,omitempty" doc:"Of rate_limited; left out where it is not said until when"`
}

// UsageReport is what an agent says that it used.
type UsageReport struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CostUSD      float64 `json:"cost_usd"`
}

// StopReport is an agent's own last word.
type StopReport struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// Facts is the answer with a session's facts, the newest last.
type Facts struct {
	Facts []Fact `json:"facts" nullable:"false"`
}

// FactOf is a driver's fact as the API shows it.
func FactOf(f driver.Fact) Fact {
	fact := Fact{Kind: string(f.Kind), Offset: f.Offset, Text: f.Text, Part: f.Part, Tool: f.Tool}
	switch f.Kind {
	case driver.UsageReported:
		usage := UsageReport(f.Usage)
		fact.Usage = &usage
	case driver.Stopped:
		fact.Stop = &StopReport{OK: f.Stop.OK, Reason: f.Stop.Reason, Detail: f.Stop.Detail}
	case driver.PermissionAsked, driver.PermissionAnswered, driver.PermissionWithdrawn:
		fact.Ask = &f.Ask
	case driver.ConversationNamed:
		fact.Conversation = &f.Conversation
	case driver.RateLimited:
		if !f.Until.IsZero() {
			until := f.Until.UTC()
			fact.Until = &until
		}
	}
	return fact
}

// Status is what the daemon says of itself.
type Status struct {
	Version     string        `json:"version"`
	PID         int           `json:"pid"`
	StartedAt   time.Time     `json:"started_at"`
	UptimeMS    int64         `json:"uptime_ms"`
	Dir         string        `json:"dir" doc:"The repository"`
	Journal     JournalStatus `json:"journal"`
	Subscribers int           `json:"subscribers" doc:"Watchers of the journal at present"`
}

// JournalStatus is where the journal stands.
type JournalStatus struct {
	Head    uint64 `json:"head" doc:"The last sequence"`
	Backend string `json:"backend" doc:"What keeps it"`
}

// Stopping is the answer to down.
type Stopping struct {
	Stopping bool `json:"stopping"`
}

// Output is a piece of a session's output, as text.
type Output struct {
	Offset int64  `json:"offset" doc:"Of its first byte"`
	End    int64  `json:"end" doc:"After its last byte; resume here"`
	Text   string `json:"text" doc:"UTF-8; what was not is replaced"`
}

// Ended is the last word of an output stream.
type Ended struct {
	Outcome string `json:"outcome" doc:"ok, failed, lost, withdrawn, interrupted; empty where it is too long ago"`
	Why     string `json:"why"`
}

// Bye is the last word of a stream that ends before its subject does.
type Bye struct {
	Reason string `json:"reason" enum:"lagged,stopping,failed"`
	Detail string `json:"detail" doc:"In words, and what to do"`
}

// Encode writes JSON as everything here is written: on one line, markup left as it is.
func Encode(v any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("api: what is shown cannot be written as JSON: " + err.Error())
	}
	return bytes.ToValidUTF8(bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), []byte("\uFFFD"))
}
