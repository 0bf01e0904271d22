// Package channel decides which agent may speak in a channel.
//
// The agents of a channel take turns in a rotation. One of them has the turn. A turn is a lease with
// a number. It ends when the agent completes it, when its time runs out, or when the agent is gone.
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
// The promise: at most one agent of a channel is Active or Waiting.
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

// Channels is everything that is true of all turns of a team. Decide looks at it, Apply alone
// changes it. Its zero value has no agents and no channels.
type Channels struct {
	Agents map[AgentID]*Agent     `json:"agents,omitempty"`
	ByID   map[ChannelID]*Channel `json:"channels,omitempty"`
}

// Agent is one agent as such. It is set as a whole.
type Agent struct {
	AgentSettings
	Connected bool        `json:"connected,omitempty"` // T1; for our own agents J3
	Disabled  bool        `json:"disabled,omitempty"`  // T20
	Crashed   bool        `json:"crashed,omitempty"`   // the last time that it went (T18)
	Limit     string      `json:"limit,omitempty"`     // reached, so that it gets no turn (X9)
	Channels  []ChannelID `json:"channels,omitempty"`  // where it is a member, in order
}

// AgentSettings is what the configuration says of an agent's turns.
type AgentSettings struct {
	Timeout          time.Duration `json:"timeout,omitempty"` // of its turn; 0: the channel's
	NoInputMidAnswer bool          `json:"deaf,omitempty"`    // its driver takes no input in mid-answer
}

// Online says whether an agent can be given a turn.
func (a *Agent) Online() bool { return a != nil && a.Connected && !a.Disabled }

// Channel is one circle. A change holds the whole Head and the seats that moved.
type Channel struct {
	Settings     Settings                 `json:"settings"`
	Head         Head                     `json:"head"`
	Participants map[AgentID]*Participant `json:"seats,omitempty"`
	Open         []Message                `json:"open,omitempty"` // people's, by number, until they are answered; to all at once, until their time is over

	queue []*Participant   // the queued seats by place; derived
	busy  map[AgentID]bool // who has errands beside a turn; derived
}

// Settings is what the configuration says of a channel. The first six are seed 003's turnConfig.
type Settings struct {
	DefaultTimeout     time.Duration `json:"default_timeout"` // of a turn; 0: none, which only a person should choose
	Mode               Mode          `json:"mode"`            // of a person's message that names none
	AnnounceTimeouts   bool          `json:"announce_timeouts,omitempty"`
	AnnounceDisconnect bool          `json:"announce_disconnects,omitempty"`
	AutoDetectEnd      bool          `json:"auto_detect_turn_end,omitempty"`
	AutoDetectSilence  time.Duration `json:"auto_detect_silence"`

	WaitTimeout time.Duration `json:"wait_timeout"`
	RoundsMax   int           `json:"rounds_max,omitempty"` // after a person's message; 0: no limit
	Lead        AgentID       `json:"lead,omitempty"`       // who answers a person that interrupts
}

// DefaultSettings are seed 003's values, and SPEC's for what it adds.
func DefaultSettings() Settings {
	return Settings{
		DefaultTimeout: 60 * time.Second, Mode: Inject, AnnounceTimeouts: true, AnnounceDisconnect: true,
		AutoDetectSilence: 10 * time.Second, WaitTimeout: 300 * time.Second, RoundsMax: 3,
	}
}

// Mode is how a person's message meets a turn that is under way (seed 003, edge case 3).
type Mode string

const (
	ByQueue   Mode = "queue"     // delivered when the turn ends
	Interrupt Mode = "interrupt" // the turn pauses until the person has an answer
	Inject    Mode = "inject"    // delivered to the active agent at once
	Parallel  Mode = "parallel"  // to all at once; answers need no turn
)

// Head is a channel's own state, apart from seats and messages.
type Head struct {
	Seq       uint64  `json:"seq,omitempty"`    // messages so far: the number of the last one
	Turn      uint64  `json:"turn,omitempty"`   // turns given so far; the last one is the holder's
	Place     uint64  `json:"place,omitempty"`  // places in the circle given so far
	Holder    AgentID `json:"holder,omitempty"` // empty: nobody
	Lease     Lease   `json:"lease,omitzero"`   // the holder's
	Aside     Aside   `json:"aside,omitzero"`   // under way; it keeps every other turn waiting
	Said      Calls   `json:"said,omitzero"`
	Human     uint64  `json:"human,omitempty"`  // a person's last message: rounds count from here
	Passes    int     `json:"passes,omitempty"` // in a row
	Rests     AgentID `json:"rests,omitempty"`  // alone, its turn done (T8)
	ActionSeq uint64  `json:"errand,omitempty"` // numbers given to errands that can come more than once in a turn
	Parked    Reason  `json:"parked,omitempty"` // why nobody has the turn; empty: somebody has, or an aside is under way
}

