package crew

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
)

// oracle records, from the inputs alone, which members the open lead session has named and the state
// of every member. It uses neither the tables nor decisions of the machine.
type oracle struct {
	t    testing.TB
	crew *Crew // the crew under test

	open        string             // the open lead session
	named       map[DocID]bool     // members that it reported as alive last, to this daemon
	soul        map[DocID]Identity // the whole identity, once it was set
	expiredDocs map[DocID]Document // expired documents as they were when they expired
	wanted      []DocID            // members that a person wants awake, while the lead is asked for a status first
	reported    bool               // the lead reported in this session, to this daemon
	askDue      bool               // a status request is due and was not delivered yet
	lead        Lead               // before the current input
	past        map[DocID]*before  // before the current input
}

type before struct {
	status      Status
	lastAlive   time.Time
	lastSession string
}

func newOracle(t testing.TB, c *Crew) *oracle {
	return &oracle{t: t, crew: c, named: map[DocID]bool{}, soul: map[DocID]Identity{}, expiredDocs: map[DocID]Document{}}
}

// remember records the state of all members before an input.
func (b *oracle) remember() {
	b.past, b.lead = map[DocID]*before{}, b.crew.Lead
	for id, doc := range b.crew.Docs {
		b.past[id] = &before{doc.Status, doc.LastAliveAt, doc.LastSession}
	}
}

// check checks the invariants after every input that was not refused.
func (b *oracle) check(in Input, now Now, changes []change.Change) {
	b.t.Helper()
	b.takes(in)
	for _, rule := range []func(Input, Now) error{b.documents, b.expired, b.word, b.asks, b.progress, b.late, b.otherSessions} {
		if err := rule(in, now); err != nil {
			b.t.Fatalf("after %T %+v at %s: %v\nby %+v\nthe crew is %s", in, in, now.At.Format(time.TimeOnly), err, changes,
				snapshotText(b.t, b.crew))
		}
	}
}

// takes records what an input says.
func (b *oracle) takes(in Input) {
	switch in := in.(type) {
	case LeadBegan:
		b.askDue = b.askDue || in.Adopted || in.Session != b.open && b.lead.Stage != Summoning
		if in.Session != b.open {
			b.open, b.reported, b.named = in.Session, false, map[DocID]bool{}
		} else if in.Adopted {
			b.reported, b.named = false, map[DocID]bool{}
		}
	case LeadEnded:
		if in.Session == b.open {
			b.open, b.reported, b.askDue, b.named = "", false, false, map[DocID]bool{}
		}
	case DaemonStarted:
		b.reported, b.named = false, map[DocID]bool{}
	case ActionReceived:
		if asked, is := b.lead.ActionOf(in.N); is && asked.Do == TellStatus {
			b.askDue = false
		}
	case Reported:
		if in.Session == b.open && b.open != "" && counts(in) {
			b.reported, b.askDue = true, false
			b.report(in)
		}
	case Registered:
		for id, doc := range b.crew.Docs {
			if in.Session == b.open && b.open != "" && doc.Visible() && doc.Seat == in.Seat && doc.Name == in.Name {
				b.named[id] = true
			}
		}
	}
}

// report records the members that a report may mean, by seat or by name. That is the most that the
// crew may conclude from it.
func (b *oracle) report(in Reported) {
	b.named = map[DocID]bool{}
	for id, doc := range b.crew.Docs {
		for _, line := range in.Agents {
			if line.Status == "alive" && doc.Visible() && (line.Seat == doc.Seat || line.Name == doc.Name && doc.Name != "") {
				b.named[id] = true
			}
			if line.Name != doc.Name && line.Seat == doc.Seat { // contradicts the documents, so the status stays
				b.named[id] = true
			}
		}
	}
}

