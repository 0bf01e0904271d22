package turns

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// ConfigureTurns adds the configuration of the channels, and of the agents in them.
func ConfigureTurns(c *team.Configured, conf *config.Config, capabilities func(config.Agent) driver.Capabilities) {
	if len(conf.Channels) > 0 {
		c.Channels = make(map[string]team.Channel, len(conf.Channels))
	}
	c.Turns = make(map[string]channel.AgentSettings, len(conf.Agents))
	all := time.Duration(conf.TurnConfig.DefaultTimeoutSeconds) * time.Second
	for _, a := range conf.Agents {
		foreign, can := a.Loop == config.LoopForeign, capabilities(a)
		set := channel.AgentSettings{NoInputMidAnswer: !foreign && !can.Prompts, NoEnd: foreign || !can.Answers}
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

// Capabilities returns what an agent can in a session for channels.
func (c *Controller) Capabilities(a config.Agent) (can driver.Capabilities) {
	if d, ok := c.opts.Drivers[a.Driver]; ok {
		can = d.Capabilities(sessions.Known(a), driver.Turn)
	}
	return can
}

const (
	probesMax  = 8                // concurrent checks: each may read files and search for programs
	probeEvery = 30 * time.Second // delay before an agent that could not be started is checked again
)

// participant is what the loop remembers about an agent's participation in channels. It can be
// determined again.
type participant struct {
	probing bool
	probed  bool      // since the daemon's start: a connection from before may be gone
	probeAt time.Time // when the next probe is due
	failed  bool      // the last probe failed, and that was logged

	beat    time.Time              // of a foreign agent: its last sign of life, by the loop's clock
	said    map[string]spokenBytes // of an agent that sends text itself, by channel
	telling string                 // key of the action that is being written to its session
	stops   map[string]bool        // stop actions that were begun or acknowledged, by key and session
	Resumed channel.Token          // the turn whose wait is over because the agent continued by itself
}

// Participant returns what is kept of an agent's participation. It runs in the loop.
func (c *Controller) Participant(m *sessions.Slot) *participant {
	p := c.participants[m.Conf.Name]
	if p == nil {
		p = &participant{}
		c.participants[m.Conf.Name] = p
	}
	return p
}

// mayProbe reports whether an agent that Fairlead runs is to be probed now.
func (c *Controller) mayProbe(m *sessions.Slot, a *team.Agent, is *channel.Agent) bool {
	p := c.Participant(m)
	return !p.probing && !a.Removed && m.Conf.Workspace != "" && !(p.probed && is.Connected) && p.probeAt.IsZero()
}

// probeAll is the first round of probes. The results are submitted together in the order of
// fairlead.yaml, so that the first agent of a channel has its first turn, not the agent whose check
// finished first.
func (c *Controller) probeAll() {
	var all []*sessions.Slot
	for _, name := range rotationOrder(c.opts.Config) {
		m := c.sessions.Slots[name]
		a, is := c.loop.State().Agents[m.Conf.Name], c.loop.State().Channels.Agents[channel.AgentID(m.Conf.Name)]
		if a != nil && is != nil && !c.Joins(m) && c.mayProbe(m, a, is) {
			c.Participant(m).probing = true
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return
	}
	c.loop.Go(func(ctx context.Context) {
		found := make([]error, len(all))
		var checks sync.WaitGroup
		for i, m := range all {
			checks.Go(func() { found[i] = c.check(ctx, m) })
		}
		checks.Wait()
		if ctx.Err() != nil {
			return // an interrupted check says nothing about its agent
		}
		var results []team.Event
		for i, m := range all {
			results = append(results, *probeSays(m, found[i]))
		}
		_, _ = c.loop.Do(ctx, loop.Request{Derive: loop.Report(results...), Look: func(*team.Team) { // fails only if the loop has stopped
			for i, m := range all {
				c.probed(m, found[i])
			}
		}})
	})
}

// rotationOrder lists the agents in the order of the channels, then all others.
func rotationOrder(conf *config.Config) []string {
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

// probe checks whether an agent could be started now.
func (c *Controller) probe(ctx context.Context, m *sessions.Slot) {
	err := c.check(ctx, m)
	if ctx.Err() != nil {
		return
	}
	req := loop.Request{
		Event: probeSays(m, err), Agent: m.Conf.Name,
		Look: func(*team.Team) { c.probed(m, err) },
	}
	_, _ = c.loop.Do(ctx, req) // fails only if the loop has stopped
}

func probeSays(m *sessions.Slot, err error) *team.Event {
	name := channel.AgentID(m.Conf.Name)
	if err != nil {
		return loop.EventBy(sessions.ByProbe, "", channel.AgentGone{Agent: name, How: channel.Disconnected, Why: err.Error()})
	}
	return loop.EventBy(sessions.ByProbe, "", channel.AgentConnected{Agent: name})
}

func (c *Controller) check(ctx context.Context, m *sessions.Slot) error {
	select {
	case c.probes <- struct{}{}:
		defer func() { <-c.probes }()
	case <-ctx.Done():
		return ctx.Err()
	}
	agent, err := c.sessions.AgentFor(m, "")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(agent.Workspace, 0o755); err != nil { //nolint:gosec // as public as its repository
		return err
	}
	return m.Driver.Check(agent)
}

// probed runs in the loop.
func (c *Controller) probed(m *sessions.Slot, err error) {
	p := c.Participant(m)
	p.probing, p.probed, p.probeAt = false, true, time.Time{}
	if err == nil {
		p.failed = false
		return
	}
	p.probeAt = c.loop.Now().Add(probeEvery)
	if !p.failed {
		c.log.Warn("an agent cannot take part in its channels; Fairlead checks again every 30 seconds", "agent", m.Conf.Name, "error", err)
	}
	p.failed = true
}
