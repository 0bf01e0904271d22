package sessions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/work/seam"
)

// StartSession starts a session's process if it is still wanted. It prepares everything first, then
// reads the agent's file once more, since another program may just have written pause, then asks
// the loop, and then starts the process at once.
func (c *Controller) StartSession(ctx context.Context, m *Slot, s team.Session) {
	where, ready, err := c.prepareWanted(ctx, m, s)
	for again := loop.Retry(); errors.Is(err, ErrNotAsked); {
		if !again.Rest(ctx) {
			return
		}
		where, ready, err = c.prepareWanted(ctx, m, s) // asks the loop again, which withdraws the session or lets it start
	}
	switch {
	case err == nil:
	case errors.Is(err, errLeft), ctx.Err() != nil: // after ctx ends, the next start of the daemon handles it
		return
	default:
		c.cannotStart(ctx, m, s, err.Error())
		return
	}
	_, _, isStep := team.StepOf(s.For)
	_, _, works := team.DispatchActionOf(s.For)
	if !isStep && !works && !s.ServesChannels() { // steps (J2), turns and dispatch folders do not depend on the file's desired state
		if err := c.Hooks.LastLook(ctx, m); err != nil {
			return
		}
	}
	now := c.mayStart(ctx, m, s, ready.token)
	if !now.may {
		return
	}
	if ready.record != nil && ready.record.Governs {
		if _, err := c.loop.Submit(ctx, ByShim, "", team.ConfigExposed{Session: s.ID}); err != nil {
			return
		}
	}
	var proc seam.Process
	if where == "" {
		proc, err = c.opts.Host.Start(ctx, s.ID, now.epoch, ready.Launch, m.Conf.Grace)
	} else {
		proc, err = c.Hooks.StartOn(ctx, m, s, now.epoch, ready.Launch, c.confinement(m, ready))
	}
	var cannot *seam.CannotStart
	switch {
	case err == nil:
		s.Launch = ready.record
		c.takeCare(ctx, m, s, proc)
	case errors.As(err, &cannot):
		c.cannotStart(ctx, m, s, cannot.Why)
	case c.Fenced(err):
	case ctx.Err() != nil: // the daemon stops; the next start finds the outcome
	case errors.As(err, new(*seam.AlreadyStarted)):
		c.adopt(ctx, m, s.ID, err)
	default:
		c.log.Error("a session's shim failed", "session", s.ID, "error", err)
		c.adopt(ctx, m, s.ID, err)
	}
}

// prepareWanted waits until nothing is in the way of a session, and prepares it. The error is errLeft if the session is not
// wanted any longer.
func (c *Controller) prepareWanted(ctx context.Context, m *Slot, s team.Session) (where string, ready PreparedLaunch, err error) {
	for is := (startCheck{orphan: true}); is.orphan; {
		if is = c.mayStart(ctx, m, s, ""); !is.may || is.orphan && !retry.Rest(ctx, OrphanEvery) {
			return "", ready, errLeft
		}
	}
	where, err = c.place(ctx, m, s)
	if err == nil {
		ready, err = c.prepare(ctx, m, s)
	}
	if err == nil && where == "" {
		ready, err = c.confined(ctx, m, s, ready)
	}
	return where, ready, err
}

// place finds out where a session is to run. While no host takes it, it waits, and is withdrawn if it is not wanted
// any longer: then the error is errLeft.
func (c *Controller) place(ctx context.Context, m *Slot, s team.Session) (where string, err error) {
	if leased := c.opts.Cluster != nil && c.opts.Cluster.Stream; !m.Conf.Host.Any && !leased {
		run, _, isStep := team.StepOf(s.For)
		away := false
		if isStep { // its files may be on a machine that led when the team had more of them
			err = c.loop.View(ctx, func(t *team.Team) { away = t.Notes[run].Away != "" })
		}
		if err != nil || !away {
			return "", err
		}
	}
	for {
		where, fits, err := c.Hooks.Place(ctx, m, s)
		if err == nil || !loop.IsAnswer(err) {
			return where, err
		}
		if err := c.loop.Until(ctx, func(t *team.Team) bool {
			may, _ := m.mayStart(t, s.ID, c.loop.Now())
			return !may || fits(t)
		}); err != nil || !c.mayStart(ctx, m, s, "").may {
			return "", errLeft
		}
	}
}

