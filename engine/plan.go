package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// Plan is what recovery found, and what it will do, before it does it.
type Plan struct {
	Rebooted bool       `json:"rebooted"` // the machine was started anew since the last daemon
	Hold     bool       `json:"hold"`
	Behind   uint64     `json:"behind,omitempty"` // shims have obeyed this epoch, and the journal does not know it: it is a new one, or an old copy
	Lines    []PlanLine `json:"plan"`             // by name, one for every agent that is configured or had a session; then run/ID and run/ID/STEP
}

// PlanLine is what is done with one agent.
type PlanLine struct {
	Agent   string     `json:"agent"`
	Session string     `json:"session"` // the one that was open; empty: none was
	Found   string     `json:"found"`   // what became of it: running, exited, lost, never_started, silent; empty: none was open
	Steps   []PlanStep `json:"steps"`   // in this order
	Why     []Evidence `json:"why"`
}

// PlanStep is one thing that recovery will do.
type PlanStep struct {
	Do      Deed   `json:"do"`
	Session string `json:"session,omitempty"` // whom it is done to, or who is started
	Kind    string `json:"kind,omitempty"`    // of a session that is started: session, cleanup, foreign
	If      string `json:"if,omitempty"`      // only then; what that session comes to is not known before it is read
	Why     string `json:"why"`

	Talk *PlanTalk `json:"conversation,omitempty"` // of a session that starts or goes on; nil: its program has none
}

// Deed is what recovery can do with an agent.
type Deed string

const (
	DoAdopt     Deed = "adopt"      // it outlived us, and is listened to again
	DoTakeEnd   Deed = "take_end"   // it ended while nobody looked: its last words are read, its end is journaled
	DoCountLost Deed = "count_lost" // it is gone, and nobody saw how
	DoEnd       Deed = "end"        // it runs, and must not any longer
	DoStart     Deed = "start"      // a session begins
	DoWithdraw  Deed = "withdraw"   // it was opened, never began, and is not wanted any more
	DoAsk       Deed = "ask"        // its shim does not answer: it is asked until it does, and nothing starts beside it
	DoWait      Deed = "wait"       // it failed before; the next try is later
	DoRest      Deed = "rest"       // nothing runs, and nothing is started
	DoLeave     Deed = "leave"      // its own loop decides; its file is all that is ours
	DoWaitFor   Deed = "wait_for"   // it runs, and the journal does not know it: nothing starts beside it
	DoPutAside  Deed = "put_aside"  // it is over, and the journal does not know it: its name is made free, nothing is lost
)

// Which way an end went that is not read yet.
const (
	ifWell   = "it ended well"
	ifFailed = "it failed"
)

// Quiet says that there is nothing to recover: no session was open, and none begins.
func (l PlanLine) Quiet() bool {
	if l.Session != "" {
		return false
	}
	for _, step := range l.Steps {
		if step.Do != DoRest && step.Do != DoLeave {
			return false
		}
	}
	return !slices.ContainsFunc(l.Why, func(e Evidence) bool { return !e.Holds })
}

// String is the line for people.
func (l PlanLine) String() string {
	var text strings.Builder
	text.WriteString(l.Agent + ": ")
	for i, step := range l.Steps {
		if i > 0 {
			text.WriteString("; then ")
		}
		if step.If != "" {
			text.WriteString("if " + step.If + ", ")
		}
		text.WriteString(step.String())
	}
	return text.String()
}

func (s PlanStep) String() string {
	kind := ""
	if s.Kind != "" && s.Kind != string(control.Work) {
		kind = " (" + s.Kind + ")"
	}
	words := map[Deed]string{
		DoAdopt: "adopt " + s.Session, DoTakeEnd: "take in how " + s.Session + " ended", DoCountLost: "count " + s.Session + " as lost",
		DoEnd: "end " + s.Session, DoStart: "start " + s.Session + kind, DoWithdraw: "withdraw " + s.Session,
		DoAsk: "ask after " + s.Session + " until its shim answers", DoWait: "wait", DoRest: "leave at rest", DoLeave: "leave to its own loop",
		DoWaitFor: "wait until " + s.Session + " is over", DoPutAside: "put " + s.Session + " aside",
	}
	text := words[s.Do] + ": " + s.Why
	if s.Talk != nil {
		text += "; it " + s.Talk.String()
	}
	return text
}

