package team

import (
	"cmp"
	"fmt"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// run decides an event about one run.
func (d *decision) run() error {
	id := d.ev.Run
	switch what := d.ev.What.(type) {
	case workflow.Input:
		if what.Subject().Starts {
			return d.begins(id, what, false)
		}
	case RunBegun:
		return d.begun(id, what)
	case RunRecalled:
		return d.recall(id, what)
	}
	r := d.team.Runs[id]
	if r == nil {
		return d.unknownRun(id)
	}
	switch what := d.ev.What.(type) {
	case task.Input:
		return d.taskEvent(id, what)
	case RunArchived:
		return d.archive(id, r)
	case FilesHere:
		return d.filesHere(id, "files_arrived")
	case workflow.ReleaseAsked:
		return d.releaseRun(id, r, what)
	case workflow.Input:
		return d.runDecides(id, r, what)
	case beginStep:
		return d.beginStep(id, what.step, false)
	case endStep:
		return d.endStep(id, r, what.step)
	case limitStep:
		return d.limitStep(id, r, what.step)
	case TimerFired:
		return d.runTimer(id, r)
	case Shell:
		note := d.team.Notes[id]
		d.note(id, "E7", string(what), NoteSet{Settings: note.Settings, Waived: note.Waived, LookAt: note.LookAt})
		return nil
	case Input:
		return d.inPool(what.Subject())
	default:
		panic(fmt.Sprintf("team: no such event of a run: %T", what))
	}
}

func (d *decision) unknownRun(id string) error {
	if at, gone := d.team.Archive[id]; gone {
		return &table.Refusal{
			Subject: "run " + id, Event: d.ev.word(), State: "archived", Row: "X5",
			Reason: "it was archived at " + at.Format("2006-01-02 15:04:05Z07:00") + "; `fairlead run resume " + id +
				"` brings it back, and its name is free once its folder is deleted", Takes: []string{"run_recalled"},
		}
	}
	return &Unknown{What: "run", Name: id, Known: d.team.RunIDs()}
}

// word returns the name of an event of a run in a refusal, such as resume_asked.
func (ev *Event) word() string {
	switch what := ev.What.(type) {
	case workflow.Input:
		return string(what.Subject().Event)
	case task.Input:
		return string(what.Subject().Event)
	case RunBegun:
		return string(what.Asked.Subject().Event)
	case Input:
		return string(what.Subject().Event)
	default:
		return "event"
	}
}

// begins starts a run. An archived run keeps its name while it has a folder.
func (d *decision) begins(id string, in workflow.Input, freed bool) error {
	r := d.team.Runs[id]
	if r == nil {
		if _, gone := d.team.Archive[id]; gone && !freed {
			return d.unknownRun(id)
		}
		r = &workflow.Run{}
	}
	return d.runDecides(id, r, in)
}

// begun starts a run with its own settings, or continues it with new ones.
func (d *decision) begun(id string, what RunBegun) error {
	if faults := what.Settings.check(); faults != "" {
		return &table.Refusal{Subject: "run " + id, Event: d.ev.word(), State: "asked", Row: "W1", Reason: faults}
	}
	starts := what.Asked.Subject().Starts
	if starts {
		if err := d.team.mayWaitFor(id, what.Settings.After); err != nil {
			return err
		}
	}
	var err error
	if r := d.team.Runs[id]; starts {
		err = d.begins(id, what.Asked, what.Freed)
	} else if r == nil {
		err = d.unknownRun(id)
	} else {
		err = d.runDecides(id, r, what.Asked)
	}
	if err == nil && what.Task != nil {
		var changes []change.Change
		given := task.Begin{Plan: *what.Task, Blocked: d.team.anyOpen(what.Settings.After)}
		changes, err = (&task.Task{}).Decide(id, d.ev.At, d.ev.Actor, given)
		d.take(changes)
	}
	was := d.team.Notes[id].Settings
	if err != nil || was.same(&what.Settings) {
		return err
	}
	d.note(id, "W1", "settings_given", NoteSet{Settings: what.Settings})
	return nil
}

func (d *decision) note(id, row, trigger string, set NoteSet) {
	d.add(runPrefix+id, "run", row, "noted", "noted", trigger, &set)
}

func (d *decision) runNow() workflow.Now {
	return workflow.Now{At: d.ev.At, Held: d.team.Hold.On || d.team.Stopping}
}

// runDecides decides a run's input, and opens the required sessions in the same batch: a step is
// RUNNING only with a session (X2). It is called at most once in an event, because it decides on the
// applied state: consequences follow from Next.
func (d *decision) runDecides(id string, r *workflow.Run, in workflow.Input) error {
	if about := in.Subject(); about.Starts && about.Entity != id {
		panic(fmt.Sprintf("team: run %s is asked for as %s", about.Entity, id))
	}
	if answer, ok := in.(workflow.AnswerRead); ok {
		answer.Place = d.place(id, r, answer.Lease.Step)
		in = answer
	}
	changes, err := r.Decide(in, d.runNow())
	if err != nil {
		return err
	}
	d.take(changes)
	return d.openSteps(id, r, changes)
}

// place reports whether a step's slot is free now, for the agent that works with people's answer.
func (d *decision) place(id string, r *workflow.Run, step workflow.StepID) bool {
	plan, _, known := r.Find(step)
	if !known || d.runNow().Held {
		return false
	}
	a := d.team.slot(id, plan)
	limit, _ := d.team.stepOver(id, a, d.ev.At)
	return limit == "" && d.team.stepPlace(a, id, step) != nil && len(d.team.queue(a)) == 0
}

// openSteps opens a session for each step that gets a process with a new lease by these changes.
func (d *decision) openSteps(id string, r *workflow.Run, changes []change.Change) error {
	for i := range changes {
		step, v := workflow.StepOf(&changes[i]), lastOf(changes, i)
		if v == nil {
			continue
		}
		plan, p, _ := r.Find(step)
		if v.State != workflow.Running || v.Proc == 0 || v.Proc == p.Proc {
			continue
		}
		a := d.team.stepPlace(d.team.slot(id, plan), id, step)
		if a == nil {
			panic(fmt.Sprintf("team: step %s of run %s begins, and no slot is free", step, id))
		}
		if err := d.openSession(a, Session{Kind: control.Work, For: ForStep(id, step), Lease: v.Proc}); err != nil {
			return err
		}
	}
	return nil
}

// lastOf returns a step's value in the i-th change, if no later one concerns the same step.
func lastOf(changes []change.Change, i int) *workflow.Value {
	set := change.As[workflow.Body](changes[i].Body).Step
	if set == nil {
		return nil
	}
	for _, later := range changes[i+1:] {
		if later.Entity == changes[i].Entity {
			return nil
		}
	}
	return &set.Value
}

// beginStep is W2 with J1: the step starts if its slot is free, and is queued otherwise. A step that
// begins with a question needs no slot. first means that the queue gives it a slot.
func (d *decision) beginStep(id string, step workflow.StepID, first bool) error {
	r := d.team.Runs[id]
	plan, p, known := r.Find(step)
	if !known {
		return d.runDecides(id, r, workflow.StartAsked{Step: step})
	}
	a := d.team.slot(id, plan)
	changes, err := r.Decide(workflow.StartAsked{Step: step}, d.runNow())
	if err != nil {
		return err
	}
	if last := lastOf(changes, len(changes)-1); last.Proc == p.Proc {
		d.take(changes) // people are asked
		return nil
	}
	if limit, at := d.team.stepOver(id, a, d.ev.At); at == LimitPauses {
		return d.runDecides(id, r, workflow.PauseAsked{By: byLimit, Reason: workflow.PausedByLimit, Why: limitWords + limit})
	}
	if !first && (d.team.stepPlace(a, id, step) == nil || len(d.team.queue(a)) > 0) {
		return d.request(a, Request{For: ForStep(id, step), N: p.N + 1, Kind: control.Work, At: d.ev.At})
	}
	d.take(changes)
	return d.openSteps(id, r, changes)
}

// endStep asks the session of a step to end whose attempt or run has ended.
func (d *decision) endStep(id string, r *workflow.Run, step workflow.StepID) error {
	_, p, known := r.Find(step)
	a := d.team.sitter(id, step)
	if !known || a == nil {
		return nil
	}
	reason := map[workflow.EndReason]EndReason{workflow.EndReported: EndReported, workflow.EndCancelled: EndCancelled}[p.EndReason]
	return d.endSession(a, ending{cmp.Or(reason, EndAttemptOver), cutLine(p.Ending)}, false)
}

// sitter returns a copy of the slot in which a step's session runs; nil: none.
func (t *Team) sitter(id string, step workflow.StepID) *Agent {
	agent, s, ok := t.SessionOf(id, string(step))
	switch {
	case !ok:
		return nil
	case agent == "":
		return t.stepSlot(id + "/" + string(step))
	}
	return t.Agents[agent].at(s.Slot)
}

// inPool finds the step whose session an event names.
func (d *decision) inPool(about Subject) error {
	for key, s := range d.team.Pool.Sessions {
		if s.ID == about.Session {
			return d.ofSession(d.team.stepSlot(key))
		}
	}
	return &table.Refusal{
		Subject: "session " + about.Session + " of run " + d.ev.Run, Event: string(about.Event), State: string(session.None),
		Reason: "it is over, or it never was",
	}
}

// stepEnded tells a run how the session of a step ended: a valid report counts first, however the
// process ended (W13), unless no model has answered in it. It is no error if the attempt has ended before.
func (d *decision) stepEnded(s *Session, what SessionEnded) error {
	id, step, _ := StepOf(s.For)
	r := d.team.Runs[id]
	if r == nil {
		return nil
	}
	lease := workflow.Lease{Step: workflow.StepID(step), N: s.Lease}
	var said []workflow.Input
	if what.Report != nil && !what.Report.Report.Fails() && s.Stop != nil &&
		session.Unanswered(s.Stop.Reason, s.Stop.Called || !s.Usage.Empty()) {
		what.Report, what.Fault = nil, "it says that the step is done, but no model has answered in this session"
	}
	if what.Report != nil {
		report := *what.Report
		d.team.goesOn(s, &report.Report)
		what.Report = &report
		said = append(said, workflow.ReportRead{Lease: lease, Report: what.Report.Report, Until: what.Report.Until, Over: true})
	}
	switch {
	case s.Outcome == control.Withdrawn, s.Outcome == control.Anew:
		said = append(said, workflow.StartWithdrawn{Lease: lease, Why: s.Why})
	case s.Outcome == control.RateLimited:
		said = append(said, workflow.ProviderBusy{Lease: lease, Why: s.Why})
	case s.Outcome == control.Lost:
		said = append(said, workflow.ProcessLost{Lease: lease, Why: s.Why})
	case s.Outcome == control.Cancelled && s.EndReason == EndShutdown:
		said = append(said, workflow.ProcessLost{Lease: lease, Why: s.Why}) // the daemon is stopping, and the step has not failed
	case s.Outcome == control.Failed && what.NoVerdict:
		said = append(said, workflow.ProcessLost{Lease: lease, Why: s.Why})
	default:
		said = append(said, workflow.ProcessEnded{Lease: lease, Why: endWords(s, what.Fault)})
	}
	for _, in := range said {
		err := d.runDecides(id, r, in)
		if _, refused := err.(*table.Refusal); !refused { //nolint:errorlint // a refusal is a type of its own and is never wrapped
			return err
		}
	}
	return nil
}

// endWords says why an attempt whose process has ended is not successful.
func endWords(s *Session, fault string) string {
	text := "no report"
	if fault != "" {
		text = "report refused: " + fault
	}
	switch s.Outcome {
	case control.OK:
		if fault == "" {
			text += ": it succeeded, but left no report at $REPORT_PATH or in its output"
		}
		return text
	case control.CannotStart:
		return "it cannot start: " + s.Why
	}
	return text + "; the process ended: " + s.Why
}
