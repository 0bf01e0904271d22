package hosts

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead-dev/fairlead/cluster/wire"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/host"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// Place gives a session its host, if its agent has `host` and it is a step with a checkout of its own. where is
// empty if it runs on this machine. A refusal by H7 means that no host takes it now; needs are what one must have.
func (c *HostController) Place(ctx context.Context, m *sessions.Slot, s team.Session) (where string, needs host.Needs, err error) {
	if c.is == nil || !m.Conf.Host.Any {
		return "", needs, nil
	}
	run, step, isStep := team.StepOf(s.For)
	checkout, why := "", ""
	worktree := ""
	if isStep {
		worktree = c.treeOf(run).Host
	}
	if err := c.View(ctx, func(t *team.Team) {
		if isStep {
			checkout, _ = c.Hooks.Checkout(t, run)
			needs = host.Needs{Labels: m.Conf.Host.Labels, Worktree: worktree, Only: c.beside(t, run, s.ID)}
			choice := t.Hosts.Choose(needs)
			why = choice.String()
		}
	}); err != nil || checkout == "" {
		return "", needs, err
	}
	lost := host.Restart
	if m.Conf.Host.Waits {
		lost = host.Wait
	}
	_, err = c.Do(ctx, loop.Request{Event: m.Event(byHosts, team.PlaceAsked{Session: s.ID, Needs: needs, OnLost: lost})})
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waits, s.ID)
	if err != nil {
		c.waits[s.ID] = waiting{view.WaitingSession{Session: s.ID, Agent: m.Conf.Name, Run: run, Step: step, Why: reasonOf(err)}, needs}
		return "", needs, err
	}
	c.why[s.ID] = why
	if lease := c.leases[s.ID]; lease.Host != c.is.Name {
		where = lease.Host
	}
	return where, needs, nil
}

// beside is the host on which another session works in the checkout of a run; empty: none does.
func (c *HostController) beside(t *team.Team, run, except string) string {
	for _, a := range t.Agents {
		for _, s := range a.Sessions() {
			if of, _, _ := team.StepOf(s.For); of != run || s.ID == except {
				continue
			}
			if lease, placed := t.Hosts.Leases[s.ID]; placed {
				return lease.Host
			}
			if s.Phase == session.Running {
				return c.is.Name
			}
		}
	}
	return ""
}

// StartOn starts a session on the host of its lease: its files go there first.
func (c *HostController) StartOn(ctx context.Context, m *sessions.Slot, s team.Session, epoch uint64, l driver.Launch, box *seam.Confinement) (seam.Process, error) {
	lease, away := c.LeaseOf(s.ID)
	if !away {
		return nil, &seam.CannotStart{Why: "it has no place on another host any longer"}
	}
	if err := c.send(ctx, lease, s); err != nil {
		return nil, err
	}
	in := wire.StartIn{
		Token: lease.Token, Epoch: epoch, OnLost: lease.OnLost, GraceMS: m.Conf.Grace.Milliseconds(), Confine: box,
		Start: wire.Start{Argv: l.Argv, Dir: l.Dir, Env: l.Env, Input: l.Input, KeepStdin: l.KeepStdin, Ports: l.Ports, PortsFor: l.PortsFor},
	}
	for pause := loop.RetryFirst; ; pause = min(2*pause, loop.RetryMax) {
		proc, err := startAt(ctx, c, lease.Host, in, s.ID)
		var no *wire.Problem
		switch {
		case err == nil:
			c.follow(s.ID, proc)
			return proc, nil
		case !errors.As(err, &no) || no.Code != wire.NotHere:
			return nil, err
		}
		// The host does not have its lease now. It has it again soon, or it is lost.
		if now, _ := c.LeaseOf(s.ID); now.Token != lease.Token || !loop.Rest(ctx, pause) {
			return nil, err
		}
		c.log.Info("a host does not start a session yet", "host", lease.Host, "session", s.ID, "why", no.Why)
	}
}

// startAt starts a session with the paths of its host. They are known from the first renewal on that this daemon takes.
func startAt(ctx context.Context, c *HostController, name string, in wire.StartIn, session string) (seam.Process, error) {
	var to wire.Places
	c.mu.Lock()
	if is := c.heard[name]; is != nil {
		to = is.places
	}
	c.mu.Unlock()
	if to.Root == "" {
		return nil, &wire.Problem{Code: wire.NotHere, Why: "it has not renewed its lease since this daemon started"}
	}
	return c.remote(name).StartOn(ctx, wire.Rebase(in, c.places, to), session)
}

// follow keeps what a session on another host prints, and brings its files here from time to time, until it ends.
func (c *HostController) follow(id string, proc seam.Process) {
	c.spool(id, proc)
	c.Go(func(ctx context.Context) {
		tick := time.NewTicker(snapshotEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-proc.Done():
				return
			case <-tick.C:
			}
			if err := c.fetchNow(ctx, id); err != nil && ctx.Err() == nil {
				c.log.Warn("the files of a session on another host could not be brought here; it is tried again", "session", id, "error", err)
			}
		}
	})
}

// fetchNow brings the files of a session here while it runs.
func (c *HostController) fetchNow(ctx context.Context, id string) error {
	var is *team.Session
	if err := c.View(ctx, func(t *team.Team) {
		for _, a := range t.Agents {
			if s := a.Open(id); s != nil {
				open := *s
				is = &open
			}
		}
	}); err != nil || is == nil {
		return err
	}
	return c.fetch(ctx, *is)
}

// snapshotEvery is how often the files of a session on another host come here while it runs: so much of its work
// is lost at most, if its host is.
const snapshotEvery = 2 * time.Minute

func reasonOf(err error) string {
	if is := asProblem(err); is != nil {
		return is.Error()
	}
	return ""
}
