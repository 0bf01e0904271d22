package view

import (
	"time"
)

// ChannelView is a channel as `fairlead channel list --json` and GET /channels show it.
type ChannelView struct {
	Name       string        `json:"name" doc:"As in fairlead.yaml"`
	Queue      []string      `json:"queue" doc:"Who gets the turn after the holder, in order"`
	Holder     string        `json:"holder" doc:"Who has the turn; empty: nobody"`
	State      string        `json:"state" doc:"ACTIVE or WAITING as the holder is, PARKED where nobody has the turn"`
	Deadline   *time.Time    `json:"deadline" doc:"When the turn, the wait or the answer to a person runs out; null: it stands still"`
	Messages   uint64        `json:"messages" doc:"Said so far: the number of the last message"`
	Turn       uint64        `json:"turn" doc:"The turn under way, or the last one"`
	Since      *time.Time    `json:"since" doc:"When the turn was given"`
	Why        string        `json:"why" doc:"What the holder waits for, or why nobody has the turn"`
	Parked     string        `json:"parked" doc:"quiet, passed, rounds, nobody, held or limited; empty: somebody has the turn"`
	Mode       string        `json:"mode" doc:"Of a person's message that names none: queue, interrupt, inject or parallel"`
	Lead       string        `json:"lead" doc:"Who answers a person that interrupts; empty: the holder itself"`
	RoundsMax  int           `json:"rounds_max" doc:"Rounds that agents have after a person's message; 0: no limit"`
	TimeoutMS  int64         `json:"timeout_ms" doc:"Of a turn, where the agent has none of its own; 0: none"`
	Aside      *AsideView    `json:"aside" doc:"A person interrupted, and somebody is answering; null: no"`
	Agents     []MemberView  `json:"agents" doc:"Its members: in the order of fairlead.yaml, then the others by name"`
	Open       []OpenMessage `json:"open" doc:"People's messages that nobody has answered, the oldest first"`
	Last       *ChannelEntry `json:"last" doc:"What was said last, at most 200 characters of it; null: nothing"`
	Configured bool          `json:"configured" doc:"False: it is no longer in fairlead.yaml"`
}

// AsideView is a person's interruption that somebody answers without a turn.
type AsideView struct {
	Agent    string     `json:"agent" doc:"Who answers"`
	Message  uint64     `json:"message" doc:"Number of the person's message"`
	Deadline *time.Time `json:"deadline" doc:"When the time limit ends; null: it is paused"`
}

// MemberView is one agent of a channel.
type MemberView struct {
	Name      string `json:"name"`
	State     string `json:"state" doc:"OFFLINE, IDLE, QUEUED, ACTIVE or WAITING, in this channel"`
	Connected bool   `json:"connected" doc:"The agent is connected, whether enabled or not"`
	Disabled  bool   `json:"disabled" doc:"A person disabled it: it gets no turns until it is enabled"`
	Crashed   bool   `json:"crashed" doc:"The last time that it went, it had crashed"`
	Foreign   bool   `json:"foreign" doc:"It joins over HTTP; nothing is started for it here"`
	Limit     string `json:"limit" doc:"A limit that it has reached, so that it gets no turn; empty: none"`
	Took      int    `json:"took" doc:"Turns since a person spoke last"`
	Owed      bool   `json:"owed" doc:"It is queued when it connects"`
	Working   bool   `json:"working" doc:"Its session is answering something of this channel right now"`
}

// OpenMessage is a person's message that nobody has answered.
type OpenMessage struct {
	N     uint64 `json:"n" doc:"Number of the entry in the channel"`
	By    string `json:"by" doc:"Who said it"`
	Mode  string `json:"mode"`
	State string `json:"state" doc:"queued: nobody has it yet; delivered: an agent has it"`
}

