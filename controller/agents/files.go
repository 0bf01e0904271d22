package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	WritersMax    = 32          // writes at a time: each holds a thread while it syncs, and a few that hang must not hold up the rest
	fileRetry     = time.Second // after a file could not be written: its folder is gone, or read-only
	arrivalWarn   = 2 * time.Second
	ExtraBytesMax = 64 << 10 // unknown fields of one file; the journal and every snapshot hold them, escaped

	// Writes that say once more what the last one said, against somebody who writes something
	// else: so many at once, then one now and again, or two programs would write against each
	// other for ever, and fill the journal with it.
	FixesMax   = 20
	fixesEvery = time.Second
)

// agentFile is what the loop remembers of an agent's agent_state.json and could look up again.
type AgentFile struct {
	*sessions.Slot
	seen     uint64 // Seq of the last look that was taken in
	changed  uint64 // Seq of a look that a write met and that has not arrived
	awaited  []awaited
	disk     file.Sum // what is known to be in the file's place
	State    agentfile.State
	own      bool // Fairlead wrote it
	missing  bool
	missedAt time.Time // the desired state's stamp when the file was found missing
	Writing  bool
	queued   bool        // it waits in unwritten
	Failed   string      // why the file cannot be written at present
	Again    time.Time   // when that is tried again
	added    bool        // the file is watched
	Known    bool        // the file was looked at since the start
	Crowded  bool        // the file holds more unknown fields than are taken in: it is not written over
	said     string      // what the last write said, its time apart
	fixes    loop.Bucket // writes that said the same again
	quarrel  bool        // again is for another of those
	unsure   bool        // a write failed and may have been done all the same: the content is not known
}

// wrote is the result of writing a file.
type wrote struct {
	agent string
	state agentfile.State
	sum   file.Sum
	seen  uint64 // what had been seen when it was begun
	said  string
	err   error
}

// stateOf puts a projection into the foreign spelling.
func stateOf(f control.File) agentfile.State {
	return agentfile.State{
		DesiredState: f.Desired, CurrentState: f.Current, Timestamp: file.FormatTime(f.Stamp),
		SetBy: f.By, Note: f.Note, Extra: unpackExtra(f.Extra),
	}
}

// packExtra makes one string of the fields that we do not know, in their order.
func packExtra(fields []file.Field) string {
	if len(fields) == 0 {
		return ""
	}
	pairs := make([][2]any, len(fields))
	for i, f := range fields {
		pairs[i] = [2]any{f.Name, f.Raw}
	}
	var packed bytes.Buffer
	enc := json.NewEncoder(&packed)
	enc.SetEscapeHTML(false) // what others wrote is given back as they spelled it
	if err := enc.Encode(pairs); err != nil {
		panic("engine: fields that were parsed cannot be written: " + err.Error())
	}
	return strings.TrimSuffix(packed.String(), "\n")
}

