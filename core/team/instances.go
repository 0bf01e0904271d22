package team

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/core/session"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// An agent with instances has several slots, and J1 applies to each of them. Slot 0 serves every
// purpose. The other slots serve only steps of runs that work in a folder of their own, because two
// sessions that change the same files would disturb each other. All slots share the agent's queue,
// numbers, usage, limits and conversations.
//
// A decision about another slot works on a copy of the agent whose Session is that of the slot.

// at returns a copy of the agent for decisions about one of its slots.
func (a *Agent) at(slot int) *Agent {
	next := new(Agent)
	a.copyAt(slot, next)
	return next
}

func (a *Agent) copyAt(slot int, next *Agent) {
	*next = *a
	if a.slot() != 0 {
		next.Session = a.place.first
	}
	next.place = nil
	if slot != 0 {
		next.place = &place{slot: slot, first: next.Session}
		next.Session = a.Extra[slot]
	}
}

// slotOf makes a copy of the agent at the slot whose session an event names; at slot 0 if it names none that is open.
func (a *Agent) slotOf(what any, next *Agent) {
	slot := 0
	if in, ok := what.(Input); ok {
		if s := a.Open(in.Subject().Session); s != nil {
			slot = s.Slot
		}
	}
	a.copyAt(slot, next)
}

// Sessions returns the agent's open sessions, that of slot 0 first.
func (a *Agent) Sessions() []*Session {
	var open []*Session
	if a.Session != nil {
		open = append(open, a.Session)
	}
	if len(a.Extra) == 0 {
		return open
	}
	for _, slot := range slices.Sorted(maps.Keys(a.Extra)) {
		open = append(open, a.Extra[slot])
	}
	return open
}

