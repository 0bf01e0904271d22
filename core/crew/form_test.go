package crew

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// form is the canonical form of a crew. The walk treats two crews as equal if no sequence of inputs
// can distinguish them. A form omits the following:
//
//   - Ids, numbers of actions, ids of sessions, souls and faces. They are only compared
//     with themselves, or passed on.
//   - Times. A deadline is set or not. A set deadline may pass at any moment, alone or
//     with others. That allows more sequences than are possible, so every invariant
//     found still holds.
//   - Expired documents, which never change and have no seat, and notices.
//
// TestFormIsEquivalent checks this: the same inputs lead from a crew and from its form to the same
// forms.
type form struct {
	seats          [seatsWalked]spot
	stage          Stage
	open, reported bool
	waits, ends    bool
	asks           string // in order: S a status request, M a summon, W a wake, R and the seats of a registration
	again          [seatsWalked]bool
}

// spot is the member on one seat.
type spot struct {
	status    Status
	name      string
	who, wake bool // a wake is for it; the lead has not received that wake yet
}

const seatsWalked = 3 // the limit; a scene may have fewer

// now is the time of all inputs of a walk.
var now = machinetest.Noon.Add(time.Hour)

// formOf returns the canonical form of a crew.
func formOf(c *Crew) form {
	l := &c.Lead
	f := form{stage: l.stage(), open: l.Session != "", reported: l.Heard(), waits: !l.Waits.IsZero(), ends: !l.Ends.IsZero()}
	for i := range f.seats {
		f.seats[i].status = None
	}
	for _, doc := range c.Docs {
		if doc.Visible() {
			f.seats[doc.Seat] = spot{status: doc.Status, name: doc.Name, who: slices.Contains(l.Who, doc.ID)}
		}
	}
	for _, a := range l.Actions {
		switch a.Do {
		case TellStatus:
			f.asks += "S"
		case TellSummon:
			f.asks += "M"
		case TellWake:
			f.asks += "W"
			for _, id := range a.Docs {
				if doc := c.Docs[id]; doc.Visible() {
					f.seats[doc.Seat].wake = true
				}
			}
		case TellRegister:
			f.asks += "R"
			for _, seat := range a.Seats {
				f.asks += fmt.Sprint(seat)
			}
		}
	}
	for _, seat := range l.Again {
		f.again[seat] = true
	}
	return f
}

// due says which of a form's deadlines have passed.
type due struct {
	waits, ends, since bool
	hatch              [seatsWalked]bool
}

// crew returns a crew with this form.
func (f *form) crew(size int, d due) *Crew {
	c := &Crew{Docs: map[DocID]*Document{}, Made: 100}
	l := &c.Lead
	*l = Lead{Agent: "julian", Size: size, StatusMax: StatusMax, HatchMax: HatchMax, Number: 100}
	if f.stage != Idle {
		l.Stage, l.Since = f.stage, now.Add(-time.Second)
		if d.since {
			l.Since = now.Add(-HatchMax)
		}
	}
	if f.open {
		l.Session, l.UUID = "s1", "u1"
	}
	if f.reported {
		l.Reported = now.Add(-time.Second)
	}
	armed := func(is, passes bool) time.Time {
		switch {
		case !is:
			return time.Time{}
		case passes:
			return now
		default:
			return now.Add(10 * time.Second)
		}
	}
	l.Waits, l.Ends = armed(f.waits, d.waits), armed(f.ends, d.ends || d.since)
	var wake []DocID
	for seat, s := range f.seats {
		if s.status == None {
			continue
		}
		doc := &Document{
			ID: DocID(fmt.Sprint("on-", seat)), Status: s.status, Identity: Identity{Name: s.name, Seat: seat},
			CreatedAt: now.Add(-time.Second),
		}
		if s.status == Hatching && d.hatch[seat] {
			doc.CreatedAt = now.Add(-HatchMax)
		}
		if s.status == Alive {
			doc.LastSession, doc.LastAliveAt = l.UUID, now.Add(-time.Second)
		}
		if s.who {
			l.Who = append(l.Who, doc.ID)
		}
		if s.wake {
			wake = append(wake, doc.ID)
		}
		c.Docs[doc.ID] = doc
	}
	f.tells(l, size, wake)
	for seat, asked := range f.again {
		if asked {
			l.Again = append(l.Again, seat)
		}
	}
	return c
}

func (f *form) tells(l *Lead, size int, wake []DocID) {
	for i, what := range f.asks {
		a := Action{N: uint64(i + 1)}
		switch what {
		case 'S':
			a.Do = TellStatus
		case 'M':
			a.Do, a.Seats = TellSummon, seats(size)
		case 'W':
			a.Do, a.Docs = TellWake, wake
		case 'R':
			a.Do = TellRegister
		default:
			last := &l.Actions[len(l.Actions)-1]
			last.Seats, last.Names = append(last.Seats, int(what-'0')), append(last.Names, "")
			continue
		}
		l.Actions = append(l.Actions, a)
	}
}

// bookOf returns the records for a crew with this form.
func (f *form) bookOf(c *Crew, b *oracle) {
	*b = oracle{
		t: b.t, crew: c, named: map[DocID]bool{}, soul: map[DocID]Identity{}, expiredDocs: map[DocID]Document{},
		open: c.Lead.Session, reported: f.reported,
	}
	for id, doc := range c.Docs {
		b.named[id] = doc.Status == Alive
	}
	if f.stage == Asking {
		b.wanted = slices.Clone(c.Lead.Who)
		slices.Sort(b.wanted)
	}
	b.askDue = f.open && strings.Contains(f.asks, "S")
	b.remember()
}