// startCheck is what the loop says about a session that is to start.
type startCheck struct {
	may    bool
	why    string // if not
	orphan bool   // an orphan session of the agent runs
	epoch  uint64
}

// mayStart asks the loop whether the session is still wanted, and withdraws it if not. Afterwards a token
// is in the journal: the process must not have one that the next daemon does not know.
func (c *Controller) mayStart(ctx context.Context, m *Slot, s team.Session, token string) startCheck {
	looked := make(chan startCheck, 1)
	req := loop.Request{Look: func(t *team.Team) {
		is := startCheck{orphan: len(c.orphans[m.Conf.Name]) > 0, epoch: t.Epoch}
		is.may, is.why = m.mayStart(t, s.ID, c.loop.Now())
		looked <- is
	}}
	if token != "" {
		req.Event = m.Event(ByShim, team.TokenGiven{Session: s.ID, Hash: seam.HashOfToken(token)})
	}
	if _, err := c.loop.Do(ctx, req); err != nil && !loop.IsAnswer(err) {
		return startCheck{}
	}
	is := <-looked
	if !is.may {
		c.withdrawn(ctx, m, s.ID, is.why)
	}
	return is
}

// takeCare records a process that was just started, and follows it.
func (c *Controller) takeCare(ctx context.Context, m *Slot, s team.Session, proc seam.Process) {
	c.SetProc(s.ID, proc)
	if _, err := c.SubmitOf(ctx, ByShim, m,
		team.SessionStarted{Session: s.ID, PID: proc.PID(), Input: inputOf(proc), Launch: s.Launch}); err != nil {
		if loop.IsAnswer(err) {
			c.log.Error("a process was started for a session that is over, which is a bug in fairlead; it is ended", "session", s.ID,
				"error", err)
			_ = proc.End(ctx, 0) // if this fails, the next start's sweep ends the process
		}
		return
	}
	c.Hooks.Follow(ctx, m, s, proc, false)
}

func (c *Controller) cannotStart(ctx context.Context, m *Slot, s team.Session, why string) {
	c.SessionEnded(ctx, m, team.SessionEnded{Session: s.ID, Outcome: control.CannotStart, Why: why}, ByShim)
}

// prepare asks the driver how to start the session, and creates what it needs.
func (c *Controller) prepare(ctx context.Context, m *Slot, s team.Session) (PreparedLaunch, error) {
	if run, step, isStep := team.StepOf(s.For); isStep {
		return c.Hooks.PrepareStep(ctx, m, s, run, workflow.StepID(step))
	}
	if _, _, works := team.DispatchActionOf(s.For); works {
		return c.Hooks.PrepareWork(ctx, m, s)
	}
	agent, err := c.AgentFor(m, "")
	if err != nil {
		return PreparedLaunch{}, err
	}
	if err := os.MkdirAll(agent.Workspace, 0o755); err != nil { //nolint:gosec // as public as its repository
		return PreparedLaunch{}, fmt.Errorf("create its workspace: %w", err)
	}
	if err := m.Driver.Check(agent); err != nil {
		return PreparedLaunch{}, err
	}
	session := SessionFor(m, s)
	if s.ServesChannels() {
		if session.Prompt, err = c.Hooks.FirstPrompt(ctx, s); err != nil {
			return PreparedLaunch{}, err
		}
	}
	return c.Launch(ctx, m, s, agent, session)
}

// inputOf returns how many bytes of input a process was started with, if its host counts them.
func inputOf(proc seam.Process) int64 {
	if typist, ok := proc.(seam.InputWriter); ok {
		input, _ := typist.Input()
		return input
	}
	return 0
}

// Elsewhere is the other host on which a session is placed; empty: it runs on this machine.
func (c *Controller) Elsewhere(t *team.Team, session string) string {
	lease, placed := t.Hosts.Leases[session]
	if !placed || c.opts.Cluster != nil && lease.Host == c.opts.Cluster.Name {
		return ""
	}
	return lease.Host
}

// AgentFor returns the agent for its driver, including the values of its environment; for a session on another host,
// with placeholders for the values that the host has.
func (c *Controller) AgentFor(m *Slot, elsewhere string) (agent driver.Agent, err error) {
	agent = Known(*m.Conf)
	agent.Script = c.opts.Included(agent.Script)
	agent.Elsewhere = elsewhere
	if elsewhere != "" {
		agent.Env, err = m.Conf.Env.Defer(driver.Variable)
	} else {
		agent.Env, err = m.Conf.Env.Resolve(c.opts.Lookup)
	}
	if err != nil {
		return driver.Agent{}, fmt.Errorf("env of agent %s: %w", m.Conf.Name, err)
	}
	return agent, nil
}

