package control

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// races tries every order in which a foreign loop, a person and Fairlead can take their steps with one file. A write of the
// loop takes three steps: it reads, it opens the file, it writes into what it has opened.
type races struct {
	t     *testing.T
	habit habit
	tried map[string]bool
	ends  int
}

// habit is how a loop signs its reports.
type habit struct {
	by, note string        // empty: as read
	step     time.Duration // between two steps
}

// sheet is one content of the file.
type sheet struct {
	desired, current, by, note string
	stamp                      time.Time
}

// race is one moment.
type race struct {
	agent   Control
	at      time.Time
	orders  []string // not given yet
	inodes  []sheet  // contents that were in place, the current one last
	seen    []sheet  // of each: what Fairlead has decided about
	placed  uint64   // number of the desired state that the last write of Fairlead holds
	step    int      // of the loop's program
	read    sheet    // by the loop
	opened  int      // inode
	session string   // the one-shot that the loop works on
	path    string
}

func (r race) clone() race {
	r.inodes, r.seen, r.orders = slices.Clone(r.inodes), slices.Clone(r.seen), slices.Clone(r.orders)
	return r
}

func (r *race) current() int { return len(r.inodes) - 1 }

func (rs *races) decide(r *race, in Input) {
	changes, err := decide(rs.t, &r.agent, in, Now{At: r.at})
	if err != nil {
		rs.t.Fatalf("%s: %v", r.path, err)
	}
	for _, ch := range changes {
		r.agent.Apply(ch)
	}
}

// due reports whether the file differs from what Fairlead last decided.
func (r *race) due() bool {
	want, known := r.agent.File(false), r.seen[r.current()]
	return known.desired != want.Desired || known.by != want.By || known.note != want.Note || want.Stamp.After(known.stamp)
}

// observe lets Fairlead decide about what it finds in one inode.
func (rs *races) observe(r *race, n int) {
	unwritten := r.due() && r.placed != r.agent.Desired.N
	s := r.inodes[n]
	r.seen[n] = s
	rs.decide(r, FileRead{
		Desired: s.desired, Current: s.current, By: s.by, Note: s.note, Stamp: s.stamp, Swapped: n != r.current(), Unwritten: unwritten,
	})
}

// loop takes one step of the program of seed 000: act on what the file says, each write after a read of its own.
func (rs *races) loop(r *race) {
	write := func(desired, current string) {
		s := r.read
		if desired != "" {
			s.desired = desired
		}
		s.current, s.stamp = current, r.at
		if rs.habit.by != "" {
			s.by = rs.habit.by
		}
		switch rs.habit.note {
		case "":
		case "clear":
			s.note = ""
		default:
			s.note = rs.habit.note
		}
		r.inodes[r.opened] = s
	}
	switch r.step {
	case 0: // what is to be done?
		r.session = r.inodes[r.current()].desired
	case 1, 4, 7:
		r.read = r.inodes[r.current()]
	case 2, 5, 8:
		r.opened = r.current()
	case 3:
		write("", r.session)
		if r.session != WordRunOnce {
			r.step = 6
			if r.session == WordContinuous {
				r.step = loopSteps // it goes on
			}
		}
	case 6:
		write(WordPause, WordPause)
	case 9:
		write("", WordPause)
	}
	r.step++
}

const loopSteps = 10

