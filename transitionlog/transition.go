package transitionlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Transition is one change of state, told to other programs in the turn seed's words
// (SPEC X6; seed 003, Logging). Channel is empty where the machine has none.
type Entry struct {
	At       time.Time
	AgentID  string
	From, To string
	Trigger  string
	Channel  string
	Machine  string // ours from here on: control, turn, …
	Entity   string // MACHINE/NAME
	Row      string // the rule's id, as C2
	Actor    Actor
	Seq      uint64 // place in the journal
	Part     int    // of a change that moved several: which one this is, from 1
	Parts    int    // and how many they are; 0: it moved one
}

// Actor is who made the change happen: human, agent or engine, and who exactly.
type Actor struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// TransitionLine is the log's line for t: one JSON object and a newline, the seed's
// seven fields first and always all of them, then ours; no HTML escaping; a time of a
// whole second is written without a fraction, as in the seed's example.
func Line(t Entry) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Timestamp string `json:"timestamp"`
		Event     string `json:"event"`
		AgentID   string `json:"agentId"`
		From      string `json:"from"`
		To        string `json:"to"`
		Trigger   string `json:"trigger"`
		Channel   string `json:"channel"`
		Machine   string `json:"machine"`
		Entity    string `json:"entity"`
		Row       string `json:"row"`
		Actor     Actor  `json:"actor"`
		Seq       uint64 `json:"seq"`
		Part      int    `json:"part,omitempty"`
		Parts     int    `json:"parts,omitempty"`
	}{
		t.At.UTC().Format("2006-01-02T15:04:05.999Z"), "state_transition", t.AgentID, t.From, t.To, t.Trigger, t.Channel,
		t.Machine, t.Entity, t.Row, t.Actor, t.Seq, t.Part, t.Parts,
	})
	if err != nil {
		panic(fmt.Sprintf("transitionlog: a transition does not encode: %v", err))
	}
	return out.Bytes()
}
