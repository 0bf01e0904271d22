package runs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// ProjectRun updates run_state.json from the journal.
func (c *Controller) ProjectRun(m *runMember) {
	if m.dirty == nil {
		m.dirty = make(chan struct{}, 1)
		dirty := m.dirty
		ctx, end := context.WithCancel(c.loop.Context())
		m.pen = end
		c.loop.Go(func(context.Context) { m.state.keep(ctx, dirty) })
	}
	m.due++
	m.rouse()
}

// rouse makes the writer of run_state.json run, now or after its current write.
func (m *runMember) rouse() {
	select {
	case m.dirty <- struct{}{}:
	default:
	}
}

// stateWriter writes the state file of one run.
type stateWriter struct {
	e      *Controller
	m      *runMember
	warned bool
	edited atomic.Pointer[string] // the outcome of the last edit of the file by another program, in words

	mu    sync.Mutex      // one at a time examines the file and writes it
	files *runstate.Files // nil: the file was not looked at yet
	begun bool            // this process has written the file, or knows what is in it
	taken uint64          // Seq of the observation whose content is in the journal
}

func (p *stateWriter) keep(ctx context.Context, dirty <-chan struct{}) {
	for {
		select {
		case <-dirty:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		if err := p.write(ctx); err != nil && ctx.Err() == nil {
			if !p.warned {
				p.warned = true
				p.e.log.Error("run_state.json cannot be written; it is tried again, and the journal has everything", "run", p.m.id, "error",
					err)
			}
			if !retry.Rest(ctx, time.Second) {
				return
			}
			p.m.rouse()
			continue
		}
		p.warned = false
		if !retry.Rest(ctx, max(workspace.StateEvery, min(workspace.StateShare*time.Since(began), workspace.StateLate))) {
			return
		}
	}
}

// write replaces the file with the state in the journal.
func (p *stateWriter) write(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, err := p.now(ctx)
	if err != nil || is.path == "" {
		return err
	}
	if err = p.put(ctx, &is); errors.Is(err, fs.ErrNotExist) {
		err = p.withoutFolder(ctx, filepath.Dir(is.path), is.over)
	}
	if err == nil {
		p.m.said.Store(is.due)
	}
	return err
}

// roundsMax is how often one write makes room for another program's content. Then it fails, and is tried again later.
const roundsMax = 8

// put writes the file, unless it holds an edit: that stays as it is until the run is resumed. What cannot be taken in is kept under
// another name.
func (p *stateWriter) put(ctx context.Context, is *stateNow) error {
	if err := p.open(is.path); err != nil {
		return err
	}
	content := is.state.Render()
	for range roundsMax {
		err := p.files.Write(ctx, p.m.id, content, exchange.AnyLook, nil)
		found, foreign := errors.AsType[*runstate.Changed](err)
		if !foreign {
			p.begun = p.begun || err == nil
			return err
		}
		edit, why := p.judge(is, &found.Seen, sessions.ByEngine.ID)
		switch {
		case edit != nil:
			return nil
		case why != "":
			if err := p.keepAside(&found.Seen, why); err != nil && !errors.Is(err, exchange.ErrChanged) {
				return err
			}
			continue
		}
		p.files.Confirm(found.Seen)
		if p.begun = true; found.Seen.Sum == file.SumOf(content) {
			return nil // it is as the last process has left it
		}
	}
	return errors.New("another program writes it at the same time")
}

// atEnd reports whether no step of a run is running or waiting.
func atEnd(r *workflow.Run) bool {
	status := r.Status()
	return status != workflow.IsRunning && status != workflow.IsWaiting
}

// withoutFolder handles a run whose folder was removed. A run that has ended is archived, as by
// `fairlead run prune`. For an active run the folder is created again.
func (p *stateWriter) withoutFolder(ctx context.Context, dir string, over bool) error {
	if !over {
		if err := os.MkdirAll(dir, DirMode); err != nil {
			return err
		}
		p.m.rouse()
		return nil
	}
	if _, err := p.e.SubmitRun(ctx, sessions.ByEngine, p.m.id, team.RunArchived{}); err != nil && !loop.IsAnswer(err) {
		return err
	}
	p.e.log.Info("the folder of a run that is over is gone: the run counts as put away", "run", p.m.id)
	return nil
}

// writtenAtOnce reports whether a file was written at the time that it states. That holds for files
// from Fairlead, and not for a file that was edited later.
func writtenAtOnce(updated string, at time.Time) bool {
	said, err := file.ParseTime(updated)
	return err == nil && at.Sub(said) < workspace.StateOurs
}

// lookAfter starts or stops the polling of files that people and other programs write for a run:
// gates, and answers to open questions.
func (c *Controller) lookAfter(m *runMember, r *workflow.Run, asks bool) {
	how := howOf(c.loop.State(), m.id)
	wanted := asks || how.GateFile != "" && r.Stage == workflow.Driven && !atEnd(r)
	switch {
	case wanted && m.watch == nil:
		ctx, stop := context.WithCancel(c.loop.Context())
		m.watch = stop
		w := &runWatch{e: c, id: m.id, how: how, judged: map[uint64]fs.FileInfo{}}
		c.loop.Go(func(context.Context) { w.run(ctx) })
	case !wanted && m.watch != nil:
		m.watch()
		m.watch = nil
	}
}

// runWatch polls files. They may be on any file system, and each check is one system call.
type runWatch struct {
	e      *Controller
	id     string
	how    howRun
	open   []string
	seen   bool
	warned string
	judged map[uint64]fs.FileInfo // rejected answers, by lease
}

func (w *runWatch) run(ctx context.Context) {
	every := workspace.PollDefault
	if w.how.PollMS > 0 {
		every = time.Duration(w.how.PollMS) * time.Millisecond
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		w.gates(ctx)
		w.answers(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// gates reports the open gates to the run after a change. A missing gate is closed.
func (w *runWatch) gates(ctx context.Context) {
	if w.how.GateFile == "" {
		return
	}
	open, err := runstate.ReadGates(w.how.GateFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if w.warned != err.Error() {
			w.warned = err.Error()
			w.e.log.Warn("the gate file cannot be read; the gates stay as they are", "run", w.id, "error", err)
		}
		return
	}
	slices.Sort(open)
	if w.seen && slices.Equal(open, w.open) {
		return
	}
	if _, err := w.e.SubmitRun(ctx, sessions.ByEngine, w.id, workflow.GatesSeen{Open: open}); err == nil || loop.IsAnswer(err) {
		w.seen, w.open = true, open
	}
}

// stepQuestion is a step that waits for an answer in a file.
type stepQuestion struct {
	lease  workflow.Lease
	path   string
	schema string
	since  time.Time
}

// answers reads the answers that people have written into files. It does not look while Answer is between writing such a
// file and deciding: the person would be refused, because the file had answered already.
func (w *runWatch) answers(ctx context.Context) {
	w.e.answers.Lock()
	defer w.e.answers.Unlock()
	var asked []stepQuestion
	if w.e.loop.View(ctx, func(t *team.Team) {
		r := t.Runs[w.id]
		if r == nil {
			return
		}
		for _, todo := range t.RunActions(w.id, w.e.loop.Now()) {
			if todo.Do == team.AskForAnswer {
				step := todo.Step.Lease.Step
				plan, p, _ := r.Find(step)
				asked = append(asked, stepQuestion{todo.Step.Lease, r.InputFile(step), plan.InputSchema, p.StartedAt})
			}
		}
	}) != nil {
		return
	}
	for _, q := range asked {
		w.answer(ctx, q)
	}
}

func (w *runWatch) answer(ctx context.Context, q stepQuestion) {
	info, err := os.Lstat(q.path)
	if err != nil {
		return // no answer yet
	}
	if was := w.judged[q.lease.N]; was != nil && was.ModTime().Equal(info.ModTime()) && was.Size() == info.Size() &&
		os.SameFile(was, info) {
		return // it has not changed since it was rejected
	}
	if w.how.Task != nil {
		w.judged[q.lease.N] = info
		_, _ = w.e.answerRun(ctx, byFile(q.path), w.id,
			workflow.AnswerRead{
				Lease: q.lease,
				Fault: "a task is not approved by a file; this one has no effect. Approve it on the page or with `fairlead merge " + w.id +
					"`",
			})
		return
	}
	if info.ModTime().Before(q.since) { // an answer to an earlier question
		if err := setAside(q.path, q.lease.N, false); err != nil {
			w.e.log.Warn("an old answer cannot be set aside; a new one cannot be told from it", "run", w.id, "error", err)
		}
		return
	}
	in, err := runstate.ReadManualInput(q.path, q.schema)
	if half, ok := errors.AsType[*runstate.ReportFault](err); ok && half.Unfinished {
		return // it is still being written
	}
	w.judged[q.lease.N] = info
	what := workflow.AnswerRead{
		Lease: q.lease, Rejected: err == nil && !in.Approved, By: in.By, Note: in.Note,
		Record: workflow.Answer{ByFile: true},
	}
	if err != nil {
		what.Fault = err.Error()
	}
	_, _ = w.e.answerRun(ctx, byFile(q.path), w.id, what)
}

// byFile is the actor of an answer in a file: any program that may write the file can have written it.
func byFile(path string) change.Actor {
	return change.Actor{Kind: "human", ID: "file " + filepath.Base(path)}
}

// answerRun evaluates the loop's condition with an answer and submits the result.
func (c *Controller) answerRun(ctx context.Context, by change.Actor, id string, what workflow.AnswerRead) (uint64, error) {
	if err := c.loop.View(ctx, func(t *team.Team) {
		if r := t.Runs[id]; r != nil && what.Fault == "" {
			what.Until = runstate.WeighUntil(r, what.Lease.Step, runstate.ReportSoFar(r, what.Lease.Step))
		}
	}); err != nil {
		return 0, err
	}
	return c.SubmitRun(ctx, by, id, what)
}
