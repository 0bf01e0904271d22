package channels

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/team"
)

// configureTurns adds what the configuration says of channels, and of agents in them.
func ConfigureTurns(c *team.Configured, conf *config.Config, hears func(config.Agent) bool) {
	if len(conf.Channels) > 0 {
		c.Channels = make(map[string]team.Channel, len(conf.Channels))
	}
	c.Turns = make(map[string]channel.AgentSettings, len(conf.Agents))
	all := time.Duration(conf.TurnConfig.DefaultTimeoutSeconds) * time.Second
	for _, a := range conf.Agents {
		set := channel.AgentSettings{NoInputMidAnswer: a.Loop != config.LoopForeign && !hears(a)}
		if a.TurnTimeout != all {
			set.Timeout = a.TurnTimeout
		}
		c.Turns[a.Name] = set
	}
	for _, ch := range conf.Channels {
		set := channel.Settings{
			DefaultTimeout: all, Mode: channel.Mode(ch.HumanInterruptMode),
			AnnounceTimeouts: conf.TurnConfig.AnnounceTimeouts, AnnounceDisconnect: conf.TurnConfig.AnnounceDisconnects,
			AutoDetectEnd:     conf.TurnConfig.AutoDetectTurnEnd,
			AutoDetectSilence: time.Duration(conf.TurnConfig.AutoDetectSilenceSeconds) * time.Second,
			WaitTimeout:       ch.WaitTimeout, RoundsMax: ch.MaxRounds,
		}
		if slices.ContainsFunc(conf.Agents, func(a config.Agent) bool { return a.Name == ch.Lead }) {
			set.Lead = channel.AgentID(ch.Lead)
		}
		c.Channels[ch.Name] = team.Channel{Settings: set, Agents: ch.Agents}
	}
}

// hears says whether an agent reads what it is told in mid-answer.
func (e *Controller) Hears(a config.Agent) bool {
	d, ok := e.opts.Drivers[a.Driver]
	return ok && driver.Hears(d, sessions.Known(a))
}

const (
	probesMax  = 8                // checks at once: each may read files and look for programs
	probeEvery = 30 * time.Second // an agent that could not be started may be able to by now
)

// part is what the loop remembers of an agent's part in channels, and could find out again.
type part struct {
	probing bool
	probed  bool      // since our start: a connection from before may be none any more
	probeAt time.Time // when it is looked after again
	failed  bool      // the last probe did, and that was said

	beat    time.Time        // of an agent that joins by itself: its last sign of life, by our clock
	said    map[string]flood // of one that speaks for itself, by channel
	telling string           // the errand that is being written to its session
	stops   map[string]bool  // orders to stop that were begun, or acknowledged, by key and session
	Resumed channel.Token    // the turn in which a wait of its own is over, since it goes on by itself
}

// partOf is what is kept of an agent's part in its channels. It runs in the loop.
func (e *Controller) PartOf(m *sessions.Slot) *part {
	p := e.parts[m.Conf.Name]
	if p == nil {
		p = &part{}
		e.parts[m.Conf.Name] = p
	}
	return p
}

// looksAfter has an agent of ours probed that is not known to be able to take part (J3).
func (e *Controller) looksAfter(m *sessions.Slot, a *team.Agent, is *channel.Agent) {
	if !e.mayProbe(m, a, is) {
		return
	}
	e.PartOf(m).probing = true
	e.Go(func(ctx context.Context) { e.probe(ctx, m) })
}

func (e *Controller) mayProbe(m *sessions.Slot, a *team.Agent, is *channel.Agent) bool {
	p := e.PartOf(m)
	return !p.probing && !a.Removed && m.Conf.Workspace != "" && !(p.probed && is.Connected) && p.probeAt.IsZero()
}

// probeAll is the first round. All are told of at once, in the order of fairlead.yaml: who is
// first in a channel there has its first turn, and not whose check was over first.
func (e *Controller) probeAll() {
	var all []*sessions.Slot
	for _, name := range circleOrder(e.opts.Config) {
		m := e.sessions.Slots[name]
		a, is := e.State().Agents[m.Conf.Name], e.State().Channels.Agents[channel.AgentID(m.Conf.Name)]
		if a != nil && is != nil && !e.Joins(m) && e.mayProbe(m, a, is) {
			e.PartOf(m).probing = true
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return
	}
	e.Go(func(ctx context.Context) {
		found := make([]error, len(all))
		var checks sync.WaitGroup
		for i, m := range all {
			checks.Go(func() { found[i] = e.check(ctx, m) })
		}
		checks.Wait()
		if ctx.Err() != nil {
			return // that a check was broken off says nothing of its agent
		}
		req := loop.Request{Look: func(*team.Team) {
			for i, m := range all {
				e.probed(m, found[i])
			}
		}}
		for i, m := range all {
			req.Events = append(req.Events, *probeSays(m, found[i]))
		}
		_, _ = e.Do(ctx, req) // that nobody can be told means that the engine stops
	})
}

// circleOrder names the agents as they stand in the channels, the first channel first; then all
// others.
func circleOrder(conf *config.Config) []string {
	var names []string
	known := map[string]bool{}
	add := func(name string) {
		if !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	for _, ch := range conf.Channels {
		for _, name := range ch.Agents {
			add(name)
		}
	}
	for _, a := range conf.Agents {
		add(a.Name)
	}
	return names
}

// probe asks whether an agent could be started now.
func (e *Controller) probe(ctx context.Context, m *sessions.Slot) {
	err := e.check(ctx, m)
	if ctx.Err() != nil {
		return
	}
	req := loop.Request{
		Event: probeSays(m, err), Agent: m.Conf.Name,
		Look: func(*team.Team) { e.probed(m, err) },
	}
	_, _ = e.Do(ctx, req) // that nobody can be told means that the engine stops
}

func probeSays(m *sessions.Slot, err error) *team.Event {
	name := channel.AgentID(m.Conf.Name)
	if err != nil {
		return loop.EventBy(sessions.ByProbe, "", channel.AgentGone{Agent: name, How: channel.Disconnected, Why: err.Error()})
	}
	return loop.EventBy(sessions.ByProbe, "", channel.AgentConnected{Agent: name})
}

func (e *Controller) check(ctx context.Context, m *sessions.Slot) error {
	select {
	case e.probes <- struct{}{}:
		defer func() { <-e.probes }()
	case <-ctx.Done():
		return ctx.Err()
	}
	agent, err := e.sessions.AgentFor(m)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(agent.Workspace, 0o755); err != nil { //nolint:gosec // as public as its repository
		return err
	}
	return m.Driver.Check(agent)
}

// probed runs in the loop.
func (e *Controller) probed(m *sessions.Slot, err error) {
	p := e.PartOf(m)
	p.probing, p.probed, p.probeAt = false, true, time.Time{}
	if err == nil {
		p.failed = false
		return
	}
	p.probeAt = e.Now().Add(probeEvery)
	if !p.failed {
		e.log.Warn("an agent cannot take part in its channels; it is looked after again every 30 seconds", "agent", m.Conf.Name, "error", err)
	}
	p.failed = true
}
