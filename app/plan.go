package app

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/read/status"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/app/starts"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
)

// Conditions for steps after an end that has not been read yet.
const (
	ifWell   = "it ended well"
	ifFailed = "it failed"
)

// observation is what was found of one agent when the plan is made.
type observation struct {
	session team.Session
	found   sessionhost.Found
	follows bool   // there is a process to follow, running or exited
	silent  string // why the outcome is not known; empty: found holds
	pid     int
	file    string // the content of its file, as text
	fileOK  bool
	resumes *sessions.Resumption // nil if it has no conversations to resume
}

// planOf derives the plan from what was found. before is the team according to the journal, after
// the team with the decisions of recovery; neither is changed. It has no side effects; recovery and
// the dry run both print its result.
func planOf(before, after *team.Team, seen map[string]observation, rebooted bool, at time.Time) view.Plan {
	plan := view.Plan{Rebooted: rebooted, Hold: after.Hold.On, Lines: []view.PlanLine{}}
	scratch := &planner{team: after.Copy(), at: at, resumes: map[string]*sessions.Resumption{}}
	for name, s := range seen {
		scratch.resumes[name] = s.resumes
	}
	for _, name := range after.Names() {
		was, a := before.Agents[name], after.Agents[name]
		s, looked := seen[name]
		if a.Removed && s.session.ID == "" {
			continue
		}
		line := view.PlanLine{Agent: name, Why: whyPlan(was, a, s, looked, at)}
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

// planner plays the steps after the observation on a copy of the team.
type planner struct {
	team    *team.Team
	at      time.Time
	resumes map[string]*sessions.Resumption // by agent
}

// decide applies an event to the copy. false means that it was refused or changed nothing.
func (p *planner) decide(name string, what any) bool {
	changes, err := p.team.Decide(team.Event{At: p.at, Actor: sessions.ByRecovery, Agent: name, What: what})
	if err != nil {
		return false
	}
	for _, ch := range changes {
		p.team.Apply(ch)
	}
	return len(changes) > 0
}

// steps returns the steps for one agent, beginning with the session that was found.
func (p *planner) steps(name string, s observation) []view.PlanStep {
	id := s.session.ID
	over := func(outcome control.Outcome) team.SessionEnded {
		return team.SessionEnded{Session: id, Outcome: outcome, AtStart: true}
	}
	switch {
	case id == "":
		return p.settle(name)
	case s.silent != "":
		ask := []view.PlanStep{{Do: view.DoAsk, Session: id, Why: "whether it runs is not known: " + s.silent}}
		if s.session.Phase == session.Running {
			ask = append(ask, p.settle(name)...) // it may have to end, which happens when its shim answers
		}
		return ask
	case s.follows && s.found == sessionhost.Running:
		return append([]view.PlanStep{{
			Do: view.DoAdopt, Session: id, Why: fmt.Sprintf("it outlived the daemon, as process %d", s.pid),
			Conversation: p.continues(p.team.Agents[name], &s.session),
		}}, p.settle(name)...)
	case s.follows && s.found == sessionhost.Exited:
		first := view.PlanStep{Do: view.DoTakeEnd, Session: id, Why: "it ended while no daemon ran"}
		return append([]view.PlanStep{first}, p.either(name, over)...)
	case s.found == sessionhost.NeverStarted && s.session.Phase == session.Open:
		return p.settle(name)
	}
	lost := view.PlanStep{Do: view.DoCountLost, Session: id, Why: "it ended while no daemon ran, and how is not known"}
	if s.follows {
		p.decide(name, over(control.Lost))
	}
	return append([]view.PlanStep{lost}, p.settle(name)...)
}

// either plays both possible ends of a session and merges equal steps.
func (p *planner) either(name string, over func(control.Outcome) team.SessionEnded) []view.PlanStep {
	was := *p.team.Agents[name]
	before := p.team
	play := func(outcome control.Outcome) []view.PlanStep {
		agent := was
		if was.Session.ServesChannels() { // its end may change a channel
			p.team = before.Copy()
		}
		p.team.Agents[name] = &agent
		p.decide(name, over(outcome))
		return p.settle(name)
	}
	well, failed := play(control.OK), play(control.Failed)
	if slices.EqualFunc(well, failed, func(a, b view.PlanStep) bool { return a.Do == b.Do && a.Session == b.Session }) {
		for i := range well {
			well[i].Conversation = eitherConversation(well[i].Conversation, failed[i].Conversation)
			if well[i].Why != failed[i].Why {
				well[i].Why = "however it ended, " + was.Control.Current() + " is over"
				if was.Session.ServesChannels() {
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
		failed[i].Conversation = failed[i].Conversation.IfCutOff()
	}
	return append(well, failed...)
}

// settleMax limits the consequences of one start: a withdrawn session, an expired deadline. More
// would mean a cycle.
const settleMax = 8

// settle continues until the agent starts something or has nothing to do. It uses the same MayStart
// that is asked last before a real start.
func (p *planner) settle(name string) []view.PlanStep {
	var steps []view.PlanStep
	for range settleMax {
		a := p.team.Agents[name]
		if due := p.team.Deadline(a); !due.IsZero() && !p.at.Before(due) && p.decide(name, team.TimerFired{}) {
			continue
		}
		s := a.Session
		switch {
		case s == nil:
			if step, some := p.channelSession(a); some {
				return append(steps, step)
			}
			return append(steps, p.idle(a))
		case s.Phase == session.Running && s.Ending != "":
			return append(steps, view.PlanStep{Do: view.DoEnd, Session: s.ID, Why: s.Ending})
		case s.Phase == session.Running:
			return steps
		}
		may, why := p.team.MayStart(name, s.ID, p.at)
		if may {
			why := desiredText(a, p.at)
			if s.ServesChannels() {
				why = tellText(s.Delivery.Do, s.Delivery.Token)
			} else if folder, w, is := team.DispatchActionOf(s.For); is {
				why = status.WorkWords(folder, w)
			}
			return append(steps, view.PlanStep{
				Do: view.DoStart, Session: s.ID, Kind: string(s.Kind), Why: why, Conversation: p.resume(a, s),
			})
		}
		steps = append(steps, view.PlanStep{Do: view.DoWithdraw, Session: s.ID, Why: why})
		if !p.decide(name, team.SessionEnded{Session: s.ID, Outcome: control.Withdrawn, Why: why}) {
			return steps
		}
	}
	return steps
}

// idle explains why nothing is started.
func (p *planner) idle(a *team.Agent) view.PlanStep {
	retry := a.Control.Retry()
	held := ""
	switch {
	case p.team.Hold.On:
		held = "the team is held by " + view.OrNobody(p.team.Hold.By) + view.Because(p.team.Hold.Note) + "; "
	case a.Removed:
		held = "it is no longer configured; "
	}
	switch {
	case a.Control.State == control.Foreign && !a.Control.Policy.Program:
		return view.PlanStep{Do: view.DoLeave, Why: held + desiredText(a, p.at)}
	case !retry.IsZero() && held == "":
		return view.PlanStep{
			Do:           view.DoWait,
			Why:          fmt.Sprintf("%d failed in a row; the next try is at %s", a.Control.Failures, retry.UTC().Format(time.RFC3339)),
			Conversation: p.resume(a, &team.Session{Kind: control.Work, For: team.ForControl}),
		}
	}
	return view.PlanStep{Do: view.DoRest, Why: held + desiredText(a, p.at)}
}

// desiredText describes an agent's desired state, its author and its time.
func desiredText(a *team.Agent, at time.Time) string {
	wish := a.Control.Desired
	if wish.N == 0 || wish.Rested {
		return control.WordPause + " is wanted: no request was made" + view.Because(wish.Note)
	}
	text := wish.State + " is wanted, set by " + view.OrNobody(wish.Author())
	if wish.Unknown {
		text = fmt.Sprintf("%q is no state and counts as pause, set by %s", wish.State, view.OrNobody(wish.Author()))
	}
	since := wish.At
	if since.IsZero() {
		since = a.Control.Stamp
	}
	if !since.IsZero() {
		text += " at " + since.UTC().Format(time.RFC3339)
	}
	return text + view.Because(wish.Note)
}

// whyPlan lists the evidence for a plan: the journal, the shim, the file. Evidence that contradicts
// the journal does not hold.
func whyPlan(was, a *team.Agent, s observation, looked bool, at time.Time) []view.Evidence {
	var why []view.Evidence
	add := func(source string, since time.Time, holds bool, format string, args ...any) {
		if since.IsZero() {
			since = at
		}
		why = append(why, view.Evidence{
			What: fmt.Sprintf(format, args...), Source: source, At: since, AgeMS: max(0, at.Sub(since).Milliseconds()), Holds: holds,
		})
	}
	if was == nil {
		add("journal", time.Time{}, true, "it is new")
	} else {
		add("journal", was.Control.Stamp, true, "control was %s; %s", was.Control.State, desiredText(was, at))
	}
	if id := s.session.ID; id != "" {
		add("journal", s.session.OpenedAt, true, "session %s (%s) was %s", id, s.session.Kind, s.session.Phase)
		switch {
		case s.silent != "":
			add("shim", time.Time{}, false, "%s", s.silent)
		case s.follows && s.found == sessionhost.Running:
			add("shim", time.Time{}, true, "it runs as process %d", s.pid)
		case s.found == sessionhost.NeverStarted && s.session.Phase == session.Open:
			add("shim", time.Time{}, true, "no process was ever started for it")
		case s.found == sessionhost.NeverStarted:
			add("shim", time.Time{}, false, "nothing is left of it, not even the records in its folder")
		case s.found == sessionhost.Lost:
			add("shim", time.Time{}, false, "it is gone, without a record of how it ended")
		default:
			add("shim", time.Time{}, s.session.Phase != session.Running, "it has %s", s.found)
		}
	}
	if looked && s.file != "" {
		add("file", time.Time{}, s.fileOK, "%s", s.file)
	}
	if was != nil && was.Control.State != control.Absent && a.Control.Desired.N > was.Control.Desired.N && !a.Control.Desired.Rested {
		add("file", a.Control.Desired.At, false, "it was written while no daemon ran, and replaces what the journal said: %s",
			desiredText(a, at))
	}
	return why
}

// RecoveryPlan is the message under which each line of a plan with something to do is logged, as
// the only attribute, before it is carried out.
const RecoveryPlan = "recovery"

// announcePlan reports what recovery is about to do.
func (e *App) announcePlan(before *team.Team, found []starts.Adoption) {
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

// plan is planOf for what this supervisor has found.
func (e *App) plan(before *team.Team, found []starts.Adoption) view.Plan {
	seen := map[string]observation{}
	for name, m := range e.Sessions.Slots {
		s := observation{resumes: m.Resumption()}
		s.file, s.fileOK = e.Agents.Files[name].Summary()
		seen[name] = s
	}
	for _, a := range found {
		if a.Agent == "" || a.Session.Slot > 0 {
			continue // the session of a step; its run plans the next step
		}
		s := seen[a.Agent]
		s.session, s.found, s.follows = a.Session, a.Found, a.Follows()
		if a.Proc != nil {
			s.pid = a.Proc.PID()
		}
		if a.Err != nil {
			s.silent = a.Err.Error()
		}
		seen[a.Agent] = s
	}
	plan := planOf(before, e.Loop.State(), seen, e.Agents.Rebooted, e.Loop.Now())
	e.Sessions.AddOrphans(&plan)
	e.addRuns(&plan, found)
	return plan
}
