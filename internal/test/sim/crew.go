package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/crew"
)

const (
	statusMax = 30 * time.Second // the limits of the specification
	hatchMax  = 5 * time.Minute

	leadCostMax = 0.2 // USD a day, for a lead with a limit
)

// hasLead reports whether a day has a lead. Half of the days do, with and without channels.
func hasLead(seed uint64) bool { return seed/4%2 == 1 }

// configureLead makes one agent the lead: either one without a limit on its sessions, or one with
// short sessions. The crew is small, because each member is a file.
func configureLead(conf *config.Config, seed uint64) {
	if !hasLead(seed) {
		return
	}
	name := []string{"pm", "coder"}[seed/8%2]
	conf.Team.Lead, conf.Team.Size = name, []int{2, 3, 2, 8}[seed/16%4]
	conf.Team.StatusTimeout, conf.Team.HatchTimeout = statusMax, hatchMax
	for i := range conf.Agents {
		if conf.Agents[i].Name == name && seed/64%2 == 0 {
			conf.Agents[i].Limits.CostPerDayUSD = leadCostMax
		}
	}
}

// lead returns the lead's name, or "" on a day without a lead.
func (w crewWorld) lead() string { return w.conf.Team.Lead }

// crewActKinds lists the kinds of acts around a crew with their weights.
var crewActKinds = []struct {
	do     string
	weight int
}{
	{"summon", 3},
	{"wake", 7},
	{"sleep", 3},
	{"run-lead", 7},
	{"import", 2},
	{"add-document", 2},
	{"edit-document", 3},
	{"delete-document", 1},
}

// opening returns the first acts of a day. Most days with a lead begin with a summon. These acts
// come in addition to the random ones.
func opening(seed uint64) []Act {
	if !hasLead(seed) || seed/32%4 == 0 {
		return nil
	}
	return []Act{{Do: "start"}, {Do: "settle"}, {Do: "summon"}, {Do: "run-lead"}}
}

// crewActs lists the same kinds with the words that an act can have.
var crewActs = map[string][]string{
	"summon":          nil,
	"wake":            {"", "", "name", "id", "unknown"},
	"sleep":           nil,
	"run-lead":        nil,
	"import":          documentKinds,
	"add-document":    documentKinds,
	"edit-document":   {"extra", "extra", "alive", "soul", "broken", "same", "empty"},
	"delete-document": nil,
}

// documentKinds are the kinds of documents that come from another device.
var documentKinds = []string{"asleep", "asleep", "alive", "bare", "hatching", "expired", "broken", "nameless", "lead's", "taken", "odd"}

// drawCrewAct chooses the word and the number of an act around the crew.
func drawCrewAct(rnd *rand.Rand, a Act) Act {
	of, is := crewActs[a.Do]
	if !is {
		return a
	}
	a.Target, a.Word, a.MS = "", "", int64(1+rnd.IntN(9))
	if len(of) > 0 {
		a.Word = of[rnd.IntN(len(of))]
	}
	return a
}

// crewAct performs what a person or another program does with the crew. MS is the number of a
// document, or a seat.
func (w crewWorld) crewAct(a Act) {
	if w.lead() == "" {
		return
	}
	switch a.Do {
	case "summon":
		w.crewOrder("summon", func(ctx context.Context, e *app.App, by change.Actor) (uint64, error) {
			return e.Crew.Summon(ctx, by)
		})
	case "wake":
		who := w.wakeTargets(a)
		w.crewOrder("wake", func(ctx context.Context, e *app.App, by change.Actor) (uint64, error) {
			return e.Crew.Wake(ctx, by, who)
		})
	case "sleep":
		w.putToSleep()
	case "run-lead":
		w.runLead()
	case "import":
		documentWorld(w).importDocument(a)
	case "add-document", "edit-document", "delete-document":
		documentWorld(w).changeDocuments(a)
	}
}

// runLead lets enough time pass for the lead to receive an action and to answer it.
func (w crewWorld) runLead() {
	for range 5 {
		w.settle()
		w.pass(3 * time.Second)
	}
	w.settle()
}

// crewOrder has a person give an order under a unique name, so that the order can be found in the
// journal.
func (w crewWorld) crewOrder(what string, order func(ctx context.Context, e *app.App, by change.Actor) (uint64, error)) {
	note := w.note("crew order")
	w.mu.Lock()
	w.crew.orders[note] = what
	w.mu.Unlock()
	by := change.Actor{Kind: "human", ID: note}
	w.order(what, "", func(ctx context.Context, l *engineRun) (uint64, error) { return order(ctx, l.engine, by) })
}

