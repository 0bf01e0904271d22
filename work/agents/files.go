package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	// concurrent writes: each holds a thread while it syncs, which the process then keeps; and a few that hang must not delay the rest
	WritersMax    = 8
	fileRetry     = time.Second // delay after a failed write: the folder is missing or read-only
	ExtraBytesMax = 64 << 10    // unknown fields of one file; the journal and every snapshot store them, escaped

	// Rate limit for writes that repeat the last content because another program keeps changing the
	// file: a burst of FixesMax, then one per fixesEvery. Without it, two programs would overwrite
	// each other forever and fill the journal.
	FixesMax   = 20
	fixesEvery = time.Second

	// Rate of what other programs write into one file: a burst of SightsMax, then one per sightsEvery, which the last content
	// waits for. A pause waits for nothing. Without it, a program that writes in a loop fills the journal.
	SightsMax   = 200
	sightsEvery = 50 * time.Millisecond
)

// AgentFile is what the loop remembers about an agent's agent_state.json. It can be read again at
// any time.
type AgentFile struct {
	*sessions.Slot
	seen        uint64   // Seq of the last observation that was processed
	changed     uint64   // Seq of an observation that a write found and that has not been processed
	disk        file.Sum // sum of the known content of the file; empty if unknown
	State       agentstate.State
	Changed     time.Time // when another program last wrote the file; zero if unknown
	own         bool      // the content was written by Fairlead
	missing     bool
	missedAt    time.Time // timestamp of the desired state when the file was found missing
	Writing     bool
	queued      bool             // it is in Controller.unwritten
	Failed      string           // why the file cannot be written at present
	Again       time.Time        // when the write is tried again
	added       bool             // the file is watched
	Known       bool             // the file was read since the start
	Crowded     bool             // the file has more unknown fields than the limit, so it is not overwritten
	lastContent string           // what the last write contained, without its timestamp
	written     string           // what a write in progress contains, in the same form
	fixes       loop.Bucket      // rate limit of writes that repeat the last content
	rewriting   bool             // Again is for such a repeated write
	sights      loop.Bucket      // rate limit of observations
	kept        *agentstate.Seen // the last observation above that limit; it is processed at keptUntil
	keptUntil   time.Time
	unsure      bool // a write failed and may have happened: the content is unknown
}

// writeResult is the result of writing a file.
type writeResult struct {
	agent string
	state agentstate.State
	sum   file.Sum
	seen  uint64 // AgentFile.seen when the write began
	said  string
	err   error
}

// noNote is the note of an order without a reason. The programs of seed 000 reset agent_state.json to
// pause if it has no note.
const noNote = "no reason given"

func noteOf(note string) string { return cmp.Or(note, noNote) }

// stateOf converts a projection to the format of the file.
func stateOf(f control.File) agentstate.State {
	return agentstate.State{
		DesiredState: f.Desired, CurrentState: f.Current, Timestamp: file.FormatTime(f.Stamp),
		SetBy: f.By, Note: noteOf(f.Note), Extra: unpackExtra(f.Extra),
	}
}

// packExtra encodes unknown fields in order as one string.
func packExtra(fields file.Fields) string {
	if len(fields) == 0 {
		return ""
	}
	packed, err := file.Pack(fields)
	if err != nil {
		panic("agents: encode unknown fields: " + err.Error())
	}
	return string(packed)
}

func unpackExtra(packed string) (fields file.Fields) {
	if packed == "" {
		return nil
	}
	if err := file.Unpack([]byte(packed), &fields); err != nil {
		panic("agents: decode unknown fields from the journal: " + err.Error())
	}
	return fields
}

// byFile is the actor of what is found about a file that no program wrote so.
var byFile = change.Actor{Kind: "engine", ID: agentstate.FileName}

