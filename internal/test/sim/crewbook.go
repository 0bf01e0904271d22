package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/team"
)

// crewBook is kept by hand of the lead and its team: what the played lead really said, and what
// the journal made of it. It knows none of the rules' tables. The world's lock guards it.
type crewBook struct {
	docs   map[string]*being
	uuid   map[string]string  // session → the name that documents have for it
	marks  map[string][]*mark // session → what it said of the team, in order
	spoken map[string]heardAs // word → in which session, and by whom, as the journal has it
	bids   map[string]string  // what people ordered, by actor; gone when it is in the journal
	lead   string             // the lead session that runs; empty: none
	since  time.Time          // members are alive only by reports since then
	before crew.Lead          // as the last change had it

	begun   bool              // a person ordered something that a lead session may be opened for
	asks    map[string]int    // lead session → how often it may be asked for a status
	asked   map[string]int    // lead session → how often it was
	adopted bool              // the lead session outlived an engine, and was not asked since
	notice  map[string]int    // session that does not lead → notices of what it said of the team
	passage map[string]string // session → who spoke in the last line that named its speaker
	stage   time.Time         // the ceremony under way began then
	quiet   time.Time         // the lead last said something, or was told something, then
}

// being is a document as the journal has it.
type being struct {
	id, status, name, soul, session string
	seat                            int
	made, alive                     time.Time
	woken                           bool // with what was stored last
}

// heardAs is whose words something is in the transcripts.
type heardAs struct{ session, speaker string }

// mark is a marker that a session has said.
type mark struct {
	end    int64 // bytes of output up to and with it
	kind   string
	listed []entry
	who    crew.Identity
	sound  bool // it means something
	heard  bool
}

const (
	statusMark   = "[AGENT_STATUS]"
	registerMark = "[AGENT_REGISTERED]"
)

// entry is one line of a report. Seat -1: it names none.
type entry struct {
	name, status string
	seat         int
}

func newCrewBook() *crewBook {
	return &crewBook{
		docs: map[string]*being{}, uuid: map[string]string{}, marks: map[string][]*mark{}, spoken: map[string]heardAs{}, bids: map[string]string{},
		asks: map[string]int{}, asked: map[string]int{}, notice: map[string]int{}, passage: map[string]string{},
	}
}

// inOrder lists the documents by id.
func (b *crewBook) inOrder() []*being {
	var all []*being
	for _, is := range b.docs {
		all = append(all, is)
	}
	slices.SortFunc(all, func(a, b *being) int { return cmp.Or(cmp.Compare(len(a.id), len(b.id)), cmp.Compare(a.id, b.id)) })
	return all
}

func (b *crewBook) visible() (n int) {
	for _, is := range b.docs {
		if is.status != "expired" {
			n++
		}
	}
	return n
}

// nth is a document by the number of an act; nil: there are none.
func (b *crewBook) nth(n int) *being {
	all := b.inOrder()
	if len(all) == 0 {
		return nil
	}
	return all[n%len(all)]
}

func (b *crewBook) on(seat int) *being {
	for _, is := range b.docs {
		if is.seat == seat && is.status != "expired" {
			return is
		}
	}
	return nil
}

func (b *crewBook) knows(name string) bool {
	for _, is := range b.docs {
		if is.name == name && name != "" {
			return true
		}
	}
	return false
}

// checkCrew looks at what was stored at once, when all of it is true.
func (w *world) checkCrew(batch []team.Change) {
	b := w.crew
	if w.lead() == "" {
		return
	}
	heard, unsure := w.hears(batch), false
	was := map[int]being{}
	for _, is := range b.docs {
		is.woken = false
		if is.status != "expired" {
			was[is.seat] = *is
		}
	}
	for i := range batch {
		ch := &batch[i]
		switch body := ch.Body; {
		case ch.Trigger == "daemon_started" && body.Team != nil:
			b.since, unsure = ch.At, true
			clear(b.notice) // engines do not remember how often a fault was reported
		case body.Session != nil && body.Session.IsLead():
			unsure = true
			w.checkLeadSession(ch)
		case body.Presence != nil && body.Presence.Doc != nil:
			w.checkDocument(ch, heard)
			unsure = unsure || strings.HasPrefix(ch.Trigger, "imported")
		case body.Presence != nil && body.Presence.Words != nil:
			b.quiet = ch.At // it may be heard long after it was said
			w.checkSpoken(body.Presence.Words)
		case body.Presence != nil:
			w.checkStage(ch)
		}
	}
	if slices.ContainsFunc(heard, func(m *mark) bool { return m.sound && m.kind == statusMark }) {
		b.adopted = false // it said so before it was asked
	}
	w.checkTeam()
	if !unsure && len(heard) > 0 {
		w.checkTaken(was, heard)
	}
}

