package team

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// Request is a request that waits for a slot (J1). Control changes its state when it makes a
// request, because it obeys its desired state from then on; a step starts only when it gets the slot
// (W2).
type Request struct {
	For  Purpose      `json:"for"`
	N    uint64       `json:"n,omitempty"` // of a step: its next lease, so that the request identifies the attempt
	Kind control.Kind `json:"kind"`
	At   time.Time    `json:"at"`
}

// WorkerPool runs steps without an agent: a wrapper, a command. Each has its own slot, journaled
// under run/ID/STEP. An artificial agent for them would have a file, a desired state and an entry in
// every list of agents. The session belongs to the step alone, so its history is found with the
// step's.
type WorkerPool struct {
	// for all runs together, or as many as one of them may do at the same time; 0: no limit here
	Places   int                 `json:"places,omitempty"`
	Queue    []Request           `json:"queue,omitempty"`
	Sessions map[string]*Session `json:"sessions,omitempty"` // by RUN/STEP
}

const (
	runPrefix     = "run/"
	sessionPrefix = "session/"
	poolEntity    = "team/pool"
)

// stepEntity is the journal entity of a step, and of a session that belongs to the step alone.
func stepEntity(run string, step workflow.StepID) string { return runPrefix + run + "/" + string(step) }

// stepSlot returns the slot of a step without an agent.
func (t *Team) stepSlot(key string) *Agent {
	return &Agent{Name: key, place: &place{step: key}, Session: t.Pool.Sessions[key]}
}

// pool represents the slots of all steps in the worker pool, which share one queue.
func (t *Team) pool() *Agent { return &Agent{Name: "the worker pool", place: &place{step: "pool"}} }

// entity is the journal entity of the slot's session.
func (a *Agent) entity() string {
	if a.step() != "" {
		return runPrefix + a.step()
	}
	if a.slot() != 0 {
		return extraEntity(a.Name, a.slot())
	}
	return sessionPrefix + a.Name
}

// slot returns a copy of a step's slot: its agent's, or its own.
func (t *Team) slot(run string, step *workflow.Step) *Agent {
	if a := t.Agents[step.Agent]; a != nil && !a.Removed && len(step.Command) == 0 && !t.Notes[run].Settings.Wrapped {
		next := *a
		return &next
	}
	return t.stepSlot(run + "/" + string(step.ID))
}

// queue returns the requests for a slot.
func (t *Team) queue(a *Agent) []Request {
	if a.step() != "" {
		return t.Pool.Queue
	}
	return a.Queue
}

// slotFree reports whether an agent's slot 0, or the slot of a step without an agent, is free.
func (t *Team) slotFree(a *Agent) bool {
	if a.step() == "" {
		_, ok := t.placeFor(a, ForControl)
		return ok
	}
	return a.Session == nil && (t.Pool.Places == 0 || len(t.Pool.Sessions) < t.Pool.Places || len(t.Pool.Sessions) < t.sideBySide())
}

// sideBySide is the largest number of steps that a run of the team may do at the same time: who asks for more
// than there are places gets them.
func (t *Team) sideBySide() (most int) {
	for _, r := range t.Runs {
		if r.Stage == workflow.Driven {
			most = max(most, r.Options.SideBySide)
		}
	}
	return most
}

// withoutRequest removes the request of a session from the queue.
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

// SessionOf returns the session of a step, and the agent that has it; empty: the step's own.
func (t *Team) SessionOf(run, step string) (agent string, s Session, ok bool) {
	if own := t.Pool.Sessions[run+"/"+step]; own != nil {
		return "", *own, true
	}
	find := func(a *Agent) *Session {
		if a == nil {
			return nil
		}
		if s := a.inRun(run); s != nil && s.For == ForStep(run, workflow.StepID(step)) {
			return s
		}
		return nil
	}
	if r := t.Runs[run]; r != nil {
		if plan, _, known := r.Find(workflow.StepID(step)); known {
			if s := find(t.Agents[plan.Agent]); s != nil {
				return plan.Agent, *s, true
			}
		}
	}
	for name, a := range t.Agents { // the workflow was edited while the step's process was alive; there is at most one
		if s := find(a); s != nil {
			return name, *s, true
		}
	}
	return "", Session{}, false
}

// ControlWaits describes which requests are before control's in the queue; empty: none.
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
	if blocked := t.BlockedBy(run); len(blocked) > 0 && progress.State == workflow.Pending {
		return "it waits until " + strings.Join(blocked, " and ") + " has completed"
	}
	if t.Hold.On && progress.State == workflow.Pending {
		return "the team is held; it begins after `fairlead unhold`"
	}
	a := t.slot(run, plan)
	if a.step() == "" {
		return t.stepBehind(a, ForStep(run, workflow.StepID(step)))
	}
	taken := ""
	if !t.slotFree(a) {
		taken = fmt.Sprintf("%d steps without an agent, which are as many as there are places", len(t.Pool.Sessions))
	}
	return behind(t.Pool.Queue, ForStep(run, workflow.StepID(step)), taken)
}

