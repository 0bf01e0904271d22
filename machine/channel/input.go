package channel

import "time"

// Input is something that happened, as the world tells it.
type Input interface{ input() }

// Token names one turn. What comes in under a number that is over is late.
type Token struct {
	Channel ChannelID `json:"channel"`
	Agent   AgentID   `json:"agent"`
	Turn    uint64    `json:"turn,omitempty"`
}

// What the configuration says.
type (
	// AgentConfigured makes an agent known, or sets it anew.
	AgentConfigured struct {
		Agent    AgentID
		Settings AgentSettings
	}
	// ChannelConfigured makes a channel, or sets it anew; who is in it is asked for one by one.
	ChannelConfigured struct {
		Channel  ChannelID
		Settings Settings
	}
)

// What is seen of an agent.
type (
	// AgentConnected is T1, T18.
	AgentConnected struct{ Agent AgentID }
	// AgentGone is T3, T6, T11, T14: How is Disconnected or Crashed.
	AgentGone struct {
		Agent AgentID
		How   Event
		Why   string // its context, for the log; from the agent or the system, so not to be trusted
	}
	// AgentBeatsMissed is T11 of a foreign agent. Last is its last heartbeat, by our clock.
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

// What people ask for. None of it waits behind messages.
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
	// GrantAsked gives an agent the turn: refused while somebody holds it, unless Now (T23).
	GrantAsked struct {
		Channel ChannelID
		Agent   AgentID
		Now     bool
	}
	// SkipAsked ends the turn that is under way (T23). Turn says which: 0 is whichever it is.
	SkipAsked struct {
		Channel ChannelID
		Turn    uint64
	}
	// OverrideAsked ends a wait (T15): GoOn resumes the turn, else it is forfeited.
	OverrideAsked struct {
		Channel ChannelID
		GoOn    bool
	}
	// HumanSpoke is a person's message. Mode "" is the channel's.
	HumanSpoke struct {
		Channel ChannelID
		By      string
		Mode    Mode
		Bytes   int // of its text, which is kept elsewhere
	}
	// Released is the end of a hold.
	Released struct{}
)

// What an agent says and does.
type (
	// Said is text of an agent, the end of its answer, or both.
	Said struct {
		Token
		Bytes    int    // of the text, without the marker; 0: none
		Complete bool   // TURN_COMPLETE stood at its end
		Ended    bool   // the answer is over
		Re       uint64 // the message that it answers without a turn; 0: it is of the turn
	}
	// FinishAsked says that the turn ends with the answer that is under way: T7, T8 or, with Pass,
	// T22 follow when that is over. So whatever is still said in it belongs to the turn (N8).
	FinishAsked struct {
		Token
		Pass bool
	}
	// PassAsked is T22, WaitAskedFor T10, WaitOver T12.
	PassAsked    struct{ Token }
	WaitAskedFor struct {
		Token
		Why    string // for people
		Reason WaitReason
	}
	WaitOver struct{ Token }
)

// What became of an errand, and of time.
type (
	// Told acknowledges an errand: it was done, and need not be done again.
	Told struct {
		Token
		Do ActionKind
		N  uint64 // as the errand has it
	}
	// TimerFired is a deadline that has passed. It names what it was about, so that one which
	// comes late ends nobody else's turn.
	TimerFired struct{ About Deadline }
)

func (AgentConfigured) input()   {}
func (ChannelConfigured) input() {}
func (AgentConnected) input()    {}
func (AgentGone) input()         {}
func (AgentBeatsMissed) input()  {}
func (DisableAsked) input()      {}
func (EnableAsked) input()       {}
func (LimitHit) input()          {}
func (LimitLifted) input()       {}
func (AssignAsked) input()       {}
func (RemoveAsked) input()       {}
func (GrantAsked) input()        {}
func (SkipAsked) input()         {}
func (OverrideAsked) input()     {}
func (HumanSpoke) input()        {}
func (Released) input()          {}
func (Said) input()              {}
func (FinishAsked) input()       {}
func (PassAsked) input()         {}
func (WaitAskedFor) input()      {}
func (WaitOver) input()          {}
func (Told) input()              {}
func (TimerFired) input()        {}
