package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
)

// follow listens to a session until it is over, and says how it ended. The session itself
// goes on when we stop listening: what was not journaled is heard again.
func (e *Engine) follow(ctx context.Context, m *member, s team.Session, proc Process, atStart bool) {
	kept := e.keepLog(m, s, proc)
	ear := &ear{e: e, m: m, s: s, proc: proc}
	if s.Talks() {
		if ear.talk = e.talksFrom(ctx, m, s, proc); ear.talk == nil {
			return
		}
		defer e.setVoice(s.ID, nil)
		if s.Leads() {
			ear.lead, ear.talk.leads = newLeadEar(), true
		}
	}
	if _, _, works := team.WorkOf(s.For); works {
		if ear.work = e.worksFrom(ctx, m, s, proc); ear.work != nil {
			ear.lead = earFor(delegateMarkers)
		}
	}
	if err := ear.listen(ctx); err != nil {
		return
	}
	select {
	case <-proc.Done():
	case <-ctx.Done():
		return
	}
	ending, err := proc.Ended(ctx)
	if err != nil {
		if ctx.Err() != nil || e.fenced(err) {
			return
		}
		ending = Ending{Lost: true, Why: err.Error()}
	}
	what := team.SessionEnded{Session: s.ID, Bytes: ending.Bytes, AtStart: atStart}
	what.Outcome, what.Why = judge(m, s, ending, ear.stop)
	if !ear.work.over(ctx, &what) {
		return
	}
	if run, step, isStep := team.StepOf(s.For); isStep {
		if !e.stepOver(ctx, m, s, run, workflow.StepID(step), &what, kept) {
			return
		}
	}
	if !e.sessionEnded(ctx, m, what, byHolder) {
		return
	}
	if err := proc.Ack(ctx); err != nil && ctx.Err() == nil && !e.fenced(err) {
		e.log.Warn("a holder was not told that its exit is in the journal", "session", s.ID, "error", err)
	}
	e.setProc(s.ID, nil)
	_ = proc.Close() // nothing is left to lose on it
}

// judge asks the driver what an ending means.
func judge(m *member, s team.Session, ending Ending, stop *driver.Stop) (control.Outcome, string) {
	if ending.Lost {
		return control.Lost, ending.Why
	}
	verdict := m.driver.Outcome(sessionFor(m, s), ending.Exit, stop)
	why := verdict.Why
	if ending.Cut > 0 {
		why = fmt.Sprintf("%d bytes of its output were lost, since the disk took no more; %s", ending.Cut, why)
	}
	if !verdict.OK {
		return control.Failed, why
	}
	return control.OK, why
}

// letGo closes a conversation that has said its last word. A program that stays all the
// same is ended after its grace: some ignore the end of their input.
func (e *Engine) letGo(ctx context.Context, m *member, id string, proc Process) {
	e.closeInput(ctx, m, id, proc, m.conf.Grace)
}

func (e *Engine) closeInput(ctx context.Context, m *member, id string, proc Process, patience time.Duration) {
	// An agent that takes no input, or is gone, has nothing to close.
	_ = proc.CloseInput(ctx)
	grace := time.NewTimer(patience)
	defer grace.Stop()
	select {
	case <-proc.Done():
	case <-ctx.Done():
	case <-grace.C:
		e.end(ctx, m, id, m.conf.Grace)
	}
}