// documents checks that no document is lost, each seat has one member, a soul never changes, and
// only a placeholder has no identity.
func (b *oracle) documents(in Input, _ Now) error {
	on := map[int]DocID{}
	for id := range b.past {
		if b.crew.Docs[id] == nil {
			return fmt.Errorf("%s is lost", id)
		}
	}
	for id, doc := range b.crew.Docs {
		if doc.ID != id {
			return fmt.Errorf("%s is stored as %s", doc.ID, id)
		}
		was, known := b.soul[id]
		switch {
		case doc.Name == "" && doc.Status != Hatching && doc.Status != Expired:
			return fmt.Errorf("%s is %s without an identity", id, doc.Status)
		case doc.Name != "" && doc.Status == Hatching:
			return fmt.Errorf("%s is a placeholder with the name %s", id, doc.Name)
		case doc.Seat < 0 || doc.Seat > 8 || doc.Seat == 4:
			return fmt.Errorf("%s has the seat %d", id, doc.Seat)
		case known && was != doc.Identity:
			return fmt.Errorf("%s changed from %+v to %+v", id, was, doc.Identity)
		case doc.CreatedAt.IsZero():
			return fmt.Errorf("%s has no creation time", id)
		}
		if doc.Name != "" {
			b.soul[id] = doc.Identity
		}
		if other, taken := on[doc.Seat]; taken && doc.Visible() {
			return fmt.Errorf("%s and %s have the seat %d", id, other, doc.Seat)
		}
		if doc.Visible() {
			on[doc.Seat] = id
		}
		if was := b.past[id]; was != nil && doc.Status != was.status && doc.Status != Alive && !doc.LastAliveAt.Equal(was.lastAlive) {
			return fmt.Errorf("%s was last alive when it became %s, by %T", id, doc.Status, in)
		}
	}
	return nil
}

// expired checks that an expired document never changes, except for fields of other programs.
func (b *oracle) expired(Input, Now) error {
	for id, doc := range b.crew.Docs {
		was, dead := b.expiredDocs[id]
		if dead && (was.Status != doc.Status || was.Identity != doc.Identity || !was.CreatedAt.Equal(doc.CreatedAt) ||
			!was.LastAliveAt.Equal(doc.LastAliveAt) || was.LastSession != doc.LastSession) {
			return fmt.Errorf("%s expired as %+v and is now %+v", id, was, *doc)
		}
		if doc.Status == Expired && !dead {
			b.expiredDocs[id] = *doc
		}
	}
	return nil
}

// word checks that a member is alive only by a report of the open lead session to this daemon, and
// that a member which its report omits is asleep.
func (b *oracle) word(in Input, now Now) error {
	l := &b.crew.Lead
	if l.Session != b.open || l.Heard() != b.reported || l.UUID == "" != (l.Session == "") {
		return fmt.Errorf("session %q is open, reported %v; but the crew has %q, reported %v", b.open, b.reported, l.Session, l.Heard())
	}
	for id, doc := range b.crew.Docs {
		was := b.past[id]
		switch {
		case doc.Status == Alive && (b.open == "" || !b.named[id]):
			return fmt.Errorf("%s is alive without a report of a lead", id)
		case doc.Status == Alive && doc.LastSession != l.UUID:
			return fmt.Errorf("%s is alive in %s, but %s is open", id, doc.LastSession, l.UUID)
		case was == nil:
			continue
		case doc.Status == Alive && was.status != Alive && !doc.LastAliveAt.Equal(now.At):
			return fmt.Errorf("%s became alive now, but was last alive at %s", id, doc.LastAliveAt)
		case !doc.LastAliveAt.Equal(was.lastAlive) && doc.Status != Alive:
			return fmt.Errorf("%s is %s, but was reported as alive now", id, doc.Status)
		}
		if _, ended := in.(LeadEnded); ended && was.status == Alive && b.open == "" && doc.Status != Sleeping {
			return fmt.Errorf("the lead's session ended, but %s is %s", id, doc.Status)
		}
		if unheard(in) && b.open == b.lead.Session && (doc.Status == Alive || doc.Status == Sleeping) {
			return fmt.Errorf("%s is %s, but the lead has not reported", id, doc.Status)
		}
		if report, is := in.(Reported); is && report.Session == b.open && b.open != "" {
			if err := reported(b.crew, doc, was, report); err != nil {
				return err
			}
			if contradicted(b.crew, doc, report) && !leftAlone(doc, was, b.lead.Who) {
				return fmt.Errorf("a contradictory report changes %s from %s to %s", id, was.status, doc.Status)
			}
		}
	}
	return nil
}