// sight is what was seen of one agent when the plan is made.
type sight struct {
	session team.Session
	found   Found
	follows bool   // there is a process, or an end, to listen to
	silent  string // why nobody knows; empty: found says
	pid     int
	file    string // what lies in the file's place, in words
	fileOK  bool
	resumes *resumption // nil: it has no conversations to go on with
}

// planOf says what follows from what was found. before is the team as the journal told it,
// after as recovery has decided; neither is changed. It is pure, and recovery and its
// rehearsal both print what it gives.
func planOf(before, after *team.Team, seen map[string]sight, rebooted bool, at time.Time) Plan {
	plan := Plan{Rebooted: rebooted, Hold: after.Hold.On, Lines: []PlanLine{}}
	scratch := &planner{team: after.Copy(), at: at, resumes: map[string]*resumption{}}
	for name, s := range seen {
		scratch.resumes[name] = s.resumes
	}
	for _, name := range after.Names() {
		was, a := before.Agents[name], after.Agents[name]
		s, looked := seen[name]
		if a.Removed && s.session.ID == "" {
			continue
		}
		line := PlanLine{Agent: name, Why: whyPlan(was, a, s, looked, at)}
		if s.session.ID != "" {
			line.Session, line.Found = s.session.ID, string(s.found)
			if s.silent != "" {
				line.Found = "silent"
			}
		}
		line.Steps = scratch.steps(name, s)
		plan.Lines = append(plan.Lines, line)
	}
	return plan
}

// planner plays what comes after the looking on a copy of the team.
type planner struct {
	team    *team.Team
	at      time.Time
	resumes map[string]*resumption // by agent
}

// tell has the copy decide; a refusal means that it is so already.
func (p *planner) tell(name string, what any) bool {
	changes, err := p.team.Decide(team.Event{At: p.at, Actor: byRecovery, Agent: name, What: what})
	if err != nil {
		return false
	}
	for _, ch := range changes {
		p.team.Apply(ch)
	}
	return len(changes) > 0
}

// steps are what is done with one agent, from the session that was found on.
func (p *planner) steps(name string, s sight) []PlanStep {
	id := s.session.ID
	over := func(outcome control.Outcome) team.SessionEnded {
		return team.SessionEnded{Session: id, Outcome: outcome, AtStart: true}
	}
	switch {
	case id == "":
		return p.settle(name)
	case s.silent != "":
		ask := []PlanStep{{Do: DoAsk, Session: id, Why: "whether it runs is not known: " + s.silent}}
		if s.session.Phase == team.Running {
			ask = append(ask, p.settle(name)...) // it may have to end; that is told to it when it answers
		}
		return ask
	case s.follows && s.found == Running:
		return append([]PlanStep{{Do: DoAdopt, Session: id, Why: fmt.Sprintf("it outlived the daemon, as process %d", s.pid), Talk: p.goesOn(p.team.Agents[name], &s.session)}}, p.settle(name)...)
	case s.follows && s.found == Exited:
		first := PlanStep{Do: DoTakeEnd, Session: id, Why: "it ended while nobody looked"}
		return append([]PlanStep{first}, p.either(name, over)...)
	case s.found == NeverStarted && s.session.Phase == team.Opened:
		return p.settle(name)
	}
	lost := PlanStep{Do: DoCountLost, Session: id, Why: "it ended while nobody looked, and nobody knows how"}
	if s.follows {
		p.tell(name, over(control.Lost))
	}
	return append([]PlanStep{lost}, p.settle(name)...)
}

