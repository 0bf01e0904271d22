package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine/presence"
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
	since  time.Time          // nobody is known to be alive but by what was heard since then
	before presence.Lead      // as the last change had it

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
	begin, end int64 // bytes of output
	kind       string
	listed     []entry
	who        presence.Identity
	sound      bool // it means something
	heard      bool
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
			clear(b.notice) // how often somebody was heard is no engine's to remember
		case body.Session != nil && body.Session.Leads():
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
	case s.Phase == team.Opened && ch.From == string(team.None):
		w.check(ceremonyWanted, b.begun, "%s is opened, and nobody has ordered anything since the last one ended", s.ID)
		for other, name := range b.uuid {
			w.check(nobodyLost, name != s.UUID || other == s.ID, "%s has the name that %s has in the documents", s.ID, other)
		}
		b.uuid[s.ID], b.quiet = s.UUID, ch.At
	case s.Phase == team.Running && (ch.Trigger == "started" || ch.Trigger == "adopted"):
		w.check(oneSession, b.lead == "" || b.lead == s.ID, "%s leads, and so does %s", s.ID, b.lead)
		b.lead, b.since = s.ID, ch.At
		b.asks[s.ID]++
		b.adopted = ch.Trigger == "adopted"
	case s.Phase == team.None:
		if b.lead = ""; s.Outcome != "withdrawn" {
			b.begun = false
		}
		b.adopted = false
	}
}

// checkDocument looks at what becomes of one agent of the team.
func (w *world) checkDocument(ch *team.Change, heard []*mark) {
	b, set := w.crew, ch.Body.Presence.Doc
	id := afterSlash(ch.Entity)
	is, known := b.docs[id], true
	if is == nil {
		is, known = &being{id: id, status: "none", seat: -1}, false
		b.docs[id] = is
	}
	to, who := string(set.Status), set.Identity
	w.check(nobodyLost, ch.From == is.status && ch.To == to, "%s is %s, and is said to go from %s to %s (%s)", is, is.status, ch.From, ch.To, to)
	w.check(nobodyLost, is.status != "expired" || to == "expired", "%s has expired, and is %s", is, to)
	w.check(nobodyLost, is.status != "hatching" || to == "hatching" || to == "alive" || to == "expired", "%s hatches, and is %s without having become anybody", is, to)
	if who != nil {
		w.check(nobodyLost, is.name == "" && (!known || who.Seat == is.seat), "%s is made another one: %+v", is, who)
		is.seat, is.name, is.soul = who.Seat, who.Name, who.Soul
	}
	w.check(nobodyLost, known || who != nil, "%s is there, and is nobody", is)
	if !known {
		is.made = set.CreatedAt
		other := 0
		for _, one := range b.docs {
			if one.seat == is.seat && one.status != "expired" && one.status != "none" {
				other++
			}
		}
		w.check(nobodyLost, to == "expired" || other == 0, "%s is put on a seat that is taken", is)
		w.check(nobodyLost, is.seat >= 0 && is.seat <= 8 && is.seat != 4, "%s has a seat that nobody may have", is)
		if ch.Trigger == "summoned" {
			for _, one := range b.docs {
				w.check(nobodyLost, one.status == "expired" || one.status == "none" || one.made.Equal(ch.At), "a team is summoned, and %s is there", one)
			}
		}
	}
	switch {
	case to == "alive" && ch.Trigger != "imported_again":
		w.checkAlive(ch, is, heard)
		is.alive, is.session = ch.At, set.LastSession
	case to == "expired" && is.status == "hatching":
		w.check(nobodyLost, is.name == "" && !ch.At.Before(is.made.Add(hatchMax)), "%s expired at %v, and was made at %v", is, ch.At, is.made)
	case to == "sleeping" && ch.Trigger == "not_listed":
		w.check(leadAlone, slices.ContainsFunc(heard, func(m *mark) bool { return m.leavesOut(is) }), "%s sleeps, and no report that was heard leaves it out", is)
	case !known:
		is.session, is.alive = set.LastSession, set.LastAliveAt
	}
	is.status, is.woken = to, is.woken || ch.Trigger == "woken"
	w.came("%s is %s", is, to)
}

