package channel

import (
	"github.com/fairlead-dev/fairlead/core/table"
)

// State is the state of one agent in one channel (seed 003). OFFLINE and IDLE belong to the agent:
// without a place in a channel's rotation, it is in one of these two there.
type State string

const (
	Offline State = "OFFLINE" // not connected, or disabled
	Idle    State = "IDLE"    // online, and not in this channel's rotation
	Queued  State = "QUEUED"  // in the rotation
	Active  State = "ACTIVE"  // has the turn
	Waiting State = "WAITING" // has the turn, but does not speak
)

// Event is what happened to an agent in a channel. Together with the state it determines the rule.
type Event string

const (
	Configured Event = "configured" // an agent or a channel, by fairlead.yaml

	// The agent in general.
	Connected      Event = "connected"
	Restarted      Event = "restarted"        // connected after a crash
	Enabled        Event = "enabled"          // enabled while connected
	EnabledAway    Event = "enabled_away"     // enabled while not connected
	ConnectedInert Event = "connected_inert"  // connected while disabled
	GoneInert      Event = "gone_inert"       // disconnected while disabled
	Disconnected   Event = "disconnected"     // it disconnected regularly
	Crashed        Event = "crashed"          // its process died
	BeatsMissed    Event = "heartbeat_missed" // of a foreign agent, three in a row
	Disabled       Event = "disabled"

	// Its place in the rotation.
	Assigned   Event = "assigned"
	SecondCame Event = "second_came" // at rest after its turn, and another agent is assigned
	Roused     Event = "roused"      // at rest after its turn, and a message arrived
	Removed    Event = "removed"

	// Its turn.
	Granted         Event = "granted"
	Completed       Event = "completed"
	CompletedAlone  Event = "completed_alone"
	FellSilent      Event = "fell_silent" // it answered without TURN_COMPLETE and sent nothing more
	FellSilentAlone Event = "fell_silent_alone"

	// The same ends of a turn in which the agent said nothing.
	CompletedEmpty       Event = "completed_empty"
	CompletedEmptyAlone  Event = "completed_empty_alone"
	FellSilentEmpty      Event = "fell_silent_empty"
	FellSilentEmptyAlone Event = "fell_silent_empty_alone"

	TimedOut     Event = "timed_out"
	PassedOn     Event = "passed"
	Skipped      Event = "skipped"   // by a person
	Displaced    Event = "displaced" // a person gave the turn to another agent
	LimitReached Event = "limit_reached"

	// Its pauses.
	WaitAsked     Event = "wait_asked"
	WaitResolved  Event = "wait_resolved"
	WaitTimedOut  Event = "wait_timed_out"
	SentBack      Event = "sent_back"   // a person ends its wait and its turn
	SentOn        Event = "sent_on"     // a person ends its wait
	Interrupted   Event = "interrupted" // by a person's message
	AskedItself   Event = "asked_itself"
	AsideAnswered Event = "aside_answered" // the person who interrupted has an answer
	AsideDropped  Event = "aside_dropped"  // or will not get one here
)

// Act is a change that a rule makes to the channel's data.
type Act string

const (
	JoinQueue      Act = "join_queue"  // at the end of the queue
	LeaveQueue     Act = "leave_queue" // keeps the received messages
	LeaveRotation  Act = "leave_rotation"
	TakeTurn       Act = "take_turn" // with the next number and the messages since its last turn
	StartTurnTimer Act = "start_turn_timer"
	PauseTurnTimer Act = "pause_turn_timer" // keeps the remaining time
	ResumeTimer    Act = "resume_turn_timer"
	StartWaitTimer Act = "start_wait_timer"
	StopWaitTimer  Act = "stop_wait_timer"
	EndTurn        Act = "end_turn"
	LoseTurn       Act = "lose_turn" // like EndTurn, but messages received in it count as not received
	CloseMessages  Act = "close_messages"
	RestHere       Act = "rest" // until the next message
	CancelWork     Act = "cancel_work"
	GoOn           Act = "go_on"
	CountPass      Act = "count_pass"
	AnnounceLate   Act = "announce_timeout"
	AnnounceGone   Act = "announce_disconnect"
	NoteContext    Act = "note_context" // a reason for the log
)

// do shortens the table.
func do(acts ...Act) []Act { return acts }

