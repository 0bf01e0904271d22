package team

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

// Request is somebody who stands in line for a seat (J1). Control has changed its state when it
// claims, since a wish is obeyed by then; a step begins only when it has the seat (W2).
type Request struct {
	For  Purpose      `json:"for"`
	N    uint64       `json:"n,omitempty"` // of a step: the lease to come, so that a claim names the attempt that it is about
	Kind control.Kind `json:"kind"`
	At   time.Time    `json:"at"`
}

// WorkerPool is where steps work that have no agent of ours: a wrapper, a command. Each is its own
// seat, journaled under run/ID/STEP. An agent made up for it would have a file, a wish and a
// line in every list of agents; and a session is the step's alone, so its history is found
// where the step's is.
type WorkerPool struct {
	Places   int                 `json:"places,omitempty"` // 0: as many as the runs' own limits allow
	Queue    []Request           `json:"line,omitempty"`
	Sessions map[string]*Session `json:"sessions,omitempty"` // by RUN/STEP
}

const (
	runPrefix  = "run/"
	poolEntity = "team/bench"
)

// stepEntity is the journal's name of a step, and of a session that the step has for itself.
func stepEntity(run string, step workflow.StepID) string { return runPrefix + run + "/" + string(step) }

// stepSlot is the seat of a step that has no agent of ours.
func (t *Team) stepSlot(key string) *Agent {
	return &Agent{Name: key, step: key, Session: t.Pool.Sessions[key]}
}

// pool stands for all seats of steps, where it is about the line for them.
func (t *Team) pool() *Agent { return &Agent{Name: "the bench", step: "bench"} }

// entity is where the seat's session is journaled.
func (a *Agent) entity() string {
	if a.step != "" {
		return runPrefix + a.step
	}
	return "session/" + a.Name
}

// slot gives a copy of the seat that a step works in: its agent's, or its own.
func (t *Team) slot(run string, step *workflow.Step) *Agent {
	if a := t.Agents[step.Agent]; a != nil && !a.Removed && len(step.Command) == 0 && !t.Notes[run].Settings.Wrapped {
		next := *a
		return &next
	}
	return t.stepSlot(run + "/" + string(step.ID))
}

// queue is who stands in line for a seat, and open says whether it is free for who is first.
func (t *Team) queue(a *Agent) []Request {
	if a.step != "" {
		return t.Pool.Queue
	}
	return a.Queue
}

func (t *Team) slotFree(a *Agent) bool {
	if a.step == "" {
		is := t.Channels.Agents[channel.AgentID(a.Name)]
		return a.Session == nil && !a.Waits() && (is == nil || !is.Disabled) // J2: a disabled one does nothing for anybody; control asks nobody where nobody waits
	}
	return a.Session == nil && (t.Pool.Places == 0 || len(t.Pool.Sessions) < t.Pool.Places)
}

// withoutRequest takes who has a seat out of its line.
func withoutRequest(queue []Request, s *Session) []Request {
	if !slices.ContainsFunc(queue, func(c Request) bool { return c.For == s.For }) || s.Phase == session.None {
		return queue
	}
	var rest []Request
	for _, c := range queue {
		if c.For != s.For {
			rest = append(rest, c)
		}
	}
	return rest
}

// SessionOf gives the session of a step, and the agent whose it is; empty: the step's own.
func (t *Team) SessionOf(run, step string) (agent string, s Session, ok bool) {
	if own := t.Pool.Sessions[run+"/"+step]; own != nil {
		return "", *own, true
	}
	is := func(a *Agent) bool {
		return a != nil && a.Session != nil && a.Session.For == ForStep(run, workflow.StepID(step))
	}
	if r := t.Runs[run]; r != nil {
		if plan, _, known := r.Find(workflow.StepID(step)); known && is(t.Agents[plan.Agent]) {
			return plan.Agent, *t.Agents[plan.Agent].Session, true
		}
	}
	for name, a := range t.Agents { // the workflow was edited while the step's process lived; there is one at most
		if is(a) {
			return name, *a.Session, true
		}
	}
	return "", Session{}, false
}

// ControlWaits says behind whom an agent's control stands in line; empty: it does not.
func (t *Team) ControlWaits(agent string) string {
	a := t.Agents[agent]
	if a == nil {
		return ""
	}
	return behind(a.Queue, ForControl, a.taken())
}

// StepWaits returns what a step waits for, in one sentence: what its run says, else the hold (X8), else
// what is before it in the queue for its slot (J1). It is empty for a step that waits for nothing.
func (t *Team) StepWaits(run, step string) string {
	r := t.Runs[run]
	if r == nil {
		return ""
	}
	if why := r.WaitsFor(workflow.StepID(step)); why != "" {
		return why
	}
	plan, progress, known := r.Find(workflow.StepID(step))
	if !known {
		return ""
	}
	if t.Hold.On && progress.State == workflow.Pending {
		return "the team is held; it begins after `fairlead unhold`"
	}
	a := t.slot(run, plan)
	if a.step == "" {
		return behind(a.Queue, ForStep(run, workflow.StepID(step)), a.taken())
	}
	taken := ""
	if !t.slotFree(a) {
		taken = fmt.Sprintf("%d steps without an agent, which are as many as there are places", len(t.Pool.Sessions))
	}
	return behind(t.Pool.Queue, ForStep(run, workflow.StepID(step)), taken)
}

// taken is who keeps a seat: who sits there, or the agent's provider.
func (a *Agent) taken() string {
	if a.Session == nil && a.Waits() {
		return "its provider: " + a.Limited.words()
	}
	return sessionLabel(a.Session)
}

func sessionLabel(s *Session) string {
	if s == nil {
		return ""
	}
	return s.For.String() + " (" + s.ID + ")"
}

