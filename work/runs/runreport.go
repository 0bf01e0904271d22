package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// reportCost records the cost that a step's report states, if the driver has reported none. It
// returns false if Fairlead is stopping.
func (c *Controller) reportCost(ctx context.Context, m *sessions.Slot, s team.Session, bytes int64, cost float64) bool {
	told := false
	if c.loop.View(ctx, func(t *team.Team) {
		if now := m.Open(t); now != nil {
			told = now.Usage.CostUSD > 0
			bytes = max(bytes, now.Offset)
		}
	}) != nil {
		return false
	}
	if told {
		return true
	}
	_, err := c.sessions.SubmitOf(ctx, change.Actor{Kind: "agent", ID: m.Conf.Name}, m, team.SessionReported{
		// an offset after all of its output
		Session: s.ID, Offset: bytes + 1, Usage: change.Usage{CostUSD: min(cost, sessions.CostReportMax)},
	})
	return err == nil || loop.IsAnswer(err)
}

// reportOf finds a step's report in its file, or between the markers in its output. Without a report
// it returns nil and no error.
func (c *Controller) reportOf(ctx context.Context, m *sessions.Slot, f StepFacts, s team.Session) (*runstate.StepReport, error) {
	of, err := f.Wanted()
	if err != nil {
		return nil, err
	}
	report, err := runstate.ReadReport(f.Report, of)
	if err == nil {
		return &report, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	text, err := c.markedReport(ctx, m, s)
	if err != nil || text == nil {
		return nil, err
	}
	report, err = runstate.ParseReport("the output of "+s.ID, text, of)
	if err != nil {
		return nil, err
	}
	// the file has all of it, and a step's limits do not concern it
	if err := file.ReplaceUnsynced(f.Report, text, madeReportMode); err != nil {
		return nil, fmt.Errorf("keep the report of the output: %w", err)
	}
	return &report, nil
}

// Wanted is what a report must identify and the schema that it must match.
func (f StepFacts) Wanted() (runstate.ReportFor, error) {
	of := runstate.ReportFor{RunID: f.Cmd.RunID, StepID: f.Cmd.StepID, Repo: f.worksOn(), Main: f.repo}
	if f.how.ReportSchema == "" {
		return of, nil
	}
	text, err := sessions.ReadUpTo(f.how.ReportSchema, schemaBytesMax)
	if err != nil {
		return of, fmt.Errorf("read the schema for reports: %w", err)
	}
	if of.Schema, err = runstate.CompileSchema(text); err != nil {
		return of, fmt.Errorf("%s: %w", f.how.ReportSchema, err)
	}
	return of, nil
}

// markedReport is the last report that a session printed between the markers, or nil. A malformed
// report is an error only if no complete one follows.
func (c *Controller) markedReport(ctx context.Context, m *sessions.Slot, s team.Session) ([]byte, error) {
	var read reportReader
	said := c.printed
	if m.Driver.Name() != sessions.PoolDriver {
		said = c.spoken
	}
	if err := said(ctx, m, s, &read); err != nil {
		return nil, fmt.Errorf("look for a report in the output: %w", err)
	}
	read.note(read.scan.Flush())
	return read.last, read.fault
}

// reportReader finds the last report in the text written to it.
type reportReader struct {
	scan  marker.Scanner
	last  []byte
	fault error // of a report after the last complete one
}

func (r *reportReader) Write(b []byte) (int, error) {
	r.note(r.scan.Write(b))
	return len(b), nil
}

func (r *reportReader) note(pieces []marker.Piece) {
	for _, p := range pieces {
		switch {
		case p.Marker == nil || p.Marker.Kind != marker.RunReport:
		case p.Marker.Fault != "":
			r.last, r.fault = nil, fmt.Errorf("in the output at byte %d: %s", p.Marker.Offset, p.Marker.Fault)
		default:
			r.last, r.fault = append([]byte(nil), p.Marker.JSON...), nil
		}
	}
}

// printed copies a session's raw output to the reader.
func (c *Controller) printed(ctx context.Context, _ *sessions.Slot, s team.Session, to io.Writer) error {
	out, err := c.opts.Host.Output(ctx, s.ID, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.CopyBuffer(to, struct{ io.Reader }{out}, make([]byte, 64<<10))
	return err
}

// spoken copies the text of an agent whose output is a protocol. The output of its tools is left
// out, because the agent did not write it.
func (c *Controller) spoken(ctx context.Context, m *sessions.Slot, s team.Session, to io.Writer) error {
	conv := m.Driver.Converse(driver.Agent{Name: m.Conf.Name}, sessions.SessionFor(m, s), sessions.ReadOnly{E: c.sessions, Session: s.ID})
	for fact, err := range conv.Facts(ctx, 0) {
		if err != nil {
			return err
		}
		if fact.Kind != driver.Said || fact.Tool != "" {
			continue
		}
		_, err = to.Write([]byte(fact.Text))
		if err == nil && !fact.Part {
			_, err = to.Write([]byte("\n"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errHeard ends the reading of an answer at its first word.
var errHeard = errors.New("the answer has a word")

// firstWord takes text up to its first word, and then returns errHeard.
type firstWord struct{}

func (firstWord) Write(b []byte) (int, error) {
	if len(bytes.TrimSpace(b)) > 0 {
		return 0, errHeard
	}
	return len(b), nil
}

// silent reports whether an agent that has ended well has said nothing. A program without a protocol need not say anything.
func (c *Controller) silent(ctx context.Context, m *sessions.Slot, s team.Session) (bool, error) {
	if name := m.Driver.Name(); name == sessions.PoolDriver || name == config.DriverExec {
		return false, nil
	}
	err := c.spoken(ctx, m, s, firstWord{})
	if errors.Is(err, errHeard) {
		return false, nil
	}
	return err == nil, err
}

// WithReport adds the step's report to the end of a session that left no process or output. The
// report may have been written before the session was lost (W13). It is read synchronously, because
// it is small and the case is rare.
func (c *Controller) WithReport(t *team.Team, s team.Session, ended team.SessionEnded) team.SessionEnded {
	run, step, isStep := team.StepOf(s.For)
	// a report here may be of an earlier attempt, if another machine led since
	if !isStep || t.Leader != "" && c.sessions.OtherHost(t, s.ID) != "" {
		return ended
	}
	f, ok := c.FactsOf(t, s, run, workflow.StepID(step))
	if !ok || f.review { // findings count only if the folder was compared; the review is repeated
		return ended
	}
	if ended.Fault = c.taken(f, s.ID); ended.Fault != "" {
		return ended
	}
	of, err := f.Wanted()
	if err != nil {
		ended.Fault = err.Error()
		return ended
	}
	report, err := runstate.ReadReport(f.Report, of)
	switch {
	case err == nil:
		ended.Report = &team.StepReport{
			Report: report.Report,
			Until:  runstate.WeighUntil(t.Runs[run], workflow.StepID(step), report.Report),
		}
	case !errors.Is(err, fs.ErrNotExist):
		ended.Fault = err.Error()
	}
	return ended
}

// lookForReport handles a step that an imported file lists as RUNNING. No process is known, so
// either a report decides the attempt or the attempt is lost (W13).
func (c *Controller) lookForReport(ctx context.Context, id string, lease workflow.Lease, f StepFacts) {
	of, err := f.Wanted()
	var report runstate.StepReport
	if err == nil {
		report, err = runstate.ReadReport(f.Report, of)
	}
	if err != nil {
		_, _ = c.SubmitRun(ctx, sessions.ByEngine, id,
			workflow.ProcessLost{Lease: lease, Why: "this daemon did not start it, and it has no valid report: " + err.Error()})
		return
	}
	what := workflow.ReportRead{Lease: lease, Report: report.Report, Over: true}
	if c.loop.View(ctx, func(t *team.Team) {
		if r := t.Runs[id]; r != nil {
			what.Until = runstate.WeighUntil(r, lease.Step, report.Report)
		}
	}) == nil {
		_, _ = c.SubmitRun(ctx, sessions.ByEngine, id, what)
	}
}