// Table contains all rules for turns. The IDs are rows of SPEC.
var Table = table.Table[State, Event, Act]{
	Offline: {
		Connected:      {ID: "T1", To: Idle},
		Restarted:      {ID: "T18", To: Idle, Why: "not queued again automatically, so that a person sees the crash"},
		Enabled:        {ID: "T21", To: Idle},
		EnabledAway:    {ID: "T21", To: Offline},
		ConnectedInert: {ID: "T20", To: Offline, Why: "connected, but still disabled"},
		GoneInert:      {ID: "T20", To: Offline},
		Disabled:       {ID: "T20", To: Offline},
		Assigned:       {ID: "T2", To: Offline, Why: "assigned while offline; queued when it connects"},
		Removed:        {ID: "T5", To: Offline, Do: do(LeaveRotation)},
	},
	Idle: {
		Assigned:     {ID: "T2", To: Queued, Do: do(JoinQueue)},
		SecondCame:   {ID: "T2", To: Queued, Do: do(JoinQueue), Why: "agents are queued in the order in which they connected"},
		Roused:       {ID: "T19", To: Queued, Do: do(JoinQueue)},
		Removed:      {ID: "T5", To: Idle, Do: do(LeaveRotation)},
		Disconnected: {ID: "T3", To: Offline, Do: do(LeaveQueue)},
		Crashed:      {ID: "T3", To: Offline, Do: do(LeaveQueue, NoteContext)},
		BeatsMissed:  {ID: "T3", To: Offline, Do: do(LeaveQueue, NoteContext)},
		Disabled:     {ID: "T20", To: Offline, Do: do(LeaveQueue)},
	},
	Queued: {
		Granted:      {ID: "T4", To: Active, Do: do(TakeTurn, StartTurnTimer)},
		Removed:      {ID: "T5", To: Idle, Do: do(LeaveRotation)},
		Disconnected: {ID: "T6", To: Offline, Do: do(LeaveQueue, NoteContext)},
		Crashed:      {ID: "T6", To: Offline, Do: do(LeaveQueue, NoteContext)},
		BeatsMissed:  {ID: "T6", To: Offline, Do: do(LeaveQueue, NoteContext)},
		Disabled:     {ID: "T20", To: Offline, Do: do(LeaveQueue)},
	},
	Active: {
		Completed:       {ID: "T7", To: Queued, Do: do(CloseMessages, EndTurn, JoinQueue)},
		CompletedAlone:  {ID: "T8", To: Idle, Do: do(CloseMessages, EndTurn, RestHere)},
		FellSilent:      {ID: "T7", To: Queued, Do: do(CancelWork, CloseMessages, EndTurn, JoinQueue), Why: "autoDetectTurnEnd"},
		FellSilentAlone: {ID: "T8", To: Idle, Do: do(CancelWork, CloseMessages, EndTurn, RestHere), Why: "autoDetectTurnEnd"},

		CompletedEmpty:       {ID: "T7", To: Queued, Do: do(EndTurn, JoinQueue, NoteContext), Why: "a turn without text answers no message"},
		CompletedEmptyAlone:  {ID: "T8", To: Idle, Do: do(EndTurn, RestHere, NoteContext), Why: "a turn without text answers no message"},
		FellSilentEmpty:      {ID: "T7", To: Queued, Do: do(CancelWork, EndTurn, JoinQueue, NoteContext), Why: "autoDetectTurnEnd; a turn without text answers no message"},
		FellSilentEmptyAlone: {ID: "T8", To: Idle, Do: do(CancelWork, EndTurn, RestHere, NoteContext), Why: "autoDetectTurnEnd; a turn without text answers no message"},

		TimedOut:      {ID: "T9", To: Queued, Do: do(CancelWork, EndTurn, JoinQueue, AnnounceLate), Why: "a slow agent keeps its place in the rotation"},
		WaitAsked:     {ID: "T10", To: Waiting, Do: do(PauseTurnTimer, StartWaitTimer, NoteContext)},
		Disconnected:  {ID: "T11", To: Offline, Do: do(LoseTurn, LeaveQueue, NoteContext, AnnounceGone)},
		Crashed:       {ID: "T11", To: Offline, Do: do(LoseTurn, LeaveQueue, NoteContext, AnnounceGone)},
		BeatsMissed:   {ID: "T11", To: Offline, Do: do(LoseTurn, LeaveQueue, NoteContext, AnnounceGone)},
		Disabled:      {ID: "T20", To: Offline, Do: do(CancelWork, LoseTurn, LeaveQueue)},
		Removed:       {ID: "T16", To: Idle, Do: do(CancelWork, EndTurn, LeaveRotation)},
		Interrupted:   {ID: "T17", To: Waiting, Do: do(PauseTurnTimer, CancelWork)},
		AsideAnswered: {ID: "T12", To: Active, Do: do(ResumeTimer, GoOn), Why: "the agent answered the person and continues its turn"},
		AsideDropped:  {ID: "T12", To: Active, Do: do(ResumeTimer, GoOn)},
		PassedOn:      {ID: "T22", To: Queued, Do: do(CountPass, EndTurn, JoinQueue)},
		Skipped:       {ID: "T23", To: Queued, Do: do(CancelWork, EndTurn, JoinQueue)},
		Displaced:     {ID: "T23", To: Queued, Do: do(CancelWork, EndTurn, JoinQueue)},
		LimitReached:  {ID: "X9", To: Queued, Do: do(CancelWork, EndTurn, JoinQueue, NoteContext)},
	},
	Waiting: {
		Completed:      {ID: "T7", To: Queued, Do: do(CloseMessages, EndTurn, JoinQueue), Why: "the step was ready before the gate closed again"},
		CompletedAlone: {ID: "T8", To: Idle, Do: do(CloseMessages, EndTurn, RestHere)},

		CompletedEmpty:      {ID: "T7", To: Queued, Do: do(EndTurn, JoinQueue, NoteContext)},
		CompletedEmptyAlone: {ID: "T8", To: Idle, Do: do(EndTurn, RestHere, NoteContext)},

		WaitResolved:  {ID: "T12", To: Active, Do: do(StopWaitTimer, ResumeTimer, GoOn)},
		WaitTimedOut:  {ID: "T13", To: Queued, Do: do(CancelWork, EndTurn, JoinQueue)},
		Disconnected:  {ID: "T14", To: Offline, Do: do(LoseTurn, LeaveQueue, NoteContext, AnnounceGone)},
		Crashed:       {ID: "T14", To: Offline, Do: do(LoseTurn, LeaveQueue, NoteContext, AnnounceGone)},
		BeatsMissed:   {ID: "T14", To: Offline, Do: do(LoseTurn, LeaveQueue, NoteContext, AnnounceGone)},
		Disabled:      {ID: "T20", To: Offline, Do: do(CancelWork, LoseTurn, LeaveQueue)},
		SentBack:      {ID: "T15", To: Queued, Do: do(CancelWork, EndTurn, JoinQueue)},
		SentOn:        {ID: "T15", To: Active, Do: do(StopWaitTimer, ResumeTimer, GoOn)},
		Removed:       {ID: "T16", To: Idle, Do: do(CancelWork, EndTurn, LeaveRotation)},
		AskedItself:   {ID: "T17", To: Active, Do: do(StartTurnTimer), Why: "no lead can answer, so the agent with the turn does, with a separate timeout"},
		AsideAnswered: {ID: "T12", To: Active, Do: do(ResumeTimer, GoOn)},
		Skipped:       {ID: "T23", To: Queued, Do: do(CancelWork, EndTurn, JoinQueue)},
		Displaced:     {ID: "T23", To: Queued, Do: do(CancelWork, EndTurn, JoinQueue)},
		LimitReached:  {ID: "X9", To: Queued, Do: do(CancelWork, EndTurn, JoinQueue, NoteContext)},
	},
}