// behindShown is how many of a line are named: more nobody reads.
const behindShown = 5

func behind(queue []Request, forWhom Purpose, first string) string {
	at := slices.IndexFunc(queue, func(c Request) bool { return c.For == forWhom })
	if at < 0 {
		return ""
	}
	var before []string
	if first != "" {
		before = append(before, first)
	}
	for _, c := range queue[:min(at, behindShown)] {
		before = append(before, c.For.String())
	}
	if more := at - behindShown; more > 0 {
		before = append(before, fmt.Sprintf("%d more", more))
	}
	if len(before) == 0 {
		return "it is next in line"
	}
	return "it stands in line behind " + strings.Join(before, ", ")
}

// request puts somebody at the end of a seat's line.
func (d *draft) request(a *Agent, c Request) error {
	return d.setQueue(a, session.Requested, append(slices.Clip(d.team.queue(a)), c))
}

// setQueue makes a seat's line so, on the copy too.
func (d *draft) setQueue(a *Agent, event session.Event, queue []Request) error {
	entity, state := a.entity(), a.phase()
	if a.step != "" {
		entity, state = poolEntity, session.None
	}
	rule, err := session.Table.Look("the line of "+a.Name, state, event)
	if err != nil {
		return err
	}
	d.add(entity, "session", rule.ID, string(state), string(rule.To), string(event), Body{Queue: &QueueSet{Requests: queue}})
	if a.step == "" {
		a.Queue = queue
		return nil
	}
	next := *d.team
	next.Pool.Queue = queue
	d.team = &next
	return nil
}

// slotDue is a seat whose line has to move: its first is to sit down, or somebody in it is
// not to have the seat any more. It comes from Next alone.
type slotDue struct{}

// startChecks are the steps of each run that may begin, were it not for a hold: they are found out
// once for a whole line.
type startChecks struct {
	team *Team
	at   time.Time
	of   map[string]map[workflow.StepID]bool
}

func (b *startChecks) may(run string, r *workflow.Run, step workflow.StepID) bool {
	steps, known := b.of[run]
	if !known {
		steps = map[workflow.StepID]bool{}
		for action := range r.Actions(workflow.Now{At: b.at}) {
			if action.Do == workflow.StartIt {
				steps[action.Lease.Step] = true
			}
		}
		put(&b.of, run, steps)
	}
	return steps[step]
}

// queueMoves says whether a seat's line has to move.
func (t *Team) queueMoves(a *Agent, at time.Time) bool {
	queue, looked := t.queue(a), startChecks{team: t, at: at}
	for i := range queue {
		if ok, _ := looked.stillWanted(a, &queue[i]); !ok {
			return true
		}
	}
	return t.givesSlot(a)
}

// givesSlot says whether a seat goes to who is first in its line.
func (t *Team) givesSlot(a *Agent) bool {
	return len(t.queue(a)) > 0 && t.slotFree(a) && !t.Hold.On && !t.Stopping
}

// stillWanted says whether a claim stands, or why not. A step's stands while the team is held: it
// keeps its place in the line.
func (b *startChecks) stillWanted(a *Agent, c *Request) (ok bool, why string) {
	t := b.team
	run, step, isStep := StepOf(c.For)
	switch {
	case c.For == ForChannels:
		return t.mayServeChannels(a, b.at)
	case c.For == ForLead:
		return t.mayTakeLead(a, b.at)
	case c.For.Kind == PurposeDispatch:
		return t.mayServeDispatch(a, c.For, b.at)
	case !isStep:
		return t.mayControl(a, b.at)
	}
	r := t.Runs[run]
	if r == nil {
		return false, "the run is over"
	}
	plan, p, known := r.Find(workflow.StepID(step))
	switch {
	case !known || p.N+1 != c.N:
		return false, "it was about another attempt"
	case !sameQueue(t.slot(run, plan), a):
		return false, "the step works elsewhere now"
	case !b.may(run, r, workflow.StepID(step)):
		return false, "it is not to begin now"
	}
	return true, ""
}

// sameQueue says whether two seats have one line: all seats of the bench do.
func sameQueue(a, b *Agent) bool {
	return a.step != "" && b.step != "" || a.step == b.step && a.Name == b.Name
}

// moveQueue drops the claims that do not stand, and gives a free seat to who is first. An event
// lets one of both happen: what follows is decided on a team on which that is true.
func (d *draft) moveQueue(a *Agent) error {
	var queue []Request
	var control *Request
	var why string
	looked := startChecks{team: d.team, at: d.ev.At}
	for i, c := range d.team.queue(a) {
		ok, no := looked.stillWanted(a, &c)
		switch {
		case ok:
			queue = append(queue, c)
		case c.For == ForControl:
			control, why = &d.team.queue(a)[i], no
		}
	}
	if len(queue) < len(d.team.queue(a)) {
		if err := d.setQueue(a, session.RequestDropped, queue); err != nil || control == nil {
			return err
		}
		return d.controlEnded(a, *control, why)
	}
	if !d.team.givesSlot(a) {
		return nil
	}
	run, step, isStep := StepOf(queue[0].For)
	if action, some := d.team.firstDelivery(a.Name, d.ev.At); some && queue[0].For == ForChannels {
		return d.startChannelSession(a, action)
	}
	if actions := d.team.leadActions(a.Name); len(actions) > 0 && queue[0].For == ForLead {
		return d.openLead(a, actions[0])
	}
	if queue[0].For.Kind == PurposeDispatch {
		return d.openSession(a, Session{Kind: queue[0].Kind, For: queue[0].For})
	}
	if !isStep {
		return d.open(a, queue[0].Kind)
	}
	return d.beginStep(run, workflow.StepID(step), true)
}
