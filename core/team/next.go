package team

import (
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// Touched collects the agents and runs that changes affected, because only they can need follow-up
// events. Its zero value is empty.
type Touched struct {
	agents, runs names
	asking       names  // agents with a question that has changed: the task on which one works may need a person
	all          bool   // all of them: a hold, a start
	held         bool   // the hold may have ended: parked channels continue
	folders      bool   // agents with work in a dispatch folder, or with a session for one
	lead         bool   // the lead may have something to do
	atWork       bool   // agents with a session: usage was reported, and limits are shared
	poolRefused  bool   // what the pool would do next was refused
	last         string // what the last event of Next is about: the prefix and id of a run, an agent, " held" or " pool"
}

// Events that only come from Next: what they lead to depends on the state of the team.
type (
	moveQueue           struct{}                       // a queue's first request gets the slot, or a request is no longer valid
	openLeadSession     struct{}                       // the lead has a pending action, and no session
	openChannelSession  struct{}                       // the agent has an action to receive, and no session for it
	openDispatchSession struct{ folder, key string }   // the agent has work in a dispatch folder, and no request in the queue
	endSession          struct{ why ending }           // the agent's session for the lead, for channels or for a dispatch
	beginStep           struct{ step workflow.StepID } // it may start, and has not requested a slot
	endStep             struct{ step workflow.StepID } // its session must end
	limitStep           struct{ step workflow.StepID } // its session has reached a limit
)

// Note records a change.
func (x *Touched) Note(ch change.Change) {
	switch body := ch.Body.(type) {
	case *TeamSet, *AgentSet:
		x.all = true
	case *channel.Set:
		x.turn(body)
	case *crew.Body:
		x.lead = true
	case *DispatchSet:
		x.folders = true
	case *question.Body:
		if name := body.Agent(); name != "" {
			x.agent(name)
			x.asking.add(name)
		}
	case *notice.Record: // nothing follows from what people were told
	case *ChannelConfig: // members that it moved have their own changes
	default:
		if id, isRun := strings.CutPrefix(ch.Entity, runPrefix); isRun {
			id, _, _ = strings.Cut(id, "/")
			x.run(id)
		} else {
			x.agent(AgentOf(ch.Entity))
		}
	}
	switch body := ch.Body.(type) {
	case *Used:
		x.atWork = true
	case *Session:
		x.touchOwner(body)
	}
}

// All is for a start: follow-up events that a crash prevented are decided now.
func (x *Touched) All() { x.all = true }

// Refused leaves out what the last event of Next was about, so that what follows for others is still decided.
func (x *Touched) Refused() {
	x.held, x.poolRefused = x.held && x.last != " held", x.poolRefused || x.last == " pool"
	x.runs = slices.DeleteFunc(x.runs, func(id string) bool { return runPrefix+id == x.last })
	x.agents = slices.DeleteFunc(x.agents, func(name string) bool { return name == x.last })
}

// turn records the agents that may have something to do after a change of a channel.
func (x *Touched) turn(set *channel.Set) {
	if set.Agent != "" {
		x.agent(string(set.Agent))
	}
	for i := range set.Body.Participants {
		x.agent(string(set.Body.Participants[i].Agent))
	}
	if h := set.Body.Head; h != nil {
		for _, name := range []channel.AgentID{h.Holder, h.Aside.Agent} {
			if name != "" {
				x.agent(string(name))
			}
		}
	}
}

func (x *Touched) agent(name string) { x.agents.add(name) }
func (x *Touched) run(id string)     { x.runs.add(id) }

// names is a set in order.
type names []string

func (n *names) add(name string) {
	if i, has := slices.BinarySearch(*n, name); !has {
		*n = slices.Insert(*n, i, name)
	}
}

// spread adds the agents that depend on the recorded ones.
func (x *Touched) spread(t *Team) {
	if x.all || x.atWork && t.Limits.over(t.Usage.Usage) != "" { // the team's limit affects all agents
		for _, name := range t.Names() {
			x.agent(name)
		}
		for _, id := range t.RunIDs() {
			x.run(id)
		}
	}
	for _, id := range slices.Clone(x.runs) {
		if r := t.Runs[id]; r != nil && r.Status() == workflow.IsCompleted {
			t.waitersOf(id, x.run)
		}
	}
	for _, name := range x.asking {
		if a := t.Agents[name]; a != nil {
			for _, s := range a.Sessions() {
				x.touchOwner(s)
			}
		}
	}
	if x.atWork {
		for _, a := range t.Agents {
			for _, s := range a.Sessions() {
				x.touchOwner(s)
			}
		}
		for _, s := range t.Pool.Sessions {
			x.touchOwner(s)
		}
	}
	if x.lead && t.leadAgent() != nil {
		x.agent(t.Crew.Lead.Agent)
	}
	if x.folders {
		x.dispatchAgents(t)
	}
	x.held = x.held || x.all
	x.all, x.atWork, x.lead, x.folders, x.asking = false, false, false, false, nil
}

// dispatchAgents adds the agents with work in a dispatch folder, and those with a session or a
// request for one.
func (x *Touched) dispatchAgents(t *Team) {
	for _, f := range t.Dispatches {
		for _, w := range f.State.Due() {
			x.agent(w.Agent)
		}
	}
	for name, a := range t.Agents {
		if a.Session.servesDispatch() || slices.ContainsFunc(a.Queue, func(c Request) bool { return c.For.Kind == PurposeDispatch }) {
			x.agent(name)
		}
	}
}

func (x *Touched) touchOwner(s *Session) {
	if id, _, ok := StepOf(s.For); ok {
		x.run(id)
	}
}

// Next returns an event that follows from the state of the team alone: a free slot goes to the first
// request, a step that may start starts or is queued, an unwanted session is asked to end, a step at
// a limit fails. The event must be decided and applied before any other, at the time that it carries
// and in the same append; then Next is called again until it returns none. So the end of one step
// and the start of the next are one sync. After a crash nothing is lost. At a start, it is only
// called after all sessions were examined and control has received Started.
func (t *Team) Next(x *Touched, at time.Time) (Event, bool) {
	x.spread(t)
	actor := change.Actor{Kind: "engine", ID: "team"}
	for _, id := range x.runs {
		x.last = runPrefix + id
		if agent, what := t.nextOfRun(id, at); what != nil {
			ev := Event{At: at, Actor: actor, Agent: agent, What: what}
			if _, ofQueue := what.(moveQueue); !ofQueue {
				ev.Run = id
			}
			return ev, true
		}
	}
	x.last = " held"
	if x.held && t.parkedByHold() {
		return Event{At: at, Actor: actor, What: channel.Released{}}, true
	}
	for _, name := range x.agents {
		x.last = name
		a := t.Agents[name]
		if a == nil {
			continue
		}
		if t.queueMoves(a, at) {
			return Event{At: at, Actor: actor, Agent: name, What: moveQueue{}}, true
		}
		switch what := t.nextOfLead(a, at).(type) {
		case nil:
		case crew.LeadEnded:
			return Event{At: at, Actor: actor, What: what}, true
		default:
			return Event{At: at, Actor: actor, Agent: name, What: what}, true
		}
		if what := t.nextOfChannels(a, at); what != nil {
			return Event{At: at, Actor: actor, Agent: name, What: what}, true
		}
		if what := t.nextOfDispatches(a, at); what != nil {
			return Event{At: at, Actor: actor, Agent: name, What: what}, true
		}
	}
	x.last = " pool"
	if !x.poolRefused && len(t.Pool.Queue) > 0 && t.queueMoves(t.pool(), at) {
		return Event{At: at, Actor: actor, What: moveQueue{}}, true
	}
	*x = Touched{agents: x.agents[:0], runs: x.runs[:0]} // the next decision reuses their memory
	return Event{}, false
}

// parkedByHold reports whether a channel waits for the end of a hold that has ended.
func (t *Team) parkedByHold() bool {
	if t.held() || t.Stopping {
		return false
	}
	for _, c := range t.Channels.ByID {
		if c.Head.Parked == channel.Held {
			return true
		}
	}
	return false
}

// nextOfRun returns the next event of a run, with the agent whose slot it concerns, if any.
func (t *Team) nextOfRun(id string, at time.Time) (agent string, what any) {
	r := t.Runs[id]
	if r == nil {
		return "", nil
	}
	if agent, stale := t.staleRequest(id, at); stale {
		return agent, moveQueue{}
	}
	if pausedByLimit(r) && t.unlimited(id, r, at) {
		return "", workflow.ReleaseAsked{By: byLimit, LimitLifted: true, Why: releaseWords}
	}
	if what := t.nextOfTask(id, r); what != nil {
		return "", what
	}
	for action := range r.Actions(workflow.Now{At: at, Held: t.Hold.On || t.Stopping}) {
		if what := t.nextOfStep(id, r, action, at); what != nil {
			return "", what
		}
	}
	return "", nil
}

func (t *Team) nextOfStep(id string, r *workflow.Run, action workflow.Action, at time.Time) any {
	step := action.Lease.Step
	switch action.Do {
	case workflow.EndIt, workflow.RunIt:
		a := t.sitter(id, step)
		switch {
		case a == nil || a.Session.Lease != action.Lease.N:
			return workflow.ProcessLost{Lease: action.Lease, Why: "the team knows no session of it"}
		case a.Session.Ending != "":
			return nil
		case action.Do == workflow.EndIt:
			return endStep{step}
		}
		switch limit, do := t.stepOver(id, a, at); {
		case limit == "", do != LimitFails && r.Stage != workflow.Driven:
		case do == LimitFails && a.Session.Phase == session.Running && limit == t.RunOver(id, at): // it finishes; those after it fail
		default:
			return limitStep{step}
		}
	case workflow.SkipIt:
		return workflow.SkipsDue{}
	case workflow.StartIt:
		plan, _, _ := r.Find(step)
		if len(t.BlockedBy(id)) == 0 && !isIn(t.queue(t.slot(id, plan)), ForStep(id, step)) {
			return beginStep{step}
		}
	case workflow.FindReport, workflow.EvaluateCondition, workflow.FindItems, workflow.AskForAnswer: // actions outside of the team
	}
	return nil
}

func isIn(queue []Request, forWhom Purpose) bool {
	return slices.ContainsFunc(queue, func(c Request) bool { return c.For == forWhom })
}

// staleRequest finds a queue with a step of the run that is no longer to start.
func (t *Team) staleRequest(id string, at time.Time) (agent string, stale bool) {
	looked := startChecks{team: t, at: at}
	ofRun := func(a *Agent) bool {
		for _, c := range t.queue(a) {
			if run, _, ok := StepOf(c.For); ok && run == id {
				if stands, _ := looked.stillWanted(a, &c); !stands {
					return true
				}
			}
		}
		return false
	}
	if len(t.Pool.Queue) > 0 && ofRun(t.pool()) {
		return "", true
	}
	for name, a := range t.Agents {
		if len(a.Queue) > 0 && ofRun(a) && (agent == "" || name < agent) {
			agent = name
		}
	}
	return agent, agent != ""
}
