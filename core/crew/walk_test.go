package crew

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// walkInput is one kind of input of a walk. It applies to any crew.
type walkInput struct {
	name string
	in   func(c *Crew) Input // nil: impossible for this crew
}

// walk is a breadth-first search of all forms of a crew.
type walk struct {
	t          *testing.T
	size       int
	oracle     *oracle
	walkInputs []walkInput
	seen       map[form]from
	todo       []form
	steps      int
}

// from is how a form was first reached.
type from struct {
	form form
	by   string
}

// TestEveryState checks the invariants of a crew (invariants_test.go) in every state that it can
// reach. Without further inputs, every summon and every wake ends, and every placeholder registers
// or expires. With a lead that reports correctly, all members can be awake after any state.
func TestEveryState(t *testing.T) {
	for _, s := range []struct {
		size      int
		few, long bool
	}{{1, false, false}, {2, true, false}, {2, false, true}, {3, true, true}} {
		t.Run(fmt.Sprintf("seats=%d,few=%v", s.size, s.few), func(t *testing.T) {
			if s.long && !long() {
				t.Skip("only with FAIRLEAD_LONG=1")
			}
			if s.size > 1 && testsize.Race {
				t.Skip("not with the race detector, because the code is not concurrent (.ci/run days)")
			}
			began := time.Now()
			w := newWalk(t, s.size, s.few)
			w.visit(formOf(aCrew(t, s.size)), from{})
			for ; len(w.todo) > 0; w.todo = w.todo[1:] { // breadth first, so that the traces are short
				w.from(w.todo[0])
			}
			t.Logf("%d states, %d steps, %.1f s", len(w.seen), w.steps, time.Since(began).Seconds())
		})
	}
}

func newWalk(t *testing.T, size int, few bool) *walk {
	return &walk{t: t, size: size, oracle: &oracle{t: t}, walkInputs: walkInputs(size, few), seen: map[form]from{}}
}

func (w *walk) visit(f form, by from) {
	if _, seen := w.seen[f]; !seen {
		w.seen[f] = by
		w.todo = append(w.todo, f)
	}
}

// from applies every input to one state, lets the crew become idle, and recovers it.
func (w *walk) from(f form) {
	if again := formOf(f.crew(w.size, due{})); again != f {
		w.t.Fatalf("the form of a crew with a form differs:\n%+v\n%+v", f, again)
	}
	for _, d := range w.walkInputs {
		c := f.crew(w.size, due{})
		if in := d.in(c); in != nil {
			w.step(&f, c, d.name, in)
		}
	}
	for _, d := range f.dues(w.size) {
		w.step(&f, f.crew(w.size, d), fmt.Sprintf("timer %+v", d), TimerFired{})
		w.step(&f, f.crew(w.size, d), fmt.Sprintf("daemon start %+v", d), DaemonStarted{})
	}
	w.rests(&f)
	w.recovers(&f)
}

// step applies one input to one state and checks the result.
func (w *walk) step(f *form, c *Crew, name string, in Input) {
	f.bookOf(c, w.oracle)
	at := Now{At: now}
	changes, err := decide(w.t, c, in, at)
	if err != nil {
		return
	}
	for _, ch := range changes {
		c.Apply(ch)
	}
	if w.steps++; w.t.Failed() {
		w.t.FailNow()
	}
	defer func() {
		if w.t.Failed() {
			w.t.Log(w.way(*f) + name)
		}
	}()
	w.oracle.check(in, at, changes)
	w.visit(formOf(c), from{*f, name})
}

// way returns the inputs that lead to a state.
func (w *walk) way(f form) string {
	text := ""
	for by := w.seen[f]; by.by != ""; by = w.seen[by.form] {
		text = by.by + "; " + text
	}
	return text
}

// dues returns every combination of a form's deadlines that may pass at one moment, including no
// deadline.
func (f *form) dues(size int) []due {
	all := []due{{}}
	each := func(armed bool, set func(*due)) {
		if !armed {
			return
		}
		for _, d := range all {
			set(&d)
			all = append(all, d)
		}
	}
	each(f.waits, func(d *due) { d.waits = true })
	each(f.ends, func(d *due) { d.ends = true })
	each(f.stage != Idle, func(d *due) { d.since = true })
	for seat := range size {
		each(f.seats[seat].status == Hatching, func(d *due) { d.hatch[seat] = true })
	}
	return all
}

// rests checks that without further inputs every summon and wake ends and no placeholder stays.
func (w *walk) rests(f *form) {
	c := f.crew(w.size, due{})
	for range 12 {
		at := c.Deadline()
		if at.IsZero() {
			break
		}
		w.apply(c, TimerFired{}, at)
	}
	is := formOf(c)
	hatch := false
	for _, s := range is.seats {
		hatch = hatch || s.status == Hatching
	}
	if is.stage != Idle || hatch || !c.Deadline().IsZero() {
		w.t.Fatalf("%s: the crew does not become idle:\n%+v\n%+v", w.way(*f), *f, is)
	}
}

func (w *walk) apply(c *Crew, in Input, at time.Time) {
	changes, err := decide(w.t, c, in, Now{At: at})
	if err != nil {
		w.t.Fatalf("%T %+v is refused: %v\n%s", in, in, err, snapshotText(w.t, c))
	}
	for _, ch := range changes {
		c.Apply(ch)
	}
}

