// Package channel decides which agent may speak in a channel.
//
// The agents of a channel take turns in a rotation. One of them has the turn. A turn is a lease with
// a number. It ends when the agent completes it, when its time runs out, or when the agent leaves.
// Then the next agent with something to answer gets the turn. If there is none, or the channel waits
// for a person, the channel is parked. Text without the turn, or under the number of an earlier turn,
// is recorded as late and changes nothing. A person can speak at any time. The mode of the message
// says whether it waits for the next turn, goes to the agent that has the turn, goes to all agents
// at once, or pauses the turn until it is answered.
//
// The value has no texts, only their numbers and sizes. Messages are numbered from 1 in each channel;
// the journal keeps a text with the change that gave it its number. So the size of a change does not
// depend on the text, and the cost of an event does not depend on the age of the channel. Actions are
// derived from the value and have keys, so they can be repeated after a crash.
//
// The one promise: at most one agent of a channel is Active or Waiting.
package channel

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// AgentID is an agent's name, ChannelID a channel's.
type (
	AgentID   string
	ChannelID string
)

// Channels is the state of all channels of a team. Decide reads it, and only Apply changes it. Its
// zero value has no agents and no channels.
type Channels struct {
	Agents map[AgentID]*Agent     `json:"agents,omitempty"`
	ByID   map[ChannelID]*Channel `json:"channels,omitempty"`
}

// Agent is the state of one agent apart from its channels. It is replaced as a whole.
type Agent struct {
	AgentSettings
	Connected bool        `json:"connected,omitempty"` // T1; J3 for agents that Fairlead runs
	Disabled  bool        `json:"disabled,omitempty"`  // T20
	Crashed   bool        `json:"crashed,omitempty"`   // it crashed when it was last disconnected (T18)
	Limit     string      `json:"limit,omitempty"`     // the limit that it has reached, so that it gets no turn (X9)
	Channels  []ChannelID `json:"channels,omitempty"`  // its channels, sorted
}

// AgentSettings is the configuration of an agent's turns.
type AgentSettings struct {
	Timeout          time.Duration `json:"timeout,omitempty"` // of its turns; 0: the channel's
	NoInputMidAnswer bool          `json:"deaf,omitempty"`    // its driver takes no input during an answer
	NoEnd            bool          `json:"no_end,omitempty"`  // nothing reports the end of its answers
}

// Online reports whether an agent can get a turn.
func (a *Agent) Online() bool { return a != nil && a.Connected && !a.Disabled }

// Channel is the state of one channel. A change contains the whole Head and the participants that
// changed.
type Channel struct {
	Settings     Settings                 `json:"settings"`
	Head         Head                     `json:"head"`
	Participants map[AgentID]*Participant `json:"participants,omitempty"`
	// unanswered messages of people, by number; messages to all stay until their time is over
	Open []Message `json:"open,omitempty"`
}

// Settings is the configuration of a channel. The first six fields are seed 003's turnConfig.
type Settings struct {
	DefaultTimeout     time.Duration `json:"default_timeout"` // of a turn; 0: none, which should be a deliberate choice
	Mode               Mode          `json:"mode"`            // of a person's message without a mode
	AnnounceTimeouts   bool          `json:"announce_timeouts,omitempty"`
	AnnounceDisconnect bool          `json:"announce_disconnects,omitempty"`
	AutoDetectEnd      bool          `json:"auto_detect_turn_end,omitempty"`
	AutoDetectSilence  time.Duration `json:"auto_detect_silence"`

	WaitTimeout time.Duration `json:"wait_timeout"`
	RoundsMax   int           `json:"rounds_max,omitempty"` // after a person's message; 0: no limit
	Lead        AgentID       `json:"lead,omitempty"`       // the agent that answers interruptions
}

// DefaultSettings returns the values of seed 003, and those of SPEC for the additional fields.
func DefaultSettings() Settings {
	return Settings{
		DefaultTimeout: 60 * time.Second, Mode: Inject, AnnounceTimeouts: true, AnnounceDisconnect: true,
		AutoDetectSilence: 10 * time.Second, WaitTimeout: 300 * time.Second, RoundsMax: 3,
	}
}

// Mode says how a person's message affects a running turn (seed 003, edge case 3).
type Mode string

const (
	ByQueue   Mode = "queue"     // delivered when the turn ends
	Interrupt Mode = "interrupt" // the turn is paused until the person has an answer
	Inject    Mode = "inject"    // delivered to the active agent immediately
	Parallel  Mode = "parallel"  // to all agents immediately; answers need no turn
)