// observe processes one observation of a file: it updates the known content and returns the events
// that another program's content causes. Content that Fairlead wrote causes none, however late it
// is observed. Observations are processed in the order in which they were made; otherwise an older
// desired state would replace a newer one. Content recovered from a replaced file (FromSwap) is
// older than the current file and only reported here, so it is processed however late it arrives;
// its own timestamp decides whether it still counts.
func (c *Controller) observe(seen agentstate.Seen) []team.Event {
	m, a := c.Files[seen.Name], c.loop.State().Agents[seen.Name]
	if m == nil || a == nil || (m.Known && seen.Seq <= m.seen && !seen.FromSwap) {
		return nil
	}
	m.seen = max(m.seen, seen.Seq)
	first, absent := !m.Known, a.Control.State == control.Absent
	unwritten := c.isUnwritten(m, a)
	if !seen.FromSwap {
		m.Known = true
		m.disk, m.State, m.missing = seen.Sum, seen.State, seen.Kind == exchange.KindDeleted
		m.own = seen.Own
		if !seen.Own {
			m.Changed = seen.Changed
			if m.Changed.After(seen.At) {
				m.Changed = seen.At // a timestamp in the future says nothing
			}
		}
	}
	if first && c.Moved && !absent && !seen.FromSwap {
		m.missing = false // it is written anew
		return nil
	}
	if m.missing {
		m.missedAt = a.Control.Stamp
	}
	switch seen.Kind {
	case exchange.KindWritten:
		m.Failed = ""
		// Content that was processed before a restart causes no event either: a later command of
		// Fairlead may not have reached the file.
		known := first && seen.Ident != "" && seen.Ident == a.LastForeign || seen.FromSwap && a.Imported(seen.Ident)
		if seen.Own || known || a.WroteSum(string(seen.Sum)) {
			m.Crowded = false
			return nil
		}
		// the author that the file names; every program that can write the file can name any
		by := change.Actor{Kind: "human", ID: agentstate.FileName}
		if seen.State.SetBy == agentstate.SetByAgent {
			by = change.Actor{Kind: "agent", ID: a.Name}
		}
		read := c.fileRead(m, a, seen, first)
		read.Unwritten = unwritten
		events := []team.Event{{Actor: by, Agent: a.Name, What: read}}
		if absent && !c.loop.Holding() { // first read after the start of the daemon: its desired state takes effect as at the start
			events = append(events, team.Event{Actor: sessions.ByRecovery, Agent: a.Name, What: control.Started{}})
		}
		return events
	case exchange.KindMalformed:
		if seen.FromSwap {
			c.log.Warn("a write replaced content that is not a valid agent state", "agent", seen.Name, "fault", seen.Fault, "kept_as",
				seen.KeptAs)
			return nil
		}
		broken := control.FileBroken{KeptAs: seen.KeptAs, Fault: seen.Fault, Torn: first && c.Rebooted && a.Control.State != control.Absent}
		m.Crowded = false
		return []team.Event{{Actor: byFile, Agent: a.Name, What: broken}}
	case exchange.KindDeleted:
		m.Crowded = false
		return []team.Event{{Actor: byFile, Agent: a.Name, What: control.FileGone{}}}
	default:
		m.Failed = seen.Fault
		c.log.Warn("agent_state.json cannot be read", "agent", seen.Name, "fault", seen.Fault)
		return nil
	}
}

// isUnwritten reports whether the newest desired state was never in the file, as far as it is known before the next observation.
func (c *Controller) isUnwritten(m *AgentFile, a *team.Agent) bool {
	if !m.Known || !c.FileDue(m, a) {
		return false
	}
	said := c.saying(a)
	return said != m.lastContent && (!m.Writing || said != m.written)
}

// SeenRequest processes one observation of a file. Afterwards the file package may forget the
// observation.
func (c *Controller) SeenRequest(seen agentstate.Seen) loop.Request {
	kept := false
	req := loop.Request{Agent: seen.Name, Derive: func(decide func(team.Event) error) {
		if kept = c.keeps(seen); !kept {
			c.take(seen, decide)
		}
	}}
	if c.opts.Files != nil { // nil in a dry run
		req.After = func() {
			if !kept { // the file package keeps it from being replaced
				c.opts.Files.Confirm(seen)
			}
		}
	}
	return req
}

// take processes one observation and has the events decided that it causes, until one is refused.
func (c *Controller) take(seen agentstate.Seen, decide func(team.Event) error) {
	for _, ev := range c.observe(seen) {
		if decide(ev) != nil {
			return
		}
	}
}

// keeps reports whether an observation is above the rate of its file, and is kept for later in place of an older one.
func (c *Controller) keeps(seen agentstate.Seen) bool {
	m, a := c.Files[seen.Name], c.loop.State().Agents[seen.Name]
	if m == nil || a == nil || !m.Known || seen.Own || seen.FromSwap || seen.Seq <= m.seen {
		return false
	}
	m.kept, m.keptUntil = nil, time.Time{}
	if a.Control.Wants() && seen.State.DesiredState != control.WordContinuous && seen.State.DesiredState != control.WordRunOnce &&
		seen.State.DesiredState != control.WordRunCleanup {
		return false // a pause, an unknown word, or no file
	}
	now := c.loop.Now()
	wait := m.sights.Wait(now, SightsMax, sightsEvery)
	if wait == 0 {
		return false
	}
	m.kept, m.keptUntil = &seen, now.Add(wait)
	return true
}