// recovers checks that all members are awake in the end if the lead does what it is asked and a
// person presses the button whenever it is shown. The lead initially knows only the members that it
// reported as alive.
func (w *walk) recovers(f *form) {
	c, at := f.crew(w.size, due{}), now
	knows := map[DocID]bool{}
	for id, doc := range c.Docs {
		knows[id] = doc.Status == Alive
	}
	report := func() {
		in := Reported{Session: c.Lead.Session}
		for _, doc := range c.InOrder() {
			if doc.Visible() && knows[doc.ID] {
				in.Agents = append(in.Agents, Listed{Name: doc.Name, Status: "alive", Seat: doc.Seat})
			}
		}
		w.apply(c, in, at)
	}
	for range 20 {
		at = at.Add(time.Second)
		switch l := &c.Lead; {
		case c.Button() == NoButton && len(l.Actions) == 0:
			return
		case l.Session == "" && (len(l.Actions) > 0 || c.Button() == WakingButton):
			w.apply(c, LeadBegan{Session: "s9", UUID: "u9"}, at)
		case len(l.Actions) > 0:
			a := l.Actions[0]
			w.apply(c, ActionReceived{N: a.N}, at)
			for _, id := range a.Docs {
				knows[id] = true
			}
			w.registers(c, knows, a.Seats, at)
			report()
		case c.Button() == SummonButton:
			w.apply(c, SummonAsked{}, at)
		case c.Button() == WakeButton:
			w.apply(c, WakeAsked{}, at)
		default: // the lead received it before, and does it now
			for id := range c.Docs {
				knows[id] = true
			}
			w.registers(c, knows, seats(w.size), at)
			report()
		}
	}
	w.t.Fatalf("%s: a correct lead does not wake all members: %s\n%s", w.way(*f), c.Button(), snapshotText(w.t, c))
}

// registers makes the lead register members on some seats.
func (w *walk) registers(c *Crew, knows map[DocID]bool, seats []int, at time.Time) {
	for _, doc := range c.InOrder() {
		for _, seat := range seats {
			if doc.Status == Hatching && doc.Seat == seat {
				w.apply(c, Registered{Session: c.Lead.Session, Identity: Identity{Name: names[seat%2], Seat: seat}}, at)
				knows[doc.ID] = true
			}
		}
	}
}

// TestFormIsEquivalent applies random inputs of a walk: from a crew and from its form, the same
// inputs must lead to the same forms. So the walk visits all states. To repeat a run: -run
// 'FormIsEquivalent/seed=7$'
func TestFormIsEquivalent(t *testing.T) {
	seeds := uint64(60)
	switch {
	case testsize.Race:
		seeds = 10
	case long():
		seeds = 5000
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 77))
			w := newWalk(t, 1+rnd.IntN(seatsWalked), false)
			c, at := aCrew(t, w.size), machinetest.Noon
			for range 300 {
				f, d := formOf(c), w.walkInputs[rnd.IntN(len(w.walkInputs))]
				in, like := d.in(c), d.in(f.crew(w.size, due{}))
				passed := due{}
				if at = at.Add(time.Duration(rnd.IntN(4000)) * time.Millisecond); in == nil || rnd.IntN(4) == 0 {
					if next := c.Deadline(); next.After(at) && rnd.IntN(2) == 0 {
						at = next
					}
					in, passed = []Input{TimerFired{}, DaemonStarted{}}[rnd.IntN(2)], dueAt(c, at)
					like, d.name = in, "time"
				}
				other := f.crew(w.size, passed)
				w.both(c, in, at, other, like, d.name)
			}
		})
	}
}

// both applies an input to a crew and to a crew with its form.
func (w *walk) both(c *Crew, in Input, at time.Time, other *Crew, like Input, name string) {
	w.t.Helper()
	changes, err := decide(w.t, c, in, Now{At: at})
	likewise, errLike := decide(w.t, other, like, Now{At: now})
	if (err == nil) != (errLike == nil) {
		w.t.Fatalf("%s: %v, but with its form: %v\n%s\n%s", name, err, errLike, snapshotText(w.t, c), snapshotText(w.t, other))
	}
	was := snapshotText(w.t, c)
	for _, ch := range changes {
		c.Apply(ch)
	}
	for _, ch := range likewise {
		other.Apply(ch)
	}
	if is, by := formOf(c), formOf(other); is != by {
		w.t.Fatalf("%s leads to\n%+v, but with its form to\n%+v\nfrom %s", name, is, by, was)
	}
}

// dueAt returns which deadlines of a crew have passed.
func dueAt(c *Crew, at time.Time) (d due) {
	l := &c.Lead
	passed := func(t time.Time) bool { return !t.IsZero() && !at.Before(t) }
	d.waits, d.ends = passed(l.Waits), passed(l.Ends)
	d.since = l.InProgress() && passed(l.Since.Add(l.hatchMax()))
	for _, doc := range c.Docs {
		if doc.Status == Hatching && passed(doc.CreatedAt.Add(l.hatchMax())) {
			d.hatch[doc.Seat] = true
		}
	}
	return d
}