// Head is a channel's own state, without participants and messages.
type Head struct {
	Seq       uint64  `json:"seq,omitempty"`    // number of the last message
	Turn      uint64  `json:"turn,omitempty"`   // number of the last turn
	Place     uint64  `json:"place,omitempty"`  // number of places in the rotation given so far
	Holder    AgentID `json:"holder,omitempty"` // empty: no agent
	Lease     Lease   `json:"lease,omitzero"`   // of the agent that has the turn
	Aside     Aside   `json:"aside,omitzero"`   // the current interruption; it blocks all other turns
	Said      Calls   `json:"said,omitzero"`
	Human     uint64  `json:"human,omitempty"`      // last message of a person: rounds are counted from here
	Passes    int     `json:"passes,omitempty"`     // consecutive passes
	Rests     AgentID `json:"rests,omitempty"`      // the only agent in the rotation, after its turn (T8)
	ActionSeq uint64  `json:"action_seq,omitempty"` // counter for actions that can occur several times in a turn
	Parked    Reason  `json:"parked,omitempty"`     // why no agent has the turn; empty: one has, or an interruption is being answered
}

// Lease is one turn.
type Lease struct {
	Upto      uint64        `json:"upto,omitempty"`   // it includes the messages up to this number
	Delivered bool          `json:"told,omitempty"`   // the agent has received them
	Ends      time.Time     `json:"ends,omitzero"`    // time limit; zero: the timer is paused
	Left      time.Duration `json:"left,omitempty"`   // remaining time while the turn is paused
	WaitTo    time.Time     `json:"wait_to,omitzero"` // time limit of the wait; zero: none
	Silence   time.Time     `json:"silence,omitzero"` // when the turn counts as finished without TURN_COMPLETE; zero: never
	// when the agent's answer ended without TURN_COMPLETE; zero: it did not, or the agent has something to answer again
	Answered   time.Time  `json:"answered,omitzero"`
	Ahead      []uint64   `json:"ahead,omitempty"`       // further messages that the agent has received
	GoOn       uint64     `json:"go_on,omitempty"`       // number of the pending action that continues the turn; 0: none
	Why        string     `json:"why,omitempty"`         // what it waits for
	WaitReason WaitReason `json:"wait_reason,omitempty"` // the code of Why
	Stopped    bool       `json:"stopped,omitempty"`     // paused by a person's interruption, not at its own request
	Since      time.Time  `json:"since,omitzero"`        // start of the turn
	ByHand     bool       `json:"by_hand,omitempty"`     // granted by a person
	Spoke      bool       `json:"spoke,omitempty"`       // the agent has said something in it
	// how the turn ends after the current answer: completed, passed; empty: it continues
	Ending Event `json:"ending,omitempty"`
}

// answers records that the agent is answering, so that an earlier answer without TURN_COMPLETE no longer counts.
func (l *Lease) answers() { l.Silence, l.Answered = time.Time{}, time.Time{} }

// Aside is a person's interruption that is being answered. Its zero value is none.
type Aside struct {
	Message   uint64    `json:"message,omitempty"`
	Agent     AgentID   `json:"agent,omitempty"` // the lead, or the agent with the turn
	Delivered bool      `json:"told,omitempty"`
	Spoke     bool      `json:"spoke,omitempty"` // the agent has said something about it
	Ends      time.Time `json:"ends,omitzero"`   // time limit of the lead; the agent with the turn has its lease's
}

// Calls are the last messages of agents that require an answer from the others: the last speaker's,
// and the last one before it by another agent. These two numbers suffice to decide for every agent
// whether another one has spoken since.
type Calls struct {
	By   AgentID `json:"by,omitempty"`
	Last uint64  `json:"last,omitempty"`
	Else uint64  `json:"else,omitempty"`
}

