package engine

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// Actor is who gives an order: human, agent or engine, and who exactly.
type Actor = team.Actor

// Command says what is wanted of an agent: one of the seed's four words. It returns when
// that is durable, with the Seq of the last change that it made.
// The error is a *machine.Refusal or a *team.Unknown where the answer is no.
func (e *Engine) Command(ctx context.Context, by Actor, agent, desired, note string) (uint64, error) {
	setBy := by.Kind
	if setBy != "agent" {
		setBy = "human"
	}
	return e.submit(ctx, by, agent, control.Commanded{Desired: desired, By: setBy, Note: note})
}

// Hold stops everything from starting until it is released; what runs finishes (X8).
func (e *Engine) Hold(ctx context.Context, by Actor, on bool, note string) (uint64, error) {
	if on {
		return e.submit(ctx, by, "", team.HoldAsked{Note: note})
	}
	return e.submit(ctx, by, "", team.ReleaseAsked{Note: note})
}

// Stop lets sessions finish and nothing new begin; now ends them (C14). It returns when that
// is durable; Stopped says when it is complete.
func (e *Engine) Stop(ctx context.Context, by Actor, now bool) error {
	_, err := e.submit(ctx, by, "", team.StopAsked{Now: now})
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
	status := Status{StartedAt: e.started.UTC(), Subscribers: e.hub.count()}
	err := e.look(ctx, func(*team.Team) { status.Head = e.head })
	return status, err
}

// Journal is the history itself, for reading.
func (e *Engine) Journal() journal.Journal { return e.opts.Journal }

// SessionInfo is how a session stands, whenever it was.
type SessionInfo struct {
	Agent   string
	Open    bool // more output may come
	Outcome string
	Why     string
}

// Session finds a session by its id. One that is older than what the team remembers is
// known by its output alone.
func (e *Engine) Session(ctx context.Context, id string) (SessionInfo, error) {
	var info SessionInfo
	found := false
	err := e.look(ctx, func(t *team.Team) {
		name, a := ownerOf(t, id)
		if a == nil {
			return
		}
		found = true
		info.Agent = name
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
	var n uint64
	if _, err := fmt.Sscanf(id[cut+1:], "%d", &n); err != nil || fmt.Sprint(n) != id[cut+1:] {
		return "", nil
	}
	name := id[:cut]
	a := t.Agents[name]
	if a == nil || n == 0 || n > a.Opened {
		return "", nil
	}
	return name, a
}

// Output reads what a session said, from an offset on; it follows while the session runs.
func (e *Engine) Output(ctx context.Context, session string, offset int64) (io.ReadCloser, SessionInfo, error) {
	info, err := e.Session(ctx, session)
	if err != nil {
		return nil, info, err
	}
	if proc := e.proc(session); proc != nil {
		out, err := proc.Output(ctx, offset)
		return out, info, err
	}
	out, err := e.opts.Host.Output(ctx, session, offset)
	return out, info, err
}

// factsMax bounds an answer; facts are read again from the output each time.
const factsMax = 2000

// Facts are what the driver understands of a session's output so far, the newest last, at
// most tail of them. A session that runs is read for as long as wait allows.
func (e *Engine) Facts(ctx context.Context, session string, tail int, wait time.Duration) ([]driver.Fact, error) {
	info, err := e.Session(ctx, session)
	if err != nil {
		return nil, err
	}
	m := e.members[info.Agent] // fixed since Open
	if m == nil {
		return nil, &team.Unknown{What: "agent", Name: info.Agent}
	}
	if tail <= 0 || tail > factsMax {
		tail = factsMax
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	wire := readOnly{e: e, session: session}
	conv := m.driver.Converse(driver.Agent{Name: info.Agent, Workspace: m.conf.Workspace}, driver.Session{ID: session}, wire)
	var facts []driver.Fact
	for fact, err := range conv.Facts(ctx, 0) {
		if err != nil {
			if ctx.Err() != nil {
				return facts, nil // it still runs: this is what there is
			}
			return facts, fmt.Errorf("read the output of %s: %w", session, err)
		}
		facts = append(facts, fact)
		if len(facts) > 2*tail {
			facts = append(facts[:0], facts[len(facts)-tail:]...)
		}
	}
	return facts[max(0, len(facts)-tail):], nil
}

// readOnly is a wire on which nothing can be said.
type readOnly struct {
	e       *Engine
	session string
}

func (r readOnly) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	out, _, err := r.e.Output(ctx, r.session, offset)
	return out, err
}

func (r readOnly) Send(context.Context, []byte) error { return io.ErrClosedPipe }

func (r readOnly) CloseInput(context.Context) error { return io.ErrClosedPipe }
