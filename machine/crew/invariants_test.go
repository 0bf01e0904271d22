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

	"github.com/fairlead-dev/fairlead/machine"
)

// book is what a patient person would write down beside a team: whom the lead session that is open
// has named, and what everybody was. It is kept from the inputs alone, and asks neither the tables
// nor the machine's own judgement.
type book struct {
	t    testing.TB
	crew *Crew // that the book is about

	open   string             // the lead session
	named  map[DocID]bool     // alive by its last word about them, to this daemon
	soul   map[DocID]Identity // whole, once it was set
	grave  map[DocID]Document // an expired one, as it was when it expired
	wanted []DocID            // whom a person wants awake, while the lead is asked first
	heard  bool               // it reported in this session, to this daemon
	owed   bool               // it is to be asked who is awake, and was not told so yet
	lead   Lead               // before the input that is looked at
	past   map[DocID]*before  // what it was before the input that is looked at
}

type before struct {
	status      Status
	lastAlive   time.Time
	lastSession string
}

func newBook(t testing.TB, c *Crew) *book {
	return &book{t: t, crew: c, named: map[DocID]bool{}, soul: map[DocID]Identity{}, grave: map[DocID]Document{}}
}

// remember notes what everybody is, before an input.
func (b *book) remember() {
	b.past, b.lead = map[DocID]*before{}, b.crew.Lead
	for id, doc := range b.crew.Docs {
		b.past[id] = &before{doc.Status, doc.LastAliveAt, doc.LastSession}
	}
}

// check is what must hold after every input that was not refused.
func (b *book) check(in Input, now Now, changes []Change) {
	b.t.Helper()
	b.takes(in)
	for _, rule := range []func(Input, Now) error{b.documents, b.graves, b.word, b.asks, b.ceremony, b.late, b.strangers} {
		if err := rule(in, now); err != nil {
			b.t.Fatalf("after %T %+v at %s: %v\nby %+v\nthe team is %s", in, in, now.At.Format(time.TimeOnly), err, changes, snapshotText(b.t, b.crew))
		}
	}
}

