package listen

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/controller/channels"

	"github.com/fairlead-dev/fairlead/crewfile"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/marker"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	busyEvery   = 5 * time.Second // so often a lead that works without a word is known not to be silent
	HeldMax     = 10_000          // facts within one marker: a document of more lines is none
	MarkersMax  = 64              // of one report: whoever says more at once than a team has seats is mistaken
	TallyMax    = 256             // of a minute: the same, said slowly
	straysMax   = 3               // markers of the team in a session whose word does not count: then it is known
	strayShown  = 200             // bytes of such a line
	strayTagged = "[AGENT_"
)

// leadMarkers are what the lead of a team says to us and not to people.
var leadMarkers = []marker.Kind{marker.AgentStatus, marker.AgentRegistered}

// leadEar finds a lead's markers in what it says. A marker comes in pieces, and a daemon may die
// between two of them; so nothing from its beginning on is heard before it is whole, and what was
// not heard is heard again by the daemon after us.
type leadEar struct {
	scan marker.Scanner
	held []HeldFact

	within int       // facts since the marker that is under way began
	busy   time.Time // when it was last said that the lead works
}

// heldFact is a fact, and what the scanner gave back with it.
type HeldFact struct {
	driver.Fact
	pieces []marker.Piece
	ruled  bool // of a question for permission: nobody need be waited for
}

func newLeadEar() *leadEar { return earFor(leadMarkers) }

func earFor(kinds []marker.Kind) *leadEar { return &leadEar{scan: marker.Scanner{Only: kinds}} }

func (t *leadEar) anew() *leadEar { return earFor(t.scan.Only) }

