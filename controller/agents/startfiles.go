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

// ReadFiles processes what other programs wrote while no daemon ran, before any action starts.
// Content recovered from a replaced file (the daemon was killed between a write and reading what it
// had replaced) is older than the current file and comes first.
func (c *AgentController) ReadFiles(ctx context.Context) error {
	reads := map[string]agentfile.Seen{}
	newest := uint64(0)
	for _, name := range c.State().Names() {
		m := c.Files[name]
		if m == nil || m.Conf.Workspace == "" {
			continue
		}
		found := c.lookAtFile(m.Conf.Name, m.Conf.Workspace, false)
		m.added = found.added
		if found.err != nil {
			c.CannotLook(m, found.err)
			continue
		}
		reads[name] = found.seen
		newest = max(newest, found.seen.Seq)
	}
	if err := c.drain(ctx, newest); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(reads)) {
		seen := reads[name] // skipped if drain has processed it
		if err := c.Step(ctx, []loop.Request{c.SeenRequest(seen)}); err != nil {
			return err
		}
	}
	return nil
}

// drain processes observations up to one that is known to be on its way.
func (c *AgentController) drain(ctx context.Context, until uint64) error {
	quiet := time.NewTimer(DrainQuiet)
	defer quiet.Stop()
	for got := uint64(0); got < until; {
		quiet.Reset(DrainQuiet)
		select {
		case seen, ok := <-c.opts.Files.Seen():
			if !ok {
				return nil
			}
			got = seen.Seq
			if err := c.Step(ctx, []loop.Request{c.SeenRequest(seen)}); err != nil {
				return err
			}
		case <-quiet.C:
			return nil // the last observation is of Fairlead's own content, which is not delivered
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// DrainQuiet is how long no observation must arrive before drain stops waiting; observations are
// delivered within microseconds.
const DrainQuiet = 50 * time.Millisecond

// looked is the result of the first read of a file.
type looked struct {
	agent string
	added bool // the file is watched now
	seen  agentfile.Seen
	err   error
}

// lookAtFile starts watching a file and reads it.
func (c *AgentController) lookAtFile(name, folder string, added bool) looked {
	l := looked{agent: name, added: added}
	if l.err = os.MkdirAll(folder, 0o755); l.err != nil { //nolint:gosec // a workspace is as public as its repository
		l.err = fmt.Errorf("create the workspace: %w", l.err)
		return l
	}
	if !l.added {
		if l.err = c.opts.Files.Add(name, folder); l.err != nil {
			return l
		}
		l.added = true
	}
	l.seen, l.err = c.opts.Files.Read(name)
	return l
}

// CannotLook records that a file could not be read; it is read again later.
func (c *AgentController) CannotLook(m *AgentFile, err error) {
	if m.Failed != err.Error() {
		c.log.Error("agent_state.json cannot be read; the agent's state does not change, and Fairlead tries again every second", "agent", m.Conf.Name, "error", err)
	}
	m.Failed = err.Error()
	m.Again, m.rewriting = c.Now().Add(fileRetry), false
}

// lookAgain repeats a first read that failed at the start.
func (c *AgentController) lookAgain(m *AgentFile) {
	if m.Writing || c.Holding() {
		return
	}
	m.Writing = true
	name, folder, added := m.Conf.Name, m.Conf.Workspace, m.added
	c.Go(func(ctx context.Context) {
		found := c.lookAtFile(name, folder, added)
		_, _ = c.Do(ctx, loop.Request{Agent: name, Derive: func() []team.Event { return c.lookedAgain(found) }}) // Do fails only if the loop has stopped
	})
}

// lookedAgain processes that read. A numbered observation is delivered separately, after earlier
// ones.
func (c *AgentController) lookedAgain(l looked) []team.Event {
	m := c.Files[l.agent]
	m.Writing, m.added = false, l.added
	if l.err != nil {
		c.CannotLook(m, l.err)
		return nil
	}
	m.Failed = ""
	if l.seen.Seq != 0 {
		return nil
	}
	return c.observe(l.seen)
}

// Pump sends every observation of a file to the loop. One that does not get there was not
// acknowledged and is read again from its file.
func (c *AgentController) Pump(ctx context.Context) {
	defer close(c.pumped)
	for {
		select {
		case <-ctx.Done():
			return
		case seen, ok := <-c.opts.Files.Seen():
			if !ok {
				return
			}
			if c.Notify(c.SeenRequest(seen)) != nil {
				return
			}
		}
	}
}
