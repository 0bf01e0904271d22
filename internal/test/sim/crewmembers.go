package sim

import (
	"slices"

	"github.com/fairlead-dev/fairlead/team"
)

// checkDocument checks a change of one member. heard are the markers that the same append records.
func (w *world) checkDocument(ch *team.Change, heard []*marker) {
	b, set := w.crew, ch.Body.Presence.Doc
	is, known := b.docs[afterSlash(ch.Entity)], true
	if is == nil {
		is, known = &memberDocument{id: afterSlash(ch.Entity), status: "none", seat: -1}, false
		b.docs[is.id] = is
	}
	to, who := string(set.Status), set.Identity
	w.check(memberKept, ch.From == is.status && ch.To == to, "%s is %s, but the change goes from %s to %s (%s)", is, is.status, ch.From, ch.To, to)
	w.check(memberKept, is.status != "expired" || to == "expired", "%s has expired, but becomes %s", is, to)
	w.check(memberKept, is.status != "hatching" || to == "hatching" || to == "alive" || to == "expired", "%s is a placeholder, but becomes %s without an identity", is, to)
	w.check(memberKept, known || who != nil, "%s exists, but has no identity", is)
	if who != nil {
		w.check(memberKept, is.name == "" && (!known || who.Seat == is.seat), "%s gets a second identity: %+v", is, who)
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
		w.check(memberKept, is.name == "" && !ch.At.Before(is.made.Add(hatchMax)), "%s expired at %v, too soon after its creation at %v", is, ch.At, is.made)
	case to == "sleeping" && ch.Trigger == "not_listed":
		w.check(aliveByReport, slices.ContainsFunc(heard, func(m *marker) bool { return m.leavesOut(is) }), "%s falls asleep, but every report lists it as alive", is)
	}
	is.status, is.wokenNow = to, is.wokenNow || ch.Trigger == "woken"
	w.notef("%s is %s", is, to)
}

// checkNew checks a new member: its seat is free, and a summon creates members only if the crew is
// empty.
func (w *world) checkNew(ch *team.Change, is *memberDocument) {
	w.check(memberKept, is.seat >= 0 && is.seat <= 8 && is.seat != 4, "%s has a reserved seat", is)
	for _, other := range w.crew.docs {
		if other == is || other.status == "expired" {
			continue
		}
		w.check(memberKept, ch.To == "expired" || other.seat != is.seat, "%s gets the seat of %s", is, other)
		w.check(memberKept, ch.Trigger != "summoned" || other.made.Equal(ch.At), "a summon creates members, but the crew has %s", other)
	}
}

// checkAlive checks that a member becomes alive only by a report of the current lead session, which
// the same append records.
func (w *world) checkAlive(ch *team.Change, is *memberDocument, heard []*marker) {
	said := slices.ContainsFunc(heard, func(m *marker) bool {
		if m.kind == registerMark {
			return m.valid && m.who.Seat == is.seat && m.who.Name == is.name && (ch.From != "hatching" && ch.From != "none" || m.who.Soul == is.soul)
		}
		return ch.From != "hatching" && ch.From != "none" && m.listsAlive(is)
	})
	w.check(aliveByReport, said, "%s becomes alive (%s) without a report of the running lead session (%s)", is, ch.Trigger, w.crew.lead)
	set := ch.Body.Presence.Doc
	w.check(aliveByReport, set.LastSession == w.crew.uuid[w.crew.lead] && set.LastAliveAt.Equal(ch.At), "%s becomes alive at %v, but its document says %v in %s", is, ch.At, set.LastAliveAt, set.LastSession)
}

// matches reports whether an entry of a report may refer to a member, and whether it can refer to
// no other one.
func (e *entry) matches(is *memberDocument) (may, must bool) {
	if e.seat < 0 {
		return e.name == is.name && is.name != "", false
	}
	same := e.seat == is.seat && (e.name == is.name || e.name == "" || is.name == "")
	return same || e.seat == is.seat || e.name == is.name && is.name != "", same
}

func (m *marker) listsAlive(is *memberDocument) bool {
	if m.kind != statusMark || !m.valid {
		return false
	}
	return slices.ContainsFunc(m.listed, func(e entry) bool {
		may, must := e.matches(is)
		return e.status == "alive" && (must || may && e.seat < 0)
	})
}

// leavesOut reports whether a report allows a member to fall asleep.
func (m *marker) leavesOut(is *memberDocument) bool {
	if m.kind != statusMark || !m.valid {
		return false
	}
	n := 0
	for _, e := range m.listed {
		if _, must := e.matches(is); must && e.status == "alive" {
			n++
		}
	}
	return n == 0 || n < len(m.listed) && slices.ContainsFunc(m.listed, func(e entry) bool { may, _ := e.matches(is); return may && e.status != "alive" })
}

// checkAliveMembers checks that each alive member was reported by the running lead session, and
// after the running engine began to read its output. It holds after every append.
func (w *world) checkAliveMembers() {
	b := w.crew
	seats := map[int]*memberDocument{}
	for _, is := range b.inOrder() {
		if is.status == "alive" {
			w.check(aliveByReport, b.lead != "" && is.session == b.uuid[b.lead] && !is.alive.Before(b.since),
				"%s has been alive since %v in %s, but the lead session is %s (%s) and only reports after %v count", is, is.alive, is.session, b.lead, b.uuid[b.lead], b.since)
		}
		if is.status == "expired" {
			continue
		}
		w.check(memberKept, seats[is.seat] == nil, "%s and %s have the same seat", is, seats[is.seat])
		seats[is.seat] = is
	}
}

// expectedCrew is the expected status of each member by seat. doubt marks seats whose status the
// reports do not determine.
type expectedCrew struct {
	is           map[int]memberDocument
	recheckLater map[int]bool
}

// checkReportsApplied checks that the lead's reports took effect. was is the state of the members
// before them, by seat.
func (w *world) checkReportsApplied(was map[int]memberDocument, heard []*marker) {
	t := expectedCrew{is: was, recheckLater: map[int]bool{}}
	for _, m := range heard {
		switch {
		case !m.valid:
		case m.kind == registerMark:
			t.registers(m.who.Name, m.who.Seat)
		default:
			t.reportKinds(m.listed)
		}
	}
	for seat, want := range t.is {
		is := w.crew.on(seat)
		fine := t.recheckLater[seat] || is != nil && (is.status == want.status || is.wokenNow && want.status == "sleeping")
		w.check(reportApplied, fine, "the reports of the lead make %q on seat %d %s, but it is %v %s", want.name, seat, want.status, is, is.state())
	}
}

func (t *expectedCrew) registers(name string, seat int) {
	is, there := t.is[seat]
	if seat < 0 || seat > 8 || seat == 4 || there && is.name != "" && is.name != name {
		return // this registration is not allowed
	}
	is.seat, is.name, is.status = seat, name, "alive"
	t.is[seat] = is
	delete(t.recheckLater, seat)
}

func (t *expectedCrew) reportKinds(listed []entry) {
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
			possibly, certainly := e.matches(&is)
			certainly = certainly || possibly && e.seat < 0 && names[is.name] == 1
			switch {
			case certainly && e.status == "alive":
				alive++
			case certainly:
				other++
			}
			if possibly {
				may++
			}
		}
		switch t.recheckLater[seat] = false; may {
		case other: // no entry matches it, or no matching entry says alive
			is.status = "sleeping"
		case alive:
			is.status = "alive"
		default:
			t.recheckLater[seat] = true
		}
		t.is[seat] = is
	}
}

func (b *memberDocument) state() string {
	if b == nil {
		return "missing"
	}
	return b.status
}
