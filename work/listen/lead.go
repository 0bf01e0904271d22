package listen

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/process/driver"
)

const (
	busyEvery   = 5 * time.Second // interval at which a silent but active lead is reported as active
	HeldMax     = 10_000          // facts within one marker; a longer one is invalid
	MarkersMax  = 64              // per report; a crew has fewer members than this
	TallyMax    = 256             // per minute; the same limit for markers that arrive slowly
	straysMax   = 3               // ignored markers that are reported per session
	strayShown  = 200             // bytes shown of such a line
	strayTagged = "[AGENT_"
)

// leadMarkers are the kinds of marker that a crew lead addresses to Fairlead and not to people.
var leadMarkers = []marker.Kind{marker.AgentStatus, marker.AgentRegistered}

// leadListener finds the markers in the output of a lead, or of MAIN. A marker may arrive in pieces, and the daemon may
// die between two of them. Facts from the start of an incomplete marker are therefore not reported,
// and a restarted daemon reads them again.
type leadListener struct {
	scan marker.Scanner
	held []HeldFact

	within int       // facts since the start of the incomplete marker
	busy   time.Time // time of the last report that the lead is active
}

// HeldFact is a fact together with the pieces that the scanner returned for it.
type HeldFact struct {
	driver.Fact
	pieces []marker.Piece
	ruled  bool // for a permission request: a rule or saved answer decides it
}

func earFor(kinds []marker.Kind) *leadListener {
	return &leadListener{scan: marker.Scanner{Only: kinds}}
}

func (t *leadListener) anew() *leadListener { return earFor(t.scan.Only) }

// hold buffers a fact. A fact that is not speech ends a message, and with it an incomplete marker.
func (t *leadListener) hold(fact driver.Fact) {
	one := HeldFact{Fact: fact}
	switch {
	case fact.Kind == driver.Said && fact.Tool == "":
		text := fact.Text
		if !fact.Part {
			text += "\n"
		}
		one.pieces = t.scan.Write([]byte(text))
	case fact.Kind != driver.UsageReported && fact.Kind != driver.Faulted:
		one.pieces = t.scan.Flush()
	}
	switch {
	case t.scan.Pending() == 0:
		t.within = 0
	case t.within < HeldMax:
		t.within++
	default:
		one.pieces = append(one.pieces, t.scan.Flush()...)
		t.within = 0
	}
	t.held = append(t.held, one)
}

// whole returns the facts that are ready: all of them, or none while a marker is incomplete. last
// means that the output has ended.
func (t *leadListener) whole(last bool) []HeldFact {
	if last {
		if rest := t.scan.Flush(); len(rest) > 0 && len(t.held) > 0 {
			end := &t.held[len(t.held)-1]
			end.pieces = append(end.pieces, rest...)
		}
	}
	if t.scan.Pending() > 0 {
		return nil
	}
	facts := t.held
	t.held = nil
	return facts
}

// works reports whether to record the lead as active: it does something other than speak, or its
// message is incomplete.
func (t *leadListener) works(now time.Time) bool {
	if len(t.held) == 0 || now.Sub(t.busy) < busyEvery {
		return false
	}
	last := t.held[len(t.held)-1]
	silent := last.Kind == driver.Thought || last.Kind == driver.ToolCalled ||
		last.Kind == driver.Said && (last.Tool != "" || t.scan.Pending() > 0)
	if silent {
		t.busy = now
	}
	return silent
}

// takes returns facts immediately. A lead's facts are buffered until the driver has emitted all of
// its facts and no marker is open. some means that there is something to report; urgent means that
// the report must not wait.
func (l *SessionListener) takes(ctx context.Context, h heard) (some, urgent bool, err error) {
	var facts []HeldFact
	switch {
	case l.lead == nil && h.quiet:
		return false, false, nil
	case l.lead == nil:
		facts = []HeldFact{{Fact: h.fact}}
	case !h.quiet:
		l.lead.hold(h.fact)
		if l.work == nil && l.s.IsLead() && l.lead.works(time.Now()) {
			if err := l.spoke(ctx); err != nil {
				return false, false, err
			}
		}
		return false, false, nil
	default:
		facts = l.lead.whole(false)
	}
	return l.hearsAll(ctx, facts)
}

func (l *SessionListener) hearsAll(ctx context.Context, facts []HeldFact) (some, urgent bool, err error) {
	for _, fact := range facts {
		one, err := l.hears(ctx, fact)
		if err != nil {
			return false, false, err
		}
		some = some || one
		urgent = urgent || one && slices.Contains(urgentKinds, fact.Kind)
	}
	return some, urgent || some && l.channel.urgent(), nil
}

// urgentKinds are the facts that must be reported without delay.
var urgentKinds = []driver.FactKind{driver.Stopped, driver.PermissionAsked, driver.PermissionWithdrawn, driver.TextRead}

// spoke records that the lead is active. It carries no output offset, so repeating it is harmless.
func (l *SessionListener) spoke(ctx context.Context) error {
	_, err := l.e.loop.Do(ctx, loop.Request{Event: loop.EventBy(turns.ByAgent(l.m.Conf.Name), "", crew.Spoke{Session: l.s.ID})})
	if loop.IsAnswer(err) {
		return nil
	}
	return err
}

