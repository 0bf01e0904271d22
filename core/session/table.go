// Package session is the life of one session: one execution of an agent's program.
//
// A session is journaled before its process exists, and closed when the process has ended or is
// known to be lost. While a session is open, other requests for the same agent's slot are queued
// and not refused. The table is the same for every purpose: the agent's desired state, a step of a
// run, a channel or a dispatch.
//
// The one promise: a slot has at most one open session. An agent has one slot, or as many as it has
// instances.
package session

import (
	"github.com/fairlead-dev/fairlead/core/table"
)

// Phase is the state of a session.
type Phase string

const (
	None    Phase = "none"
	Open    Phase = "opened"  // journaled; the process may not exist yet
	Running Phase = "running" // the process was seen
)

// Event is what happened to a session or to the queue of its slot.
type Event string

const (
	Opened          Event = "opened"
	Started         Event = "started"
	Adopted         Event = "adopted"
	EndAsked        Event = "end_asked"
	Reported        Event = "reported"
	ActionDelivered Event = "told"
	Named           Event = "named"
	StatusSaid      Event = "status_said"
	TokenGiven      Event = "token_given"
	PersonWrote     Event = "person_told"
	TellGiven       Event = "tell_given"
	Contacted       Event = "contacted"
	Ended           Event = "ended"
	Lost            Event = "lost"
	Withdrawn       Event = "withdrawn"

	Requested      Event = "claimed"         // another request waits for the slot
	RequestDropped Event = "request_dropped" // a waiting request is no longer wanted
)

// Act is an action of the session table.
type Act string

// Table is the life of a session. It is the same for every purpose.
var Table = table.Table[Phase, Event, Act]{
	None: {
		Opened:         {ID: "J1", To: Open, Why: "one session at a time; journaled before its process starts"},
		Requested:      {ID: "J1", To: None, Why: "an earlier request is first, or no session may start now"},
		RequestDropped: {ID: "J1", To: None},
		Contacted:      {ID: "S14", To: None, Why: "what a session did last is known after its end"},
	},
	Open: {
		TokenGiven:     {ID: "S11", To: Open, Why: "the hash of its token for the team's tools; the token is only in its environment"},
		Started:        {ID: "S1", To: Running},
		Adopted:        {ID: "S2", To: Running, Why: "it started just before a crash and was found"},
		EndAsked:       {ID: "S3", To: Open},
		Ended:          {ID: "S4", To: None, Why: "it could not start, or ended before it was seen"},
		Lost:           {ID: "S5", To: None},
		Withdrawn:      {ID: "S6", To: None, Why: "the last check before its process starts: it is no longer wanted"},
		Requested:      {ID: "J1", To: Open, Why: "one session at a time: other requests wait in the queue"},
		RequestDropped: {ID: "J1", To: Open, Why: "it is no longer wanted"},
		Contacted:      {ID: "S14", To: Open, Why: "of the session before, or of one that was not seen yet"},
	},
	Running: {
		Started:         {ID: "S1", To: Running, Why: "reported twice after a crash"},
		Adopted:         {ID: "S2", To: Running},
		EndAsked:        {ID: "S3", To: Running},
		Reported:        {ID: "S7", To: Running, Why: "usage and terminal events, with their offset in the output"},
		ActionDelivered: {ID: "S8", To: Running, Why: "an action of a channel was written to its input; it is not written again"},
		Named:           {ID: "S9", To: Running, Why: "the program names its conversation; a resume uses this name"},
		StatusSaid:      {ID: "S10", To: Running},
		PersonWrote:     {ID: "S12", To: Running, Why: "a person tells its agent something; its next session for the same purpose begins with it"},
		TellGiven:       {ID: "S13", To: Running, Why: "its program has read it during its answer; the next session does not begin with it"},
		Contacted:       {ID: "S14", To: Running, Why: "the hosts that it reached, or was refused, since the last time"},
		Ended:           {ID: "S4", To: None},
		Lost:            {ID: "S5", To: None, Why: "it ran; how it ended is unknown"},
		Requested:       {ID: "J1", To: Running},
		RequestDropped:  {ID: "J1", To: Running},
	},
}