// Lease is one turn.
type Lease struct {
	Upto       uint64        `json:"upto,omitempty"`        // it is given what was said up to here
	Told       bool          `json:"told,omitempty"`        // and has it
	Ends       time.Time     `json:"ends,omitzero"`         // its timer; zero: it stands still
	Left       time.Duration `json:"left,omitempty"`        // of it, while the turn is paused
	WaitTo     time.Time     `json:"wait_to,omitzero"`      // the wait timer; zero: none
	Silence    time.Time     `json:"silence,omitzero"`      // it counts as finished then; zero: it does not
	Ahead      []uint64      `json:"ahead,omitempty"`       // messages that it has beside that
	GoOn       uint64        `json:"go_on,omitempty"`       // it is to be told that its turn goes on: the errand's number
	Why        string        `json:"why,omitempty"`         // what it waits for
	WaitReason WaitReason    `json:"wait_reason,omitempty"` // the code of that
	Stopped    bool          `json:"stopped,omitempty"`     // by a person's interruption, not by its own wish
	Since      time.Time     `json:"since,omitzero"`        // when it was given
	ByHand     bool          `json:"by_hand,omitempty"`     // given by a person
	Ending     Event         `json:"ending,omitempty"`      // how it ends when the answer that is under way is over: completed, passed; empty: it goes on
}

// Aside is a person's interruption that somebody is answering. Its zero value is none.
type Aside struct {
	Message uint64    `json:"message,omitempty"`
	Agent   AgentID   `json:"agent,omitempty"` // the lead; or the holder itself
	Told    bool      `json:"told,omitempty"`
	Ends    time.Time `json:"ends,omitzero"` // of the lead; the holder has its lease's
}

// Calls are the agents' last words that ask the others for more: of the last speaker, and of
// the last one before it who is somebody else. Two numbers are enough for everybody to know
// whether somebody else has said something since.
type Calls struct {
	By   AgentID `json:"by,omitempty"`
	Last uint64  `json:"last,omitempty"`
	Else uint64  `json:"else,omitempty"`
}

// Participant is one agent's place in one channel.
type Participant struct {
	Agent         AgentID           `json:"agent"`
	State         State             `json:"state,omitempty"` // empty: the agent's own, OFFLINE or IDLE
	Place         uint64            `json:"place,omitempty"` // in the circle; the lowest is next
	JoinOnConnect bool              `json:"owed,omitempty"`  // assigned while offline: queued when it connects
	Heard         uint64            `json:"heard,omitempty"` // it has all that was said up to here
	Rest          uint64            `json:"rest,omitempty"`  // and nothing up to here asks it for a turn
	Took          int               `json:"took,omitempty"`  // turns
	TookFor       uint64            `json:"since,omitempty"` // since this message of a person
	Ahead         []uint64          `json:"ahead,omitempty"` // messages after Heard that it has, in order
	Parallel      []ParallelMessage `json:"apart,omitempty"` // messages that are its own to answer, without a turn
	Stop          uint64            `json:"stop,omitempty"`  // its work is to be stopped: the errand's number
	Gone          bool              `json:"gone,omitempty"`  // removed; it stays until its work was stopped
}

// ParallelMessage is a message to all at once, for one of them.
type ParallelMessage struct {
	N    uint64 `json:"n"`
	Told bool   `json:"told,omitempty"`
}

// Message is a person's message that nobody has answered.
type Message struct {
	N     uint64       `json:"n"`
	By    string       `json:"by"`
	Mode  Mode         `json:"mode"`
	State MessageState `json:"state"`
	Turn  uint64       `json:"turn,omitempty"` // the turn in which somebody first had it; 0: it was without one
	Ends  time.Time    `json:"ends,omitzero"`  // of a message to all: what nobody answered by then lapses
}

// Reason is why a channel parks.
type Reason string

const (
	Quiet    Reason = "quiet"   // nobody has anything to answer
	Passed   Reason = "passed"  // a whole round of passes
	Rounds   Reason = "rounds"  // the agents have had their rounds: it waits for a human
	NoAgents Reason = "nobody"  // no agent is in the circle
	Held     Reason = "held"    // the team is held (X8)
	Limited  Reason = "limited" // whoever has something to answer is at a limit (X9)
)

// Now is what a decision may know of the world beside the floor.
type Now struct {
	At   time.Time
	Held bool // the team is held or the daemon stops: no turn begins (X8)
}

// UnmarshalJSON reads a channel from a snapshot, and finds out again what is derived.
func (c *Channel) UnmarshalJSON(b []byte) error {
	type plain Channel
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*c = Channel(p)
	c.build()
	return nil
}

func (c *Channel) build() {
	c.queue, c.busy = nil, map[AgentID]bool{}
	if c.Participants == nil {
		c.Participants = map[AgentID]*Participant{}
	}
	for _, p := range c.Participants {
		if p.busy() {
			c.busy[p.Agent] = true
		}
		if p.State == Queued {
			c.queue = append(c.queue, p)
		}
	}
	slices.SortFunc(c.queue, byPlace)
}

func (p *Participant) busy() bool { return p.Stop != 0 || len(p.Parallel) > 0 }

// Queue lists who gets the turn after the holder, in order.
func (c *Channel) Queue() []AgentID {
	names := make([]AgentID, 0, len(c.queue))
	for _, p := range c.queue {
		names = append(names, p.Agent)
	}
	return names
}

// StateOf is where an agent stands in a channel, whether or not it is a member.
func (cs *Channels) StateOf(agent AgentID, channel ChannelID) State {
	if c := cs.ByID[channel]; c != nil && c.Participants[agent] != nil && c.Participants[agent].State != "" {
		return c.Participants[agent].State
	}
	if cs.Agents[agent].Online() {
		return Idle
	}
	return Offline
}

// MessageState is how far a person's message is: what is not open any more was answered, or
// has lapsed, which the journal knows.
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