// taken describes what occupies a slot: a session, or the provider's rate limit.
func (a *Agent) taken() string {
	switch {
	case a.Session != nil:
		return sessionLabel(a.Session)
	case a.Waits():
		return "its provider: " + a.Limited.Words()
	case a.full():
		return a.sessionLabels() // a person has lowered its instances
	default:
		return ""
	}
}

func sessionLabel(s *Session) string {
	if s == nil {
		return ""
	}
	return s.For.String() + " (" + s.ID + ")"
}

// behindShown is how many queued requests are listed.
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
		return "it is next in the queue"
	}
	return "it waits in the queue behind " + strings.Join(before, ", ")
}

// request appends a request to a slot's queue. A task that its agent has begun, which a person or a check has sent back, goes before
// those that were not begun.
func (d *decision) request(a *Agent, c Request) error {
	queue := d.team.queue(a)
	at := len(queue)
	if tasks, begun := d.team.begunTask(c); a.step() == "" && tasks && begun {
		if i := slices.IndexFunc(queue, func(other Request) bool {
			tasks, begun := d.team.begunTask(other)
			return tasks && !begun
		}); i >= 0 {
			at = i
		}
	}
	return d.setQueue(a, session.Requested, slices.Insert(slices.Clip(queue), at, c))
}

// begunTask reports whether a request is for a step of a run with a folder of its own, such as a task, and whether the step had a lease
// before.
func (t *Team) begunTask(c Request) (own, begun bool) {
	run, _, isStep := StepOf(c.For)
	return isStep && t.Notes[run].Settings.OwnFolder, c.N > 1
}

// setQueue sets a slot's queue, also on the copy.
func (d *decision) setQueue(a *Agent, event session.Event, queue []Request) error {
	entity, state := a.entity(), a.phase()
	if a.step() != "" {
		entity, state = poolEntity, session.None
	}
	rule, err := session.Table.Look("the line of "+a.Name, state, event)
	if err != nil {
		return err
	}
	d.add(entity, "session", rule.ID, string(state), string(rule.To), string(event), &QueueSet{Requests: queue})
	if a.step() == "" {
		a.Queue = queue
		return nil
	}
	next := *d.team
	next.Pool.Queue = queue
	d.team = &next
	return nil
}

// startChecks caches, for a whole queue, the steps of each run that may start apart from a hold.
type startChecks struct {
	team *Team
	at   time.Time
	of   map[string]map[workflow.StepID]bool
}

func (b *startChecks) may(run string, r *workflow.Run, step workflow.StepID) bool {
	steps, known := b.of[run]
	if !known {
		steps = map[workflow.StepID]bool{}
		blocked := len(b.team.BlockedBy(run)) > 0
		for action := range r.Actions(workflow.Now{At: b.at}) {
			if action.Do == workflow.StartIt && !blocked {
				steps[action.Lease.Step] = true
			}
		}
		put(&b.of, run, steps)
	}
	return steps[step]
}

// queueMoves reports whether a slot's queue has to change.
func (t *Team) queueMoves(a *Agent, at time.Time) bool {
	queue, looked := t.queue(a), startChecks{team: t, at: at}
	for i := range queue {
		if ok, _ := looked.stillWanted(a, &queue[i]); !ok {
			return true
		}
	}
	return t.nextRequest(a) >= 0
}

// stillWanted reports whether a request is still valid, or why not. A step's request stays valid
// while the team is held, and keeps its place in the queue.
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

// sameQueue reports whether two slots share a queue: all slots of the worker pool do.
func sameQueue(a, b *Agent) bool {
	return a.step() != "" && b.step() != "" || a.step() == b.step() && a.Name == b.Name
}

// moveQueue drops invalid requests, or gives a free slot to the first request for it. An event does
// only one of the two, because what follows is decided on the resulting state.
func (d *decision) moveQueue(a *Agent) error {
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
	at := d.team.nextRequest(a)
	if at < 0 {
		return nil
	}
	c := queue[at]
	run, step, isStep := StepOf(c.For)
	if action, some := d.team.firstDelivery(a.Name, d.ev.At); some && c.For == ForChannels {
		return d.startChannelSession(a, action)
	}
	if actions := d.team.leadActions(a.Name); len(actions) > 0 && c.For == ForLead {
		return d.openLead(a, actions[0])
	}
	if c.For.Kind == PurposeDispatch {
		return d.openSession(a, Session{Kind: c.Kind, For: c.For})
	}
	if !isStep {
		return d.openSession(a, Session{Kind: c.Kind, For: ForControl})
	}
	return d.beginStep(run, workflow.StepID(step), true)
}
