package channel

import (
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Set is the body of a change: From and To are states of the agent in the channel, both empty if its state did not change.
type Set struct {
	Agent AgentID `json:"agent,omitempty"` // empty: it concerns the channel in general
	Body  Body    `json:"body"`
	Text  string  `json:"text,omitempty"` // of the message, if there is one: the state of channels only has numbers

	// the session of the message: the UUID of a lead session, otherwise the session's ID; empty: from a person, or from a foreign agent
	Session string `json:"session,omitempty"`
}

// JSONKey is the key of a change in the journal.
func (*Set) JSONKey() string { return "turn" }

// The kinds of entities of changes: a channel, or an agent in all its channels.
const (
	EntityPrefix = "channel/" // before a channel's name
	agentPrefix  = "turn/"
)

// Of returns the channel that a change concerns; empty: it concerns an agent in general.
func Of(ch *change.Change) ChannelID {
	name, is := strings.CutPrefix(ch.Entity, EntityPrefix)
	if !is {
		return ""
	}
	return ChannelID(name)
}

// Body is what Apply needs. Every value is absolute, not a difference,
// so that Apply needs neither the table nor a rule.
type Body struct {
	Agent        *Agent        `json:"agent,omitempty"`        // its new value
	Settings     *Settings     `json:"settings,omitempty"`     // of the channel
	Head         *Head         `json:"head,omitempty"`         // of the channel
	Participants []Participant `json:"participants,omitempty"` // those that changed
	Left         []AgentID     `json:"left,omitempty"`         // participants that were removed
	Messages     []Progress    `json:"messages,omitempty"`     // messages of people that changed state

	Post *Post  `json:"post,omitempty"` // the message; its text is stored with it by the caller
	Say  string `json:"say,omitempty"`  // an announcement in the channel, in the wording of seed 003
	Warn string `json:"warn,omitempty"` // for the log
	Why  string `json:"why,omitempty"`  // context, for the log
}

// Progress is the new state of a person's message, and the row that led to it.
type Progress struct {
	Message
	Row string `json:"row"`
}

// Post is one message in a channel.
type Post struct {
	N     uint64   `json:"n"`
	Kind  PostKind `json:"kind"`
	By    string   `json:"by"`
	Turn  uint64   `json:"turn,omitempty"` // the turn in which the agent spoke
	Re    uint64   `json:"re,omitempty"`   // the message that it answers
	Bytes int      `json:"bytes"`
}

// PostKind says how a message was posted.
type PostKind string

const (
	OfHuman PostKind = "human" // by a person
	OfTurn  PostKind = "turn"  // by the agent that has the turn
	OfAside PostKind = "aside" // an answer that needs no turn
	OfLate  PostKind = "late"  // without the turn, or after it had ended; changes no state
)

// Apply performs a change. It cannot fail, and does not use the table. Channels takes ownership of
// the change's values.
func (cs *Channels) Apply(ch change.Change) {
	set, id := change.As[Set](ch.Body), Of(&ch)
	if a := set.Body.Agent; a != nil {
		if cs.Agents == nil {
			cs.Agents = map[AgentID]*Agent{}
		}
		mine := *a
		cs.Agents[set.Agent] = &mine
	}
	if id == "" {
		return
	}
	c := cs.ByID[id]
	if c == nil {
		if cs.ByID == nil {
			cs.ByID = map[ChannelID]*Channel{}
		}
		c = &Channel{Participants: map[AgentID]*Participant{}}
		cs.ByID[id] = c
	}
	body := &set.Body
	if body.Settings != nil {
		c.Settings = *body.Settings
	}
	if body.Head != nil {
		c.Head = *body.Head
	}
	for i := range body.Participants {
		s := body.Participants[i]
		c.Participants[s.Agent] = &s
	}
	for _, name := range body.Left {
		delete(c.Participants, name)
	}
	for i := range body.Messages {
		c.Open = put(c.Open, body.Messages[i].Message)
	}
}

// put updates a message in a list sorted by number. A settled message is removed; a message to all
// is removed when its time is over, because other agents may still answer it.
func put(open []Message, m Message) []Message {
	i, ok := find(open, m.N)
	settled := m.State == Lapsed || m.State == Answered && m.Ends.IsZero()
	switch {
	case ok && settled:
		return slices.Delete(open, i, i+1)
	case ok:
		open[i] = m
		return open
	case settled:
		return open
	default:
		return slices.Insert(open, i, m)
	}
}

// triggers are the triggers of seed 003's transition table. Events that the seed does not have use
// their own name.
var triggers = map[Event]string{
	Connected: "Agent starts", Restarted: "Agent starts", Assigned: "Assigned to channel", SecondCame: "Assigned to channel",
	Granted: "Turn granted", Removed: "Removed from channel", Disconnected: "Agent disconnects", Crashed: "Agent crashes",
	Completed: "TURN_COMPLETE", CompletedAlone: "TURN_COMPLETE", CompletedEmpty: "TURN_COMPLETE", CompletedEmptyAlone: "TURN_COMPLETE",
	TimedOut: "Timeout", WaitAsked: "Wait requested",
	WaitResolved: "Wait resolved", WaitTimedOut: "Wait timeout", SentOn: "Human override", SentBack: "Human override",
}

// TriggerFrom returns the trigger of an event for the transition log of seed 003 (X6). from is the state before.
func TriggerFrom(from State, event Event) string {
	if event == Disconnected && from == Idle {
		return "Agent stops"
	}
	if words, ok := triggers[event]; ok {
		return words
	}
	return string(event)
}
