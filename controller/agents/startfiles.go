package agents

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/team"
)

// readFiles takes in what was written while we were away, before anything is done about
// it. What was found swapped out (we were killed between a write and the look at what it
// had replaced) is older than what lies there, and comes first.
func (e *Controller) ReadFiles(ctx context.Context) error {
	reads := map[string]agentfile.Seen{}
	newest := uint64(0)
	for _, name := range e.State().Names() {
		m := e.Files[name]
		if m == nil || m.Conf.Workspace == "" {
			continue
		}
		found := e.lookAtFile(m.Conf.Name, m.Conf.Workspace, false)
		m.added = found.added
		if found.err != nil {
			e.CannotLook(m, found.err)
			continue
		}
		reads[name] = found.seen
		newest = max(newest, found.seen.Seq)
	}
	if err := e.drain(ctx, newest); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(reads)) {
		seen := reads[name] // skipped where it came with the rest
		if err := e.Step(ctx, []loop.Request{e.SeenRequest(seen)}); err != nil {
			return err
		}
	}
	return nil
}

// drain takes in every look up to one that is known to be on its way.
func (e *Controller) drain(ctx context.Context, until uint64) error {
	quiet := time.NewTimer(DrainQuiet)
	defer quiet.Stop()
	for got := uint64(0); got < until; {
		quiet.Reset(DrainQuiet)
		select {
		case seen, ok := <-e.opts.Files.Seen():
			if !ok {
				return nil
			}
			got = seen.Seq
			if err := e.Step(ctx, []loop.Request{e.SeenRequest(seen)}); err != nil {
				return err
			}
		case <-quiet.C:
			return nil // the last look was one of our own, which do not come this way
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// drainQuiet is how long nothing must come before nothing is coming; looks that were made
// are handed over in microseconds.
const DrainQuiet = 50 * time.Millisecond

// looked is what came of a first look at a file.
type looked struct {
	agent string
	added bool // it is watched now
	seen  agentfile.Seen
	err   error
}

// lookAtFile has a file watched, and looks at it.
func (e *Controller) lookAtFile(name, folder string, added bool) looked {
	l := looked{agent: name, added: added}
	if l.err = os.MkdirAll(folder, 0o755); l.err != nil { //nolint:gosec // a workspace is as public as its repository
		l.err = fmt.Errorf("make the workspace: %w", l.err)
		return l
	}
	if !l.added {
		if l.err = e.opts.Files.Add(name, folder); l.err != nil {
			return l
		}
		l.added = true
	}
	l.seen, l.err = e.opts.Files.Read(name)
	return l
}

// cannotLook notes that a file could not be looked at; that is tried again.
func (e *Controller) CannotLook(m *AgentFile, err error) {
	if m.Failed != err.Error() {
		e.log.Error("agent_state.json cannot be read; the agent stays as it was, and it is tried again every second", "agent", m.Conf.Name, "error", err)
	}
	m.Failed = err.Error()
	m.Again, m.quarrel = e.Now().Add(fileRetry), false
}

// lookAgain makes the first look that could not be made at the start.
func (e *Controller) lookAgain(m *AgentFile) {
	if m.Writing || e.Holding() {
		return
	}
	m.Writing = true
	name, folder, added := m.Conf.Name, m.Conf.Workspace, m.added
	e.Go(func(ctx context.Context) {
		found := e.lookAtFile(name, folder, added)
		_, _ = e.Do(ctx, loop.Request{Agent: name, Derive: func() []team.Event { return e.lookedAgain(found) }}) // nobody to tell means that the engine stops
	})
}

// lookedAgain takes that look in. One that was numbered comes by itself, after those before it.
func (e *Controller) lookedAgain(l looked) []team.Event {
	m := e.Files[l.agent]
	m.Writing, m.added = false, l.added
	if l.err != nil {
		e.CannotLook(m, l.err)
		return nil
	}
	m.Failed = ""
	if l.seen.Seq != 0 {
		return nil
	}
	return e.observe(l.seen)
}

// pump lays every look at a file on the table. What does not get there any more is still in
// its file: nobody took it.
func (e *Controller) Pump(ctx context.Context) {
	defer close(e.pumped)
	for {
		select {
		case <-ctx.Done():
			return
		case seen, ok := <-e.opts.Files.Seen():
			if !ok {
				return
			}
			if e.Notify(e.SeenRequest(seen)) != nil {
				return
			}
		}
	}
}
