package sim

import (
	"slices"

	"github.com/fairlead-dev/fairlead/team"
)

// checkDocument checks a change of one member.
func (w *world) checkDocument(ch *team.Change, heard []*mark) {
	b, set := w.crew, ch.Body.Presence.Doc
	is, known := b.docs[afterSlash(ch.Entity)], true
	if is == nil {
		is, known = &being{id: afterSlash(ch.Entity), status: "none", seat: -1}, false
		b.docs[is.id] = is
	}
	to, who := string(set.Status), set.Identity
	w.check(nobodyLost, ch.From == is.status && ch.To == to, "%s is %s, and is said to go from %s to %s (%s)", is, is.status, ch.From, ch.To, to)
	w.check(nobodyLost, is.status != "expired" || to == "expired", "%s has expired, and is %s", is, to)
	w.check(nobodyLost, is.status != "hatching" || to == "hatching" || to == "alive" || to == "expired", "%s hatches, and is %s without having become anybody", is, to)
	w.check(nobodyLost, known || who != nil, "%s exists, but has no identity", is)
	if who != nil {
		w.check(nobodyLost, is.name == "" && (!known || who.Seat == is.seat), "%s is made another one: %+v", is, who)
		is.seat, is.name, is.soul = who.Seat, who.Name, who.Soul
	}
	if !known {
		is.made, is.session, is.alive = set.CreatedAt, set.LastSession, set.LastAliveAt
		w.checkNew(ch, is)
	}
	switch {
	case to == "alive" && ch.Trigger != "imported_again":
		w.checkAlive(ch, is, heard)
		is.alive, is.session = ch.At, set.LastSession
	case to == "expired" && is.status == "hatching":
		w.check(nobodyLost, is.name == "" && !ch.At.Before(is.made.Add(hatchMax)), "%s expired at %v, and was made at %v", is, ch.At, is.made)
	case to == "sleeping" && ch.Trigger == "not_listed":
		w.check(leadAlone, slices.ContainsFunc(heard, func(m *mark) bool { return m.leavesOut(is) }), "%s sleeps, and no report that was heard leaves it out", is)
	}
	is.status, is.woken = to, is.woken || ch.Trigger == "woken"
	w.came("%s is %s", is, to)
}

// checkNew: a new member takes no occupied seat, and a summon happens only without a crew.
func (w *world) checkNew(ch *team.Change, is *being) {
	w.check(nobodyLost, is.seat >= 0 && is.seat <= 8 && is.seat != 4, "%s has a seat that is reserved", is)
	for _, other := range w.crew.docs {
		if other == is || other.status == "expired" {
			continue
		}
		w.check(nobodyLost, ch.To == "expired" || other.seat != is.seat, "%s is put on the seat of %s", is, other)
		w.check(nobodyLost, ch.Trigger != "summoned" || other.made.Equal(ch.At), "a team is summoned, and %s is there", other)
	}
}

// checkAlive: a member is alive only by a report of the current lead session, recorded with this
// change.
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

// means reports whether a line may mean a member, and whether it can mean no other one.
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

// leavesOut reports whether a report allows a member to be asleep.
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

// taken is how everybody is to be after what the lead said, by seat, as far as that can be said.
type taken struct {
	is    map[int]being
	doubt map[int]bool
}

// checkTaken: what the lead says is taken in. was is how everybody was before, by seat.
func (w *world) checkTaken(was map[int]being, heard []*mark) {
	t := taken{is: was, doubt: map[int]bool{}}
	for _, m := range heard {
		switch {
		case !m.sound:
		case m.kind == registerMark:
			t.registers(m.who.Name, m.who.Seat)
		default:
			t.reports(m.listed)
		}
	}
	for seat, want := range t.is {
		is := w.crew.on(seat)
		fine := t.doubt[seat] || is != nil && (is.status == want.status || is.woken && want.status == "sleeping")
		w.check(reportTaken, fine, "the lead has said of %q on seat %d what makes it %s, and it is %v %s", want.name, seat, want.status, is, is.state())
	}
}

func (t *taken) registers(name string, seat int) {
	is, there := t.is[seat]
	if seat < 0 || seat > 8 || seat == 4 || there && is.name != "" && is.name != name {
		return // it cannot be
	}
	is.seat, is.name, is.status = seat, name, "alive"
	t.is[seat] = is
	delete(t.doubt, seat)
}

func (t *taken) reports(listed []entry) {
	names := map[string]int{}
	for _, is := range t.is {
		names[is.name]++
	}
	for seat, is := range t.is {
		if is.name == "" {
			continue // a placeholder has no identity
		}
		may, alive, other := 0, 0, 0
		for i := range listed {
			e := &listed[i]
			perhaps, sure := e.means(&is)
			sure = sure || perhaps && e.seat < 0 && names[is.name] == 1
			switch {
			case sure && e.status == "alive":
				alive++
			case sure:
				other++
			}
			if perhaps {
				may++
			}
		}
		switch t.doubt[seat] = false; may {
		case other: // in no line, or in none that says alive
			is.status = "sleeping"
		case alive:
			is.status = "alive"
		default:
			t.doubt[seat] = true
		}
		t.is[seat] = is
	}
}

func (b *being) state() string {
	if b == nil {
		return "not there"
	}
	return b.status
}