func (rs *races) walk(r race) {
	key := fmt.Sprintf("%+v %+v %v %v %v %d %+v %d %s %s", r.agent.Value, r.inodes, r.seen, r.orders, r.placed, r.step, r.read, r.opened,
		r.session, r.at)
	if r.agent.Before != nil {
		key += fmt.Sprintf("%+v %+v", *r.agent.Before, r.agent.Earlier)
	}
	if rs.tried[key] {
		return
	}
	rs.tried[key] = true
	can := 0
	try := func(name string, do func(*race)) {
		can++
		next := r.clone()
		next.at = next.at.Add(rs.habit.step)
		next.path += " " + name
		do(&next)
		rs.walk(next)
	}
	if r.step < loopSteps {
		try("loop", rs.loop)
	}
	if len(r.orders) > 0 {
		try("order", func(r *race) {
			word := r.orders[0]
			r.orders = r.orders[1:]
			rs.decide(r, Commanded{Desired: word, By: "human", Note: "order " + word})
		})
	}
	for n := range r.inodes {
		if r.inodes[n] != r.seen[n] {
			try(fmt.Sprint("look", n), func(r *race) { rs.observe(r, n) })
		}
	}
	if last := r.current(); r.due() && r.inodes[last] == r.seen[last] { // nothing is replaced that was not decided about
		try("write", func(r *race) {
			f := r.agent.File(false)
			s := sheet{f.Desired, r.inodes[last].current, f.By, f.Note, f.Stamp}
			r.inodes, r.seen, r.placed = append(r.inodes, s), append(r.seen, s), r.agent.Desired.N
		})
	}
	if can > 0 {
		return
	}
	rs.ends++
	if got := r.inodes[r.current()]; got.desired != WordContinuous || r.agent.Desired.State != WordContinuous {
		rs.t.Fatalf("the order is lost: the file says %+v, the journal %+v, after%s", got, r.agent.Desired, r.path)
	}
}

// SPEC C10, F3, F4: a report of current_state never undoes a newer order, whatever setBy says, in every order of the steps of the
// loop, of a person and of Fairlead.
func TestReportsUndoNoOrder(t *testing.T) {
	for i, h := range []habit{
		{step: time.Millisecond},
		{by: "agent", step: time.Millisecond},
		{by: "agent", note: "clear", step: time.Millisecond},
		{by: "agent", step: 7 * time.Second},
		{by: "agent", note: "by the loop", step: time.Millisecond},
		{by: "human", note: "clear", step: time.Millisecond},
		{by: "agent", note: "clear", step: 7 * time.Second},
	} {
		if i >= 4 && !testsize.CI() {
			break
		}
		for _, orders := range [][]string{{WordContinuous}, {WordRunOnce, WordContinuous}} {
			t.Run(fmt.Sprint(h.by, " ", h.note, " ", h.step, " ", orders), func(t *testing.T) {
				foreign := policy
				foreign.Foreign = true
				rs := &races{t: t, habit: h, tried: map[string]bool{}}
				for _, first := range []string{WordPause, WordRunOnce} {
					if first == orders[0] {
						continue
					}
					s := sheet{first, WordPause, "human", "first", machinetest.Noon}
					r := race{
						agent: Control{Name: "coder", Policy: foreign, Value: Value{State: Absent}},
						at:    machinetest.Noon.Add(time.Minute), orders: orders,
					}
					rs.decide(&r, FileRead{Desired: s.desired, Current: s.current, By: s.by, Note: s.note, Stamp: s.stamp, First: true})
					r.inodes, r.seen, r.placed = []sheet{s}, []sheet{s}, r.agent.Desired.N
					rs.walk(r)
				}
				if rs.ends == 0 {
					t.Error("nothing was tried")
				}
				t.Logf("%d moments, %d ends", len(rs.tried), rs.ends)
			})
		}
	}
}