// either plays both ends that a session may have come to, and says once what is the same.
func (p *planner) either(name string, over func(control.Outcome) team.SessionEnded) []PlanStep {
	was := *p.team.Agents[name]
	before := p.team
	play := func(outcome control.Outcome) []PlanStep {
		agent := was
		if was.Session.Talks() { // its end may move a channel
			p.team = before.Copy()
		}
		p.team.Agents[name] = &agent
		p.tell(name, over(outcome))
		return p.settle(name)
	}
	well, failed := play(control.OK), play(control.Failed)
	if slices.EqualFunc(well, failed, func(a, b PlanStep) bool { return a.Do == b.Do && a.Session == b.Session }) {
		for i := range well {
			well[i].Talk = eitherTalk(well[i].Talk, failed[i].Talk)
			if well[i].Why != failed[i].Why {
				well[i].Why = "however it ended, " + was.Control.Current() + " is over"
				if was.Session.Talks() {
					well[i].Why = "however it ended, it is over"
				}
			}
		}
		return well
	}
	for i := range well {
		well[i].If = ifWell
	}
	for i := range failed {
		failed[i].If = ifFailed
		failed[i].Talk = failed[i].Talk.ifCutOff()
	}
	return append(well, failed...)
}

// settleMax bounds what can follow from one another at a start: a wish that is withdrawn
// for the next one, a deadline that has passed. More would be going round in a circle.
const settleMax = 8

// settle goes on until the agent starts something, or comes to rest. What is started is
// asked for by the same MayStart that is asked last before a real start.
func (p *planner) settle(name string) []PlanStep {
	var steps []PlanStep
	for range settleMax {
		a := p.team.Agents[name]
		if due := p.team.Deadline(a); !due.IsZero() && !p.at.Before(due) && p.tell(name, team.TimerFired{}) {
			continue
		}
		s := a.Session
		switch {
		case s == nil:
			if step, some := p.talk(a); some {
				return append(steps, step)
			}
			return append(steps, p.rest(a))
		case s.Phase == team.Running && s.Ending != "":
			return append(steps, PlanStep{Do: DoEnd, Session: s.ID, Why: s.Ending})
		case s.Phase == team.Running:
			return steps
		}
		may, why := p.team.MayStart(name, s.ID, p.at)
		if may {
			why := wishOf(a, p.at)
			if s.Talks() {
				why = talkWords(s.Talk.Do, s.Talk.Token)
			} else if folder, w, is := team.WorkOf(s.For); is {
				why = workWords(folder, w)
			}
			return append(steps, PlanStep{Do: DoStart, Session: s.ID, Kind: string(s.Kind), Why: why, Talk: p.takeUp(a, s)})
		}
		steps = append(steps, PlanStep{Do: DoWithdraw, Session: s.ID, Why: why})
		if !p.tell(name, team.SessionEnded{Session: s.ID, Outcome: control.Withdrawn, Why: why}) {
			return steps
		}
	}
	return steps
}

// rest says why nothing is started.
func (p *planner) rest(a *team.Agent) PlanStep {
	retry := a.Control.Retry()
	held := ""
	switch {
	case p.team.Hold.On:
		held = "the team is held by " + orNobody(p.team.Hold.By) + because(p.team.Hold.Note) + "; "
	case a.Removed:
		held = "it is no longer configured; "
	}
	switch {
	case a.Control.State == control.Foreign && !a.Control.Policy.Program:
		return PlanStep{Do: DoLeave, Why: held + wishOf(a, p.at)}
	case !retry.IsZero() && held == "":
		return PlanStep{Do: DoWait, Why: fmt.Sprintf("%d failed in a row; the next try is at %s", a.Control.Failures, retry.UTC().Format(time.RFC3339)), Talk: p.takeUp(a, &team.Session{Kind: control.Work, For: team.ForControl})}
	}
	return PlanStep{Do: DoRest, Why: held + wishOf(a, p.at)}
}

// wishOf is what is wanted of an agent, by whom and since when.
func wishOf(a *team.Agent, at time.Time) string {
	wish := a.Control.Wish
	if wish.N == 0 || wish.Rested {
		return control.WordPause + " is wanted: nobody asked for anything" + because(wish.Note)
	}
	text := wish.Desired + " is wanted, set by " + orNobody(wish.By)
	if wish.Unknown {
		text = fmt.Sprintf("%q is no state and counts as pause, set by %s", wish.Desired, orNobody(wish.By))
	}
	since := wish.At
	if since.IsZero() {
		since = a.Control.Stamp
	}
	if !since.IsZero() {
		text += " at " + since.UTC().Format(time.RFC3339)
	}
	return text + because(wish.Note)
}