// putToSleep orders the end of the lead session, and checks that a confirmed order ends it.
func (w crewWorld) putToSleep() {
	w.mu.Lock()
	before := w.leadSession()
	w.mu.Unlock()
	w.order("sleep", "", func(ctx context.Context, l *engineRun) (uint64, error) {
		seq, err := l.engine.Crew.Sleep(ctx, byPerson)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil && before != "" && w.leadSession() == before {
			checks(w).check(summonWanted, w.truth.Agents[w.lead()].Session.Ending != "",
				"%s was put to sleep with change %d, but is not ending", before, seq)
		}
		return seq, err
	})
}

// leadSession returns the id of the open lead session, or "". The caller holds the lock.
func (w crewWorld) leadSession() string {
	if a := w.truth.Agents[w.lead()]; a != nil && a.Session.IsLead() {
		return a.Session.ID
	}
	return ""
}

// wakeTargets returns the members that a wake is for; nil means all.
func (w crewWorld) wakeTargets(a Act) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := w.crew.nth(int(a.MS))
	switch {
	case a.Word == "" || is == nil:
		return nil
	case a.Word == "unknown":
		return []string{"not-a-member"}
	case a.Word == "name" && is.name != "":
		return []string{is.name}
	default:
		return []string{is.id}
	}
}

// checkLastWake runs at the end of every day with a lead, after a night in which all members fell
// asleep. The lead reports correctly, so a wake must bring back all members. The lead session stays
// open for checkLastMessages.
func (w crewWorld) checkLastWake() {
	if w.lead() == "" || w.failed() {
		return
	}
	w.mu.Lock()
	w.wellBehaved = true
	n := w.crew.visible()
	w.mu.Unlock()
	channelWorld(w).channelAct(Act{Do: "enable", Target: w.lead()})
	w.settle()
	do := Act{Do: "wake"}
	if n == 0 {
		do = Act{Do: "summon"}
	}
	w.crewAct(do)
	w.settle()
	for range 24 { // eight seconds each: the wake may have to wait while the lead answers in channels
		if w.failed() || !w.summonInProgress() {
			break
		}
		w.pass(8 * time.Second)
		w.settle()
	}
	w.checkSettled()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		return
	}
	checks(w).check(summonEnds, !w.truth.Crew.Lead.InProgress(), "%s does not end although the lead answers: %+v", do.Do, w.truth.Crew.Lead)
	for _, is := range w.crew.docs {
		checks(w).check(reportApplied, is.status == "expired" || is.status == "alive",
			"after %s the lead reported all members as alive, but %s is %s", do.Do, is, is.status)
	}
	checks(w).check(reportApplied, w.truth.Crew.Button() == crew.NoButton, "all members are alive, but the button says %s",
		w.truth.Crew.Button())
}

func (w crewWorld) summonInProgress() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.truth.Crew.Lead.InProgress()
}

// checkLastSleep puts the crew to sleep, and checks that only a person wakes it.
func (w crewWorld) checkLastSleep() {
	if w.lead() == "" || w.failed() {
		return
	}
	w.putToSleep()
	w.settle()
	for range 4 {
		w.pass(grace)
		w.settle()
	}
	w.do(Act{Do: "crash"})
	w.oneEngine()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		return
	}
	checks(w).check(summonWanted, w.crew.lead == "", "the crew was put to sleep, but %s runs", w.crew.lead)
	for _, is := range w.crew.docs {
		checks(w).check(aliveByReport, is.status != "alive", "the crew was put to sleep, but %s is alive", is)
	}
}

func (b *memberDocument) String() string {
	return fmt.Sprintf("%s (%q, seat %d)", b.id, b.name, b.seat)
}

