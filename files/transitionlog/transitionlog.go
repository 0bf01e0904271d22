package transitionlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Entry is one state change, in seed 003's fields (SPEC X6; seed 003, Logging). Channel is empty for other
// machines.
type Entry struct {
	At       time.Time
	AgentID  string
	From, To string
	Trigger  string
	Channel  string
	Machine  string // Fairlead's own fields from here on; Machine is control, turn, …
	Entity   string // MACHINE/NAME
	Row      string // the rule's id, such as C2
	Actor    change.Actor
	Seq      uint64 // position in the journal
	Part     int    // of a change with several parts: the number of this one, from 1
	Parts    int    // the number of parts; 0 if there is only one
}

// Line formats one log line: a JSON object and a newline. The seed's seven fields come first and are always
// present. Nothing is escaped for HTML; a whole second has no fraction, as in the seed's example.
func Line(t Entry) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Timestamp string       `json:"timestamp"`
		Event     string       `json:"event"`
		AgentID   string       `json:"agentId"`
		From      string       `json:"from"`
		To        string       `json:"to"`
		Trigger   string       `json:"trigger"`
		Channel   string       `json:"channel"`
		Machine   string       `json:"machine"`
		Entity    string       `json:"entity"`
		Row       string       `json:"row"`
		Actor     change.Actor `json:"actor"`
		Seq       uint64       `json:"seq"`
		Part      int          `json:"part,omitempty"`
		Parts     int          `json:"parts,omitempty"`
	}{
		t.At.UTC().Format("2006-01-02T15:04:05.999Z"), "state_transition", t.AgentID, t.From, t.To, t.Trigger, t.Channel,
		t.Machine, t.Entity, t.Row, t.Actor, t.Seq, t.Part, t.Parts,
	})
	if err != nil {
		panic(fmt.Sprintf("transitionlog: a transition does not encode: %v", err))
	}
	return out.Bytes()
}