// MessageState is the state of a person's message.
type MessageState string

const (
	Unsaid    MessageState = "unsaid"
	Kept      MessageState = "queued"    // not delivered yet
	Delivered MessageState = "delivered" // an agent has it
	Answered  MessageState = "answered"  // an agent that had it ended a turn in which it spoke, or answered it outside of a turn
	Lapsed    MessageState = "lapsed"    // delivered to all agents and not answered in time
)

// MessageEvent is what happened to a person's message.
type MessageEvent string

const (
	Spoken        MessageEvent = "spoken"
	Handed        MessageEvent = "handed"    // to an agent, which acknowledged it
	HandedOn      MessageEvent = "handed_on" // to a further agent
	LostWithAgent MessageEvent = "lost_with_agent"
	GotAnswer     MessageEvent = "got_answer"
	TimeOver      MessageEvent = "time_over" // of a message to all
)

// MessageTable contains the states of a person's message. SPEC describes them in text; the M rows
// refer to it.
var MessageTable = table.Table[MessageState, MessageEvent, Act]{
	Unsaid: {Spoken: {ID: "M1", To: Kept}},
	Kept: {
		Handed:   {ID: "M2", To: Delivered},
		TimeOver: {ID: "M6", To: Kept, Why: "a message to all reached no agent; agents that are online now get it again"},
	},
	Delivered: {
		HandedOn:      {ID: "M2", To: Delivered, Why: "each agent of the rotation gets the messages since its last turn"},
		GotAnswer:     {ID: "M3", To: Answered},
		LostWithAgent: {ID: "M4", To: Kept, Why: "no agent has the message any more: the only one is gone, had no time left, or has lost its conversation"},
		TimeOver:      {ID: "M5", To: Lapsed},
	},
	Answered: {TimeOver: {ID: "M5", To: Answered, Why: "one answer closes a message to all; the other agents need not answer"}},
}

// SaidLate is the event of rule N3: an agent's text without the turn. It is kept and marked, and no
// state changes.
const SaidLate Event = "said_late"

// ConversationLost is the event of rule N9.
const ConversationLost Event = "conversation_lost"

// Named rules that are not a transition of an agent or of a message.
const (
	rowConfigured = "N1" // the agent or the channel was configured
	rowSaid       = "N2" // text in the turn, or other evidence that the agent works
	rowLate       = "N3" // text without the turn: kept, marked, changes no state
	rowAside      = "N4" // an answer that needs no turn
	rowParked     = "N5" // no agent is to speak now, with the reason
	rowConfirmed  = "N6" // an action was done
	rowUnfinished = "N7" // an answer without TURN_COMPLETE
	rowEnding     = "N8" // the turn ends with the current answer
	rowForgotten  = "N9" // the conversation in which an action was delivered is lost: the action is delivered again
	rowLimited    = "X9"
)