// The twins of TestReportsUndoNoOrder: what a person or the loop orders after it has read the newest order counts, and so does a
// person's order at another Mission Control.
func TestOrdersByFileOfForeignLoops(t *testing.T) {
	foreign := policy
	foreign.Foreign = true
	first := FileRead{Desired: WordPause, Current: WordPause, By: "human", Note: "first", Stamp: machinetest.Noon, First: true}
	for _, c := range []struct {
		name  string
		plays []Input
		want  string
	}{
		{
			"a person pauses with other words",
			[]Input{FileRead{Desired: WordPause, Current: WordPause, By: "human", Note: "stop"}},
			WordPause,
		},
		{
			"a person orders another state",
			[]Input{FileRead{Desired: WordRunCleanup, Current: WordPause, By: "human", Note: "first"}},
			WordRunCleanup,
		},
		{"the loop stops by itself after it has worked on the order", []Input{
			FileRead{Desired: WordContinuous, Current: WordContinuous, By: "agent", Note: "order"},
			FileRead{Desired: WordPause, Current: WordPause, By: "agent", Note: "order"},
		}, WordPause},
		{
			"the loop stops by itself, and keeps the order's note",
			[]Input{FileRead{Desired: WordPause, Current: WordPause, By: "agent", Note: "order"}},
			WordPause,
		},
		{
			"a person pauses after the loop has read the order",
			[]Input{FileRead{Desired: WordPause, Current: WordContinuous, By: "human", Note: "first"}},
			WordPause,
		},
		{
			"the loop reports, signed by itself",
			[]Input{FileRead{Desired: WordPause, Current: WordPause, By: "agent", Note: "first"}},
			WordContinuous,
		},
		{
			"the loop reports, before the order was in the file",
			[]Input{FileRead{Desired: WordPause, Current: WordPause, By: "human", Note: "first", Unwritten: true}},
			WordContinuous,
		},
	} {
		agent := &Control{Name: "coder", Policy: foreign, Value: Value{State: Absent}}
		at := machinetest.Noon
		play := func(in Input) {
			at = at.Add(10 * time.Second)
			if file, ok := in.(FileRead); ok && !file.First {
				file.Stamp = at
				in = file
			}
			changes, err := decide(t, agent, in, Now{At: at})
			if err != nil {
				t.Fatal(err)
			}
			for _, ch := range changes {
				agent.Apply(ch)
			}
		}
		play(first)
		play(Commanded{Desired: WordContinuous, By: "human", Note: "order"})
		for _, in := range c.plays {
			play(in)
		}
		if agent.Desired.State != c.want {
			t.Errorf("%s: the desired state is %+v, want %s", c.name, agent.Desired, c.want)
		}
	}
}

// SPEC C10, X7: also where Fairlead runs the loop, what another program wrote before an order was in the file undoes no order; its
// unknown fields are kept. What it writes later counts.
func TestWrittenBeforeTheOrder(t *testing.T) {
	for name, c := range map[string]struct {
		in    FileRead
		want  string
		extra string
	}{
		"before": {
			FileRead{Desired: WordPause, By: "agent", Stamp: machinetest.Noon.Add(5 * time.Second), Unwritten: true},
			WordContinuous, "",
		},
		"before, with a field": {FileRead{
			Desired: WordPause, By: "agent", Stamp: machinetest.Noon.Add(5 * time.Second), Unwritten: true,
			Extra: "x",
		}, WordContinuous, "x"},
		"written after it": {FileRead{Desired: WordPause, By: "human", Stamp: machinetest.Noon.Add(15 * time.Second)}, WordPause, ""},
		"decided after it": {
			FileRead{Desired: WordPause, By: "human", Stamp: machinetest.Noon.Add(15 * time.Second), Unwritten: true},
			WordPause, "",
		},
		"without a time": {FileRead{Desired: WordPause, By: "human", Unwritten: true}, WordPause, ""},
	} {
		agent := &Control{Name: "coder", Policy: policy, Value: Value{State: Absent}}
		for _, step := range []struct {
			in Input
			at time.Duration
		}{
			{FileRead{Desired: WordPause, Current: WordPause, By: "human", Stamp: machinetest.Noon, First: true}, time.Second},
			{Commanded{Desired: WordContinuous, By: "human"}, 10 * time.Second},
			{c.in, 20 * time.Second},
		} {
			changes, err := decide(t, agent, step.in, Now{At: machinetest.Noon.Add(step.at)})
			if err != nil {
				t.Fatal(err)
			}
			for _, ch := range changes {
				agent.Apply(ch)
			}
		}
		if agent.Desired.State != c.want || agent.Extra != c.extra {
			t.Errorf("%s: %+v, fields %q", name, agent.Desired, agent.Extra)
		}
	}
}
