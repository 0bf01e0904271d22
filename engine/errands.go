package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// errandsOf begins what the agent's state asks for and was not begun. It is called after
// every change, so nothing has to remember to call it.
func (e *Engine) errandsOf(name string) {
	a, m := e.team.Agents[name], e.members[name]
	if a == nil || m == nil {
		return
	}
	if a.Session == nil {
		clear(m.doing)
	}
	for _, todo := range e.team.Todo(a) {
		if todo.Do == team.WriteFile {
			e.writeFile(m, a)
			continue
		}
		if m.doing[todo.Key] {
			continue
		}
		m.doing[todo.Key] = true
		switch s := todo.Session; todo.Do {
		case team.StartSession:
			e.beside(func(ctx context.Context) { e.startSession(ctx, m, s) })
		case team.EndSession:
			e.beside(func(ctx context.Context) { e.endSession(ctx, m, s) })
		default:
			panic("engine: no such errand: " + string(todo.Do))
		}
	}
}

// startSession starts a session's process, if it is still wanted. The last look is at the
// file itself: somebody may have written pause, and nobody told us yet.
func (e *Engine) startSession(ctx context.Context, m *member, s team.Session) {
	if err := e.lastLook(ctx, m); err != nil {
		return
	}
	may, why := false, ""
	if err := e.look(ctx, func(t *team.Team) { may, why = t.MayStart(m.conf.Name, s.ID, time.Now()) }); err != nil {
		return
	}
	if !may {
		e.sessionEnded(ctx, m, team.SessionEnded{Session: s.ID, Outcome: control.Withdrawn, Why: why}, byIntent)
		return
	}
	proc, err := e.launch(ctx, m, s)
	var before *AlreadyStarted
	var cannot *CannotStart
	switch {
	case errors.As(err, &before):
		e.adoptLate(ctx, m, s)
	case errors.As(err, &cannot):
		e.sessionEnded(ctx, m, team.SessionEnded{Session: s.ID, Outcome: control.CannotStart, Why: cannot.Why}, byHolder)
	case err != nil && ctx.Err() != nil:
		return // we stop; the next start finds out what became of it
	case err != nil:
		e.log.Error("a session's holder failed", "session", s.ID, "error", err)
		e.adoptLate(ctx, m, s)
	default:
		e.setProc(s.ID, proc)
		if _, err := e.submit(ctx, byHolder, m.conf.Name, team.SessionStarted{Session: s.ID, PID: proc.PID()}); err != nil {
			return
		}
		e.follow(ctx, m, s, proc, false)
	}
}

// launch asks the driver how, and the host to do it.
func (e *Engine) launch(ctx context.Context, m *member, s team.Session) (Process, error) {
	agent, err := e.agentFor(m)
	if err != nil {
		return nil, &CannotStart{Why: err.Error()}
	}
	if err := os.MkdirAll(agent.Workspace, 0o755); err != nil { //nolint:gosec // as public as its repository
		return nil, &CannotStart{Why: "its workspace cannot be made: " + err.Error()}
	}
	if err := m.driver.Check(agent); err != nil {
		return nil, &CannotStart{Why: err.Error()}
	}
	launch, err := m.driver.Launch(agent, sessionFor(m, s))
	if err != nil {
		return nil, &CannotStart{Why: err.Error()}
	}
	var epoch uint64
	if err := e.look(ctx, func(t *team.Team) { epoch = t.Epoch }); err != nil {
		return nil, err
	}
	return e.opts.Host.Start(ctx, s.ID, epoch, launch, m.conf.Grace)
}

// agentFor is the agent as its driver knows it, with the values of its environment.
func (e *Engine) agentFor(m *member) (driver.Agent, error) {
	env, err := m.conf.Env.Resolve(e.opts.Lookup)
	if err != nil {
		return driver.Agent{}, fmt.Errorf("env of agent %s: %w", m.conf.Name, err)
	}
	return driver.Agent{
		Name: m.conf.Name, Command: m.conf.Command, Script: m.conf.Script,
		Workspace: m.conf.Workspace, Env: env, Model: m.conf.Model,
	}, nil
}

func sessionFor(m *member, s team.Session) driver.Session {
	prompt := m.conf.SessionPrompt
	if s.Kind == control.Cleanup {
		prompt = m.conf.CleanupPrompt
	}
	return driver.Session{ID: s.ID, Kind: driver.Kind(s.Kind), Prompt: prompt, Attempt: 1}
}

// adoptLate takes over what was started in this session's name, if anything was.
func (e *Engine) adoptLate(ctx context.Context, m *member, s team.Session) {
	var epoch uint64
	if err := e.look(ctx, func(t *team.Team) { epoch = t.Epoch }); err != nil {
		return
	}
	proc, found, err := e.opts.Host.Adopt(ctx, s.ID, epoch)
	switch {
	case ctx.Err() != nil:
	case err != nil || found == NeverStarted || proc == nil:
		why := "its holder could not be started"
		if err != nil {
			why += ": " + err.Error()
		}
		e.sessionEnded(ctx, m, team.SessionEnded{Session: s.ID, Outcome: control.CannotStart, Why: why}, byHolder)
	default:
		e.setProc(s.ID, proc)
		if found == Running {
			if _, err := e.submit(ctx, byHolder, m.conf.Name, team.SessionAdopted{Session: s.ID, PID: proc.PID()}); err != nil {
				return
			}
		}
		e.follow(ctx, m, s, proc, false)
	}
}

// endSession tells a session's process to end. Its end itself is seen by who follows it.
func (e *Engine) endSession(ctx context.Context, m *member, s team.Session) {
	proc := e.proc(s.ID)
	if proc == nil {
		return // it has just ended, or was never started: both are on their way here
	}
	grace := m.conf.Grace
	if s.Now {
		grace = 0
	}
	if err := proc.End(ctx, grace); err != nil && ctx.Err() == nil {
		e.log.Error("a session could not be told to end", "session", s.ID, "error", err)
	}
}

// sessionEnded reports an end. That it is over already is no error: somebody else saw it too.
func (e *Engine) sessionEnded(ctx context.Context, m *member, what team.SessionEnded, by team.Actor) bool {
	_, err := e.submit(ctx, by, m.conf.Name, what)
	if err != nil && !isAnswer(err) {
		return false
	}
	return true
}