// Participant is the state of one agent in one channel.
type Participant struct {
	Agent         AgentID `json:"agent"`
	State         State   `json:"state,omitempty"` // empty: the agent's own state, OFFLINE or IDLE
	Place         uint64  `json:"place,omitempty"` // position in the rotation; the lowest is next
	JoinOnConnect bool    `json:"owed,omitempty"`  // assigned while offline: it is queued when it connects
	Heard         uint64  `json:"heard,omitempty"` // it has received all messages up to here
	Rest          uint64  `json:"rest,omitempty"`  // no message up to here requires a turn
	Took          int     `json:"took,omitempty"`  // turns taken
	TookFor       uint64  `json:"since,omitempty"` // since this message of a person
	// consecutive turns that timed out on unanswered messages and that no limit of rounds counts
	Late     int               `json:"late,omitempty"`
	Ahead    []uint64          `json:"ahead,omitempty"` // messages after Heard that it has received, in order
	Parallel []ParallelMessage `json:"apart,omitempty"` // messages that it answers on its own, without a turn
	Stop     uint64            `json:"stop,omitempty"`  // number of the pending action that cancels its work; 0: none
	Gone     bool              `json:"gone,omitempty"`  // removed; kept until its work was cancelled
}

// ParallelMessage is a message to all agents, for one of them.
type ParallelMessage struct {
	N         uint64 `json:"n"`
	Delivered bool   `json:"told,omitempty"`
}

// Message is an unanswered message of a person.
type Message struct {
	N     uint64       `json:"n"`
	By    string       `json:"by"`
	Mode  Mode         `json:"mode"`
	State MessageState `json:"state"`
	Turn  uint64       `json:"turn,omitempty"` // the turn in which it was first delivered; 0: without a turn
	Ends  time.Time    `json:"ends,omitzero"`  // for a message to all: when it lapses without an answer
}

// Reason says why a channel is parked.
type Reason string

const (
	Quiet      Reason = "quiet"      // there is nothing to answer
	Unanswered Reason = "unanswered" // the agents had a person's message, and none answered it
	Passed     Reason = "passed"     // a whole round of passes
	Rounds     Reason = "rounds"     // the agents have used their rounds: the channel waits for a person
	NoAgents   Reason = "nobody"     // no agent is in the rotation
	Held       Reason = "held"       // the team is held (X8)
	Limited    Reason = "limited"    // every agent with something to answer has reached a limit (X9)
)

// Now is the part of the environment that a decision may use.
type Now struct {
	At   time.Time
	Held bool // the team is held or the daemon is stopping: no turn begins (X8)
}

// UnmarshalJSON reads a channel from a snapshot, which leaves out an empty map.
func (c *Channel) UnmarshalJSON(b []byte) error {
	type plain Channel
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	if *c = Channel(p); c.Participants == nil {
		c.Participants = map[AgentID]*Participant{}
	}
	return nil
}

// busy reports whether the agent has actions outside of a turn.
func (p *Participant) busy() bool { return p != nil && (p.Stop != 0 || len(p.Parallel) > 0) }

// busy lists the agents with actions outside of a turn, by name.
func (c *Channel) busy() []AgentID {
	var names []AgentID
	for name, p := range c.Participants {
		if p.busy() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// queue lists the queued participants in order.
func (c *Channel) queue() []*Participant {
	var queued []*Participant
	for _, p := range c.Participants {
		if p.State == Queued {
			queued = append(queued, p)
		}
	}
	slices.SortFunc(queued, byPlace)
	return queued
}

// Queue lists the agents that get the next turns, in order.
func (c *Channel) Queue() []AgentID {
	queued := c.queue()
	names := make([]AgentID, 0, len(queued))
	for _, p := range queued {
		names = append(names, p.Agent)
	}
	return names
}

// StateOf returns an agent's state in a channel, also if it is not a participant.
func (cs *Channels) StateOf(agent AgentID, channel ChannelID) State {
	if c := cs.ByID[channel]; c != nil && c.Participants[agent] != nil && c.Participants[agent].State != "" {
		return c.Participants[agent].State
	}
	if cs.Agents[agent].Online() {
		return Idle
	}
	return Offline
}

// MessageState returns the state of a person's message. A message that is no longer open was
// answered or has lapsed; the journal says which.
func (c *Channel) MessageState(n uint64) (MessageState, bool) {
	i, ok := find(c.Open, n)
	if !ok {
		return "", false
	}
	return c.Open[i].State, true
}

func find(open []Message, n uint64) (int, bool) {
	return slices.BinarySearchFunc(open, n, func(m Message, n uint64) int {
		switch {
		case m.N < n:
			return -1
		case m.N > n:
			return 1
		default:
			return 0
		}
	})
}

func byPlace(a, b *Participant) int {
	switch {
	case a.Place < b.Place:
		return -1
	case a.Place > b.Place:
		return 1
	default:
		return strings.Compare(string(a.Agent), string(b.Agent))
	}
}