// Open returns the open session with this id, or nil.
func (a *Agent) Open(id string) *Session {
	if a.Session != nil && a.Session.ID == id {
		return a.Session
	}
	if len(a.Extra) == 0 {
		return nil
	}
	for _, s := range a.Sessions() {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// InSlot returns the session that is open in a slot, or nil.
func (a *Agent) InSlot(slot int) *Session {
	if slot == 0 {
		return a.Session
	}
	return a.Extra[slot]
}

// setOpen puts the new state of a session into its slot; nil: the slot is free.
func (a *Agent) setOpen(slot int, s *Session) {
	if slot == a.slot() {
		a.Session = s
	}
	if slot == 0 {
		return
	}
	extra := maps.Clone(a.Extra) // a copy of the agent may share it
	if s == nil {
		drop(&extra, slot)
	} else {
		put(&extra, slot, s)
	}
	a.Extra = extra
}

// instances is the number of the agent's slots.
func (a *Agent) instances() int { return max(1, a.Settings.Instances) }

// full reports whether as many sessions are open as the agent may have. That may be more than it has
// slots now: sessions finish after a person has lowered the number.
func (a *Agent) full() bool {
	open := len(a.Extra)
	if a.Session != nil {
		open++
	}
	return open >= a.instances()
}

// placeFor returns the slot that an agent's request may have now, whatever is before it in the
// queue. A step takes slot 0 last, because all other requests need that one. a is at slot 0.
func (t *Team) placeFor(a *Agent, forWhom Purpose) (slot int, ok bool) {
	is := t.Channels.Agents[channel.AgentID(a.Name)]
	// J2: a disabled agent does not start; control decides for itself if there are no requests
	if a.full() || a.Waits() || is != nil && is.Disabled {
		return 0, false
	}
	if run, _, isStep := StepOf(forWhom); isStep && t.Notes[run].Settings.OwnFolder {
		if a.inRun(run) != nil {
			return 0, false
		}
		for slot := 1; slot < a.instances(); slot++ {
			if a.Extra[slot] == nil {
				return slot, true
			}
		}
	}
	return 0, a.Session == nil
}

// stepPlace returns the slot that a step may have now, whatever is before it in the queue; nil: none.
// a is the step's slot, or its agent at slot 0.
func (t *Team) stepPlace(a *Agent, run string, step workflow.StepID) *Agent {
	if a.step() != "" {
		if t.slotFree(a) {
			return a
		}
		return nil
	}
	if slot, ok := t.placeFor(a, ForStep(run, step)); ok {
		return a.at(slot)
	}
	return nil
}

// inRun returns the agent's session for a run: a second one would work in the same folder.
func (a *Agent) inRun(run string) *Session {
	for _, s := range a.Sessions() {
		if is, _, ok := StepOf(s.For); ok && is == run {
			return s
		}
	}
	return nil
}

// nextRequest returns the index of the request that gets a slot now; -1: none. It is the first for which a
// slot is free, so requests for the same slots keep their order.
func (t *Team) nextRequest(a *Agent) int {
	queue := t.queue(a)
	switch {
	case len(queue) == 0 || t.Hold.On || t.Stopping:
		return -1
	case a.step() != "":
		if t.slotFree(a) {
			return 0
		}
		return -1
	}
	return slices.IndexFunc(queue, func(c Request) bool {
		_, ok := t.placeFor(a, c.For)
		return ok
	})
}

// stepBehind says what an agent's step waits for in the queue; empty: nothing.
func (t *Team) stepBehind(a *Agent, forWhom Purpose) string {
	run, _, _ := StepOf(forWhom)
	if !isIn(a.Queue, forWhom) || a.instances() == 1 && len(a.Extra) == 0 {
		return behind(a.Queue, forWhom, a.taken())
	}
	own := t.Notes[run].Settings.OwnFolder
	if s := a.inRun(run); s != nil && own {
		return "it waits for " + sessionLabel(s) + ", which works in the same folder"
	}
	if !own && !a.full() {
		return behind(a.Queue, forWhom, a.taken()) + "; its run has no folder of its own, so only the first of the sessions of " + a.Name +
			" may do it"
	}
	if a.Waits() {
		return behind(a.Queue, forWhom, "its provider: "+a.Limited.Words())
	}
	return behind(a.Queue, forWhom, a.sessionLabels())
}

func (a *Agent) sessionLabels() string {
	var labels []string
	for _, s := range a.Sessions() {
		labels = append(labels, sessionLabel(s))
	}
	return strings.Join(labels, ", ")
}

// extraEntity is the journal entity of a slot above 0.
func extraEntity(agent string, slot int) string {
	return sessionPrefix + agent + "/" + strconv.Itoa(slot)
}

// AgentOf returns the agent that an entity such as control/coder or session/coder/2 names.
func AgentOf(entity string) string {
	name := nameOf(entity)
	if strings.HasPrefix(entity, sessionPrefix) {
		name, _, _ = strings.Cut(name, "/")
	}
	return name
}

// stepsOf lists the steps that sessions of the agent do, for people.
func (a *Agent) stepsOf() string {
	var words []string
	for _, s := range a.Sessions() {
		if run, step, ok := StepOf(s.For); ok {
			words = append(words, "step "+step+" of run "+run)
		}
	}
	return strings.Join(words, ", ")
}

// Running is a running session with its agent.
type Running struct {
	Agent   string
	Session *Session
}

// RunningNamed are the running sessions that a person can mean by a name: that of an agent, a session or a run.
func (t *Team) RunningNamed(target string) (found []Running) {
	for _, name := range t.Names() {
		for _, one := range t.Agents[name].Sessions() {
			run, _, isStep := StepOf(one.For)
			if one.Phase == session.Running && (one.ID == target || name == target || isStep && run == target) {
				found = append(found, Running{name, one})
			}
		}
	}
	return found
}

// SessionNames lists sessions for a message.
func SessionNames(all []Running) string {
	var ids []string
	for _, one := range all {
		ids = append(ids, one.Session.ID)
	}
	return strings.Join(ids, ", ")
}