// counts reports whether a report is none of the faulty ones: too long, or of agents outside of the crew's seats alone.
func counts(in Reported) bool {
	outside := 0
	for _, line := range in.Agents {
		if line.Seat < -1 || line.Seat == 4 || line.Seat > 8 {
			outside++
		}
	}
	return len(in.Agents) <= listedMax && (outside == 0 || outside < len(in.Agents))
}

// reported checks that after a report without contradictions each member has the reported status.
func reported(c *Crew, doc *Document, was *before, in Reported) error {
	if doc.Status == Expired || was.status == Hatching || !counts(in) {
		return nil
	}
	alive := false
	for _, line := range in.Agents {
		if line.Seat == NoSeat || line.Name == "" || !sits(c, line) || line.Status != "alive" {
			return nil // other tests check ambiguous lines
		}
		alive = alive || line.Seat == doc.Seat
	}
	switch {
	case alive && doc.Status != Alive:
		return fmt.Errorf("%s is listed but %s", doc.ID, doc.Status)
	case !alive && doc.Status != Sleeping && (doc.Status != Unknown || !slices.Contains(c.Lead.Who, doc.ID)):
		return fmt.Errorf("%s is not listed but %s", doc.ID, doc.Status)
	}
	return nil
}

// unheard reports whether it is unknown after an input which members are awake.
func unheard(in Input) bool {
	switch in := in.(type) {
	case DaemonStarted:
		return true
	case LeadBegan:
		return in.Adopted
	}
	return false
}

// contradicted reports whether a line of a report puts a member on another's seat or on a seat that
// does not exist, or uses an ambiguous name without a seat; and whether such a line may mean this
// document.
func contradicted(c *Crew, doc *Document, in Reported) bool {
	if !doc.Visible() || !counts(in) {
		return false
	}
	for _, line := range in.Agents {
		same, here := 0, false
		for _, other := range c.Docs {
			if other.Visible() && other.Name == line.Name && line.Name != "" {
				same++
			}
			here = here ||
				other.Visible() && other.Seat == line.Seat && other.Status != Hatching && other.Name != line.Name && line.Name != ""
		}
		named, seated := doc.Name == line.Name && line.Name != "", doc.Seat == line.Seat
		switch {
		case line.Seat == NoSeat:
			if named && same > 1 {
				return true
			}
		case here && (seated || named), named && !seated && !sits(c, line) && !hatches(c, line.Seat):
			return true
		}
	}
	return false
}

func hatches(c *Crew, seat int) bool {
	for _, doc := range c.Docs {
		if doc.Seat == seat && doc.Status == Hatching {
			return true
		}
	}
	return false
}

// leftAlone reports whether a document is unchanged, except for a wake.
func leftAlone(doc *Document, was *before, who []DocID) bool {
	woken := slices.Contains(who, doc.ID) && was.status == Sleeping && doc.Status == Unknown
	return doc.LastAliveAt.Equal(was.lastAlive) && (doc.Status == was.status || woken)
}

// sits reports whether the member that a line names has the seat in the line.
func sits(c *Crew, line Listed) bool {
	for _, doc := range c.Docs {
		if doc.Visible() && doc.Seat == line.Seat && doc.Name == line.Name {
			return true
		}
	}
	return false
}