// takes writes down what an input says.
func (b *book) takes(in Input) {
	switch in := in.(type) {
	case LeadBegan:
		b.owed = b.owed || in.Adopted || in.Session != b.open && b.lead.Stage != Summoning
		if in.Session != b.open {
			b.open, b.heard, b.named = in.Session, false, map[DocID]bool{}
		} else if in.Adopted {
			b.heard, b.named = false, map[DocID]bool{}
		}
	case LeadEnded:
		if in.Session == b.open {
			b.open, b.heard, b.owed, b.named = "", false, false, map[DocID]bool{}
		}
	case DaemonStarted:
		b.heard, b.named = false, map[DocID]bool{}
	case ActionTold:
		if told, is := b.lead.ActionOf(in.N); is && told.Do == TellStatus {
			b.owed = false
		}
	case Reported:
		if in.Session == b.open && b.open != "" && len(in.Agents) <= listedMax {
			b.heard, b.owed = true, false
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

// report records the members that a report may mean, by seat or by name. This is at least what the
// crew may believe.
func (b *book) report(in Reported) {
	b.named = map[DocID]bool{}
	for id, doc := range b.crew.Docs {
		for _, line := range in.Agents {
			if line.Status == "alive" && doc.Visible() && (line.Seat == doc.Seat || line.Name == doc.Name && doc.Name != "") {
				b.named[id] = true
			}
			if line.Name != doc.Name && line.Seat == doc.Seat { // contradicts us: as it was
				b.named[id] = true
			}
		}
	}
}

// documents: no document is lost, each seat has one member, a soul never changes, and only a
// placeholder has no identity.
func (b *book) documents(in Input, _ Now) error {
	on := map[int]DocID{}
	for id := range b.past {
		if b.crew.Docs[id] == nil {
			return fmt.Errorf("%s is lost", id)
		}
	}
	for id, doc := range b.crew.Docs {
		if doc.ID != id {
			return fmt.Errorf("%s is kept as %s", doc.ID, id)
		}
		was, known := b.soul[id]
		switch {
		case doc.Name == "" && doc.Status != Hatching && doc.Status != Expired:
			return fmt.Errorf("%s is %s and nobody", id, doc.Status)
		case doc.Name != "" && doc.Status == Hatching:
			return fmt.Errorf("%s hatches and is %s", id, doc.Name)
		case doc.Seat < 0 || doc.Seat > 8 || doc.Seat == 4:
			return fmt.Errorf("%s sits on seat %d", id, doc.Seat)
		case known && was != doc.Identity:
			return fmt.Errorf("%s was %+v, and is %+v", id, was, doc.Identity)
		case doc.CreatedAt.IsZero():
			return fmt.Errorf("%s was never made", id)
		}
		if doc.Name != "" {
			b.soul[id] = doc.Identity
		}
		if other, taken := on[doc.Seat]; taken && doc.Visible() {
			return fmt.Errorf("%s and %s sit on seat %d", id, other, doc.Seat)
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

// graves: an expired document never changes, except for fields of other programs.
func (b *book) graves(Input, Now) error {
	for id, doc := range b.crew.Docs {
		was, dead := b.grave[id]
		if dead && (was.Status != doc.Status || was.Identity != doc.Identity || !was.CreatedAt.Equal(doc.CreatedAt) || !was.LastAliveAt.Equal(doc.LastAliveAt) || was.LastSession != doc.LastSession) {
			return fmt.Errorf("%s expired as %+v, and is %+v", id, was, *doc)
		}
		if doc.Status == Expired && !dead {
			b.grave[id] = *doc
		}
	}
	return nil
}

// word: who is alive is so by the word of the lead session that is open, to this daemon. And whom
// its report leaves out sleeps.
func (b *book) word(in Input, now Now) error {
	l := &b.crew.Lead
	if l.Session != b.open || l.Heard() != b.heard || l.UUID == "" != (l.Session == "") {
		return fmt.Errorf("session %q is open, heard %v; and the crew has %q, heard %v", b.open, b.heard, l.Session, l.Heard())
	}
	for id, doc := range b.crew.Docs {
		was := b.past[id]
		switch {
		case doc.Status == Alive && (b.open == "" || !b.named[id]):
			return fmt.Errorf("%s is alive, and no lead says so", id)
		case doc.Status == Alive && doc.LastSession != l.UUID:
			return fmt.Errorf("%s is alive in %s, and %s is open", id, doc.LastSession, l.UUID)
		case was == nil:
			continue
		case doc.Status == Alive && was.status != Alive && !doc.LastAliveAt.Equal(now.At):
			return fmt.Errorf("%s is alive since now, and was last at %s", id, doc.LastAliveAt)
		case !doc.LastAliveAt.Equal(was.lastAlive) && doc.Status != Alive:
			return fmt.Errorf("%s is %s, and was alive just now", id, doc.Status)
		}
		if _, ended := in.(LeadEnded); ended && was.status == Alive && b.open == "" && doc.Status != Sleeping {
			return fmt.Errorf("the lead is gone, and %s is %s", id, doc.Status)
		}
		if unheard(in) && b.open == b.lead.Session && (doc.Status == Alive || doc.Status == Sleeping) {
			return fmt.Errorf("%s is %s, and the lead has not been heard", id, doc.Status)
		}
		if report, is := in.(Reported); is && report.Session == b.open && b.open != "" {
			if err := reported(b.crew, doc, was, report); err != nil {
				return err
			}
			if contradicted(b.crew, doc, report) && !leftAlone(doc, was, b.lead.Who) {
				return fmt.Errorf("a report contradicts itself or us about %s, who was %s and is %s", id, was.status, doc.Status)
			}
		}
	}
	return nil
}

// reported: by a report that has no fault, everybody is what it says.
func reported(c *Crew, doc *Document, was *before, in Reported) error {
	if doc.Status == Expired || was.status == Hatching || len(in.Agents) > listedMax {
		return nil
	}
	alive := false
	for _, line := range in.Agents {
		if line.Seat == NoSeat || line.Name == "" || !sits(c, line) || line.Status != "alive" {
			return nil // what may be meant is another test's
		}
		alive = alive || line.Seat == doc.Seat
	}
	switch {
	case alive && doc.Status != Alive:
		return fmt.Errorf("%s is listed, and %s", doc.ID, doc.Status)
	case !alive && doc.Status != Sleeping && (doc.Status != Unknown || !slices.Contains(c.Lead.Who, doc.ID)):
		return fmt.Errorf("%s is not listed, and %s", doc.ID, doc.Status)
	}
	return nil
}

// unheard: an input after which it is unknown which members are awake.
func unheard(in Input) bool {
	switch in := in.(type) {
	case DaemonStarted:
		return true
	case LeadBegan:
		return in.Adopted
	}
	return false
}

// contradicted reports whether some line of a report puts a member on another's seat or on a seat
// that does not exist, or uses an ambiguous name without a seat; and whether the line may mean this
// document.
func contradicted(c *Crew, doc *Document, in Reported) bool {
	if !doc.Visible() || len(in.Agents) > listedMax {
		return false
	}
	for _, line := range in.Agents {
		same, here := 0, false
		for _, other := range c.Docs {
			if other.Visible() && other.Name == line.Name && line.Name != "" {
				same++
			}
			here = here || other.Visible() && other.Seat == line.Seat && other.Status != Hatching && other.Name != line.Name && line.Name != ""
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

// leftAlone: it is as it was, unless a wake is for it, and it is told to be woken.
func leftAlone(doc *Document, was *before, who []DocID) bool {
	woken := slices.Contains(who, doc.ID) && was.status == Sleeping && doc.Status == Unknown
	return doc.LastAliveAt.Equal(was.lastAlive) && (doc.Status == was.status || woken)
}

// sits says whether the one whom a line names sits where it says.
func sits(c *Crew, line Listed) bool {
	for _, doc := range c.Docs {
		if doc.Visible() && doc.Seat == line.Seat && doc.Name == line.Name {
			return true
		}
	}
	return false
}

// asks: what the lead will be told is bounded, ordered, said once, and belongs to the current
// ceremony. No awake member is woken, and each seat is asked about once a session.
func (b *book) asks(Input, Now) error {
	l := &b.crew.Lead
	last, count, pending := uint64(0), map[ActionKind]int{}, map[int]bool{}
	for _, a := range l.Actions {
		if a.N <= last || a.N > l.Number {
			return fmt.Errorf("errand %d comes after %d, of %d", a.N, last, l.Number)
		}
		last = a.N
		count[a.Do]++
		switch a.Do {
		case TellSummon:
			if l.Stage != Summoning || len(a.Seats) == 0 {
				return fmt.Errorf("the lead is to summon %v while %s", a.Seats, l.stage())
			}
		case TellWake:
			if l.Stage != Waking || len(a.Docs) == 0 {
				return fmt.Errorf("the lead is to wake %v while %s", a.Docs, l.stage())
			}
			for _, id := range a.Docs {
				if doc := b.crew.Docs[id]; doc == nil || doc.Status != Unknown {
					return fmt.Errorf("the lead is to wake %s, who is %+v", id, doc)
				}
			}
		case TellRegister:
			if len(a.Seats) == 0 || len(a.Seats) != len(a.Names) {
				return fmt.Errorf("the lead is to register %v on %v", a.Names, a.Seats)
			}
			for _, seat := range a.Seats {
				if pending[seat] {
					return fmt.Errorf("the lead is to register somebody on seat %d twice", seat)
				}
				pending[seat] = true
			}
		case TellStatus:
			if b.heard {
				return errors.New("the lead is to be asked what it has just said")
			}
		}
	}
	if b.owed && count[TellStatus] == 0 {
		return errors.New("the lead was never asked who is awake, and will not be")
	}
	if len(l.Actions) > asksMax || count[TellStatus] > 1 || count[TellSummon] > 1 || count[TellWake] > 1 {
		return fmt.Errorf("the lead is to be told too much: %+v", l.Actions)
	}
	again := map[int]bool{}
	for _, seat := range l.Again {
		if again[seat] {
			return fmt.Errorf("seat %d was asked about twice", seat)
		}
		again[seat] = true
	}
	return nil
}

// ceremony: one that is under way ends by itself, one that is not has left nothing behind.
func (b *book) ceremony(in Input, _ Now) error {
	l := &b.crew.Lead
	deadline := b.crew.Deadline()
	switch {
	case !l.InProgress() && (!l.Since.IsZero() || !l.Ends.IsZero() || len(l.Who) > 0):
		return fmt.Errorf("nothing is under way, and something stands: %+v", *l)
	case l.InProgress() && (l.Since.IsZero() || deadline.IsZero()):
		return errors.New("something is under way, and nothing ends it")
	case l.InProgress() && deadline.After(l.Since.Add(l.hatchMax())):
		return errors.New("something is under way for longer than it may be")
	case l.InProgress() && l.Ends.IsZero() && len(l.Actions) == 0 && l.Session != "":
		return errors.New("the lead was told, and has for ever")
	case (l.Stage == Asking || l.Stage == Waking) != (len(l.Who) > 0):
		return fmt.Errorf("%s, for %v", l.stage(), l.Who)
	case !l.Waits.IsZero() && deadline.IsZero():
		return errors.New("a status is waited for, for ever")
	case l.Session == "" && (!l.Waits.IsZero() || len(l.Again) > 0):
		return errors.New("nobody is there, and something is waited for")
	}
	for _, doc := range b.crew.Docs {
		if doc.Status == Hatching && (deadline.IsZero() || deadline.After(doc.CreatedAt.Add(l.hatchMax()))) {
			return fmt.Errorf("%s hatches since %s, and nothing ends it", doc.ID, doc.CreatedAt)
		}
	}
	return b.wishes(in)
}

// A member that a person wants awake is awake, or the lead was told to wake it.
func (b *book) wishes(in Input) error {
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
	if report, is := in.(Reported); is && report.Session == b.open && b.open != "" && len(report.Agents) <= listedMax && b.wanted != nil {
		for _, id := range b.wanted {
			told := slices.ContainsFunc(l.Actions, func(a Action) bool { return a.Do == TellWake && slices.Contains(a.Docs, id) })
			if (b.crew.Docs[id].Status == Alive) == told {
				return fmt.Errorf("a person wants %s awake, it is %s, and the lead is to wake it: %v", id, b.crew.Docs[id].Status, told)
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
			return fmt.Errorf("a person wants %v awake, and the wake is for %v", b.wanted, l.Who)
		}
	}
	return nil
}

// late: once a timer or a start has looked, nothing stands that was due.
func (b *book) late(in Input, now Now) error {
	switch in.(type) {
	case TimerFired, DaemonStarted:
	default:
		return nil
	}
	for id, doc := range b.crew.Docs {
		if doc.Status == Hatching && doc.Name == "" && !doc.CreatedAt.Add(b.crew.Lead.hatchMax()).After(now.At) {
			return fmt.Errorf("%s hatches since %s", id, doc.CreatedAt.Format(time.TimeOnly))
		}
	}
	if next := b.crew.Deadline(); !next.IsZero() && !next.After(now.At) {
		return fmt.Errorf("the next deadline is %s, which is past", next.Format(time.TimeOnly))
	}
	return nil
}

// Reports from other agents or sessions change no document, and nothing that the lead is
// told.
func (b *book) strangers(in Input, _ Now) error {
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
		if was := b.past[id]; was == nil || was.status != doc.Status || !was.lastAlive.Equal(doc.LastAliveAt) || was.lastSession != doc.LastSession {
			return fmt.Errorf("somebody who does not lead changes %s", id)
		}
	}
	if !reflect.DeepEqual(b.lead, b.crew.Lead) {
		return fmt.Errorf("somebody who does not lead changes what the lead is to do, from %+v", b.lead)
	}
	return nil
}

// answered: a decision changes nothing by itself, says the same twice, and refuses in words.
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
		t.Fatalf("%T is decided one way and another:\n%s\n%s", in, first, second)
	}
	if refusal := new(machine.Refusal); err != nil && (!errors.As(err, &refusal) || refusal.Error() == "" || refusal.Row == "") {
		t.Fatalf("%T %+v is refused, and nobody says why: %v", in, in, err)
	}
}