// whyPlan is what a plan rests on: the journal, the shim, the file. What speaks against
// what the journal said does not hold.
func whyPlan(was, a *team.Agent, s sight, looked bool, at time.Time) []Evidence {
	var why []Evidence
	add := func(source string, since time.Time, holds bool, format string, args ...any) {
		if since.IsZero() {
			since = at
		}
		why = append(why, Evidence{
			What: fmt.Sprintf(format, args...), Source: source, At: since, AgeMS: max(0, at.Sub(since).Milliseconds()), Holds: holds,
		})
	}
	if was == nil {
		add("journal", time.Time{}, true, "it was not known before")
	} else {
		add("journal", was.Control.Stamp, true, "control was %s; %s", was.Control.State, wishOf(was, at))
	}
	if id := s.session.ID; id != "" {
		add("journal", s.session.OpenedAt, true, "session %s (%s) was %s", id, s.session.Kind, s.session.Phase)
		switch {
		case s.silent != "":
			add("shim", time.Time{}, false, "%s", s.silent)
		case s.follows && s.found == Running:
			add("shim", time.Time{}, true, "it runs as process %d", s.pid)
		case s.found == NeverStarted && s.session.Phase == team.Opened:
			add("shim", time.Time{}, true, "no process was ever started for it")
		case s.found == NeverStarted:
			add("shim", time.Time{}, false, "nothing is left of it, not even its folder's records")
		case s.found == Lost:
			add("shim", time.Time{}, false, "it is gone, and has left no word of how it ended")
		default:
			add("shim", time.Time{}, s.session.Phase != team.Running, "it has %s", s.found)
		}
	}
	if looked && s.file != "" {
		add("file", time.Time{}, s.fileOK, "%s", s.file)
	}
	if was != nil && was.Control.State != control.Absent && a.Control.Wish.N > was.Control.Wish.N && !a.Control.Wish.Rested {
		add("file", a.Control.Wish.At, false, "it was written while nobody looked, and goes before what the journal said: %s", wishOf(a, at))
	}
	return why
}

// RecoveryPlan is the message under which each line of a plan that is not quiet is logged,
// as its one attribute, before anything of it is done.
const RecoveryPlan = "recovery"

// announcePlan tells what is about to be done.
func (e *Engine) announcePlan(before *team.Team, found []adoption) {
	plan := e.plan(before, found)
	for _, line := range plan.Lines {
		if !line.Quiet() {
			e.log.Info(RecoveryPlan, "plan", line.String())
		}
	}
	if e.opts.Planned != nil {
		e.opts.Planned(plan)
	}
}

// plan is planOf for what this engine has found.
func (e *Engine) plan(before *team.Team, found []adoption) Plan {
	seen := map[string]sight{}
	for name, m := range e.members {
		s := sight{resumes: m.resumption()}
		s.file, s.fileOK = e.files[name].sheet()
		seen[name] = s
	}
	for _, a := range found {
		if a.agent == "" {
			continue // a step's own session: its run says what becomes of it
		}
		s := seen[a.agent]
		s.session, s.found, s.follows = a.session, a.found, a.follows()
		if a.proc != nil {
			s.pid = a.proc.PID()
		}
		if a.err != nil {
			s.silent = a.err.Error()
		}
		seen[a.agent] = s
	}
	plan := planOf(before, e.State(), seen, e.rebooted, e.Now())
	e.addStrangers(&plan)
	e.addRuns(&plan, found)
	return plan
}

// sheet is an agent's file in words, as it was met at the start.
func (m *agentFile) sheet() (text string, ok bool) {
	switch {
	case m.conf.Workspace == "" || m.conf.Loop == config.LoopForeign && !m.known:
		return "", true
	case m.failed != "":
		return "agent_state.json: " + m.failed, false
	case !m.known:
		return "agent_state.json was not looked at", false
	case m.missing:
		return "there is no agent_state.json", true
	case m.state.DesiredState == "":
		return "agent_state.json is malformed", false
	}
	return fmt.Sprintf("agent_state.json says desired %s (set by %s at %s), current %s", m.state.DesiredState, orNobody(m.state.SetBy),
		m.state.Timestamp, m.state.CurrentState), true
}