// asks checks the actions of the lead: they are limited, in order, unique, and belong to the summon
// or wake in progress. No awake member is woken, and each seat is asked about once in a session.
func (b *oracle) asks(Input, Now) error {
	l := &b.crew.Lead
	last, count, pending := uint64(0), map[ActionKind]int{}, map[int]bool{}
	for _, a := range l.Actions {
		if a.N <= last || a.N > l.Number {
			return fmt.Errorf("action %d comes after %d, of %d", a.N, last, l.Number)
		}
		last = a.N
		count[a.Do]++
		switch a.Do {
		case TellSummon:
			if l.Stage != Summoning || len(a.Seats) == 0 {
				return fmt.Errorf("a summon of %v is pending while the stage is %s", a.Seats, l.stage())
			}
		case TellWake:
			if l.Stage != Waking || len(a.Docs) == 0 {
				return fmt.Errorf("a wake of %v is pending while the stage is %s", a.Docs, l.stage())
			}
			for _, id := range a.Docs {
				if doc := b.crew.Docs[id]; doc == nil || doc.Status != Unknown {
					return fmt.Errorf("a wake of %s is pending, which is %+v", id, doc)
				}
			}
		case TellRegister:
			if len(a.Seats) == 0 || len(a.Seats) != len(a.Names) {
				return fmt.Errorf("a registration of %v on %v is pending", a.Names, a.Seats)
			}
			for _, seat := range a.Seats {
				if pending[seat] {
					return fmt.Errorf("two registrations for seat %d are pending", seat)
				}
				pending[seat] = true
			}
		case TellStatus:
			if b.reported {
				return errors.New("a status request is pending right after a report")
			}
		}
	}
	if b.askDue && count[TellStatus] == 0 {
		return errors.New("a status request is due but not pending")
	}
	if len(l.Actions) > asksMax || count[TellStatus] > 1 || count[TellSummon] > 1 || count[TellWake] > 1 {
		return fmt.Errorf("too many actions are pending: %+v", l.Actions)
	}
	again := map[int]bool{}
	for _, seat := range l.Again {
		if again[seat] {
			return fmt.Errorf("the lead was asked to register seat %d twice", seat)
		}
		again[seat] = true
	}
	return nil
}

// progress checks that a summon or wake has a deadline, and that an idle crew has no data of one.
func (b *oracle) progress(in Input, _ Now) error {
	l := &b.crew.Lead
	deadline := b.crew.Deadline()
	switch {
	case !l.InProgress() && (!l.Since.IsZero() || !l.Ends.IsZero() || len(l.Who) > 0):
		return fmt.Errorf("the crew is idle but has data of a summon or wake: %+v", *l)
	case l.InProgress() && (l.Since.IsZero() || deadline.IsZero()):
		return errors.New("a summon or wake has no deadline")
	case l.InProgress() && deadline.After(l.Since.Add(l.hatchMax())):
		return errors.New("a summon or wake exceeds its time limit")
	case l.InProgress() && l.Ends.IsZero() && len(l.Actions) == 0 && l.Session != "":
		return errors.New("the lead has received the action but has no deadline")
	case (l.Stage == Asking || l.Stage == Waking) != (len(l.Who) > 0):
		return fmt.Errorf("%s, for %v", l.stage(), l.Who)
	case !l.Waits.IsZero() && deadline.IsZero():
		return errors.New("the crew waits for a status without a deadline")
	case l.Session == "" && (!l.Waits.IsZero() || len(l.Again) > 0):
		return errors.New("no lead session is open, but the crew waits for a report")
	}
	for _, doc := range b.crew.Docs {
		if doc.Status == Hatching && (deadline.IsZero() || deadline.After(doc.CreatedAt.Add(l.hatchMax()))) {
			return fmt.Errorf("%s is a placeholder since %s without a deadline", doc.ID, doc.CreatedAt)
		}
	}
	return b.wakesWanted(in)
}

