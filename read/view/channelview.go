package view

import (
	"time"
)

// ChannelView is a channel as `fairlead channel list --json` and GET /channels show it.
type ChannelView struct {
	Name       string        `json:"name" doc:"As in fairlead.yaml"`
	Queue      []string      `json:"queue" doc:"The participants that get the turn next, in order"`
	Holder     string        `json:"holder" doc:"The participant that has the turn; empty: none"`
	State      string        `json:"state" doc:"State of the participant that has the turn: ACTIVE or WAITING; PARKED if no participant has it"`
	Deadline   *time.Time    `json:"deadline" doc:"When the time limit of the turn, the wait or the answer to a person ends; null: no limit runs"`
	Messages   uint64        `json:"messages" doc:"Number of the last message"`
	Turn       uint64        `json:"turn" doc:"Number of the current turn, or of the last one"`
	Since      *time.Time    `json:"since" doc:"When the turn was given"`
	Why        string        `json:"why" doc:"What the current turn waits for, why it goes on after an answer, or why no participant has the turn"`
	Parked     string        `json:"parked" doc:"Why no participant has the turn: quiet, unanswered, passed, rounds, 'nobody', held or limited; empty: a participant has it"`
	Mode       string        `json:"mode" doc:"Default mode of people's messages: queue, interrupt, inject or parallel"`
	Lead       string        `json:"lead" doc:"The agent that answers when a person interrupts; empty: the agent that has the turn"`
	RoundsMax  int           `json:"rounds_max" doc:"Rounds of turns after a person's message; 0: no limit"`
	TimeoutMS  int64         `json:"timeout_ms" doc:"Time limit of a turn, for agents without their own; 0: none"`
	Aside      *AsideView    `json:"aside" doc:"An interruption by a person that an agent is answering; null: none"`
	Agents     []MemberView  `json:"agents" doc:"Its members: in the order of fairlead.yaml, then the others by name"`
	Open       []OpenMessage `json:"open" doc:"People's messages without an answer, oldest first"`
	Last       *ChannelEntry `json:"last" doc:"The last message, cut after 200 characters; null: none"`
	Configured bool          `json:"configured" doc:"False: it is no longer in fairlead.yaml"`
}

// AsideView is a person's interruption that an agent answers without having the turn.
type AsideView struct {
	Agent    string     `json:"agent" doc:"The agent that answers"`
	Message  uint64     `json:"message" doc:"Number of the person's message"`
	Deadline *time.Time `json:"deadline" doc:"When the time limit ends; null: it is paused"`
}

// MemberView is one agent of a channel.
type MemberView struct {
	Name      string `json:"name"`
	State     string `json:"state" doc:"OFFLINE, IDLE, QUEUED, ACTIVE or WAITING, in this channel"`
	Connected bool   `json:"connected" doc:"The agent is connected, whether enabled or not"`
	Disabled  bool   `json:"disabled" doc:"A person disabled it: it gets no turns until it is enabled"`
	Crashed   bool   `json:"crashed" doc:"It crashed the last time that it left the channel"`
	Foreign   bool   `json:"foreign" doc:"It joins over HTTP; Fairlead starts no session for it"`
	Limit     string `json:"limit" doc:"The limit that it has reached; it gets no turn meanwhile; empty: none"`
	Took      int    `json:"took" doc:"Its turns since the last message of a person"`
	Owed      bool   `json:"owed" doc:"It is queued when it connects"`
	Working   bool   `json:"working" doc:"Its session is answering a message of this channel"`
}

// OpenMessage is a person's message without an answer.
type OpenMessage struct {
	N     uint64 `json:"n" doc:"Number of the entry in the channel"`
	By    string `json:"by" doc:"Its author"`
	Mode  string `json:"mode"`
	State string `json:"state" doc:"queued: no agent has received it; delivered: an agent has"`
}

