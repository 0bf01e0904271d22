package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// Place gives a session its host, if its agent has `host` and it is a step with a checkout of its own. where is
// empty if it runs on this machine. A refusal by H7 means that no host takes it now; fits says whether one does later.
func (c *Controller) Place(ctx context.Context, m *sessions.Slot, s team.Session) (where string, fits func(*team.Team) bool,
	err error,
) {
	run, step, isStep := team.StepOf(s.For)
	if here, err := c.filesAway(ctx, m, s, run, step); err != nil {
		return "", here, err
	}
	if !isStep || !m.Conf.Host.Any || c.is == nil && len(m.Conf.Host.Labels) == 0 {
		fits, err = c.placeHere(ctx, m, s)
		return "", fits, err
	}
	worktree := ""
	if c.is != nil {
		worktree = c.copies.of(run).Host
	}
	needs := func(t *team.Team) host.Needs { // what else works in the checkout changes
		return host.Needs{Labels: m.Conf.Host.Labels, Uses: usesOf(m.Conf), Worktree: worktree, Only: c.beside(t, run, s.ID)}
	}
	fits = func(t *team.Team) bool { return t.Hosts.Choose(needs(t)).Host != "" }
	var now host.Needs
	checkout, why := "", ""
	if err := c.loop.View(ctx, func(t *team.Team) {
		checkout, _ = c.carried(t, run)
		now = needs(t)
		why = t.Hosts.Choose(now).String()
	}); err != nil {
		return "", fits, err
	}
	if checkout == "" {
		fits, err = c.placeHere(ctx, m, s)
		return "", fits, err
	}
	if c.is == nil {
		return "", fits,
			fmt.Errorf("fairlead.yaml requires a host with the label %s for it, and this daemon has no other hosts; run `fairlead cluster init`, then `fairlead up`",
				strings.Join(now.Labels, ", "))
	}
	moved, err := c.mayGoOn(ctx, m, s)
	asked := err != nil
	if asked {
		fits = moved
	} else {
		_, err = c.loop.Do(ctx,
			loop.Request{Event: m.Event(byHosts, team.PlaceAsked{Session: s.ID, Needs: now, OnLost: host.OnLost(m.Conf.OnLost)})})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waits, s.ID)
	if err != nil {
		c.waits[s.ID] = waiting{
			view.WaitingSession{Session: s.ID, Agent: m.Conf.Name, Run: run, Step: step, Why: reasonOf(err)},
			needs,
			asked,
		}
		return "", fits, err
	}
	c.why[s.ID] = why
	if lease := c.leases[s.ID]; lease.Host != c.is.Name {
		where = lease.Host
	}
	return where, fits, nil
}

