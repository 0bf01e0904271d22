package notice

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

var coverage = machinetest.NewCoverage()

// TestMain also fails if no test used some row of the table.
func TestMain(m *testing.M) {
	coverage.Main(m, machinetest.Numbered("G", 4), machinetest.Table{Rows: Table.Rows()})
}

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func person() Target {
	return Target{Name: "phone", Events: Events(), PerHour: 4}
}

func asks(n int, since time.Time) Notice {
	return Notice{Event: NeedsYou, Cause: fmt.Sprint("question/q", n), Since: since, Why: "it asks"}
}

// world simulates a target over time. Each due message is sent at once.
type world struct {
	t       *testing.T
	target  Target
	record  Record
	started time.Time
	now     time.Time
	open    []Notice
	log     []string // time since the start: events and causes
	fails   *Failure
}

func newWorld(t *testing.T, target Target) *world {
	return &world{t: t, target: target, started: noon, now: noon}
}

// until advances the time, and calls Plan whenever the last plan asks for it.
func (w *world) until(at time.Duration) {
	w.t.Helper()
	end := noon.Add(at)
	for range 10_000 {
		p := w.target.Plan(w.record, w.open, w.started, w.now)
		if len(p.Notices) > 0 {
			w.send(p)
			if w.fails != nil {
				w.now = w.now.Add(time.Minute)
			}
			continue
		}
		if p.Again.IsZero() || p.Again.After(end) {
			w.now = end
			return
		}
		if !p.Again.After(w.now) {
			w.t.Fatalf("the plan at %v asks for another call at %v", w.now, p.Again)
		}
		w.now = p.Again
	}
	w.t.Fatal("the plan never stops sending")
}

func (w *world) send(p Plan) {
	w.outcome(Sent{Target: w.target.Name, Notices: p.Marks(), Counted: len(p.More), Began: w.started, Failure: w.fails}, w.now)
	if w.fails != nil {
		w.log = append(w.log, fmt.Sprintf("%v failed", w.now.Sub(noon)))
		return
	}
	var words []string
	for _, m := range p.Notices {
		words = append(words, string(m.Event)+" "+m.Cause)
	}
	line := fmt.Sprintf("%v %s", w.now.Sub(noon), strings.Join(words, ", "))
	if len(p.More) > 0 {
		line += fmt.Sprintf(" and %d more", len(p.More))
	}
	w.log = append(w.log, line)
}

// outcome records the outcome of a message, and reports whether the record changed.
func (w *world) outcome(s Sent, at time.Time) bool {
	next, rule, changed := w.record.After(s, at)
	coverage.Row(rule.ID)
	coverage.Pair("", string(w.record.State()), string(s.Outcome()))
	if changed && next.State() != rule.To {
		w.t.Errorf("%s leads to %s", rule.ID, next.State())
	}
	if changed {
		w.record = next
	}
	return changed
}

func (w *world) want(lines ...string) {
	w.t.Helper()
	if !slices.Equal(w.log, lines) {
		w.t.Errorf("sent:\n%s\nwant:\n%s", strings.Join(w.log, "\n"), strings.Join(lines, "\n"))
	}
}

// TestReminder checks that a notice is sent once at once and once more after a quarter of an hour,
// but not after it was answered.
func TestReminder(t *testing.T) {
	w := newWorld(t, person())
	w.open = []Notice{asks(1, noon)}
	w.until(time.Hour)
	w.want("0s needs_you question/q1", "15m0s still_needs_you question/q1")

	w = newWorld(t, person())
	w.open = []Notice{asks(1, noon)}
	w.until(14 * time.Minute)
	w.open = nil // answered
	w.until(time.Hour)
	w.want("0s needs_you question/q1")

	w = newWorld(t, Target{Name: "late", Events: []Event{StillNeedsYou}, PerHour: 4})
	w.open = []Notice{asks(1, noon)}
	w.until(time.Hour)
	w.want("15m0s still_needs_you question/q1")
}

