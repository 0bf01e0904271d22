package team

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/machine/control"
)

// Change is one fact that Decide found. It is what the journal keeps.
type Change struct {
	Machine string
	Entity  string // MACHINE/NAME
	Row     string
	From    string
	To      string
	Trigger string
	At      time.Time
	Actor   Actor
	Body    Body
}

// Body is what Apply needs: exactly one field is set. Every value in it is absolute or
// names what it adds to, so that applying needs no table and no rule.
type Body struct {
	Control *ControlSet `json:"control,omitempty"`
	Session *Session    `json:"session,omitempty"` // the session as it is now; phase none: it is over
	Used    *Used       `json:"used,omitempty"`
	Agent   *AgentSet   `json:"agent,omitempty"`
	Team    *TeamSet    `json:"team,omitempty"`
}

// ControlSet is an agent's control as it is now.
type ControlSet struct {
	Value     control.Value `json:"value"`
	Overtaken *control.Wish `json:"overtaken,omitempty"` // a wish that came to light too late, for the record
	Seen      string        `json:"seen,omitempty"`      // which write of somebody else this change takes in
	Swapped   string        `json:"swapped,omitempty"`   // the same, of one that was found swapped out
	Sum       string        `json:"sum,omitempty"`       // identity of the projection, where this change makes a new one
}

// Used is what an agent reported of itself.
type Used struct {
	Session string `json:"session"`
	Offset  int64  `json:"offset"`
	Usage   Usage  `json:"usage"`
	Stop    *Stop  `json:"stop,omitempty"`
}

// AgentSet is an agent as it is configured now.
type AgentSet struct {
	Settings Settings `json:"settings"`
	Removed  bool     `json:"removed,omitempty"`
}

// TeamSet is what is true of the team now.
type TeamSet struct {
	Hold     Hold   `json:"hold,omitzero"`
	Stopping bool   `json:"stopping,omitempty"`
	Epoch    uint64 `json:"epoch,omitempty"`
	BootID   string `json:"boot_id,omitempty"`
	Limits   Limits `json:"limits,omitzero"`
}

// Apply makes a change true. A change that this version of the program cannot apply is
// a bug or a journal of another one: going on would be guessing.
func (t *Team) Apply(ch Change) {
	switch name := nameOf(ch.Entity); {
	case ch.Body.Team != nil:
		set := ch.Body.Team
		t.Hold, t.Stopping, t.Epoch, t.BootID, t.Limits = set.Hold, set.Stopping, set.Epoch, set.BootID, set.Limits
	case ch.Body.Agent != nil:
		a := t.Agents[name]
		if a == nil {
			a = &Agent{Name: name, Control: control.Control{Name: name, Value: control.Value{State: control.Absent}}}
			t.Agents[name] = a
		}
		a.Settings, a.Removed = ch.Body.Agent.Settings, ch.Body.Agent.Removed
		a.Control.Policy = a.Settings.Policy
	case ch.Body.Control != nil:
		t.Agents[name].setControl(ch.Body.Control)
	case ch.Body.Session != nil:
		t.Agents[name].setSession(*ch.Body.Session)
	case ch.Body.Used != nil:
		used := ch.Body.Used
		t.Agents[name].use(*used)
		t.Usage = t.Usage.on(used.Usage.Day).plus(used.Usage)
	default:
		panic(fmt.Sprintf("team: a change of %s by row %s says nothing", ch.Entity, ch.Row))
	}
}

func (a *Agent) setControl(set *ControlSet) {
	a.Control.Value = set.Value
	if set.Seen != "" && set.Seen != a.Seen {
		a.remember(a.Seen)
		a.Seen = set.Seen
	}
	a.remember(set.Swapped)
	if set.Sum == "" {
		return
	}
	a.Sums = append(a.Sums[:len(a.Sums):len(a.Sums)], set.Sum)
	if len(a.Sums) > sumsMax {
		a.Sums = a.Sums[len(a.Sums)-sumsMax:]
	}
}

func (a *Agent) remember(ident string) {
	if ident == "" || slices.Contains(a.Before, ident) {
		return
	}
	a.Before = append(a.Before[:len(a.Before):len(a.Before)], ident)
	if len(a.Before) > seenMax {
		a.Before = a.Before[len(a.Before)-seenMax:]
	}
}

func (a *Agent) setSession(s Session) {
	a.Opened = max(a.Opened, s.N)
	if s.Phase != None {
		a.Session = &s
		return
	}
	a.Session = nil
	a.Past = append(a.Past[:len(a.Past):len(a.Past)], s)
	if len(a.Past) > pastMax {
		a.Past = a.Past[len(a.Past)-pastMax:]
	}
}

func (a *Agent) use(used Used) {
	a.Usage = a.Usage.on(used.Usage.Day).plus(used.Usage)
	s := *a.Session
	s.Offset = used.Offset
	s.Usage = s.Usage.plus(used.Usage)
	if used.Stop != nil {
		s.Stop = used.Stop
	}
	a.Session = &s
}

// nameOf is the part of an entity after its machine.
func nameOf(entity string) string {
	for i := range len(entity) {
		if entity[i] == '/' {
			return entity[i+1:]
		}
	}
	return entity
}