// filesAway refuses a step of a run whose newest files are on the previous leader. The step waits until they have arrived, or
// until a person lets the run go on without them.
func (c *Controller) filesAway(ctx context.Context, m *sessions.Slot, s team.Session, run, step string) (here func(*team.Team) bool,
	err error,
) {
	if run == "" {
		return nil, nil
	}
	why := ""
	if err := c.loop.View(ctx, func(t *team.Team) { why = view.AwayWords(t, run) }); err != nil || why == "" && c.is == nil {
		return nil, err
	}
	if why == "" { // a person may have let it go on while the files were arriving
		var unlock func()
		if unlock, err = c.copies.lock(ctx, run); err == nil {
			unlock()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if why == "" {
		delete(c.waits, s.ID)
		return nil, err
	}
	c.waits[s.ID] = waiting{WaitingSession: view.WaitingSession{Session: s.ID, Agent: m.Conf.Name, Run: run, Step: step, Why: why}}
	return func(t *team.Team) bool { return t.Notes[run].Away == "" },
		&table.Refusal{Subject: "session " + s.ID, Event: string(host.SessionPlaced), State: "without a host", Row: "H7", Reason: why}
}

// placeHere gives a session of this machine a lease, if another machine may lead one day.
func (c *Controller) placeHere(ctx context.Context, m *sessions.Slot, s team.Session) (fits func(*team.Team) bool, err error) {
	if c.is == nil || !c.is.Stream {
		return nil, nil
	}
	if lease, away := c.LeaseOf(s.ID); away && lease.Home { // the previous leader says that it has not started it
		_, err = c.loop.Submit(ctx, byHosts, "", host.Release{Session: s.ID, For: s.For.String()})
	}
	if err == nil {
		_, err = c.loop.Do(ctx,
			loop.Request{Event: m.Event(byHosts, team.PlaceAsked{Session: s.ID, OnLost: host.OnLost(m.Conf.OnLost), Here: c.is.Name})})
	}
	return func(t *team.Team) bool { h := t.Hosts.Hosts[c.is.Name]; return h != nil && h.State == host.Joined }, err
}

// FormerLeader is the machine that led the team before this one; empty: none did.
func FormerLeader(t *team.Team, own string) string {
	if t.Leader != "" {
		if t.Leader == own {
			return ""
		}
		return t.Leader
	}
	for _, name := range t.Hosts.Names() { // the journal was on its machine alone until now
		if t.Hosts.Hosts[name].Leads && name != own {
			return name
		}
	}
	return ""
}

// LeaseFormer are leases for sessions that began on the machine of the previous leader, while no other one could lead. They run
// there, if they run, and have no deadline.
func LeaseFormer(t *team.Team, former string) (places []host.Place) {
	for _, id := range unplaced(t, func(s *team.Session) bool {
		return s.Phase == session.Running || t.Leader == "" // since then each gets a lease before it starts
	}) {
		places = append(places, host.Place{Session: id, Host: former, OnLost: host.Wait, Home: true})
	}
	return places
}

// unplaced are the sessions without a lease, by name.
func unplaced(t *team.Team, which func(*team.Session) bool) (ids []string) {
	add := func(s *team.Session) {
		if _, placed := t.Hosts.Leases[s.ID]; !placed && which(s) {
			ids = append(ids, s.ID)
		}
	}
	for _, a := range t.Agents {
		for _, s := range a.Sessions() {
			add(s)
		}
	}
	for _, s := range t.Pool.Sessions {
		add(s)
	}
	slices.Sort(ids)
	return ids
}

// leaseAll gives leases to sessions that began on this machine before the journal was in the stream. They have no deadline, so they
// are never replaced while this machine is away.
func (c *Controller) leaseAll(ctx context.Context) error {
	var begun []string
	if err := c.loop.View(ctx, func(t *team.Team) {
		begun = unplaced(t, func(s *team.Session) bool { return s.Phase == session.Running })
	}); err != nil {
		return err
	}
	for _, id := range begun {
		if _, err := c.loop.Submit(ctx, byHosts, "", host.Place{Session: id, Host: c.is.Name, OnLost: host.Wait, Home: true}); err != nil &&
			!loop.IsAnswer(err) {
			return err
		}
		c.mu.Lock()
		lease, placed := c.leases[id]
		c.mu.Unlock()
		if !placed { // it has ended
			continue
		}
		if err := c.is.NoteLease(lease); err != nil {
			return err
		}
	}
	return nil
}

// usesOf lists the programs and variables that a host needs for sessions of an agent. A path, or a PATH of the agent's own,
// is not looked for: files of the checkout come with it.
func usesOf(a *config.Agent) (uses []host.Lack) {
	if !a.Host.Any {
		return nil
	}
	_, _ = a.Env.Defer(func(name string) string { // it was checked when it was read
		uses = append(uses, host.Lack{What: host.Variable, Name: name})
		return ""
	})
	if len(a.Command) > 0 && !strings.Contains(a.Command[0], "/") && !slices.Contains(a.Env.Names(), "PATH") {
		uses = append(uses, host.Lack{What: host.Program, Name: a.Command[0]})
	}
	return host.Lacks(uses)
}

// beside is the host on which another session works in the checkout of a run; empty: none does.
func (c *Controller) beside(t *team.Team, run, except string) string {
	all := c.at(t, run, except)
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// at are the hosts on which sessions of a run work or will work, without one session. It is more than one host if a session is on the
// previous leader.
func (c *Controller) at(t *team.Team, run, except string) (names []string) {
	if c.is == nil {
		return nil
	}
	add := func(s *team.Session) {
		if of, _, _ := team.StepOf(s.For); of != run || s.ID == except {
			return
		}
		if lease, placed := t.Hosts.Leases[s.ID]; placed {
			names = append(names, lease.Host)
		} else if s.Phase == session.Running {
			names = append(names, c.is.Name)
		}
	}
	for _, a := range t.Agents {
		for _, s := range a.Sessions() {
			add(s)
		}
	}
	for _, s := range t.Pool.Sessions {
		add(s)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// StartOn starts a session on the host of its lease: its files go there first.
func (c *Controller) StartOn(ctx context.Context, m *sessions.Slot, s team.Session, epoch uint64, l spawn.Launch,
	box *sessionhost.Confinement,
) (sessionhost.Process, error) {
	lease, away := c.LeaseOf(s.ID)
	if !away {
		return nil, &spawn.CannotStart{Why: "it no longer has a place on another host"}
	}
	if err := c.send(ctx, lease, s); err != nil {
		return nil, err
	}
	in := wire.StartIn{
		Token: lease.Token, Epoch: epoch, OnLost: lease.OnLost, GraceMS: m.Conf.Grace.Milliseconds(), Confine: box,
		Launch: l,
	}
	said := false
	for again := loop.Retry(); ; {
		proc, err := c.startAt(ctx, lease.Host, in, s.ID)
		var no *wire.Problem
		switch {
		case err == nil:
			c.follow(s.ID, proc)
			return proc, nil
		case !errors.As(err, &no) || no.Code != wire.NotHere:
			return nil, err
		}
		// The host has no lease now. It gets one soon, or it is lost.
		if now, _ := c.LeaseOf(s.ID); now.Token != lease.Token || !again.Rest(ctx) {
			return nil, err
		}
		if !said {
			said = true
			c.log.Info("a host does not start a session yet", "host", lease.Host, "session", s.ID, "why", no.Why)
		}
	}
}

// startAt starts a session with the paths of its host. The first renewal that this daemon accepts has them.
func (c *Controller) startAt(ctx context.Context, name string, in wire.StartIn, session string) (sessionhost.Process, error) {
	if c.misplaced != nil {
		return nil, &spawn.CannotStart{Why: c.misplaced.Error()}
	}
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

// follow stores the output of a session on another host, and fetches its files from time to time, until the session ends.
func (c *Controller) follow(id string, proc sessionhost.Process) {
	c.outputs.spool(id, proc)
	c.loop.Go(func(ctx context.Context) {
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
				c.log.Warn("the files of a session on another host could not be fetched; the leader tries again", "session", id, "error",
					err)
			}
		}
	})
}

// fetchNow fetches the files of a session while it runs, unless those of its run have to arrive first.
func (c *Controller) fetchNow(ctx context.Context, id string) error {
	var is *team.Session
	if err := c.loop.View(ctx, func(t *team.Team) {
		if s := openSession(t, id); s != nil {
			if run, _, _ := team.StepOf(s.For); !filesOnThirdHost(t, run, c.HostOf(id)) {
				open := *s
				is = &open
			}
		}
	}); err != nil || is == nil {
		return err
	}
	ctx, stop := c.untilLost(ctx, id)
	defer stop()
	return c.fetch(ctx, *is)
}

// snapshotEvery is how often the files of a session on another host are fetched while it runs. If the host is lost, at most this much
// of the session's work is lost.
const snapshotEvery = 2 * time.Minute

func reasonOf(err error) string {
	if is := asProblem(err); is != nil {
		return is.Error()
	}
	return ""
}
