package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fairlead-dev/fairlead/interop"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// fileRetry is the wait after a file could not be written: its folder is gone, or read-only.
const fileRetry = time.Second

// wrote is what came of writing a file.
type wrote struct {
	agent string
	state interop.AgentState
	sum   interop.Sum
	seen  uint64 // what had been seen when it was begun
	err   error
}

// stateOf puts a projection into the foreign spelling.
func stateOf(f control.File) interop.AgentState {
	return interop.AgentState{
		DesiredState: f.Desired, CurrentState: f.Current, Timestamp: interop.FormatTime(f.Stamp),
		SetBy: f.By, Note: f.Note, Extra: unpackExtra(f.Extra),
	}
}

// packExtra makes one string of the fields that we do not know, in their order.
func packExtra(fields []interop.Field) string {
	if len(fields) == 0 {
		return ""
	}
	pairs := make([][2]any, len(fields))
	for i, f := range fields {
		pairs[i] = [2]any{f.Name, f.Raw}
	}
	packed, err := json.Marshal(pairs)
	if err != nil {
		panic("engine: fields that were parsed cannot be written: " + err.Error())
	}
	return string(packed)
}

func unpackExtra(packed string) []interop.Field {
	if packed == "" {
		return nil
	}
	var pairs [][2]json.RawMessage
	if err := json.Unmarshal([]byte(packed), &pairs); err != nil {
		panic("engine: unknown fields in the journal cannot be read: " + err.Error())
	}
	fields := make([]interop.Field, len(pairs))
	for i, pair := range pairs {
		fields[i].Raw = pair[1]
		if err := json.Unmarshal(pair[0], &fields[i].Name); err != nil {
			panic("engine: the name of an unknown field cannot be read: " + err.Error())
		}
	}
	return fields
}

// observe takes one look at a file in: what it is known to hold, and what somebody else
// said by it. What we wrote ourselves is no news, however late it is seen. Looks come in
// the order in which they were made, or an older wish would go over a newer one; one that
// was made to be sure of something is waited for with arrival.
func (e *Engine) observe(seen interop.Seen) []team.Event {
	m, a := e.members[seen.Name], e.team.Agents[seen.Name]
	if m == nil || a == nil || (m.known && seen.Seq <= m.seen) {
		return nil
	}
	m.seen = seen.Seq
	defer m.arrived()
	first := !m.known
	if !seen.FromSwap {
		m.known = true
		m.disk, m.state, m.missing = seen.Sum, seen.State, seen.Kind == interop.KindDeleted
	}
	if m.missing {
		m.missedAt = a.Control.Stamp
	}
	switch seen.Kind {
	case interop.KindWritten:
		m.failed = ""
		if seen.Own || a.Ours(string(seen.Sum)) {
			return nil
		}
		return event(seen, fileRead(seen, first), actorOf(seen.State, a.Name))
	case interop.KindMalformed:
		if seen.FromSwap {
			e.log.Warn("a write that ours replaced was no agent state", "agent", seen.Name, "fault", seen.Fault, "kept_as", seen.KeptAs)
			return nil
		}
		broken := control.FileBroken{KeptAs: seen.KeptAs, Fault: seen.Fault, Torn: first && e.rebooted && a.Control.State != control.Absent}
		return event(seen, broken, team.Actor{Kind: "engine", ID: interop.FileName})
	case interop.KindDeleted:
		return event(seen, control.FileGone{}, team.Actor{Kind: "engine", ID: interop.FileName})
	default:
		m.failed = seen.Fault
		e.log.Warn("agent_state.json cannot be looked at", "agent", seen.Name, "fault", seen.Fault)
		return nil
	}
}

// awaited is somebody who waits until a look has arrived.
type awaited struct {
	seq uint64
	at  chan struct{}
}

// arrived tells who waited for a look that it was taken in.
func (m *member) arrived() {
	rest := m.awaited[:0]
	for _, w := range m.awaited {
		if w.seq > m.seen {
			rest = append(rest, w)
			continue
		}
		close(w.at)
	}
	m.awaited = rest
}

// arrivalMax bounds the wait for a look; the file system has told us of it already.
const arrivalMax = 2 * time.Second