// ChannelEntry is one line of a conversation.
type ChannelEntry struct {
	Seq     uint64    `json:"seq" doc:"Of the change in the journal; several entries may share it"`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind" doc:"human, turn, aside, late: said by somebody. moved: an agent changed its state. notice: an announcement. warning"`
	N       uint64    `json:"n,omitempty" doc:"Of what was said: its number in the channel"`
	By      string    `json:"by,omitempty" doc:"Who said it, or who asked for the move"`
	Text    string    `json:"text,omitempty" doc:"What was said; of a move, its context"`
	Turn    uint64    `json:"turn,omitempty" doc:"The turn that it was said in, that was given or that ended"`
	Re      uint64    `json:"re,omitempty" doc:"The message that it answers without a turn"`
	Mode    string    `json:"mode,omitempty" doc:"Of a person's message"`
	State   string    `json:"state,omitempty" doc:"Of a person's message, as it is now: queued, delivered, answered, lapsed"`
	Agent   string    `json:"agent,omitempty" doc:"Of moved: who"`
	From    string    `json:"from,omitempty" doc:"For 'moved': the agent's state before"`
	To      string    `json:"to,omitempty" doc:"For 'moved': the agent's state afterwards"`
	Row     string    `json:"row,omitempty" doc:"For 'moved': the row id, as in the journal"`
	Trigger string    `json:"trigger,omitempty" doc:"For 'moved': the event"`
}

// ChannelPage is a part of a conversation, the oldest entry first. Entries of one Seq are never
// parted.
type ChannelPage struct {
	Entries []ChannelEntry `json:"entries" doc:"Oldest first; entries with the same seq are never split between pages"`
	More    bool           `json:"more" doc:"There is more, in the direction that was asked for"`
	Head    uint64         `json:"head" doc:"The Seq up to which this is true"`
}

// EntryQuery asks for a part of a conversation. Without Before and After it is the newest.
type EntryQuery struct {
	Before uint64 // only entries with a smaller Seq, the newest of them
	After  uint64 // only entries with a greater Seq, the oldest of them
	Limit  int    // entries at most; 0: 100
	Moves  bool   // with those of kind moved
}

// Spoken is a person's message that was taken.
type Spoken struct {
	MessageID string `json:"message_id" doc:"CHANNEL/NUMBER"`
	N         uint64 `json:"n" doc:"Number of the message in the channel"`
	State     string `json:"state" doc:"queued, or delivered where an agent has it already"`
	Seq       uint64 `json:"seq" doc:"Sequence of its change in the journal; the message is durable"`
}

// ActionView is something that an agent is to be told, for one that fetches it.
type ActionView struct {
	Key      string         `json:"key" doc:"To be handed back when the agent has it"`
	Do       string         `json:"do" doc:"stop_work, tell_aside, tell_turn, tell_go_on or tell_message"`
	Channel  string         `json:"channel" doc:"The channel"`
	Agent    string         `json:"agent" doc:"The agent that must do it"`
	Turn     uint64         `json:"turn,omitempty" doc:"To be named with everything that is said in it; 0: it is no turn"`
	N        uint64         `json:"n,omitempty" doc:"Number of an action that can occur more than once in a turn; it is part of the key"`
	Message  uint64         `json:"message,omitempty" doc:"To be named as re with the answer, where it is no turn"`
	Text     string         `json:"text" doc:"All of it in words, ready for a model"`
	Messages []ChannelEntry `json:"messages" doc:"What was said since its last turn"`
	LeftOut  uint64         `json:"left_out,omitempty" doc:"So many older ones are not given"`
	Deadline *time.Time     `json:"deadline" doc:"When the turn ends; null: it has no time limit, or the action is not about a turn"`
}

// Speech is what an agent says for itself.
type Speech struct {
	Channel  string
	Agent    string
	Turn     uint64
	Re       uint64 // the message that it answers without a turn; 0: it is of the turn
	Text     string
	Complete bool // its turn is done
	Ended    bool // its answer is over
}
