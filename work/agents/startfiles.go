package agents

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/agentstate"
)

// ReadFiles processes what other programs wrote while no daemon ran, before any action starts.
// Content recovered from a replaced file (the daemon was killed between a write and reading what it
// had replaced) is older than the current file and comes first.
func (c *Controller) ReadFiles(ctx context.Context) error {
	c.opts.Files.Deliver(c.deliver)
	reads := map[string]agentstate.Seen{}
	for _, name := range c.loop.State().Names() {
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
	}
	seen := c.intake.take()
	for _, name := range slices.Sorted(maps.Keys(reads)) {
		seen = append(seen, reads[name]) // skipped if it was delivered as well
	}
	for _, s := range seen {
		if err := c.loop.Step(ctx, []loop.Request{c.SeenRequest(s)}); err != nil {
			return err
		}
	}
	return nil
}

// looked is the result of the first read of a file.
type looked struct {
	agent string
	added bool // the file is watched now
	seen  agentstate.Seen
	err   error
}

// lookAtFile starts watching a file and reads it.
func (c *Controller) lookAtFile(name, folder string, added bool) looked {
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
func (c *Controller) CannotLook(m *AgentFile, err error) {
	if m.Failed != err.Error() {
		c.log.Error("agent_state.json cannot be read; the agent's state does not change, and Fairlead tries again every second", "agent",
			m.Conf.Name, "error", err)
	}
	m.Failed = err.Error()
	m.Again, m.rewriting = c.loop.Now().Add(fileRetry), false
}

// lookAgain repeats a first read that failed at the start.
func (c *Controller) lookAgain(m *AgentFile) {
	if m.Writing || c.loop.Holding() {
		return
	}
	m.Writing = true
	name, folder, added := m.Conf.Name, m.Conf.Workspace, m.added
	c.loop.Go(func(ctx context.Context) {
		found := c.lookAtFile(name, folder, added)
		// Do fails only if the loop has stopped
		_, _ = c.loop.Do(ctx, loop.Request{Agent: name, Derive: func(decide func(team.Event) error) { c.lookedAgain(found, decide) }})
	})
}

// lookedAgain processes that read. A numbered observation is delivered separately, after earlier
// ones.
func (c *Controller) lookedAgain(l looked, decide func(team.Event) error) {
	m := c.Files[l.agent]
	m.Writing, m.added = false, l.added
	if l.err != nil {
		c.CannotLook(m, l.err)
		return
	}
	m.Failed = ""
	if l.seen.Seq == 0 {
		c.take(l.seen, decide)
	}
}

// intake is where observations arrive. Until the recovery is over, it keeps them.
type intake struct {
	mu       sync.Mutex
	open     bool // the loop takes them
	over     bool // none is taken any more
	early    map[string]agentstate.Seen
	replaced []agentstate.Seen // from replaced files
}

// deliver submits an observation to the loop. One that does not get there was not confirmed, and is read again from its file.
func (c *Controller) deliver(seen agentstate.Seen) {
	in := &c.intake
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.over:
	case in.open:
		_ = c.loop.Notify(c.SeenRequest(seen))
	case seen.FromSwap:
		in.replaced = append(in.replaced, seen)
	default:
		if in.early == nil {
			in.early = map[string]agentstate.Seen{}
		}
		in.early[seen.Name] = seen // an older one of the same file says nothing any more
	}
}

// take returns what arrived since the last call: older content from replaced files first.
func (in *intake) take() []agentstate.Seen {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.rest()
}

func (in *intake) rest() []agentstate.Seen {
	seen := in.replaced
	for _, name := range slices.Sorted(maps.Keys(in.early)) {
		seen = append(seen, in.early[name])
	}
	in.replaced, in.early = nil, nil
	return seen
}

// TakeIn submits what arrived during the recovery. What arrives later is submitted at once.
func (c *Controller) TakeIn() {
	in := &c.intake
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, seen := range in.rest() {
		_ = c.loop.Notify(c.SeenRequest(seen))
	}
	in.open = true
}

// endIntake ends the intake. The channel is closed when every observation that was taken is in the loop's queue.
func (c *Controller) endIntake() <-chan struct{} {
	ended := make(chan struct{})
	c.loop.Go(func(context.Context) {
		c.intake.mu.Lock()
		defer c.intake.mu.Unlock()
		c.intake.over = true
		close(ended)
	})
	return ended
}