// Known returns the agent for its driver, without secrets.
func Known(conf config.Agent) driver.Agent {
	return driver.Agent{
		Name: conf.Name, Command: conf.Command, Script: conf.Script, Workspace: conf.Workspace, Model: conf.Model,
		Mode: conf.Mode,
	}
}

// SessionFor is a session as its driver knows it.
func SessionFor(m *Slot, s team.Session) driver.Session {
	prompt := m.Conf.SessionPrompt
	if s.Kind == control.Cleanup {
		prompt = m.Conf.CleanupPrompt
	}
	session := driver.Session{ID: s.ID, Kind: driver.Kind(s.Kind), Prompt: prompt, Attempt: 1}
	if s.ServesChannels() {
		session.Prompt, session.Channel, session.Turn = "", string(s.Delivery.Token.Channel), s.Delivery.Token.Turn
	}
	return session
}

// ErrNotAsked means that the prompt that a session was opened for is no longer due.
var ErrNotAsked = errors.New("the prompt for the session is no longer due")

// PreparedLaunch is a session that is ready to start, with the record of how it starts.
type PreparedLaunch struct {
	Launch driver.Launch
	record *team.LaunchRecord
	token  string               // for the team's tools; empty: none
	Wall   *config.AgentSandbox // in place of its agent's; nil: its agent's
	Writes []string             // folders outside of its workspace that the session needs
	Clone  string               // the clone in which it works, if it is the agent's with its .git
	Run    *seam.RunView

	Confined bool // it runs only in a sandbox, whatever its agent's entry says
	ReadOnly bool // its sandbox does not let it write in its workspace
}

// Launch asks the driver how to start a session. It decides first whether the session resumes an
// earlier conversation, which may wait for a person's answer.
func (c *Controller) Launch(ctx context.Context, m *Slot, s team.Session, agent driver.Agent,
	session driver.Session,
) (PreparedLaunch, error) {
	if (m.Run != "" || m.Conf.MCP) && c.opts.Offer != nil { // the command of a step has no settings
		agent.MCP = c.opts.Offer(m.Conf.Name, s.ID)
		if agent.Elsewhere != "" {
			agent.MCP.URL = "" // an address of this machine; the command asks the socket of that host
		}
	}
	record := recordOf(m, agent)
	before, cut, err := c.conversationToResume(ctx, m, s, agent, record)
	if err != nil {
		return PreparedLaunch{}, err
	}
	session.Resume, record.Resume = before, before
	if before != "" && session.Again != "" {
		session.Prompt, session.Images = session.Again, nil // the conversation has them
	}
	if told := team.TellWords(s.FirstTells); told != "" {
		session.Prompt = strings.TrimSpace(strings.TrimSpace(session.Prompt) + "\n\n" + told)
	}
	if cut && before != "" && !s.ServesChannels() {
		session.Prompt = cutOffWords + session.Prompt
	}
	launch, err := m.Driver.Launch(agent, session)
	launch.Ports, launch.PortsFor = m.Conf.Ports, agent.Workspace
	return PreparedLaunch{Launch: launch, record: record, token: agent.MCP.Token}, err
}

// cutOffWords precede the prompt of a session that resumes after an interruption. The program knows
// what it has done, but not that it was interrupted.
const cutOffWords = `You were interrupted in the middle of this; some time may have passed. Look at what is done already, and go on from there.
What you were asked:

`

// recordOf returns what is journaled about a start: nothing specific to the session, so that two
// starts can be compared, and no values of environment variables.
func recordOf(m *Slot, agent driver.Agent) *team.LaunchRecord {
	r := &team.LaunchRecord{
		Host: agent.Elsewhere, Driver: m.Conf.Driver, Argv: slices.Clone(agent.Command), Dir: agent.Workspace,
		Model: agent.Model, Mode: agent.Mode,
	}
	if len(r.Argv) == 0 && m.Conf.Script != "" {
		r.Argv = []string{m.Conf.Script}
	}
	for _, kv := range agent.Env {
		name, _, _ := strings.Cut(kv, "=")
		r.Env = append(r.Env, name)
	}
	slices.Sort(r.Env)
	r.Env = slices.Compact(r.Env)
	return r
}
