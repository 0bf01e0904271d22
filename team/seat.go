package team

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

// Claim is somebody who stands in line for a seat (J1). Control has changed its state when it
// claims, since a wish is obeyed by then; a step begins only when it has the seat (W2).
type Claim struct {
	For  Purpose      `json:"for"`
	N    uint64       `json:"n,omitempty"` // of a step: the lease to come, so that a claim names the attempt that it is about
	Kind control.Kind `json:"kind"`
	At   time.Time    `json:"at"`
}

// Bench is where steps work that have no agent of ours: a wrapper, a command. Each is its own
// seat, journaled under run/ID/STEP. An agent made up for it would have a file, a wish and a
// line in every list of agents; and a session is the step's alone, so its history is found
// where the step's is.
type Bench struct {
	Places   int                 `json:"places,omitempty"` // 0: as many as the runs' own limits allow
	Line     []Claim             `json:"line,omitempty"`
	Sessions map[string]*Session `json:"sessions,omitempty"` // by RUN/STEP
}

const (
	runPrefix   = "run/"
	benchEntity = "team/bench"
)

// stepEntity is the journal's name of a step, and of a session that the step has for itself.
func stepEntity(run string, step workflow.StepID) string { return runPrefix + run + "/" + string(step) }

// own is the seat of a step that has no agent of ours.
func (t *Team) own(key string) *Agent {
	return &Agent{Name: key, step: key, Session: t.Bench.Sessions[key]}
}

// bench stands for all seats of steps, where it is about the line for them.
func (t *Team) bench() *Agent { return &Agent{Name: "the bench", step: "bench"} }

// entity is where the seat's session is journaled.
func (a *Agent) entity() string {
	if a.step != "" {
		return runPrefix + a.step
	}
	return "session/" + a.Name
}

// seat gives a copy of the seat that a step works in: its agent's, or its own.
func (t *Team) seat(run string, step *workflow.Step) *Agent {
	if a := t.Agents[step.Agent]; a != nil && !a.Removed && len(step.Command) == 0 && !t.Notes[run].Settings.Wrapped {
		next := *a
		return &next
	}
	return t.own(run + "/" + string(step.ID))
}

// line is who stands in line for a seat, and open says whether it is free for who is first.
func (t *Team) line(a *Agent) []Claim {
	if a.step != "" {
		return t.Bench.Line
	}
	return a.Line
}

func (t *Team) open(a *Agent) bool {
	if a.step == "" {
		is := t.Floor.Agents[channel.AgentID(a.Name)]
		return a.Session == nil && !a.Waits() && (is == nil || !is.Disabled) // J2: a disabled one does nothing for anybody; control asks nobody where nobody waits
	}
	return a.Session == nil && (t.Bench.Places == 0 || len(t.Bench.Sessions) < t.Bench.Places)
}

// unclaimed takes who has a seat out of its line.
func unclaimed(line []Claim, s *Session) []Claim {
	if !slices.ContainsFunc(line, func(c Claim) bool { return c.For == s.For }) || s.Phase == None {
		return line
	}
	var rest []Claim
	for _, c := range line {
		if c.For != s.For {
			rest = append(rest, c)
		}
	}
	return rest
}