// checkDocument checks a change of one member. heard are the markers that the same append records.
func (w crewWorld) checkDocument(ch *change.Change, heard []*marker) {
	b, set := w.crew, change.As[crew.Body](ch.Body).Doc
	is, known := b.docs[afterSlash(ch.Entity)], true
	if is == nil {
		is, known = &memberDocument{id: afterSlash(ch.Entity), status: "none", seat: -1}, false
		b.docs[is.id] = is
	}
	to, who := string(set.Status), set.Identity
	checks(w).check(memberKept, ch.From == is.status && ch.To == to, "%s is %s, but the change goes from %s to %s (%s)", is, is.status,
		ch.From, ch.To, to)
	checks(w).check(memberKept, is.status != "expired" || to == "expired", "%s has expired, but becomes %s", is, to)
	checks(w).check(memberKept, is.status != "hatching" || to == "hatching" || to == "alive" || to == "expired",
		"%s is a placeholder, but becomes %s without an identity", is, to)
	checks(w).check(memberKept, known || who != nil, "%s exists, but has no identity", is)
	if who != nil {
		checks(w).check(memberKept, is.name == "" && (!known || who.Seat == is.seat), "%s gets a second identity: %+v", is, who)
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
		checks(w).check(memberKept, is.name == "" && !ch.At.Before(is.made.Add(hatchMax)),
			"%s expired at %v, too soon after its creation at %v", is, ch.At, is.made)
	case to == "sleeping" && ch.Trigger == "not_listed":
		checks(w).check(aliveByReport, slices.ContainsFunc(heard, func(m *marker) bool { return m.leavesOut(is) }),
			"%s falls asleep, but every report lists it as alive", is)
	}
	is.status, is.wokenNow = to, is.wokenNow || ch.Trigger == "woken"
	w.notef("%s is %s", is, to)
}

// checkNew checks a new member: its seat is free, and a summon creates members only if the crew is
// empty.
func (w crewWorld) checkNew(ch *change.Change, is *memberDocument) {
	checks(w).check(memberKept, is.seat >= 0 && is.seat <= 8 && is.seat != 4, "%s has a reserved seat", is)
	for _, other := range w.crew.docs {
		if other == is || other.status == "expired" {
			continue
		}
		checks(w).check(memberKept, ch.To == "expired" || other.seat != is.seat, "%s gets the seat of %s", is, other)
		checks(w).check(memberKept, ch.Trigger != "summoned" || other.made.Equal(ch.At), "a summon creates members, but the crew has %s",
			other)
	}
}

// checkAlive checks that a member becomes alive only by a report of the current lead session, which
// the same append records.
func (w crewWorld) checkAlive(ch *change.Change, is *memberDocument, heard []*marker) {
	said := slices.ContainsFunc(heard, func(m *marker) bool {
		if m.kind == registerMark {
			return m.valid && m.who.Seat == is.seat && m.who.Name == is.name &&
				(ch.From != "hatching" && ch.From != "none" || m.who.Soul == is.soul)
		}
		return ch.From != "hatching" && ch.From != "none" && m.listsAlive(is)
	})
	checks(w).check(aliveByReport, said, "%s becomes alive (%s) without a report of the running lead session (%s)", is, ch.Trigger,
		w.crew.lead)
	set := change.As[crew.Body](ch.Body).Doc
	checks(w).check(aliveByReport, set.LastSession == w.crew.uuid[w.crew.lead] && set.LastAliveAt.Equal(ch.At),
		"%s becomes alive at %v, but its document says %v in %s", is, ch.At, set.LastAliveAt, set.LastSession)
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
	return n == 0 ||
		n < len(m.listed) &&
			slices.ContainsFunc(m.listed, func(e entry) bool { may, _ := e.matches(is); return may && e.status != "alive" })
}

// checkAliveMembers checks that each alive member was reported by the running lead session, and
// after the running engine began to read its output. It holds after every append.
func (w crewWorld) checkAliveMembers() {
	b := w.crew
	seats := map[int]*memberDocument{}
	for _, is := range b.inOrder() {
		if is.status == "alive" {
			checks(w).check(aliveByReport, b.lead != "" && is.session == b.uuid[b.lead] && !is.alive.Before(b.since),
				"%s has been alive since %v in %s, but the lead session is %s (%s) and only reports after %v count", is, is.alive,
				is.session, b.lead, b.uuid[b.lead], b.since)
		}
		if is.status == "expired" {
			continue
		}
		checks(w).check(memberKept, seats[is.seat] == nil, "%s and %s have the same seat", is, seats[is.seat])
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
func (w crewWorld) checkReportsApplied(was map[int]memberDocument, heard []*marker) {
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
		checks(w).check(reportApplied, fine, "the reports of the lead make %q on seat %d %s, but it is %v %s", want.name, seat, want.status,
			is, is.state())
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
