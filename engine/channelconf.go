package engine

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/turn"
	"github.com/fairlead-dev/fairlead/team"
)

// configureTurns adds what the configuration says of channels, and of agents in them.
func configureTurns(c *team.Configured, conf *config.Config, hears func(config.Agent) bool) {
	if len(conf.Channels) > 0 {
		c.Channels = make(map[string]team.Channel, len(conf.Channels))
	}
	c.Turns = make(map[string]turn.AgentSettings, len(conf.Agents))
	all := time.Duration(conf.TurnConfig.DefaultTimeoutSeconds) * time.Second
	for _, a := range conf.Agents {
		set := turn.AgentSettings{Deaf: a.Loop != config.LoopForeign && !hears(a)}
		if a.TurnTimeout != all {
			set.Timeout = a.TurnTimeout
		}
		c.Turns[a.Name] = set
	}
	for _, ch := range conf.Channels {
		set := turn.Settings{
			DefaultTimeout: all, Mode: turn.Mode(ch.HumanInterruptMode),
			AnnounceTimeouts: conf.TurnConfig.AnnounceTimeouts, AnnounceDisconnect: conf.TurnConfig.AnnounceDisconnects,
			AutoDetectEnd:     conf.TurnConfig.AutoDetectTurnEnd,
			AutoDetectSilence: time.Duration(conf.TurnConfig.AutoDetectSilenceSeconds) * time.Second,
			WaitTimeout:       ch.WaitTimeout, RoundsMax: ch.MaxRounds,
		}
		if slices.ContainsFunc(conf.Agents, func(a config.Agent) bool { return a.Name == ch.Lead }) {
			set.Lead = turn.AgentID(ch.Lead)
		}
		c.Channels[ch.Name] = team.Channel{Settings: set, Agents: ch.Agents}
	}
}

// hears says whether an agent reads what it is told in mid-answer.
func (e *Engine) hears(a config.Agent) bool {
	d, ok := e.opts.Drivers[a.Driver]
	return ok && driver.Hears(d, known(a))
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

	beat    time.Time       // of an agent that joins by itself: its last sign of life, by our clock
	telling string          // the errand that is being written to its session
	stops   map[string]bool // orders to stop that were begun, or acknowledged, by key and session
	resumed turn.Token      // the turn in which a wait of its own is over, since it goes on by itself
}

// looksAfter has an agent of ours probed that is not known to be able to take part (J3).
func (e *Engine) looksAfter(m *member, a *team.Agent, is *turn.Agent) {
	p := &m.part
	if p.probing || a.Removed || m.conf.Workspace == "" || p.probed && is.Connected || !p.probeAt.IsZero() {
		return
	}
	p.probing = true
	e.beside(func(ctx context.Context) { e.probe(ctx, m) })
}

// probe asks whether an agent could be started now.
func (e *Engine) probe(ctx context.Context, m *member) {
	select {
	case e.probes <- struct{}{}:
		defer func() { <-e.probes }()
	case <-ctx.Done():
		return
	}
	agent, err := e.agentFor(m)
	if err == nil {
		err = os.MkdirAll(agent.Workspace, 0o755) //nolint:gosec // as public as its repository
	}
	if err == nil {
		err = m.driver.Check(agent)
	}
	name := turn.AgentID(m.conf.Name)
	var what turn.Input = turn.AgentConnected{Agent: name}
	if err != nil {
		what = turn.AgentGone{Agent: name, How: turn.Disconnected, Why: err.Error()}
	}
	req := request{
		event: eventBy(byProbe, "", what), agent: m.conf.Name,
		look: func(*team.Team) { e.probed(m, err) },
	}
	_, _ = e.ask(ctx, req) // that nobody can be told means that the engine stops
}

// probed runs in the loop.
func (e *Engine) probed(m *member, err error) {
	p := &m.part
	p.probing, p.probed, p.probeAt = false, true, time.Time{}
	if err == nil {
		p.failed = false
		return
	}
	p.probeAt = e.clock.now().Add(probeEvery)
	if !p.failed {
		e.log.Warn("an agent cannot take part in its channels; it is looked after again every 30 seconds", "agent", m.conf.Name, "error", err)
	}
	p.failed = true
}
