package channel

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Input is an event that a channel decides.
type Input = change.Input[Event]

// Subject is what an input is about: Entity is the name of a channel; empty: the agent in all its channels.
type Subject = change.Subject[Event]

func about(event Event, id ChannelID, agent AgentID) Subject {
	return Subject{Event: event, Entity: string(id), Agent: string(agent)}
}

func starts(event Event, id ChannelID, agent AgentID) Subject {
	return Subject{Event: event, Entity: string(id), Agent: string(agent), Starts: true}
}

// Token names one turn. Input with the number of an ended turn is late.
type Token struct {
	Channel ChannelID `json:"channel"`
	Agent   AgentID   `json:"agent"`
	Turn    uint64    `json:"turn,omitempty"`
}

// Configuration.
type (
	// AgentConfigured adds or reconfigures an agent.
	AgentConfigured struct {
		Agent    AgentID
		Settings AgentSettings
	}
	// ChannelConfigured adds or reconfigures a channel; its members are assigned one by one.
	ChannelConfigured struct {
		Channel  ChannelID
		Settings Settings
	}
)

// Observations of an agent.
type (
	// AgentConnected is T1, T18.
	AgentConnected struct{ Agent AgentID }
	// AgentGone is T3, T6, T11, T14: How is Disconnected or Crashed.
	AgentGone struct {
		Agent AgentID
		How   Event
		Why   string // description for the log, from the agent or the system; untrusted
	}
	// AgentBeatsMissed is T11 for a foreign agent. Last is the time of its last heartbeat.
	AgentBeatsMissed struct {
		Agent AgentID
		Last  time.Time
	}
	// DisableAsked is T20, EnableAsked T21.
	DisableAsked struct{ Agent AgentID }
	EnableAsked  struct{ Agent AgentID }
	// LimitHit is X9: the agent's turns end, and it gets none until LimitLifted.
	LimitHit struct {
		Agent AgentID
		Limit string
	}
	LimitLifted struct{ Agent AgentID }
)

// Requests of people. None of them waits behind messages.
type (
	// AssignAsked is T2; RemoveAsked T5, T16.
	AssignAsked struct {
		Channel ChannelID
		Agent   AgentID
	}
	RemoveAsked struct {
		Channel ChannelID
		Agent   AgentID
	}
	// GrantAsked gives an agent the turn. It is refused while another agent has it, unless Now is set
	// (T23).
	GrantAsked struct {
		Channel ChannelID
		Agent   AgentID
		Now     bool
	}
	// SkipAsked ends the current turn (T23). Turn is its number; 0: whichever it is.
	SkipAsked struct {
		Channel ChannelID
		Turn    uint64
	}
	// OverrideAsked ends a wait (T15): GoOn resumes the turn, otherwise it is forfeited.
	OverrideAsked struct {
		Channel ChannelID
		GoOn    bool
	}
	// HumanSpoke is a person's message. An empty Mode is the channel's.
	HumanSpoke struct {
		Channel ChannelID
		By      string
		Mode    Mode
		Bytes   int // length of its text, which is stored elsewhere
	}
	// Released is the end of a hold.
	Released struct{}
)

// Agents' messages and requests.
type (
	// Said is text of an agent, the end of its answer, or both.
	Said struct {
		Token
		Bytes    int    // length of the text without the marker; 0: none
		Complete bool   // it ended with TURN_COMPLETE
		Ended    bool   // the answer has ended
		Re       uint64 // the message that it answers without a turn; 0: it belongs to the turn
	}
	// FinishAsked announces that the turn ends with the current answer: T7, T8 or, with Pass, T22 follow
	// at its end. Text until then still belongs to the turn (N8).
	FinishAsked struct {
		Token
		Pass bool
	}
	// Worked is evidence that the agent with the turn works although it says nothing: its silence begins again.
	Worked struct{ Token }
	// PassAsked is T22, WaitAskedFor T10, WaitOver T12.
	PassAsked    struct{ Token }
	WaitAskedFor struct {
		Token
		Why    string // for people
		Reason WaitReason
	}
	WaitOver struct{ Token }
)

// Results of actions, and timers.
type (
	// ActionConfirmed acknowledges an action, so that it is not repeated.
	ActionConfirmed struct {
		Token
		Do ActionKind
		N  uint64 // as in the action
	}
	// ActionForgotten reports that an agent's program no longer knows the conversation in which this action was
	// delivered, and did nothing. The action is delivered again, in a new conversation.
	ActionForgotten ActionConfirmed
	// TimerFired is a deadline that has passed. It names its subject, so that a late timer cannot end
	// another agent's turn.
	TimerFired struct{ About Deadline }
)

// Subject of each input is what it is about.
func (in AgentConfigured) Subject() Subject   { return about(Configured, "", in.Agent) }
func (in ChannelConfigured) Subject() Subject { return about(Configured, in.Channel, "") }
func (in AgentConnected) Subject() Subject    { return about(Connected, "", in.Agent) }
func (in AgentGone) Subject() Subject         { return about(in.How, "", in.Agent) }
func (in AgentBeatsMissed) Subject() Subject  { return about(BeatsMissed, "", in.Agent) }
func (in DisableAsked) Subject() Subject      { return about(Disabled, "", in.Agent) }
func (in EnableAsked) Subject() Subject       { return about(Enabled, "", in.Agent) }
func (in LimitHit) Subject() Subject          { return about(LimitReached, "", in.Agent) }
func (in LimitLifted) Subject() Subject       { return about("limit_lifted", "", in.Agent) }
func (in AssignAsked) Subject() Subject       { return starts(Assigned, in.Channel, in.Agent) }
func (in RemoveAsked) Subject() Subject       { return about(Removed, in.Channel, in.Agent) }
func (in GrantAsked) Subject() Subject        { return starts(Granted, in.Channel, in.Agent) }
func (in SkipAsked) Subject() Subject         { return about(Skipped, in.Channel, "") }
func (in OverrideAsked) Subject() Subject     { return about(SentOn, in.Channel, "") }
func (in HumanSpoke) Subject() Subject        { return starts(Event(Spoken), in.Channel, "") }
func (Released) Subject() Subject             { return about("released", "", "") }
func (in Said) Subject() Subject              { return about("said", in.Channel, in.Agent) }
func (in Worked) Subject() Subject            { return about("worked", in.Channel, in.Agent) }
func (in PassAsked) Subject() Subject         { return about(PassedOn, in.Channel, in.Agent) }
func (in WaitAskedFor) Subject() Subject      { return about(WaitAsked, in.Channel, in.Agent) }
func (in WaitOver) Subject() Subject          { return about(WaitResolved, in.Channel, in.Agent) }
func (in ActionConfirmed) Subject() Subject   { return about("told", in.Channel, in.Agent) }
func (in ActionForgotten) Subject() Subject   { return about(ConversationLost, in.Channel, in.Agent) }
func (in TimerFired) Subject() Subject        { return about(TimedOut, in.About.Channel, "") }

func (in FinishAsked) Subject() Subject {
	if in.Pass {
		return about(PassedOn, in.Channel, in.Agent)
	}
	return about(Completed, in.Channel, in.Agent)
}