// hears finds the markers that are heard with what is stored now: their end is not beyond the
// place in the output that is stored, and was. Those of sessions that do not lead mean nothing.
func (w *world) hears(batch []team.Change) (heard []*mark) {
	b := w.crew
	for i := range batch {
		used := batch[i].Body.Used
		if used == nil {
			continue
		}
		for _, m := range b.marks[used.Session] {
			if m.heard || m.end > used.Offset {
				continue
			}
			m.heard = true
			if used.Session == b.lead {
				heard = append(heard, m)
			}
		}
	}
	return heard
}

// checkLeadSession follows the lead's sessions.
func (w *world) checkLeadSession(ch *team.Change) {
	b, s := w.crew, ch.Body.Session
	switch {
	case s.Phase == session.Open && ch.From == string(session.None):
		w.check(ceremonyWanted, b.begun, "%s is opened, but no order was given since the last one ended", s.ID)
		for other, name := range b.uuid {
			w.check(nobodyLost, name != s.UUID || other == s.ID, "%s has the name that %s has in the documents", s.ID, other)
		}
		b.uuid[s.ID], b.quiet = s.UUID, ch.At
		b.asks[s.ID]++ // it may begin with that
	case s.Phase == session.Running && (ch.Trigger == "started" || ch.Trigger == "adopted"):
		w.check(oneSession, b.lead == "" || b.lead == s.ID, "%s leads, and so does %s", s.ID, b.lead)
		b.lead, b.since = s.ID, ch.At
		if b.adopted = ch.Trigger == "adopted"; b.adopted || !w.truth.Crew.Lead.InProgress() {
			b.asks[s.ID]++
		}
	case s.Phase == session.None:
		if b.lead = ""; s.Outcome != "withdrawn" {
			b.begun = false
		}
		b.adopted = false
	}
}

// checkStage looks at what begins and ends between people and the lead.
func (w *world) checkStage(ch *team.Change) {
	b, set := w.crew, ch.Body.Presence.Lead
	if n := ch.Body.Presence.Notice; n != nil {
		w.came("noted: %s", n.Text)
	}
	if n := ch.Body.Presence.Notice; n != nil && n.Kind == crew.NoticeIgnored && n.Session != "" {
		b.notice[n.Session]++
		w.check(reportTaken, b.notice[n.Session] <= 3 || b.uuid[n.Session] != "", "%s does not lead, and what it says of the team was noted %d times", n.Session, b.notice[n.Session])
	}
	if b.quiet = ch.At; set == nil {
		return
	}
	switch ch.Trigger {
	case "summon_asked", "wake_asked", "wake_asked_unheard":
		what, _, _ := strings.Cut(ch.Trigger, "_")
		w.check(ceremonyWanted, b.bids[ch.Actor.ID] == what, "%s is begun for %s, who ordered %q", what, ch.Actor.ID, b.bids[ch.Actor.ID])
		delete(b.bids, ch.Actor.ID)
		b.begun, b.stage = true, ch.At
		if ch.Trigger == "wake_asked_unheard" && b.lead != "" {
			b.asks[b.lead]++
		}
		b.quiet = ch.At
	case "lead_told":
		b.quiet = ch.At
		for _, ask := range b.before.Actions {
			if _, still := set.ActionOf(ask.N); !still && ask.Do == crew.TellStatus {
				b.adopted = false
			}
		}
	case "lead_ended", "fell_silent", "reported":
		if b.lead == "" {
			b.begun = false
		}
	}
	b.before = *set
}

// checkBegins is asked before a change is true: nothing begins while the team is held, or over a
// limit.
func (w *world) checkBegins(ch team.Change) {
	if ch.Body.Presence == nil || ch.Trigger != "summon_asked" && !strings.HasPrefix(ch.Trigger, "wake_asked") {
		return
	}
	w.check(ceremonyWanted, !w.truth.Hold.On && !w.truth.Stopping, "%s begins, and the team is held", ch.Trigger)
	a := w.truth.Agents[w.lead()]
	if limit := w.conf.Agents[w.index(a.Name)].Limits.CostPerDayUSD; limit > 0 && a.Usage.Day == ch.At.Format(time.DateOnly) {
		w.check(ceremonyWanted, a.Usage.CostUSD < limit, "%s begins, and %.2f of %.2f is used up", ch.Trigger, a.Usage.CostUSD, limit)
	}
}