// TestRestart checks that the next daemon continues with the record: no notice is sent twice, and
// the reminder is sent when it is due.
func TestRestart(t *testing.T) {
	w := newWorld(t, person())
	w.open = []Notice{asks(1, noon)}
	w.until(5 * time.Minute)
	w.started = noon.Add(5 * time.Minute)
	w.open = append(w.open, asks(2, noon.Add(4*time.Minute))) // it began while no daemon ran
	w.until(time.Hour)
	w.want("0s needs_you question/q1", "5m0s needs_you question/q2", "15m0s still_needs_you question/q1",
		"20m0s still_needs_you question/q2")
}

// TestEvents checks that a target is sent only the events that it chose.
func TestEvents(t *testing.T) {
	for _, chosen := range Events() {
		w := newWorld(t, Target{Name: "x", Events: []Event{chosen}, PerHour: 100})
		for _, e := range Events() {
			if e != StillNeedsYou {
				w.open = append(w.open, Notice{Event: e, Cause: "c/" + string(e), Since: noon})
			}
		}
		w.until(time.Hour)
		switch {
		case chosen == StillNeedsYou:
			w.want("15m0s still_needs_you c/needs_you")
		default:
			w.want(fmt.Sprintf("0s %s c/%s", chosen, chosen))
		}
	}
	if usual := Usual(); slices.Contains(usual, Finished) || len(usual) != len(Events())-1 {
		t.Errorf("the default events are %v", usual)
	}
}

// TestPast checks that notices from before the first use of a target are not sent, and that later
// ones are, also across a restart.
func TestPast(t *testing.T) {
	w := newWorld(t, person())
	failed := func(n int, at time.Duration) Notice {
		return Notice{Event: RunFailed, Cause: fmt.Sprint("run/r", n), Since: noon.Add(at), Past: true}
	}
	w.open = []Notice{failed(1, -time.Hour), failed(2, time.Second)}
	w.now = noon.Add(time.Second)
	w.until(time.Minute)
	w.started = noon.Add(2 * time.Minute)
	w.open = append(w.open, failed(3, time.Minute)) // the last daemon crashed before it sent this
	w.until(time.Hour)
	w.want("1s run_failed run/r2", "1m0s run_failed run/r3")
}

// TestSameCause checks that an agent that reaches its limit every minute causes a notice every ten
// minutes.
func TestSameCause(t *testing.T) {
	w := newWorld(t, Target{Name: "x", Events: Events(), PerHour: 100})
	for minute := range 25 {
		at := noon.Add(time.Duration(minute) * time.Minute)
		w.open = []Notice{{Event: LimitReached, Cause: "provider/coder", Since: at}}
		w.until(time.Duration(minute)*time.Minute + 30*time.Second)
	}
	w.want("0s limit_reached provider/coder", "10m0s limit_reached provider/coder", "20m0s limit_reached provider/coder")
	again := asks(1, noon) // a step that asks again is another notice, because it waits for a person
	w = newWorld(t, person())
	w.open = []Notice{again}
	w.until(time.Minute)
	again.Since = noon.Add(time.Minute)
	w.open = []Notice{again}
	w.until(2 * time.Minute)
	w.want("0s needs_you question/q1", "1m0s needs_you question/q1")
}

// TestRateLimit checks the limit of messages in an hour. Notices above it share the next message,
// which counts the notices that it does not list. No notice is lost.
func TestRateLimit(t *testing.T) {
	target := person()
	target.Events = []Event{NeedsYou}
	w := newWorld(t, target)
	for n := range 60 {
		w.open = append(w.open, asks(100+n, noon.Add(time.Duration(n)*time.Minute)))
	}
	for minute := range 60 {
		w.now = noon.Add(time.Duration(minute) * time.Minute)
		all := w.open
		w.open = all[:minute+1]
		w.until(time.Duration(minute)*time.Minute + 59*time.Second)
		w.open = all
	}
	w.until(61 * time.Minute)
	ten := func(from int) string {
		var words []string
		for n := from; n < from+10; n++ {
			words = append(words, fmt.Sprint("needs_you question/q", n))
		}
		return strings.Join(words, ", ")
	}
	w.want("0s needs_you question/q100", "1m0s needs_you question/q101", "2m0s needs_you question/q102", "3m0s needs_you question/q103",
		"1h0m0s "+ten(104)+" and 46 more")
	if w.record.Counted != 46 || len(w.record.Notices) != 60 {
		t.Errorf("the record counts %d and lists %d", w.record.Counted, len(w.record.Notices))
	}
}