// wakesWanted checks that each member that a person wants awake is awake, or that its wake is pending or
// was delivered.
func (b *oracle) wakesWanted(in Input) error {
	l := &b.crew.Lead
	if wake, is := in.(WakeAsked); is && l.Stage == Asking {
		b.wanted = nil
		for id, was := range b.past {
			if (was.status == Sleeping || was.status == Unknown) && (len(wake.Docs) == 0 || slices.Contains(wake.Docs, id)) {
				b.wanted = append(b.wanted, id)
			}
		}
		slices.Sort(b.wanted)
	}
	if report, is := in.(Reported); is && report.Session == b.open && b.open != "" && counts(report) && b.wanted != nil {
		for _, id := range b.wanted {
			asked := slices.ContainsFunc(l.Actions, func(a Action) bool { return a.Do == TellWake && slices.Contains(a.Docs, id) })
			if (b.crew.Docs[id].Status == Alive) == asked {
				return fmt.Errorf("a person wants %s awake, but it is %s; its wake is pending: %v", id, b.crew.Docs[id].Status, asked)
			}
		}
		b.wanted = nil
	}
	if l.Stage != Asking {
		b.wanted = nil
	}
	if b.wanted != nil {
		who := slices.Clone(l.Who)
		if slices.Sort(who); !slices.Equal(who, b.wanted) {
			return fmt.Errorf("a person wants %v awake, but the wake is for %v", b.wanted, l.Who)
		}
	}
	return nil
}

// late checks that no deadline has passed after a timer or a start was handled.
func (b *oracle) late(in Input, now Now) error {
	switch in.(type) {
	case TimerFired, DaemonStarted:
	default:
		return nil
	}
	for id, doc := range b.crew.Docs {
		if doc.Status == Hatching && doc.Name == "" && !doc.CreatedAt.Add(b.crew.Lead.hatchMax()).After(now.At) {
			return fmt.Errorf("%s is still a placeholder since %s", id, doc.CreatedAt.Format(time.TimeOnly))
		}
	}
	if next := b.crew.Deadline(); !next.IsZero() && !next.After(now.At) {
		return fmt.Errorf("the next deadline %s has passed", next.Format(time.TimeOnly))
	}
	return nil
}

// otherSessions checks that markers from other agents or sessions change no document and no action
// of the lead.
func (b *oracle) otherSessions(in Input, _ Now) error {
	var session string
	switch in := in.(type) {
	case Reported:
		session = in.Session
	case Registered:
		session = in.Session
	case Spoke:
		session = in.Session
	case Faulty: // from any session
	default:
		return nil
	}
	if session == b.open && session != "" {
		return nil
	}
	for id, doc := range b.crew.Docs {
		if was := b.past[id]; was == nil || was.status != doc.Status || !was.lastAlive.Equal(doc.LastAliveAt) ||
			was.lastSession != doc.LastSession {
			return fmt.Errorf("a session that does not lead changes %s", id)
		}
	}
	if !reflect.DeepEqual(b.lead, b.crew.Lead) {
		return fmt.Errorf("a session that does not lead changes the actions of the lead, from %+v", b.lead)
	}
	return nil
}

// answered checks that a decision has no side effects, is deterministic, and explains a refusal.
func answered(t testing.TB, c *Crew, in Input, now Now) {
	t.Helper()
	was := snapshotText(t, c)
	changes, err := c.Decide(in, now)
	if is := snapshotText(t, c); is != was {
		t.Fatalf("deciding %T changed the crew:\n%s\n%s", in, was, is)
	}
	again, errAgain := c.Decide(in, now)
	first, _ := json.Marshal(changes)
	second, _ := json.Marshal(again)
	if !bytes.Equal(first, second) || (err == nil) != (errAgain == nil) {
		t.Fatalf("two decisions of %T differ:\n%s\n%s", in, first, second)
	}
	if refusal := new(table.Refusal); err != nil && (!errors.As(err, &refusal) || refusal.Error() == "" || refusal.Row == "") {
		t.Fatalf("%T %+v is refused without a reason: %v", in, in, err)
	}
}