// LastLook reads the file of a slot's agent once more, so that no session starts against a desired state that is already in
// the file. It runs beside the loop. The request that it returns processes what it found, also where that was not delivered
// yet: an earlier observation of the same file then says nothing any more.
func (c *Controller) LastLook(slot *sessions.Slot) loop.Request {
	nothing := loop.Request{Derive: func(func(team.Event) error) {}}
	m := c.Files[slot.Conf.Name] // the map does not change while sessions start
	if m == nil || m.Conf.Workspace == "" {
		return nothing
	}
	seen, err := c.opts.Files.Read(m.Conf.Name)
	if err != nil || seen.Own || seen.Seq == 0 { // a file that cannot be read changes nothing; the journal's desired state stays
		return nothing
	}
	return loop.Request{
		Agent:  seen.Name,
		Derive: func(decide func(team.Event) error) { c.take(seen, decide) },
		After:  func() { c.opts.Files.Confirm(seen) },
	}
}

// fileRead converts content that another program wrote to an event. If the file has too many
// unknown fields, they stay in the file, which is then not overwritten; its desired state counts as
// usual.
func (c *Controller) fileRead(m *AgentFile, a *team.Agent, seen agentstate.Seen, first bool) control.FileRead {
	stamp, err := seen.State.Time()
	if err != nil || stamp.Year() < yearMin || stamp.Year() > yearMax {
		stamp = time.Time{} // without a usable timestamp, only changed content counts as newer
	}
	extra := packExtra(seen.State.Extra)
	m.Crowded = len(extra) > ExtraBytesMax
	if m.Crowded {
		extra = a.Control.Extra
		m.Failed = fmt.Sprintf("it has more than %d bytes of fields that Fairlead does not know: its desired state takes effect, but the file is not written until there are fewer; keep other data in a separate file", ExtraBytesMax)
		c.log.Warn("agent_state.json has too many unknown fields", "agent", seen.Name, "fault", m.Failed)
	}
	current := seen.State.CurrentState
	switch there, err := m.State.Time(); {
	case !seen.FromSwap:
	case !m.Known && !stamp.After(a.Control.Stamp): // the current file has not been read yet
		current = a.Control.Reported
	case !m.own && !m.missing && err == nil && there.After(stamp):
		current = m.State.CurrentState // the agent has reported another state since
	}
	note := seen.State.Note
	if note == noNote {
		note = ""
	}
	return control.FileRead{
		Desired: seen.State.DesiredState, Current: current, By: seen.State.SetBy, Note: note,
		Stamp: stamp, Extra: extra, First: first, Ident: seen.Ident, Swapped: seen.FromSwap,
		Wrote: seen.Wrote, Writers: c.writersOf(m),
	}
}

// Years accepted in a timestamp. JSON cannot encode all years that RFC 3339 allows.
const yearMin, yearMax = 1970, 9000

// FileDue reports whether the file differs from what it should contain.
func (c *Controller) FileDue(m *AgentFile, a *team.Agent) bool {
	if a == nil || m.Conf.Workspace == "" || !m.Known || m.Crowded || a.Removed {
		return false
	}
	file := c.loop.State().File(a)
	if a.Control.State != control.Foreign {
		want := stateOf(file)
		return !file.Stamp.IsZero() && (m.unsure || m.disk != want.Sum() && !saysAlready(m, want))
	}
	// A foreign loop owns its file; Fairlead writes only commands into it.
	if a.Control.Desired.N == 0 {
		return false
	}
	there, err := m.State.Time()
	if m.missing {
		return file.Stamp.After(m.missedAt)
	}
	if file.Current != "" && m.State.CurrentState != file.Current {
		return true // the agent reported it while Fairlead replaced its file
	}
	return m.unsure || m.State.DesiredState != file.Desired || m.State.SetBy != file.By || m.State.Note != noteOf(file.Note) ||
		(err == nil && file.Stamp.After(there))
}

// saysAlready reports whether another program wrote the same content that Fairlead would write,
// apart from the timestamp. The file then stays as it is, so that two programs that agree do not
// overwrite each other forever.
func saysAlready(m *AgentFile, want agentstate.State) bool {
	if m.disk == "" {
		return false // the content is unknown
	}
	_, err := m.State.Time()
	return err == nil && m.State.SameAs(want)
}