// lastLook reads the file once more, and returns when what it says is taken in: nobody is
// started against a wish that stands in the file already.
func (e *Engine) lastLook(ctx context.Context, m *member) error {
	if m.conf.Workspace == "" {
		return nil
	}
	seen, err := e.opts.Files.Read(m.conf.Name)
	if err != nil || seen.Own || seen.Seq == 0 {
		return nil //nolint:nilerr // what cannot be read says nothing new; the journal's wish stands
	}
	at := make(chan struct{})
	err = e.look(ctx, func(*team.Team) {
		m.awaited = append(m.awaited, awaited{seq: seen.Seq, at: at})
		m.arrived()
	})
	if err != nil {
		return err
	}
	wait := time.NewTimer(arrivalMax)
	defer wait.Stop()
	select {
	case <-at:
	case <-wait.C:
		e.log.Warn("a look at a file did not arrive", "agent", m.conf.Name, "seq", seen.Seq)
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func event(seen interop.Seen, in control.Input, by team.Actor) []team.Event {
	return []team.Event{{Actor: by, Agent: seen.Name, What: in}}
}

func fileRead(seen interop.Seen, first bool) control.FileRead {
	stamp, err := seen.State.Time()
	if err != nil {
		stamp = time.Time{} // nobody can say when: it is newer only by what it says
	}
	return control.FileRead{
		Desired: seen.State.DesiredState, Current: seen.State.CurrentState, By: seen.State.SetBy, Note: seen.State.Note,
		Stamp: stamp, Extra: packExtra(seen.State.Extra), First: first, Swapped: seen.FromSwap,
	}
}

// actorOf believes the file about who wrote it: everybody who can write it can say so.
func actorOf(state interop.AgentState, agent string) team.Actor {
	if state.SetBy == interop.SetByAgent {
		return team.Actor{Kind: "agent", ID: agent}
	}
	return team.Actor{Kind: "human", ID: interop.FileName}
}

// fileDue says whether the file does not say yet what it is to say.
func (e *Engine) fileDue(m *member, a *team.Agent) bool {
	if a == nil || m.conf.Workspace == "" || !m.known || a.Removed {
		return false
	}
	file := e.team.File(a)
	if a.Control.State != control.Foreign {
		return !file.Stamp.IsZero() && m.disk != interop.SumOf(stateOf(file).Render())
	}
	// A foreign loop's file is its own; only our commands are put into it.
	if a.Control.Wish.N == 0 {
		return false
	}
	there, err := m.state.Time()
	if m.missing {
		return file.Stamp.After(m.missedAt)
	}
	return m.state.DesiredState != file.Desired || m.state.SetBy != file.By || m.state.Note != file.Note ||
		(err == nil && file.Stamp.After(there))
}

// contentOf is what is to be written.
func (e *Engine) contentOf(m *member, a *team.Agent) interop.AgentState {
	file := e.team.File(a)
	if a.Control.State == control.Foreign {
		return m.state.WithCommand(file.Desired, file.By, file.Note, file.Stamp)
	}
	return stateOf(file)
}

// writeFile begins a write, one at a time for each agent. What becomes true meanwhile is
// written by the next one: a projection has no history, the journal has.
func (e *Engine) writeFile(m *member, a *team.Agent) {
	if m.writing || m.seen < m.changed || !m.again.IsZero() || !e.fileDue(m, a) {
		return
	}
	m.writing = true
	state, begun := e.contentOf(m, a), m.seen
	content := state.Render()
	sums := append([]string(nil), a.Sums...)
	name := a.Name
	ours := func(sum interop.Sum) bool {
		for _, s := range sums {
			if s == string(sum) {
				return true
			}
		}
		return false
	}
	e.beside(func(ctx context.Context) {
		err := e.opts.Files.Write(ctx, name, content, ours)
		// Nobody to tell means that the engine stops: the next start looks at the file.
		_, _ = e.ask(ctx, request{wrote: &wrote{agent: name, state: state, sum: interop.SumOf(content), seen: begun, err: err}})
	})
}

// wroteFile notes what came of a write. Somebody else's content that was in the way is
// an event, and what it leads to is written in its place.
func (e *Engine) wroteFile(w wrote) []team.Event {
	m := e.members[w.agent]
	m.writing = false
	var changed *interop.Changed
	switch {
	case errors.As(w.err, &changed):
		m.changed = changed.Seen.Seq // it is on its way; what it leads to is written, not what we had
		return nil
	case errors.Is(w.err, context.Canceled), errors.Is(w.err, interop.ErrClosed):
		return nil
	case w.err != nil:
		if m.failed != w.err.Error() {
			e.log.Error("agent_state.json cannot be written; it is tried again every second", "agent", w.agent, "error", w.err)
		}
		m.failed = w.err.Error()
		m.again = e.clock.now().Add(fileRetry)
		return nil
	}
	m.failed, m.missing = "", false
	m.disk, m.state = w.sum, w.state
	if m.seen != w.seen {
		m.disk = "" // somebody wrote while we did: what lies there now is not known
	}
	return nil
}
