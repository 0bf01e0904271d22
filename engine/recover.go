package engine

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/interop"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// adoption is what became of a session that was open when we were last seen.
type adoption struct {
	session team.Session
	agent   string
	proc    Process
	found   Found
	err     error
}

// recover brings the team and the world together again: it looks first (processes, then
// files), and only then lets anything begin. It runs before the loop, in its goroutine.
func (e *Engine) recover(ctx context.Context) error {
	e.rebooted = e.team.BootID != "" && e.team.BootID != e.opts.BootID
	if err := e.tell(ctx, "", team.DaemonStarted{BootID: e.opts.BootID}); err != nil {
		return err
	}
	if err := e.tell(ctx, "", configured(e.opts.Config)); err != nil {
		return err
	}
	e.addRemoved()
	adoptions := e.adoptAll(ctx)
	if err := e.readFiles(ctx); err != nil {
		return err
	}
	for _, found := range adoptions {
		if err := e.resume(ctx, found); err != nil {
			return err
		}
	}
	strays, err := e.opts.Host.Sweep(ctx)
	if err != nil {
		return fmt.Errorf("end what was left behind by sessions that are over: %w", err)
	}
	for _, stray := range strays {
		e.log.Warn("ended a process that a lost session had left behind", "process", stray)
	}
	for _, name := range e.team.Names() {
		if err := e.tell(ctx, name, control.Started{}); err != nil {
			return err
		}
		e.errandsOf(name)
	}
	e.beside(e.pump)
	return nil
}

// tell has one event decided before the loop runs.
func (e *Engine) tell(ctx context.Context, agent string, what any) error {
	var refused error
	req := request{event: &team.Event{Actor: byRecovery, Agent: agent, What: what}, answer: make(chan answer, 1)}
	if err := e.step(ctx, []request{req}); err != nil {
		return err
	}
	if refused = (<-req.answer).err; refused != nil {
		return fmt.Errorf("recovery was refused, which is a fault in fairlead: %w", refused)
	}
	return nil
}

// configured is what the team may know of the configuration.
func configured(conf *config.Config) team.Configured {
	agents := make(map[string]team.Settings, len(conf.Agents))
	for _, a := range conf.Agents {
		foreign := a.Loop == config.LoopForeign
		agents[a.Name] = team.Settings{
			Driver: a.Driver,
			Limits: team.Limits(a.Limits),
			Policy: control.Policy{
				Foreign: foreign, Program: foreign && len(a.Command) > 0, CleanupEvery: a.CleanupEvery,
				FailuresMax: a.FailuresMax, BackoffFirst: a.Backoff.First, BackoffMax: a.Backoff.Max,
			},
		}
	}
	return team.Configured{Limits: team.Limits(conf.Team.Limits), Agents: agents}
}

// addRemoved keeps who is configured no more at the table while his session lasts.
func (e *Engine) addRemoved() {
	for _, name := range e.team.Names() {
		if a := e.team.Agents[name]; e.members[name] == nil && a.Session != nil {
			if d, ok := e.opts.Drivers[a.Settings.Driver]; ok {
				e.members[name] = &member{conf: config.Agent{Name: name, Driver: a.Settings.Driver}, driver: d, doing: map[string]bool{}}
			}
		}
	}
}

// adoptAll asks after every open session, many at once: a holder that does not answer
// costs its time-out once, not once for each agent.
func (e *Engine) adoptAll(ctx context.Context) []adoption {
	var open []adoption
	for _, name := range e.team.Names() {
		if s := e.team.Agents[name].Session; s != nil {
			open = append(open, adoption{session: *s, agent: name})
		}
	}
	var asking sync.WaitGroup
	for i := range open {
		asking.Go(func() {
			open[i].proc, open[i].found, open[i].err = e.opts.Host.Adopt(ctx, open[i].session.ID, e.team.Epoch)
		})
	}
	asking.Wait()
	return open
}

// resume does for one open session what its process asks for.
func (e *Engine) resume(ctx context.Context, a adoption) error {
	m := e.members[a.agent]
	switch {
	case a.err != nil:
		return fmt.Errorf("look after session %s: %w", a.session.ID, a.err)
	case a.found == NeverStarted && a.session.Phase == team.Opened:
		return nil // an errand like any other: it asks first whether it is still wanted
	case m == nil || a.proc == nil:
		return e.tell(ctx, a.agent, team.SessionEnded{
			Session: a.session.ID, Outcome: control.Lost, AtStart: true,
			Why: "fairlead was down when it ended, and nothing is left of it",
		})
	}
	if a.found == Running {
		if err := e.tell(ctx, a.agent, team.SessionAdopted{Session: a.session.ID, PID: a.proc.PID()}); err != nil {
			return err
		}
	}
	m.doing["start/"+a.session.ID] = true
	e.setProc(a.session.ID, a.proc)
	e.log.Info("session found", "session", a.session.ID, "it", string(a.found))
	e.beside(func(ctx context.Context) { e.follow(ctx, m, a.session, a.proc, a.found != Running) })
	return nil
}

// readFiles takes in what was written while we were away, before anything is done about
// it. What was found swapped out (we were killed between a write and the look at what it
// had replaced) is older than what lies there, and comes first.
func (e *Engine) readFiles(ctx context.Context) error {
	reads := map[string]interop.Seen{}
	newest := uint64(0)
	for _, name := range e.team.Names() {
		m := e.members[name]
		if m == nil || m.conf.Workspace == "" {
			continue
		}
		seen, err := e.lookAtFile(m)
		if err != nil {
			m.failed = err.Error()
			m.again = e.clock.now().Add(fileRetry)
			e.log.Error("agent_state.json cannot be read; the agent stays as it was", "agent", name, "error", err)
			continue
		}
		reads[name] = seen
		newest = max(newest, seen.Seq)
	}
	if err := e.drain(ctx, newest); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(reads)) {
		seen := reads[name] // skipped where it came with the rest
		if err := e.step(ctx, []request{{seen: &seen}}); err != nil {
			return err
		}
	}
	return nil
}

// drain takes in every look up to one that is known to be on its way.
func (e *Engine) drain(ctx context.Context, until uint64) error {
	quiet := time.NewTimer(drainQuiet)
	defer quiet.Stop()
	for got := uint64(0); got < until; {
		quiet.Reset(drainQuiet)
		select {
		case seen := <-e.opts.Files.Seen():
			got = seen.Seq
			if err := e.step(ctx, []request{{seen: &seen}}); err != nil {
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
const drainQuiet = 50 * time.Millisecond

func (e *Engine) lookAtFile(m *member) (interop.Seen, error) {
	if err := os.MkdirAll(m.conf.Workspace, 0o755); err != nil { //nolint:gosec // a workspace is as public as its repository
		return interop.Seen{}, fmt.Errorf("make the workspace: %w", err)
	}
	if err := e.opts.Files.Add(m.conf.Name, m.conf.Workspace); err != nil {
		return interop.Seen{}, err
	}
	return e.opts.Files.Read(m.conf.Name)
}

// pump lays every look at a file on the table.
func (e *Engine) pump(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case seen, ok := <-e.opts.Files.Seen():
			if !ok {
				return
			}
			select {
			case e.table <- request{seen: &seen}:
			case <-ctx.Done():
				return
			}
		}
	}
}