// SessionOf gives the session of a step, and the agent whose it is; empty: the step's own.
func (t *Team) SessionOf(run, step string) (agent string, s Session, ok bool) {
	if own := t.Bench.Sessions[run+"/"+step]; own != nil {
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
	return behind(a.Line, ForControl, a.taken())
}

// StepWaits says what keeps a step: what the run says, else behind whom it stands (J1); empty:
// nothing does.
func (t *Team) StepWaits(run, step string) string {
	r := t.Runs[run]
	if r == nil {
		return ""
	}
	if why := r.WaitsFor(workflow.StepID(step)); why != "" {
		return why
	}
	plan, _, known := r.Find(workflow.StepID(step))
	if !known {
		return ""
	}
	a := t.seat(run, plan)
	if a.step == "" {
		return behind(a.Line, ForStep(run, workflow.StepID(step)), a.taken())
	}
	taken := ""
	if !t.open(a) {
		taken = fmt.Sprintf("%d steps without an agent, which are as many as there are places", len(t.Bench.Sessions))
	}
	return behind(t.Bench.Line, ForStep(run, workflow.StepID(step)), taken)
}

// taken is who keeps a seat: who sits there, or the agent's provider.
func (a *Agent) taken() string {
	if a.Session == nil && a.Waits() {
		return "its provider: " + a.Limited.words()
	}
	return sitting(a.Session)
}

func sitting(s *Session) string {
	if s == nil {
		return ""
	}
	return s.For.String() + " (" + s.ID + ")"
}

// behindShown is how many of a line are named: more nobody reads.
const behindShown = 5

func behind(line []Claim, forWhom Purpose, first string) string {
	at := slices.IndexFunc(line, func(c Claim) bool { return c.For == forWhom })
	if at < 0 {
		return ""
	}
	var before []string
	if first != "" {
		before = append(before, first)
	}
	for _, c := range line[:min(at, behindShown)] {
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

// claim puts somebody at the end of a seat's line.
func (d *draft) claim(a *Agent, c Claim) error {
	return d.setLine(a, claimed, append(slices.Clip(d.team.line(a)), c))
}

// setLine makes a seat's line so, on the copy too.
func (d *draft) setLine(a *Agent, event sessionEvent, line []Claim) error {
	entity, state := a.entity(), a.phase()
	if a.step != "" {
		entity, state = benchEntity, None
	}
	rule, err := SessionTable.Look("the line of "+a.Name, state, event)
	if err != nil {
		return err
	}
	d.add(entity, "session", rule.ID, string(state), string(rule.To), string(event), Body{Line: &LineSet{Claims: line}})
	if a.step == "" {
		a.Line = line
		return nil
	}
	next := *d.team
	next.Bench.Line = line
	d.team = &next
	return nil
}

// seatDue is a seat whose line has to move: its first is to sit down, or somebody in it is
// not to have the seat any more. It comes from Next alone.
type seatDue struct{}

// begins are the steps of each run that may begin, were it not for a hold: they are found out
// once for a whole line.
type begins struct {
	team *Team
	at   time.Time
	of   map[string]map[workflow.StepID]bool
}

func (b *begins) may(run string, r *workflow.Run, step workflow.StepID) bool {
	steps, known := b.of[run]
	if !known {
		steps = map[workflow.StepID]bool{}
		for todo := range r.Todo(workflow.Now{At: b.at}) {
			if todo.Do == workflow.StartIt {
				steps[todo.Lease.Step] = true
			}
		}
		put(&b.of, run, steps)
	}
	return steps[step]
}

// moves says whether a seat's line has to move.
func (t *Team) moves(a *Agent, at time.Time) bool {
	line, looked := t.line(a), begins{team: t, at: at}
	for i := range line {
		if ok, _ := looked.stands(a, &line[i]); !ok {
			return true
		}
	}
	return t.gives(a)
}

// gives says whether a seat goes to who is first in its line.
func (t *Team) gives(a *Agent) bool {
	return len(t.line(a)) > 0 && t.open(a) && !t.Hold.On && !t.Stopping
}

// stands says whether a claim stands, or why not. A step's stands while the team is held: it
// keeps its place in the line.
func (b *begins) stands(a *Agent, c *Claim) (ok bool, why string) {
	t := b.team
	run, step, isStep := StepOf(c.For)
	switch {
	case c.For == ForChannels:
		return t.mayTalk(a, b.at)
	case c.For == ForLead:
		return t.mayTakeLead(a, b.at)
	case c.For.Kind == PurposeDispatch:
		return t.mayTakeWork(a, c.For, b.at)
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
	case !sameLine(t.seat(run, plan), a):
		return false, "the step works elsewhere now"
	case !b.may(run, r, workflow.StepID(step)):
		return false, "it is not to begin now"
	}
	return true, ""
}

// sameLine says whether two seats have one line: all seats of the bench do.
func sameLine(a, b *Agent) bool {
	return a.step != "" && b.step != "" || a.step == b.step && a.Name == b.Name
}

// seatMoves drops the claims that do not stand, and gives a free seat to who is first. An event
// lets one of both happen: what follows is decided on a team on which that is true.
func (d *draft) seatMoves(a *Agent) error {
	var line []Claim
	var control *Claim
	var why string
	looked := begins{team: d.team, at: d.ev.At}
	for i, c := range d.team.line(a) {
		ok, no := looked.stands(a, &c)
		switch {
		case ok:
			line = append(line, c)
		case c.For == ForControl:
			control, why = &d.team.line(a)[i], no
		}
	}
	if len(line) < len(d.team.line(a)) {
		if err := d.setLine(a, declined, line); err != nil || control == nil {
			return err
		}
		return d.controlEnded(a, *control, why)
	}
	if !d.team.gives(a) {
		return nil
	}
	run, step, isStep := StepOf(line[0].For)
	if todo, some := d.team.toTell(a.Name, d.ev.At); some && line[0].For == ForChannels {
		return d.openTalk(a, todo)
	}
	if todo := d.team.leadTodo(a.Name); len(todo) > 0 && line[0].For == ForLead {
		return d.openLead(a, todo[0])
	}
	if line[0].For.Kind == PurposeDispatch {
		return d.openSession(a, Session{Kind: line[0].Kind, For: line[0].For})
	}
	if !isStep {
		return d.open(a, line[0].Kind)
	}
	return d.beginStep(run, workflow.StepID(step), true)
}