// said handles a message of the lead, split into text and markers.
func (t *channelListener) said(pieces []marker.Piece) {
	for _, piece := range pieces {
		if piece.Marker == nil {
			t.text = append(t.text, piece.Text...)
			continue
		}
		if t.crew.counts() {
			t.part = false // the text before the marker is complete
			if len(t.text) > 0 {
				t.flush(false)
			}
		}
		t.events = t.crew.hears(piece.Marker, t.events)
	}
}

// crewListener turns the markers of a lead's session into events of the crew.
type crewListener struct {
	agent, session string
	tally          tally
}

// counts counts one marker, and reports whether it is within the limits.
func (c *crewListener) counts() bool {
	c.tally.count(time.Now())
	return !c.tally.crowded()
}

// hears adds the event of a marker that was counted to those of the current report.
func (c *crewListener) hears(m *marker.Marker, events []team.Event) []team.Event {
	if c.tally.crowded() {
		return c.passOver(m, events)
	}
	return append(events, c.event(c.means(m)))
}

func (c *crewListener) event(what crew.Input) team.Event {
	return *loop.EventBy(turns.ByAgent(c.agent), "", what)
}

// tally counts markers. Above the limit only the newest report counts, because the journal keeps
// every event.
type tally struct {
	atOnce int // in this report
	since  time.Time
	n      int  // since then, for at most a minute
	said   bool // the excess was already reported
	last   int  // index of the report after the limit among the events, from 1; 0: none yet
}

func (c *tally) count(now time.Time) {
	if now.Sub(c.since) >= time.Minute {
		c.since, c.n, c.said = now, 0, false
	}
	c.n++
	c.atOnce++
}

func (c *tally) crowded() bool { return c.atOnce > MarkersMax || c.n > TallyMax }

// passOver handles a marker above the limit. A complete report replaces the one before it. All other
// markers are dropped, and that is reported once.
func (c *crewListener) passOver(m *marker.Marker, events []team.Event) []team.Event {
	if !c.tally.said {
		c.tally.said = true
		events = append(events,
			c.event(c.faulty(m,
				fmt.Sprintf("more than %d markers at once, or %d in a minute: of this one and those after it only the last report counts",
					MarkersMax, TallyMax))))
	}
	report, ok := c.means(m).(crew.Reported)
	if !ok || report.OutOfRange() {
		return events
	}
	if at := c.tally.last; at > 0 {
		events = slices.Delete(events, at-1, at)
	}
	events = append(events, c.event(report))
	c.tally.last = len(events)
	return events
}

// fresh begins a report.
func (c *crewListener) fresh() {
	if c != nil {
		c.tally.atOnce, c.tally.last = 0, 0
	}
}

// means converts a marker to an input of the crew machine.
func (c *crewListener) means(m *marker.Marker) crew.Input {
	if m.Fault != "" {
		return c.faulty(m, m.Fault)
	}
	if m.Kind == marker.AgentStatus {
		agents, err := crewdocs.ParseStatus(m.JSON)
		if err != nil {
			return c.faulty(m, err.Error())
		}
		return crew.Reported{Session: c.session, Agents: agents}
	}
	who, err := crewdocs.ParseRegistered(m.JSON)
	if err != nil {
		return c.faulty(m, err.Error())
	}
	return crew.Registered{Session: c.session, Identity: who}
}

func (c *crewListener) faulty(m *marker.Marker, fault string) crew.Input {
	return crew.Faulty{Agent: c.agent, Session: c.session, Marker: m.Text, Fault: fault}
}

// tell adds an event that belongs to no channel to the report.
func (t *channelListener) tell(what crew.Input, text string) {
	ev := loop.EventBy(turns.ByAgent(t.agent), "", what)
	ev.Text = text
	t.events = append(t.events, *ev)
}

// strays looks for crew markers in a session whose markers do not count, so that people can see why
// they had no effect.
func (l *SessionListener) strays(fact driver.Fact) (some bool) {
	if fact.Kind != driver.Said || fact.Tool != "" {
		return false
	}
	midway := l.midway
	l.midway = fact.Part
	if l.strayed >= straysMax || !strings.Contains(fact.Text, strayTagged) {
		return false
	}
	for line := range strings.Lines(fact.Text) {
		begins := !midway
		midway = false
		if !begins || l.strayed >= straysMax || !isLeadMarker(line) {
			continue
		}
		l.strayed++
		l.stray = append(l.stray, *loop.EventBy(turns.ByAgent(l.m.Conf.Name), "", crew.Faulty{
			Agent: l.m.Conf.Name, Session: l.s.ID, Marker: clip.Text(strings.TrimSpace(line), strayShown),
		}))
		some = true
	}
	return some
}

func isLeadMarker(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return slices.ContainsFunc([]string{strayTagged + "STATUS]", strayTagged + "REGISTERED]"},
		func(tag string) bool { return strings.HasPrefix(line, tag) })
}

// reportWith appends the ignored markers together with their report.
func (l *SessionListener) reportWith(ctx context.Context, events []team.Event) error {
	events = append(events, *l.m.Event(turns.ByAgent(l.m.Conf.Name), l.Pending))
	_, err := l.e.loop.Do(ctx, loop.Request{Derive: loop.Report(events...)})
	return err
}