// checkAlive: nobody is alive but by what the lead session that runs has said, heard with this.
func (w *world) checkAlive(ch *team.Change, is *being, heard []*mark) {
	said := slices.ContainsFunc(heard, func(m *mark) bool {
		if m.kind == registerMark {
			return m.sound && m.who.Seat == is.seat && m.who.Name == is.name && (ch.From != "hatching" && ch.From != "none" || m.who.Soul == is.soul)
		}
		return ch.From != "hatching" && ch.From != "none" && m.lists(is)
	})
	w.check(leadAlone, said, "%s is alive (%s), and the lead session that runs (%s) has not said so now", is, ch.Trigger, w.crew.lead)
	set := ch.Body.Presence.Doc
	w.check(leadAlone, set.LastSession == w.crew.uuid[w.crew.lead] && set.LastAliveAt.Equal(ch.At), "%s is alive at %v, and its document says %v in %s", is, ch.At, set.LastAliveAt, set.LastSession)
}

// means says whether a line may mean somebody, and whether it can mean nobody else.
func (e *entry) means(is *being) (may, must bool) {
	if e.seat < 0 {
		return e.name == is.name && is.name != "", false
	}
	same := e.seat == is.seat && (e.name == is.name || e.name == "" || is.name == "")
	return same || e.seat == is.seat || e.name == is.name && is.name != "", same
}

func (m *mark) lists(is *being) bool {
	if m.kind != statusMark || !m.sound {
		return false
	}
	return slices.ContainsFunc(m.listed, func(e entry) bool {
		may, must := e.means(is)
		return e.status == "alive" && (must || may && e.seat < 0)
	})
}

// leavesOut says whether somebody may sleep by a report.
func (m *mark) leavesOut(is *being) bool {
	if m.kind != statusMark || !m.sound {
		return false
	}
	n := 0
	for _, e := range m.listed {
		if _, must := e.means(is); must && e.status == "alive" {
			n++
		}
	}
	return n == 0 || n < len(m.listed) && slices.ContainsFunc(m.listed, func(e entry) bool { may, _ := e.means(is); return may && e.status != "alive" })
}

// checkTeam is true whatever happened: who is alive, is so in the lead session that runs, and
// since it was heard by the engine that runs.
func (w *world) checkTeam() {
	b := w.crew
	seats := map[int]*being{}
	for _, is := range b.inOrder() {
		if is.status == "alive" {
			w.check(leadAlone, b.lead != "" && is.session == b.uuid[b.lead] && !is.alive.Before(b.since),
				"%s is alive since %v in %s; the lead session is %s (%s), and what was said before %v does not count", is, is.alive, is.session, b.lead, b.uuid[b.lead], b.since)
		}
		if is.status == "expired" {
			continue
		}
		w.check(nobodyLost, seats[is.seat] == nil, "%s and %s sit on one seat", is, seats[is.seat])
		seats[is.seat] = is
	}
}