// ChannelEntry is one line of a conversation.
type ChannelEntry struct {
	Seq     uint64    `json:"seq" doc:"Of the change in the journal; several entries may share it"`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind" doc:"human, turn, aside, late: a message. moved: an agent changed its state. notice: an announcement. warning"`
	N       uint64    `json:"n,omitempty" doc:"Number of the message in the channel"`
	By      string    `json:"by,omitempty" doc:"Author of the message, or who caused the change of state"`
	Text    string    `json:"text,omitempty" doc:"Text of the message; for 'moved': its context"`
	Turn    uint64    `json:"turn,omitempty" doc:"The turn that the message belongs to, that began or that ended"`
	Re      uint64    `json:"re,omitempty" doc:"The message that it answers without a turn"`
	Mode    string    `json:"mode,omitempty" doc:"Mode of a person's message"`
	State   string    `json:"state,omitempty" doc:"Present state of a person's message: queued, delivered, answered, lapsed"`
	Agent   string    `json:"agent,omitempty" doc:"For 'moved': the agent"`
	From    string    `json:"from,omitempty" doc:"For 'moved': the agent's state before"`
	To      string    `json:"to,omitempty" doc:"For 'moved': the agent's state afterwards"`
	Row     string    `json:"row,omitempty" doc:"For 'moved': the row id, as in the journal"`
	Trigger string    `json:"trigger,omitempty" doc:"For 'moved': the event"`
}

// ChannelPage is a part of a conversation, the oldest entry first. Entries with the same Seq are
// never split between pages.
type ChannelPage struct {
	Entries []ChannelEntry `json:"entries" doc:"Oldest first; entries with the same seq are never split between pages"`
	More    bool           `json:"more" doc:"More entries exist in the requested direction"`
	Head    uint64         `json:"head" doc:"The page is the state at this sequence"`
}

// EntryQuery asks for a part of a conversation. Without Before and After it asks for the newest.
type EntryQuery struct {
	Before uint64 `query:"before" maximum:"9007199254740991" doc:"The newest before this sequence; 0: no limit"`
	After  uint64 `query:"after" maximum:"9007199254740991" doc:"The oldest after this sequence; 0: no limit. Without before and after: the newest"`
	Limit  int    `query:"limit" default:"100" minimum:"1" maximum:"500" doc:"The maximum number of entries"`
	Moves  bool   `query:"moves" doc:"Also the changes of agents' states: kind moved"`
}

// Spoken describes an accepted message of a person.
type Spoken struct {
	MessageID string `json:"message_id" doc:"CHANNEL/NUMBER"`
	N         uint64 `json:"n" doc:"Number of the message in the channel"`
	State     string `json:"state" doc:"queued, or delivered if an agent has received it already"`
	Seq       uint64 `json:"seq" doc:"Sequence of its change in the journal; the message is durable"`
}

// ActionView is an action for an agent that fetches its actions over HTTP.
type ActionView struct {
	Key      string         `json:"key" doc:"Send it back to acknowledge the action"`
	Do       string         `json:"do" doc:"stop_work, tell_aside, tell_turn, tell_go_on or tell_message"`
	Channel  string         `json:"channel" doc:"The channel"`
	Agent    string         `json:"agent" doc:"The agent that must do it"`
	Turn     uint64         `json:"turn,omitempty" doc:"Send it with every message of the turn; 0: the action has no turn"`
	N        uint64         `json:"n,omitempty" doc:"Number of an action that can occur more than once in a turn; it is part of the key"`
	Message  uint64         `json:"message,omitempty" doc:"Send it as re with the answer, if the action has no turn"`
	Text     string         `json:"text" doc:"The whole action as text for a model"`
	Messages []ChannelEntry `json:"messages" doc:"Messages since its last turn"`
	LeftOut  uint64         `json:"left_out,omitempty" doc:"Number of older messages that are left out"`
	Deadline *time.Time     `json:"deadline" doc:"When the turn ends; null: it has no time limit, or the action is not about a turn"`
}

// Speech is a message of an agent that acts over HTTP.
type Speech struct {
	Channel  string
	Agent    string
	Turn     uint64
	Re       uint64 // the message that it answers without a turn; 0: it belongs to the turn
	Text     string
	Complete bool // the turn ends
	Ended    bool // the answer ends
}