// TestGathers checks that notices within a few seconds share a message, and that a program receives
// each notice separately.
func TestGathers(t *testing.T) {
	w := newWorld(t, person())
	w.open = []Notice{asks(1, noon)}
	w.until(0)
	w.open = append(w.open, asks(2, noon.Add(time.Second)))
	w.until(time.Second)
	w.open = append(w.open, asks(3, noon.Add(2*time.Second)))
	w.until(time.Minute)
	w.want("0s needs_you question/q1", "10s needs_you question/q2, needs_you question/q3")

	w = newWorld(t, Target{Name: "hook", Events: []Event{NeedsYou}, PerHour: 600, Each: true})
	w.open = []Notice{asks(2, noon), asks(1, noon), asks(3, noon.Add(-time.Second))}
	w.until(time.Minute)
	w.want("0s needs_you question/q3", "0s needs_you question/q1", "0s needs_you question/q2")
}

// TestQuiet checks that nothing is sent in quiet hours. Afterwards the notices that still wait are
// sent in one message, without reminders.
func TestQuiet(t *testing.T) {
	target := person()
	target.Quiet = Quiet{From: 12 * time.Hour, To: 14 * time.Hour, Zone: time.UTC}
	w := newWorld(t, target)
	w.open = []Notice{asks(1, noon), asks(2, noon.Add(time.Minute)), {Event: GaveUp, Cause: "agent/coder", Since: noon.Add(time.Minute)}}
	w.until(time.Hour)
	w.open = w.open[1:] // one was answered in the quiet hours
	w.until(4 * time.Hour)
	w.want("2h0m0s gave_up agent/coder, needs_you question/q2", "2h15m0s still_needs_you question/q2")
}

// TestQuietHours checks that quiet hours follow the local clock, also over midnight and on the days
// when the clock changes.
func TestQuietHours(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	night := Quiet{From: 22 * time.Hour, To: 7*time.Hour + 30*time.Minute, Zone: berlin}
	for _, c := range []struct {
		at, end string // UTC; no end: not quiet
	}{
		{"2026-11-25 20:59", ""},
		{"2026-11-25 21:00", "2026-11-26 06:30"},
		{"2026-11-26 06:29", "2026-11-26 06:30"},
		{"2026-11-26 06:30", ""},
		{"2026-03-28 22:00", "2026-03-29 05:30"}, // the clock is set forward in this night
		{"2026-10-24 21:00", "2026-10-25 06:30"}, // the clock is set back in this night
		{"2026-12-31 23:30", "2027-01-01 06:30"},
	} {
		at, err := time.Parse("2006-01-02 15:04", c.at)
		if err != nil {
			t.Fatal(err)
		}
		end, quiet := night.End(at)
		got := ""
		if quiet {
			got = end.UTC().Format("2006-01-02 15:04")
		}
		if got != c.end {
			t.Errorf("quiet at %s until %q, want %q", c.at, got, c.end)
		}
	}
	if _, quiet := (Quiet{Zone: time.UTC}).End(noon); quiet {
		t.Error("an empty range counts as quiet hours")
	}
}

// TestFailures checks that a failure is recorded once for each cause, with its start, and that no
// notice is lost.
func TestFailures(t *testing.T) {
	w := newWorld(t, person())
	w.open = []Notice{asks(1, noon)}
	fail := func(cause string, at time.Duration) bool {
		return w.outcome(Sent{
			Target: "phone", Notices: []SentNotice{{NeedsYou, "question/q1", noon, time.Time{}}},
			Failure: &Failure{Cause: cause, WayOut: "do it"},
		}, noon.Add(at))
	}
	if !fail("refused", 0) || fail("refused", time.Minute) || !fail("it answers 403", 2*time.Minute) {
		t.Error("a failure was not recorded once for each cause")
	}
	if f := w.record.Failure; w.record.State() != Failing || f.Cause != "it answers 403" || !f.Since.Equal(noon) ||
		f.Error() != "it answers 403; do it" {
		t.Errorf("%+v", f)
	}
	w.until(time.Minute)
	if w.want("0s needs_you question/q1"); w.record.State() != Reached || w.record.Failure != nil {
		t.Errorf("after the delivery the record is %+v", w.record)
	}
}

