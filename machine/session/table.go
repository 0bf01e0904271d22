// Package session is the life of one session: one execution of an agent's program.
//
// A session is journaled before its process exists, and closed when the process has ended or
// is known to be lost. While a session is open, other requests for the same agent's slot are
// queued and not refused. The table is the same whatever asked for the session: the agent's
// desired state, a step of a run, a channel or a dispatch.
//
// The promise: an agent has at most one open session.
package session

import "github.com/fairlead-dev/fairlead/machine"

// Phase is how far a session is.
type Phase string

const (
	None    Phase = "none"
	Open    Phase = "opened"  // journaled; its process may not exist yet
	Running Phase = "running" // its process was seen
)

// Event names what happens to a session.
type Event string

const (
	Opened     Event = "opened"
	Started    Event = "started"
	Adopted    Event = "adopted"
	EndAsked   Event = "end_asked"
	Reported   Event = "reported"
	Told       Event = "told"
	Named      Event = "named"
	StatusSaid Event = "status_said"
	Ended      Event = "ended"
	Lost       Event = "lost"
	Withdrawn  Event = "withdrawn"

	Requested      Event = "claimed"       // somebody stands in line for the seat
	RequestDropped Event = "claim_dropped" // and is not to have it any more
)

type Act string

// Table is the life of a session, the same for whoever asked for it.
var Table = machine.Table[Phase, Event, Act]{
	None: {
		Opened:         {ID: "J1", To: Open, Why: "one at a time; durable before its process is started"},
		Requested:      {ID: "J1", To: None, Why: "whoever came before has not sat down yet, or nobody may"},
		RequestDropped: {ID: "J1", To: None},
	},
	Open: {
		Started:        {ID: "S1", To: Running},
		Adopted:        {ID: "S2", To: Running, Why: "started just before a crash, and found"},
		EndAsked:       {ID: "S3", To: Open},
		Ended:          {ID: "S4", To: None, Why: "it could not start, or was over before it was seen"},
		Lost:           {ID: "S5", To: None},
		Withdrawn:      {ID: "S6", To: None, Why: "intent is checked last: it is not wanted any more"},
		Requested:      {ID: "J1", To: Open, Why: "one at a time: whoever else asks stands in line"},
		RequestDropped: {ID: "J1", To: Open, Why: "it is not wanted any more"},
	},
	Running: {
		Started:        {ID: "S1", To: Running, Why: "said twice after a crash"},
		Adopted:        {ID: "S2", To: Running},
		EndAsked:       {ID: "S3", To: Running},
		Reported:       {ID: "S7", To: Running, Why: "usage and terminal events, with the place in the output"},
		Told:           {ID: "S8", To: Running, Why: "an errand of a channel is in its input, and is not written again"},
		Named:          {ID: "S9", To: Running, Why: "the program says what its conversation is called, by which it is resumed"},
		StatusSaid:     {ID: "S10", To: Running},
		Ended:          {ID: "S4", To: None},
		Lost:           {ID: "S5", To: None, Why: "it ran, and nobody can say how it ended"},
		Requested:      {ID: "J1", To: Running},
		RequestDropped: {ID: "J1", To: Running},
	},
}