// hold takes a fact in. Whatever is not speech ends a message, and with it a marker that is not
// whole.
func (t *leadEar) hold(fact driver.Fact) {
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

// whole gives what may be acted on: everything, or nothing while a marker is under way. last: no
// more will come.
func (t *leadEar) whole(last bool) []HeldFact {
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

// works says whether the lead is to be known to be at work: it does something that is not speech,
// or says something that is not whole yet.
func (t *leadEar) works(now time.Time) bool {
	if len(t.held) == 0 || now.Sub(t.busy) < busyEvery {
		return false
	}
	last := t.held[len(t.held)-1]
	silent := last.Kind == driver.Thought || last.Kind == driver.ToolCalled || last.Kind == driver.Said && (last.Tool != "" || t.scan.Pending() > 0)
	if silent {
		t.busy = now
	}
	return silent
}

// takes is how a session is heard: a fact at once, those of a lead when all that the driver had
// to tell was told and no marker is under way. some: there is something to report; urgent: soon.
func (l *Ear) takes(ctx context.Context, h heard) (some, urgent bool, err error) {
	var facts []HeldFact
	switch {
	case l.lead == nil && h.quiet:
		return false, false, nil
	case l.lead == nil:
		facts = []HeldFact{{Fact: h.fact}}
	case !h.quiet:
		l.lead.hold(h.fact)
		if l.work == nil && l.lead.works(time.Now()) {
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

func (l *Ear) hearsAll(ctx context.Context, facts []HeldFact) (some, urgent bool, err error) {
	for _, fact := range facts {
		one, err := l.hears(ctx, fact)
		if err != nil {
			return false, false, err
		}
		some = some || one
		urgent = urgent || one && slices.Contains(urgentKinds, fact.Kind)
	}
	return some, urgent || some && l.talk.urgent(), nil
}

// urgentKinds are the facts that somebody waits for.
var urgentKinds = []driver.FactKind{driver.Stopped, driver.PermissionAsked, driver.PermissionWithdrawn}

// spoke says that the lead is not silent. It says nothing of a place in the output: to say it
// again does no harm.
func (l *Ear) spoke(ctx context.Context) error {
	_, err := l.e.Do(ctx, loop.Request{Event: loop.EventBy(channels.ByAgent(l.m.Conf.Name), "", crew.Spoke{Session: l.s.ID})})
	if loop.IsAnswer(err) {
		return nil
	}
	return err
}

// said takes in what a lead said, taken apart: words are words, and a marker counts where it
// stands.
func (t *talkEar) said(pieces []marker.Piece) {
	for _, piece := range pieces {
		if piece.Marker == nil {
			t.text = append(t.text, piece.Text...)
			continue
		}
		if t.tally.count(time.Now()); t.tally.crowded() {
			t.passOver(piece.Marker)
			continue
		}
		t.part = false // what was said before it is whole
		if len(t.text) > 0 {
			t.flush(false)
		}
		t.tell(t.means(piece.Marker), "")
	}
}

// tally counts markers. Whoever says too many of them is heard with his last report alone: a
// journal that is kept for ever is no place for all of them, and the newest word is the one that
// counts.
type tally struct {
	atOnce int // in this report
	since  time.Time
	n      int  // since then, a minute at most
	said   bool // that there are too many
	last   int  // place of the report behind the limit among the events, from 1; 0: none yet
}

func (c *tally) count(now time.Time) {
	if now.Sub(c.since) >= time.Minute {
		c.since, c.n, c.said = now, 0, false
	}
	c.n++
	c.atOnce++
}

func (c *tally) crowded() bool { return c.atOnce > MarkersMax || c.n > TallyMax }

// passOver takes in a marker that is one too many: a report that is whole goes in the place of the one
// before it, and all others are dropped, which is said once.
func (t *talkEar) passOver(m *marker.Marker) {
	if !t.tally.said {
		t.tally.said = true
		t.tell(t.faulty(m, fmt.Sprintf("more than %d markers at once, or %d in a minute: of this one and those after it only the last report counts", MarkersMax, TallyMax)), "")
	}
	report, ok := t.means(m).(crew.Reported)
	if !ok {
		return
	}
	if at := t.tally.last; at > 0 {
		t.events = slices.Delete(t.events, at-1, at)
	}
	t.tell(report, "")
	t.tally.last = len(t.events)
}

// means is what a marker says.
func (t *talkEar) means(m *marker.Marker) crew.Input {
	if m.Fault != "" {
		return t.faulty(m, m.Fault)
	}
	if m.Kind == marker.AgentStatus {
		agents, err := crewfile.ParseStatus(m.JSON)
		if err != nil {
			return t.faulty(m, err.Error())
		}
		return crew.Reported{Session: t.session, Agents: agents}
	}
	who, err := crewfile.ParseRegistered(m.JSON)
	if err != nil {
		return t.faulty(m, err.Error())
	}
	return crew.Registered{Session: t.session, Identity: who}
}

func (t *talkEar) faulty(m *marker.Marker, fault string) crew.Input {
	return crew.Faulty{Agent: t.agent, Session: t.session, Marker: m.Text, Fault: fault}
}

// tell adds something to the report that is not about a channel.
func (t *talkEar) tell(what crew.Input, text string) {
	ev := loop.EventBy(channels.ByAgent(t.agent), "", what)
	ev.Text = text
	t.events = append(t.events, *ev)
}

// strays looks for markers of the team in what a session says whose word does not count, so that
// a person sees why nothing came of them.
func (l *Ear) strays(fact driver.Fact) (some bool) {
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
		l.stray = append(l.stray, *loop.EventBy(channels.ByAgent(l.m.Conf.Name), "", crew.Faulty{
			Agent: l.m.Conf.Name, Session: l.s.ID, Marker: loop.CutText(strings.TrimSpace(line), strayShown),
		}))
		some = true
	}
	return some
}

func isLeadMarker(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return slices.ContainsFunc([]string{strayTagged + "STATUS]", strayTagged + "REGISTERED]"}, func(tag string) bool { return strings.HasPrefix(line, tag) })
}

// reportWith has strays put into the journal with the report that they belong to.
func (l *Ear) reportWith(ctx context.Context, events []team.Event) error {
	events = append(events, *l.m.Event(channels.ByAgent(l.m.Conf.Name), l.Pending))
	_, err := l.e.Do(ctx, loop.Request{Events: events})
	return err
}