// TestLimits checks that many notices are counted within limits and are all sent in the end.
func TestLimits(t *testing.T) {
	target := person()
	target.Events = []Event{NeedsYou}
	w := newWorld(t, target)
	for n := range 500 {
		w.open = append(w.open, asks(n, noon.Add(-time.Duration(500-n)*time.Second)))
	}
	p := target.Plan(w.record, w.open, w.started, w.now)
	if len(p.Notices) != listedMax || len(p.More) != pendingMax-listedMax {
		t.Errorf("a message lists %d notices and counts %d", len(p.Notices), len(p.More))
	}
	if n := target.Waiting(w.record, w.open, w.started, w.now); n != pendingMax {
		t.Errorf("%d notices wait", n)
	}
	w.open = w.open[:300]
	w.until(time.Hour)
	if len(w.log) != 2 || len(w.record.Notices) != 300 {
		t.Errorf("%d messages reported %d notices", len(w.log), len(w.record.Notices))
	}
	old := Notice{Event: GaveUp, Cause: "agent/old", Since: noon.Add(-8 * 24 * time.Hour)}
	if p := target.Plan(Record{}, []Notice{old}, noon, noon); len(p.Notices) != 0 {
		t.Errorf("a notice of a week ago is sent: %+v", p)
	}
}

// TestRandom checks random notices: none is sent twice, none that waits is forgotten, nothing is
// sent in quiet hours, and no hour has more messages than the limit.
func TestRandom(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 17)) //nolint:gosec // a test that can be repeated
		target := person()
		target.Events = []Event{NeedsYou, GaveUp}
		target.PerHour = 1 + rnd.IntN(6)
		if rnd.IntN(2) == 0 {
			target.Quiet = Quiet{
				From: time.Duration(rnd.IntN(1440)) * time.Minute, To: time.Duration(rnd.IntN(1440)) * time.Minute,
				Zone: time.UTC,
			}
		}
		var open []Notice
		var r Record
		var sent []time.Time
		told := map[string]int{}
		now := noon
		for step := range 200 {
			now = now.Add(time.Duration(rnd.IntN(20)) * time.Minute)
			switch rnd.IntN(3) {
			case 0:
				open = append(open, asks(step, now))
			case 1:
				if len(open) > 0 {
					open = slices.Delete(open, 0, 1)
				}
			}
			p := target.Plan(r, open, noon, now)
			if len(p.Notices) == 0 {
				continue
			}
			for _, m := range append(p.Notices, p.More...) {
				if told[m.Cause]++; told[m.Cause] > 1 {
					t.Fatalf("seed %d: %s is sent twice", seed, m.Cause)
				}
			}
			if _, quiet := target.Quiet.End(now); quiet {
				t.Fatalf("seed %d: sent at %v", seed, now)
			}
			if sent = append(sent, now); len(sent) > target.PerHour && now.Sub(sent[len(sent)-1-target.PerHour]) < time.Hour {
				t.Fatalf("seed %d: %d messages within an hour", seed, target.PerHour+1)
			}
			r, _, _ = r.After(Sent{Target: "phone", Notices: p.Marks(), Counted: len(p.More), Began: noon}, now)
		}
		for range 100 {
			p := target.Plan(r, open, noon, now)
			if len(p.Notices) == 0 && p.Again.IsZero() {
				break
			}
			if len(p.Notices) > 0 {
				for _, m := range append(p.Notices, p.More...) {
					told[m.Cause]++
				}
				r, _, _ = r.After(Sent{Target: "phone", Notices: p.Marks(), Counted: len(p.More), Began: noon}, now)
				continue
			}
			now = p.Again
		}
		for _, m := range open {
			if told[m.Cause] != 1 {
				t.Fatalf("seed %d: %s waits and was sent %d times", seed, m.Cause, told[m.Cause])
			}
		}
	}
}