// saying identifies what the file should say, without timestamp and unknown fields. A new desired
// state counts as different even if it has the same words.
func (c *Controller) saying(a *team.Agent) string {
	file, n := c.loop.State().File(a), a.Control.Desired.N
	if a.Control.Desired.Rested {
		n = 0 // no new desired state: the file was deleted again
	}
	return fmt.Sprintf("%q %q %q %q %d", file.Desired, file.Current, file.By, file.Note, n)
}

// contentOf returns the content to write.
func (c *Controller) contentOf(m *AgentFile, a *team.Agent) agentstate.State {
	file := c.loop.State().File(a)
	if a.Control.State == control.Foreign {
		there := m.State
		if file.Current != "" {
			there.CurrentState = file.Current // the last report, also if the file was malformed or was overwritten by Fairlead
		}
		there.CurrentState = cmp.Or(there.CurrentState, control.WordPause) // it has not reported yet
		return there.WithCommand(file.Desired, file.By, noteOf(file.Note), file.Stamp)
	}
	return stateOf(file)
}

// writeFile starts a write, one at a time for each agent. Later changes are part of the next write:
// the file shows only the newest state, the history is in the journal.
func (c *Controller) writeFile(m *AgentFile, a *team.Agent) {
	if m.Writing || m.seen < m.changed || !c.FileDue(m, a) {
		return
	}
	if c.writers >= WritersMax {
		if !m.queued {
			m.queued = true
			c.unwritten = append(c.unwritten, m)
		}
		return
	}
	said := c.saying(a)
	if !m.Again.IsZero() && (!m.rewriting || said == m.lastContent) { // new content is not rate limited
		return
	}
	m.Again, m.rewriting = time.Time{}, false
	if said == m.lastContent {
		now := c.loop.Now()
		if wait := m.fixes.Wait(now, FixesMax, fixesEvery); wait > 0 {
			m.Again, m.rewriting = now.Add(wait), true
			return
		}
	}
	m.Writing, m.written = true, said
	c.writers++
	state, begun := c.contentOf(m, a), m.seen
	content := state.Render()
	sums := append([]string(nil), a.OwnSums...)
	name := a.Name
	ours := func(sum file.Sum) bool {
		return slices.Contains(sums, string(sum))
	}
	newest := uint64(exchange.AnyLook)
	if a.Control.State == control.Foreign {
		newest = m.seen // only the command is Fairlead's; a write must not replace newer content of the agent
	}
	c.loop.Go(func(ctx context.Context) {
		err := c.opts.Files.Write(ctx, name, content, newest, ours)
		// Do fails only if the loop has stopped; the next start reads the file.
		_, _ = c.loop.Do(ctx, loop.Request{Agent: name, Derive: func(func(team.Event) error) {
			c.fileWritten(writeResult{agent: name, state: state, sum: file.SumOf(content), seen: begun, said: said, err: err})
		}})
	})
}

// writeNext starts writes that waited for a free writer, with the content that is current now.
func (c *Controller) writeNext() {
	for c.writers < WritersMax && len(c.unwritten) > 0 {
		m := c.unwritten[0]
		c.unwritten = c.unwritten[1:]
		m.queued = false
		if a := c.loop.State().Agents[m.Conf.Name]; a != nil {
			c.writeFile(m, a)
		}
	}
	if len(c.unwritten) == 0 {
		c.unwritten = nil
	}
}

// fileWritten records the result of a write. If another program's content was in the way, its
// observation becomes an event, and the result of that event is written instead.
func (c *Controller) fileWritten(w writeResult) {
	m := c.Files[w.agent]
	m.Writing = false
	c.writers--
	var changed *agentstate.Changed
	switch {
	case errors.As(w.err, &changed):
		m.changed = changed.Seen.Seq // the observation is on its way, and decides what is written next
		return
	case errors.Is(w.err, context.Canceled):
		return // the daemon stops
	case w.err != nil:
		if m.Failed != w.err.Error() {
			c.log.Error("agent_state.json cannot be written; Fairlead tries again every second", "agent", w.agent, "error", w.err)
		}
		m.Failed, m.unsure = w.err.Error(), true
		m.Again, m.rewriting = c.loop.Now().Add(fileRetry), false
		return
	}
	m.Failed, m.unsure, m.missing, m.lastContent = "", false, false, w.said
	m.disk, m.State, m.own = w.sum, w.state, true
	if m.seen != w.seen {
		m.disk = "" // another program wrote at the same time: the content is unknown
	}
}

// RenderSum is the checksum of the file content for a projection.
func RenderSum(f control.File) string { return string(stateOf(f).Sum()) }
