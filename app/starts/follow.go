package starts

import (
	"context"
	"slices"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/work/listen"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// follow listens to a session until it ends, fetches what it made, and reports its end.
func (c *Controller) follow(ctx context.Context, m *sessions.Slot, s team.Session, proc sessionhost.Process, atStart bool) {
	kept := c.parts.Runs.KeepLog(m, s, proc)
	if s.ServesChannels() {
		defer c.parts.Channels.SetSessionWriter(s.ID, nil)
	}
	heard, ok := c.parts.Listener.Hear(ctx, m, s, proc, atStart)
	if !ok || !c.stepOver(ctx, m, s, &heard, kept) {
		return
	}
	if words := driver.LastWords(heard.Said); words != "" {
		heard.Ended.Why += ": " + clip.Text(words, listen.QuoteBytesMax)
	}
	if !c.parts.Sessions.SessionEnded(ctx, m, heard.Ended, sessions.ByShim) {
		return
	}
	if err := proc.Ack(ctx); err != nil && ctx.Err() == nil && !c.parts.Sessions.Fenced(err) {
		c.log.Warn("a shim was not told that its exit is in the journal", "session", s.ID, "error", err)
	}
	c.parts.Sessions.SetProc(s.ID, nil)
	_ = proc.Close() // the process has no output left to lose
}

// stepOver adds what a step made to the end of its session. It returns false if Fairlead is stopping.
func (c *Controller) stepOver(ctx context.Context, m *sessions.Slot, s team.Session, heard *listen.Heard, kept <-chan struct{}) bool {
	run, step, isStep := team.StepOf(s.For)
	if !isStep {
		return true
	}
	what := &heard.Ended
	if err := c.parts.Cluster.BringBack(ctx, s); ctx.Err() != nil {
		return false
	} else if err != nil && !heard.Ended.Exit.Lost {
		what.Outcome, what.Why = control.Failed, "what it has made is not here: "+err.Error()
	}
	if !c.parts.Runs.StepOver(ctx, m, s, run, workflow.StepID(step), what, heard.Said, kept) {
		return false
	}
	if what.Report != nil { // people see the logs of a step that succeeded
		facts := &what.Report.Report.Facts
		facts.Denied = heard.Refused
		facts.Logs = slices.Concat(facts.Logs, facts.Denied)
	}
	return true
}