// checkTaken: what the lead says is taken in. was is how everybody was before, by seat.
func (w *world) checkTaken(was map[int]being, heard []*mark) {
	want, doubt := map[int]string{}, map[int]bool{}
	names := map[string]int{}
	for seat, is := range was {
		want[seat] = is.status
		names[is.name]++
	}
	name := func(seat int) string { return was[seat].name }
	for _, m := range heard {
		switch {
		case !m.sound:
		case m.kind == registerMark:
			seat := m.who.Seat
			is, there := was[seat]
			if seat < 0 || seat > 8 || seat == 4 || there && is.name != "" && is.name != m.who.Name {
				continue // it cannot be
			}
			if !there || is.name == "" {
				names[m.who.Name]++
			}
			is.seat, is.name = seat, m.who.Name
			was[seat], want[seat] = is, "alive"
			delete(doubt, seat)
		default:
			for seat := range was {
				is := was[seat]
				may, alive, other := 0, 0, 0
				for i := range m.listed {
					e := &m.listed[i]
					if m, must := e.means(&is); m {
						may++
						switch {
						case (must || e.seat < 0 && names[is.name] == 1) && e.status == "alive":
							alive++
						case must || e.seat < 0 && names[is.name] == 1:
							other++
						}
					}
				}
				hatches := is.name == ""
				switch {
				case hatches:
				case may == other: // none, or none that says alive
					want[seat] = "sleeping"
					delete(doubt, seat)
				case may == alive:
					want[seat] = "alive"
					delete(doubt, seat)
				default:
					doubt[seat] = true
				}
			}
		}
	}
	for seat, status := range want {
		is := w.crew.on(seat)
		if doubt[seat] {
			continue
		}
		fine := is != nil && (is.status == status || is.woken && status == "sleeping")
		w.check(reportTaken, fine, "the lead has said of %q on seat %d what makes it %s, and it is %v %s", name(seat), seat, status, is, is.state())
	}
}

func (b *being) state() string {
	if b == nil {
		return "not there"
	}
	return b.status
}

// checkStage looks at what begins and ends between people and the lead.
func (w *world) checkStage(ch *team.Change) {
	b, set := w.crew, ch.Body.Presence.Lead
	if n := ch.Body.Presence.Notice; n != nil {
		w.came("noted: %s", n.Text)
	}
	if n := ch.Body.Presence.Notice; n != nil && n.Kind == presence.NoticeIgnored && n.Session != "" {
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
		for _, ask := range b.before.Asks {
			if _, still := set.AskOf(ask.N); !still && ask.Do == presence.TellStatus {
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

// checkSpoken: what is said in a lead session apart from channels is in the journal once, in its
// order, under the name of who said it.
func (w *world) checkSpoken(said *presence.Words) {
	b := w.crew
	w.check(saidOnce, !shows(said.Text), "a marker is shown as conversation: %q", said.Text)
	for _, name := range isWord.FindAllString(said.Text, -1) {
		word := w.book.words[name]
		if word == nil {
			w.broken(saidOnce, "%q is in the transcripts, and nobody has said %s", said.Text, name)
			return
		}
		word.times++
		word.at = "the transcripts"
		w.check(saidOnce, word.times == 1, "%s is in the journal %d times", name, word.times)
		w.check(saidOnce, word.n > w.book.last[word.session], "%s is in the transcripts after something that %s said later", name, word.session)
		w.book.last[word.session] = word.n
		w.check(saidOnce, said.Session == b.uuid[word.session] || said.Session == word.session, "%s was said in %s (%s), and the transcripts have it in %s", name, word.session, b.uuid[word.session], said.Session)
		w.check(saidOnce, strings.HasPrefix(word.key, "tell_") && strings.Contains(word.key, "//"), "%s answers %q, and is in no channel", name, word.key)
		w.checkSpeaker(word, name, said)
		b.spoken[name] = heardAs{said.Session, said.Speaker}
	}
}

// shows says whether a marker stands in what people read.
func shows(text string) bool {
	return strings.Contains(text, statusMark) || strings.Contains(text, registerMark)
}

// checkSpeaker: a line that names who speaks counts as his, where the team knows him. One that
// names nobody may go on with what was said by another one before it.
func (w *world) checkSpeaker(word *word, name string, said *presence.Words) {
	b, lead := w.crew, w.lead()
	switch who := word.speaker; {
	case who != "" && (who == lead || b.knows(who)):
		b.passage[word.session] = who
		w.check(saidOnce, said.Speaker == who, "%s was said for %s, and the transcripts say %s", name, who, said.Speaker)
	default:
		w.check(saidOnce, said.Speaker == lead || said.Speaker == b.passage[word.session], "%s was said by %s, and the transcripts say %s", name, lead, said.Speaker)
	}
}
