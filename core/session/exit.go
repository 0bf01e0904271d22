package session

import "time"

// Exit describes how a process has ended, and how much of its output is kept. The shim of a session writes it when the whole tree
// of processes has ended; hosts pass it on, and the report of the session's end has it.
type Exit struct {
	Code       int       `json:"code"`             // -1 if a signal ended it
	Signal     string    `json:"signal,omitempty"` // SIGKILL, …; empty if it exited
	At         time.Time `json:"at"`
	SpoolBytes int64     `json:"spool_bytes"`         // of output that is kept
	CutBytes   int64     `json:"cut_bytes,omitempty"` // written by the agent, but lost because the spool was full or failed
	Swept      int       `json:"swept,omitempty"`     // processes that outlived the agent and were ended
	Ordered    bool      `json:"ordered,omitempty"`   // End was ordered before it ended
	Lost       bool      `json:"lost,omitempty"`      // what it did is not known: no shim saw the end, or its shim ended it without an order
	Why        string    `json:"why,omitempty"`       // one line for people: why it is lost
	Limit      Limit     `json:"limit,omitempty"`     // the limit that was reached, for which it was ended
	OfTeam     bool      `json:"of_team,omitempty"`   // the limit is that of the team
	Use        Use       `json:"use,omitzero"`        //
}
