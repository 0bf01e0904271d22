package channel

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// Change is one fact that Decide found. Channel is empty where it is about an agent as such,
// Agent where it is about a channel as such.
type Change struct {
	At      time.Time
	Row     string
	Channel ChannelID
	Agent   AgentID
	From    State // of the agent in the channel; both empty where it did not move
	To      State
	Trigger Event
	Body    Body
}

// Body is what Apply needs, and what the journal keeps. Every value in it is absolute: it says
// how a thing is now, so that applying needs no table and no rule.
type Body struct {
	Agent        *Agent        `json:"agent,omitempty"`    // as it is now
	Settings     *Settings     `json:"settings,omitempty"` // of the channel
	Head         *Head         `json:"head,omitempty"`     // of the channel
	Participants []Participant `json:"seats,omitempty"`    // those that changed
	Left         []AgentID     `json:"left,omitempty"`     // whose seats are gone
	Messages     []Progress    `json:"messages,omitempty"` // people's messages that moved

	Post *Post  `json:"post,omitempty"` // what was said, for whoever keeps the text with it
	Say  string `json:"say,omitempty"`  // an announcement in the channel, as seed 003 words it
	Warn string `json:"warn,omitempty"` // for the log
	Why  string `json:"why,omitempty"`  // context, for the log
}

// Progress is a person's message as it is now, and by which row it came there.
type Progress struct {
	Message
	Row string `json:"row"`
}

// Post is one thing said.
type Post struct {
	N     uint64   `json:"n"`
	Kind  PostKind `json:"kind"`
	By    string   `json:"by"`
	Turn  uint64   `json:"turn,omitempty"` // under which the speaker spoke
	Re    uint64   `json:"re,omitempty"`   // the message that it answers
	Bytes int      `json:"bytes"`
}

// PostKind is how something was said.
type PostKind string

const (
	OfHuman PostKind = "human" // by a person
	OfTurn  PostKind = "turn"  // by the holder of the turn
	OfAside PostKind = "aside" // an answer that needs no turn
	OfLate  PostKind = "late"  // without the turn, or after it had ended; it moves nothing
)

// Apply makes a change true. It cannot fail, and it does not look at the table. What it takes
// over of the change is the floor's from then on.
func (cs *Channels) Apply(ch Change) {
	if a := ch.Body.Agent; a != nil {
		if cs.Agents == nil {
			cs.Agents = map[AgentID]*Agent{}
		}
		mine := *a
		cs.Agents[ch.Agent] = &mine
	}
	if ch.Channel == "" {
		return
	}
	c := cs.ByID[ch.Channel]
	if c == nil {
		if cs.ByID == nil {
			cs.ByID = map[ChannelID]*Channel{}
		}
		c = &Channel{Participants: map[AgentID]*Participant{}, busy: map[AgentID]bool{}}
		cs.ByID[ch.Channel] = c
	}
	c.apply(&ch.Body)
}

func (c *Channel) apply(body *Body) {
	if body.Settings != nil {
		c.Settings = *body.Settings
	}
	if body.Head != nil {
		c.Head = *body.Head
	}
	for i := range body.Participants {
		s := body.Participants[i]
		c.unqueue(s.Agent)
		c.Participants[s.Agent] = &s
		if s.busy() {
			c.busy[s.Agent] = true
		} else {
			delete(c.busy, s.Agent)
		}
		if s.State == Queued {
			at, _ := slices.BinarySearchFunc(c.queue, &s, byPlace)
			c.queue = slices.Insert(c.queue, at, &s)
		}
	}
	for _, name := range body.Left {
		c.unqueue(name)
		delete(c.Participants, name)
		delete(c.busy, name)
	}
	for i := range body.Messages {
		c.Open = put(c.Open, body.Messages[i].Message)
	}
}

func (c *Channel) unqueue(name AgentID) {
	p := c.Participants[name]
	if p == nil || p.State != Queued {
		return
	}
	if at, ok := slices.BinarySearchFunc(c.queue, p, byPlace); ok {
		c.queue = slices.Delete(c.queue, at, at+1)
	}
}

// put sets a message in a list by number; one that is settled leaves it: a message to all when
// its time is over, because others may still answer it.
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

// Line is one line of the transition log, as seed 003's example shows it (X6).
type Line struct {
	Timestamp string `json:"timestamp"`
	Event     string `json:"event"`
	AgentID   string `json:"agentId"`
	From      string `json:"from"`
	To        string `json:"to"`
	Trigger   string `json:"trigger"`
	Channel   string `json:"channel"`
}

// Line is what the transition log says of a change; false where no agent moved.
func (ch *Change) Line() (Line, bool) {
	if ch.From == "" || ch.From == ch.To {
		return Line{}, false
	}
	return Line{
		Timestamp: ch.At.UTC().Format("2006-01-02T15:04:05.999Z07:00"), Event: "state_transition",
		AgentID: string(ch.Agent), From: string(ch.From), To: string(ch.To), Trigger: trigger(ch), Channel: string(ch.Channel),
	}, true
}

// JSON is the line as it stands in a file: its seven fields in order, in one line without an
// end, and nothing escaped for HTML.
func (l Line) JSON() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		panic("turn: seven strings are no JSON: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// triggers are the words of seed 003's transition table; what it has no word for says its own.
var triggers = map[Event]string{
	Connected: "Agent starts", Restarted: "Agent starts", Assigned: "Assigned to channel", SecondCame: "Assigned to channel",
	Granted: "Turn granted", Removed: "Removed from channel", Disconnected: "Agent disconnects", Crashed: "Agent crashes",
	Completed: "TURN_COMPLETE", CompletedAlone: "TURN_COMPLETE", TimedOut: "Timeout", WaitAsked: "Wait requested",
	WaitResolved: "Wait resolved", WaitTimedOut: "Wait timeout", SentOn: "Human override", SentBack: "Human override",
}

func trigger(ch *Change) string {
	if ch.Trigger == Disconnected && ch.From == Idle {
		return "Agent stops"
	}
	if words, ok := triggers[ch.Trigger]; ok {
		return words
	}
	return string(ch.Trigger)
}
