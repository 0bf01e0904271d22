package crew

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// The walk treats two crews as equal when no sequence of inputs can distinguish them. What is left out
// of a crew, and why that loses nothing:
//
//   - Ids, numbers of actions, sessions' names, souls, faces: they are only ever compared with
//     themselves, or handed on.
//   - Times. A deadline is armed or it is not, and one that is armed may pass at any moment, alone or
//     with any others: that is more than can happen, so whatever holds here holds.
//   - Expired documents: nothing happens to them, and they have no seat. Notices are for people.
//
// The claim is tested (TestFormLosesNothing): from a crew with all of its past and from its form the
// same deeds lead to the same forms.
type form struct {
	seats       [seatsWalked]spot
	stage       Stage
	open, heard bool
	waits, ends bool
	asks        string // in order: S status, M summon, W wake, R and the seats of a registration
	again       [seatsWalked]bool
}

// spot is the one who sits there.
type spot struct {
	status    Status
	name      string
	who, wake bool // a wake is for it; the lead is yet to be told so
}

const seatsWalked = 3 // at most; a scene may have fewer

// now is when everything happens in a walk.
var now = machinetest.Noon.Add(time.Hour)

// formOf forgets of a crew what does not matter.
func formOf(c *Crew) form {
	l := &c.Lead
	f := form{stage: l.stage(), open: l.Session != "", heard: l.Heard(), waits: !l.Waits.IsZero(), ends: !l.Ends.IsZero()}
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

// due says which of a form's deadlines pass now. The others are yet to come.
type due struct {
	waits, ends, since bool
	hatch              [seatsWalked]bool
}

// crew is one of those that a form stands for.
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
	if f.heard {
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
		doc := &Document{ID: DocID(fmt.Sprint("on-", seat)), Status: s.status, Identity: Identity{Name: s.name, Seat: seat}, CreatedAt: now.Add(-time.Second)}
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

// bookOf is what a person would have written down who saw all that led to a form.
func (f *form) bookOf(c *Crew, b *book) {
	*b = book{t: b.t, crew: c, named: map[DocID]bool{}, soul: map[DocID]Identity{}, grave: map[DocID]Document{}, open: c.Lead.Session, heard: f.heard}
	for id, doc := range c.Docs {
		b.named[id] = doc.Status == Alive
	}
	if f.stage == Asking {
		b.wanted = slices.Clone(c.Lead.Who)
		slices.Sort(b.wanted)
	}
	b.owed = f.open && strings.Contains(f.asks, "S")
	b.remember()
}
