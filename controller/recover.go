package controller

import (
	"context"
	"runtime"

	"github.com/fairlead-dev/fairlead/controller/channels"
	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// recover brings the team and the world together again: it looks first (processes, then
// files), and only then lets anything begin. It runs before the loop, in its goroutine.
func (e *Supervisor) recover(ctx context.Context) error {
	before := e.State().Copy()
	found, err := e.reckon(ctx, e.opts.Host, e.AdoptAll, e.ReadFiles)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		for i := range found {
			found[i].Close()
		}
		return err
	}
	e.announcePlan(before, found)
	if err := e.SettleStrangers(ctx); err != nil {
		for i := range found {
			found[i].Close()
		}
		return err
	}
	for _, a := range found {
		e.PickUp(a)
	}
	e.sweep(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.Begin(ctx); err != nil {
		return err
	}
	e.ChannelsBegin()
	e.ActOnAll()
	e.DocumentsBegin()
	e.FoldersBegin()
	pumping, stop := context.WithCancel(e.Context())
	e.Pumping = stop
	e.Go(func(context.Context) { e.Pump(pumping) })
	return nil
}

// reckon looks, and decides what all that was found means. It begins nothing: what it
// decides is in the journal when it returns, and in the world later. A rehearsal runs this
// very function with other eyes, on a journal that keeps nothing.
func (e *Supervisor) reckon(ctx context.Context, witness any, sessions func(context.Context) []sessions.Adoption, files func(context.Context) error) ([]sessions.Adoption, error) {
	if err := e.Trace(ctx, witness); err != nil {
		return nil, err
	}
	e.Rebooted = e.State().BootID != "" && e.State().BootID != e.opts.BootID
	if err := e.TellAgent(ctx, "", team.DaemonStarted{BootID: e.opts.BootID}); err != nil {
		return nil, err
	}
	if err := e.TellAgent(ctx, "", configured(e.opts.Config, e.Hears)); err != nil {
		return nil, err
	}
	e.addRemoved()
	found := sessions(ctx)
	if err := files(ctx); err != nil {
		return found, err
	}
	for _, a := range found {
		if err := e.Resume(ctx, a); err != nil {
			return found, err
		}
	}
	for _, name := range e.State().Names() {
		if err := e.TellAgent(ctx, name, control.Started{}); err != nil {
			return found, err
		}
	}
	return found, nil
}

// sweep ends what lost sessions have left behind. What cannot be ended is said, and holds
// nobody up: it hangs in the kernel with its death sentence, and does nothing more.
func (e *Supervisor) sweep(ctx context.Context) {
	strays, err := e.opts.Host.Sweep(ctx)
	for _, stray := range strays {
		e.log.Warn("ended a process that a lost session had left behind", "process", stray)
	}
	if err != nil && ctx.Err() == nil {
		e.log.Error("what sessions that are over left behind could not all be ended", "error", err)
	}
}

// configured is what the team may know of the configuration. hears says whether an agent reads
// what it is told in mid-answer.
func configured(conf *config.Config, hears func(config.Agent) bool) team.Configured {
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
	c := team.Configured{Limits: team.Limits(conf.Team.Limits), Agents: agents, Places: runtime.NumCPU()}
	channels.ConfigureTurns(&c, conf, hears)
	crewctl.ConfigureLead(&c, conf)
	return c
}

// addRemoved keeps who is configured no more at the table while his session lasts.
func (e *Supervisor) addRemoved() {
	for _, name := range e.State().Names() {
		if a := e.State().Agents[name]; e.Slots[name] == nil && a.Session != nil {
			d, ok := e.opts.Drivers[a.Settings.Driver]
			if !ok {
				e.log.Warn("a session is of an agent whose driver this build of fairlead does not have; it is only waited for", "agent", name, "driver", a.Settings.Driver)
				d = sessions.Deaf{}
			}
			e.AddMember(sessions.NewSlot(&config.Agent{Name: name, Driver: a.Settings.Driver, Grace: config.GraceDefault}, d))
		}
	}
}