func unpackExtra(packed string) []file.Field {
	if packed == "" {
		return nil
	}
	var pairs [][2]json.RawMessage
	if err := json.Unmarshal([]byte(packed), &pairs); err != nil {
		panic("engine: unknown fields in the journal cannot be read: " + err.Error())
	}
	fields := make([]file.Field, len(pairs))
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
// was made to be sure of something is waited for with arrival. What was found swapped out is
// of another sheet than what lies there, and is told of by nobody else: it is taken in
// however late it comes, and its own time says whether it still counts.
func (e *Controller) observe(seen agentfile.Seen) []team.Event {
	m, a := e.Files[seen.Name], e.State().Agents[seen.Name]
	if m == nil || a == nil || (m.Known && seen.Seq <= m.seen && !seen.FromSwap) {
		return nil
	}
	m.seen = max(m.seen, seen.Seq)
	defer m.arrived()
	first, absent := !m.Known, a.Control.State == control.Absent
	if !seen.FromSwap {
		m.Known = true
		m.disk, m.State, m.missing = seen.Sum, seen.State, seen.Kind == agentfile.KindDeleted
		m.own = seen.Own
	}
	if m.missing {
		m.missedAt = a.Control.Stamp
	}
	switch seen.Kind {
	case agentfile.KindWritten:
		m.Failed = ""
		// What was taken in before we went down is no news either: an order of ours may have
		// come after it, and never have reached the file.
		known := first && seen.Ident != "" && seen.Ident == a.Seen || seen.FromSwap && a.TookIn(seen.Ident)
		if seen.Own || known || a.WroteSum(string(seen.Sum)) {
			m.Crowded = false
			return nil
		}
		return lateStart(event(seen, e.fileRead(m, a, seen, first), actorOf(seen.State, a.Name)), absent && !e.Holding())
	case agentfile.KindMalformed:
		if seen.FromSwap {
			e.log.Warn("a write that ours replaced was no agent state", "agent", seen.Name, "fault", seen.Fault, "kept_as", seen.KeptAs)
			return nil
		}
		broken := control.FileBroken{KeptAs: seen.KeptAs, Fault: seen.Fault, Torn: first && e.Rebooted && a.Control.State != control.Absent}
		m.Crowded = false
		return event(seen, broken, team.Actor{Kind: "engine", ID: agentfile.FileName})
	case agentfile.KindDeleted:
		m.Crowded = false
		return event(seen, control.FileGone{}, team.Actor{Kind: "engine", ID: agentfile.FileName})
	default:
		m.Failed = seen.Fault
		e.log.Warn("agent_state.json cannot be looked at", "agent", seen.Name, "fault", seen.Fault)
		return nil
	}
}

// seenRequest takes one look at a file in. The file package may forget the look when it is in the
// journal, or was no news.
func (e *Controller) SeenRequest(seen agentfile.Seen) loop.Request {
	req := loop.Request{Agent: seen.Name, Derive: func() []team.Event { return e.observe(seen) }}
	if e.opts.Files != nil { // nil: a dry run
		req.After = func() { e.opts.Files.Took(seen) }
	}
	return req
}

// awaited is somebody who waits until a look has arrived.
type awaited struct {
	seq uint64
	at  chan struct{}
}

// arrived tells who waited for a look that it was taken in.
func (m *AgentFile) arrived() {
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

// lastLook reads the file once more, and returns when what it says is taken in: nobody is
// started against a wish that stands in the file already.
func (e *Controller) LastLook(ctx context.Context, slot *sessions.Slot) error {
	m := e.Files[slot.Conf.Name] // the map does not change while sessions start
	if m == nil || m.Conf.Workspace == "" {
		return nil
	}
	seen, err := e.opts.Files.Read(m.Conf.Name)
	if err != nil || seen.Own || seen.Seq == 0 {
		return nil //nolint:nilerr // what cannot be read says nothing new; the journal's wish stands
	}
	at := make(chan struct{})
	err = e.View(ctx, func(*team.Team) {
		m.awaited = append(m.awaited, awaited{seq: seen.Seq, at: at})
		m.arrived()
	})
	if err != nil {
		return err
	}
	wait := time.NewTimer(arrivalWarn)
	defer wait.Stop()
	for {
		select {
		case <-at:
			return nil
		case <-wait.C: // to start all the same could be against what was wished
			e.log.Warn("a look at a file does not arrive; its agent is not started before it does", "agent", m.Conf.Name, "seq", seen.Seq)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lateStart lets a wish that was found after the start be acted on, as it is at the start.
func lateStart(events []team.Event, late bool) []team.Event {
	if late {
		events = append(events, team.Event{Actor: sessions.ByRecovery, Agent: events[0].Agent, What: control.Started{}})
	}
	return events
}

func event(seen agentfile.Seen, in control.Input, by team.Actor) []team.Event {
	return []team.Event{{Actor: by, Agent: seen.Name, What: in}}
}

// fileRead is what somebody else wrote. More unknown fields than are taken in are left in
// the file, which is then not written over; the wish beside them counts like any other.
func (e *Controller) fileRead(m *AgentFile, a *team.Agent, seen agentfile.Seen, first bool) control.FileRead {
	stamp, err := seen.State.Time()
	if err != nil || stamp.Year() < yearMin || stamp.Year() > yearMax {
		stamp = time.Time{} // nobody can say when: it is newer only by what it says
	}
	extra := packExtra(seen.State.Extra)
	m.Crowded = len(extra) > ExtraBytesMax
	if m.Crowded {
		extra = a.Control.Extra
		m.Failed = fmt.Sprintf("it holds more than %d bytes of fields that Fairlead does not know: what is wished in it is done, but it is not written until there are fewer; keep other data in a file of its own", ExtraBytesMax)
		e.log.Warn("agent_state.json is too full", "agent", seen.Name, "fault", m.Failed)
	}
	current := seen.State.CurrentState
	switch there, err := m.State.Time(); {
	case !seen.FromSwap:
	case !m.Known && !stamp.After(a.Control.Stamp): // nobody has looked yet what lies there
		current = a.Control.Reported
	case !m.own && !m.missing && err == nil && there.After(stamp):
		current = m.State.CurrentState // it has said something else of itself since
	}
	return control.FileRead{
		Desired: seen.State.DesiredState, Current: current, By: seen.State.SetBy, Note: seen.State.Note,
		Stamp: stamp, Extra: extra, First: first, Ident: seen.Ident, Swapped: seen.FromSwap,
	}
}

// The years that a timestamp may be of. JSON cannot write all that RFC 3339 can say.
const yearMin, yearMax = 1970, 9000

// actorOf believes the file about who wrote it: everybody who can write it can say so.
func actorOf(state agentfile.State, agent string) team.Actor {
	if state.SetBy == agentfile.SetByAgent {
		return team.Actor{Kind: "agent", ID: agent}
	}
	return team.Actor{Kind: "human", ID: agentfile.FileName}
}

// fileDue says whether the file does not say yet what it is to say.
func (e *Controller) FileDue(m *AgentFile, a *team.Agent) bool {
	if a == nil || m.Conf.Workspace == "" || !m.Known || m.Crowded || a.Removed {
		return false
	}
	file := e.State().File(a)
	if a.Control.State != control.Foreign {
		want := stateOf(file)
		return !file.Stamp.IsZero() && (m.unsure || m.disk != want.Sum() && !saysAlready(m, want))
	}
	// A foreign loop's file is its own; only our commands are put into it.
	if a.Control.Desired.N == 0 {
		return false
	}
	there, err := m.State.Time()
	if m.missing {
		return file.Stamp.After(m.missedAt)
	}
	if file.Current != "" && m.State.CurrentState != file.Current {
		return true // it said so while ours was exchanged for its file
	}
	return m.unsure || m.State.DesiredState != file.Desired || m.State.SetBy != file.By || m.State.Note != file.Note ||
		(err == nil && file.Stamp.After(there))
}

// saysAlready says whether what somebody else wrote is what we would: then it stays, and
// two programs that agree do not write over each other for ever. Its timestamp is its own.
func saysAlready(m *AgentFile, want agentfile.State) bool {
	if m.disk == "" {
		return false // nobody knows what lies there
	}
	if _, err := m.State.Time(); err != nil {
		return false
	}
	there := m.State
	there.Timestamp, want.Timestamp = "", ""
	return bytes.Equal(there.Render(), want.Render())
}

// saying is what the file is to say, its time and the fields of others apart. A new wish is
// another saying though it has the same words.
func (e *Controller) saying(a *team.Agent) string {
	file, n := e.State().File(a), a.Control.Desired.N
	if a.Control.Desired.Rested {
		n = 0 // nobody wished it: the file was deleted once more
	}
	return fmt.Sprintf("%q %q %q %q %d", file.Desired, file.Current, file.By, file.Note, n)
}

// contentOf is what is to be written.
func (e *Controller) contentOf(m *AgentFile, a *team.Agent) agentfile.State {
	file := e.State().File(a)
	if a.Control.State == control.Foreign {
		there := m.State
		if file.Current != "" {
			there.CurrentState = file.Current // what it said last, also where its file was spoiled, or ours went over it
		}
		return there.WithCommand(file.Desired, file.By, file.Note, file.Stamp)
	}
	return stateOf(file)
}

// writeFile begins a write, one at a time for each agent. What becomes true meanwhile is
// written by the next one: a projection has no history, the journal has.
func (e *Controller) writeFile(m *AgentFile, a *team.Agent) {
	if m.Writing || m.seen < m.changed || !e.FileDue(m, a) {
		return
	}
	if e.writers >= WritersMax {
		if !m.queued {
			m.queued = true
			e.unwritten = append(e.unwritten, m)
		}
		return
	}
	said := e.saying(a)
	if !m.Again.IsZero() && (!m.quarrel || said == m.said) { // a new word is no part of a quarrel
		return
	}
	m.Again, m.quarrel = time.Time{}, false
	if said == m.said {
		now := e.Now()
		if wait := m.fixes.Wait(now, FixesMax, fixesEvery); wait > 0 {
			m.Again, m.quarrel = now.Add(wait), true
			return
		}
	}
	m.Writing = true
	e.writers++
	state, begun := e.contentOf(m, a), m.seen
	content := state.Render()
	sums := append([]string(nil), a.Sums...)
	name := a.Name
	ours := func(sum file.Sum) bool {
		for _, s := range sums {
			if s == string(sum) {
				return true
			}
		}
		return false
	}
	newest := uint64(agentfile.AnyLook)
	if a.Control.State == control.Foreign {
		newest = m.seen // all but the command is its own, and goes over nothing that it said since
	}
	e.Go(func(ctx context.Context) {
		err := e.opts.Files.Write(ctx, name, content, newest, ours)
		// Nobody to tell means that the engine stops: the next start looks at the file.
		_, _ = e.Do(ctx, loop.Request{Agent: name, Derive: func() []team.Event {
			return e.wroteFile(wrote{agent: name, state: state, sum: file.SumOf(content), seen: begun, said: said, err: err})
		}})
	})
}

// writeNext begins writes that waited for others. What is to be said is looked up now.
func (e *Controller) writeNext() {
	for e.writers < WritersMax && len(e.unwritten) > 0 {
		m := e.unwritten[0]
		e.unwritten = e.unwritten[1:]
		m.queued = false
		if a := e.State().Agents[m.Conf.Name]; a != nil {
			e.writeFile(m, a)
		}
	}
	if len(e.unwritten) == 0 {
		e.unwritten = nil
	}
}

// wroteFile notes what came of a write. Somebody else's content that was in the way is
// an event, and what it leads to is written in its place.
func (e *Controller) wroteFile(w wrote) []team.Event {
	m := e.Files[w.agent]
	m.Writing = false
	e.writers--
	var changed *agentfile.Changed
	switch {
	case errors.As(w.err, &changed):
		m.changed = changed.Seen.Seq // it is on its way; what it leads to is written, not what we had
		return nil
	case errors.Is(w.err, context.Canceled):
		return nil // we stop
	case w.err != nil:
		if m.Failed != w.err.Error() {
			e.log.Error("agent_state.json cannot be written; it is tried again every second", "agent", w.agent, "error", w.err)
		}
		m.Failed, m.unsure = w.err.Error(), true
		m.Again, m.quarrel = e.Now().Add(fileRetry), false
		return nil
	}
	m.Failed, m.unsure, m.missing, m.said = "", false, false, w.said
	m.disk, m.State, m.own = w.sum, w.state, true
	if m.seen != w.seen {
		m.disk = "" // somebody wrote while we did: what lies there now is not known
	}
	return nil
}

// renderSum is the identity of the bytes that a projection is written as.
func RenderSum(f control.File) string { return string(stateOf(f).Sum()) }
