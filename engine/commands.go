package engine

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// Actor is who gives an order: human, agent or engine, and who exactly.
type Actor = team.Actor

// Command says what is wanted of an agent: one of the seed's four words. It returns when
// that is durable, with the Seq of the last change that it made.
// The error is a *machine.Refusal or a *team.Unknown where the answer is no.
func (e *Engine) Command(ctx context.Context, by Actor, agent, desired, note string) (uint64, error) {
	return e.Do(ctx, loop.Request{Event: e.command(by, agent, desired, note)})
}

func (e *Engine) command(by Actor, agent, desired, note string) *team.Event {
	setBy := by.Kind
	if setBy != "agent" {
		setBy = "human"
	}
	return loop.EventBy(by, agent, control.Commanded{Desired: desired, By: setBy, Note: note})
}

// Order is Command, and gives the agent as it stands with the order, in the same breath: no
// evidence is asked for, and what comes of the order later is not waited for.
func (e *Engine) Order(ctx context.Context, by Actor, agent, desired, note string) (uint64, AgentView, error) {
	var view AgentView
	seq, err := e.Do(ctx, loop.Request{
		Event: e.command(by, agent, desired, note),
		Look: func(t *team.Team) {
			if a := t.Agents[agent]; a != nil {
				view = e.agentView(a)
			}
		},
	})
	return seq, view, err
}

// EndAgentSession has the session end that an agent is at work in, with its grace; asked again, at
// once. What is wanted of the agent stays: who is wanted continuously is started again, so stop
// it first. The error is a *machine.Refusal where none runs, where a run or the lead's team has
// it (those have verbs of their own), and where an agent asks (X10).
func (e *Engine) EndAgentSession(ctx context.Context, by Actor, agent string) (uint64, error) {
	if by.Kind == "agent" {
		return 0, &machine.Refusal{
			Subject: agent, Event: "end_asked", State: "running", Row: "X10",
			Reason: "a person ends a session; an agent may have another one paused, which lets it finish",
		}
	}
	return e.Submit(ctx, by, agent, team.EndAsked{})
}

// Hold stops everything from starting until it is released; what runs finishes (X8).
func (e *Engine) Hold(ctx context.Context, by Actor, on bool, note string) (uint64, error) {
	note = loop.CutText(note, loop.NoteBytesMax)
	if on {
		return e.Submit(ctx, by, "", team.HoldAsked{Note: note})
	}
	return e.Submit(ctx, by, "", team.ReleaseAsked{Note: note})
}

// Stop lets sessions finish and nothing new begin; now ends them (C14). It returns when that
// is durable; Stopped says when it is complete.
func (e *Engine) Stop(ctx context.Context, by Actor, now bool) error {
	_, err := e.Submit(ctx, by, "", team.StopAsked{Now: now})
	return err
}

// Status is what the daemon says of itself.
type Status struct {
	StartedAt   time.Time
	Head        uint64
	Subscribers int
}

// Status asks the loop, so that an answer is also a sign of life.
func (e *Engine) Status(ctx context.Context) (Status, error) {
	status := Status{StartedAt: e.started.UTC(), Subscribers: e.Watchers()}
	err := e.View(ctx, func(*team.Team) { status.Head = e.Head() })
	return status, err
}

// SessionInfo is how a session stands, whenever it was.
type SessionInfo struct {
	Agent   string
	Open    bool // more output may come
	Outcome string
	Why     string
	driver  string
}

// Session finds a session by its id. One that is older than what the team remembers is
// known by its output alone.
func (e *Engine) Session(ctx context.Context, id string) (SessionInfo, error) {
	var info SessionInfo
	found := false
	err := e.View(ctx, func(t *team.Team) {
		name, a := ownerOf(t, id)
		if a == nil {
			return
		}
		found = true
		info.Agent, info.driver = name, a.Settings.Driver
		if a.Session != nil && a.Session.ID == id {
			info.Open = true
			return
		}
		for _, s := range a.Past {
			if s.ID == id {
				info.Outcome, info.Why = string(s.Outcome), s.Why
			}
		}
	})
	if err == nil && !found {
		err = &team.Unknown{What: "session", Name: id}
	}
	return info, err
}

// ownerOf finds whose session an id names: coder-17 is coder's seventeenth.
func ownerOf(t *team.Team, id string) (string, *team.Agent) {
	cut := strings.LastIndexByte(id, '-')
	if cut < 0 {
		return "", nil
	}
	n, err := strconv.ParseUint(id[cut+1:], 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != id[cut+1:] {
		return "", nil
	}
	name := id[:cut]
	a := t.Agents[name]
	if a == nil || n == 0 || n > a.Opened {
		return "", nil
	}
	return name, a
}
