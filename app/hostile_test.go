package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/work/agents"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// TestHostileInput checks that faulty files, and files with another agent's name, stop only the
// agent that they belong to.
func TestHostileInput(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
		b.start()
		by := change.Actor{Kind: strings.Repeat("human", 100), ID: "me\n\x00\xff" + strings.Repeat("<é>", 1000)}
		if _, err := b.engine.Agents.Command(t.Context(), by, "coder", "pause", strings.Repeat("\xff", 5<<20)); err != nil {
			t.Error(err)
		}
		if _, err := b.engine.Agents.Hold(t.Context(), by, true, strings.Repeat("<\x00", 5<<20)); err != nil {
			t.Error(err)
		}
		if _, err := b.engine.Agents.Hold(t.Context(), by, false, ""); err != nil {
			t.Error(err)
		}
		for _, stamp := range []string{"0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1969-01-01T00:00:00Z", "nonsense", ""} {
			s := b.disk.state("pm")
			s.DesiredState, s.Note, s.Timestamp = "pause", "stamp "+stamp, stamp
			b.disk.put("pm", s.Render())
			b.settle()
			if a := b.view("pm"); a.Note != "stamp "+stamp {
				t.Errorf("%q: note %q", stamp, a.Note)
			}
		}
		b.checkConsistent()
	})
}

// TestCrowdedFile checks a file with more unknown fields than the limit. Its desired state counts,
// it is not overwritten, the fault is reported, and the next start works as usual.
func TestCrowdedFile(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		b.command("coder", "continuous")
		b.settle()
		big, err := json.Marshal(strings.Repeat("<", agents.ExtraBytesMax))
		if err != nil {
			t.Fatal(err)
		}
		full := agentstate.State{
			DesiredState: "pause", CurrentState: "continuous", Note: "big", SetBy: "human",
			Timestamp: file.FormatTime(time.Now().Add(time.Second)), Extra: file.Fields{{Name: "theirs", Raw: big}},
		}.Render()
		b.disk.put("coder", full)
		b.settle()
		b.host.session("coder-1").exit(0)
		b.settle()
		for range 2 {
			if a := b.view("coder"); a.Session != nil || a.Note != "big" ||
				!strings.Contains(a.Doubt, "fields that Fairlead does not know") {
				t.Errorf("%+v", a)
			}
			if string(b.disk.text("coder")) != string(full) {
				t.Error("the file was overwritten")
			}
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
			b.start()
		}
		b.disk.writeDesired("coder", "run_once", "small again", time.Now().Add(2*time.Second))
		s := b.disk.state("coder")
		s.Extra = file.Fields{{Name: "theirs", Raw: []byte(`"<b>"`)}}
		b.disk.put("coder", s.Render())
		b.settle()
		b.is("coder", "run_once", "run_once")
		if s := b.disk.state("coder"); len(s.Extra) != 1 || string(s.Extra[0].Raw) != `"<b>"` {
			t.Errorf("the unknown fields are %+v", s.Extra)
		}
	})
}

// TestWritersThatDisagree checks that Fairlead limits its writes and changes if another program
// answers every write with its own.
func TestWritersThatDisagree(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		stubborn := func() {
			s := b.disk.state("coder")
			if s.CurrentState != "run_once" {
				s.CurrentState = "run_once"
				b.disk.put("coder", s.Render())
			}
		}
		began, writes := len(b.history()), b.files.writes
		for range 60 * 100 {
			stubborn()
			b.after(10 * time.Millisecond)
		}
		if n := b.files.writes - writes; n < agents.FixesMax || n > agents.FixesMax+61 {
			t.Errorf("%d writes in a minute", n)
		}
		if n := len(b.history()) - began; n > 2*agents.FixesMax+61 {
			t.Errorf("%d changes in a minute", n)
		}
		b.disk.writeDesired("coder", "continuous", "a desired state must not count as a conflict", time.Now().Add(time.Second))
		b.settle()
		b.is("coder", "continuous", "continuous")
	})
}

// TestFilesThatCannot checks that a file that cannot be watched, read or written is tried again
// until it can.
func TestFilesThatCannot(t *testing.T) {
	t.Parallel()
	fails := func(string) error { return errors.New("the disk is away") }
	for what, hook := range map[string]func(*fakeFiles) *hook{
		"be watched": func(w *fakeFiles) *hook { return &w.adding },
		"be read":    func(w *fakeFiles) *hook { return &w.reading },
		"be written": func(w *fakeFiles) *hook { return &w.writing },
	} {
		for _, there := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s,there=%v", what, there), func(t *testing.T) {
				inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
					if there {
						b.disk.writeDesired("coder", "run_once", "from before", time.Now())
					}
					b.arrange = func(w *fakeFiles) {
						hook(w).set(func(agent string) error {
							if agent == "pm" {
								return nil
							}
							return fails(agent)
						})
					}
					b.start()
					b.after(time.Minute)
					reported := what == "be read" && there // whether the watch reported it
					if a := b.view("coder"); !reported && !strings.Contains(a.Doubt, "the disk is away") {
						t.Errorf("doubt %q", a.Doubt)
					}
					b.is("pm", "pause", "pause")
					if n := strings.Count(b.logged.String(), "the disk is away"); n > 2 {
						t.Errorf("reported %d times", n)
					}
					hook(b.files).set(nil)
					b.after(2 * time.Second)
					if there {
						b.is("coder", "run_once", "run_once")
					} else {
						b.is("coder", "pause", "pause")
					}
					if a := b.view("coder"); a.Doubt != "" {
						t.Errorf("doubt %q", a.Doubt)
					}
				})
			})
		}
	}
}

// TestHoldOfThousands checks that a hold of more agents than fit into one append is one order, and
// that the changes of each agent are in one append.
func TestHoldOfThousands(t *testing.T) {
	t.Parallel()
	const agents = 3000
	names := make([]string, agents)
	for i := range names {
		names[i] = fmt.Sprintf("a%d", i)
	}
	inBubble(t, strings.Join(names, " "), func(t *testing.T, b *bubble) {
		for i := range b.conf.Agents {
			b.conf.Agents[i].Workspace = "" // without files, which this test does not need
		}
		b.start()
		var changes []change.Change
		at := time.Now().UTC()
		for _, name := range names {
			v := control.Value{
				State: control.BackingOff, Desired: control.Desired{State: "continuous", N: 1}, Acked: 1, Failures: 1,
				RetryAt: at.Add(time.Hour), Stamp: at,
			}
			changes = append(changes, change.Change{
				Machine: "control", Entity: "control/" + name, Row: "C16", From: "continuous", To: "backing_off",
				Trigger: "failed_backing_off",
				At:      at, Actor: sessions.ByShim, Body: &control.Body{Value: v},
			})
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		for len(changes) > 0 {
			part := changes[:min(500, len(changes))]
			changes = changes[len(part):]
			records, err := loop.AppendRecords(nil, part)
			if err == nil {
				_, err = b.slate.Append(t.Context(), records)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		b.start()
		b.faults.FailAfter(0)
		before := b.faults.Appends()
		if _, err := b.engine.Agents.Hold(t.Context(), human, true, ""); err != nil {
			t.Fatal(err)
		}
		if n := b.faults.Appends() - before; n != 4 {
			t.Errorf("%d appends for %d changes", n, agents+1)
		}
		for name, a := range b.replayed().Agents {
			if a.Control.State != control.Resting {
				t.Fatalf("%s is %s", name, a.Control.State)
			}
		}
		view, err := b.engine.Status.Team(t.Context())
		if err != nil || len(view.Agents) != agents || !view.Hold {
			t.Errorf("%d agents, %v", len(view.Agents), err)
		}
	})
}

// TestDeadlineWithoutEffect checks that a deadline that causes no change is reported as a fault and
// does not use a whole processor.
func TestDeadlineWithoutEffect(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		if err := b.engine.Loop.View(t.Context(), func(all *team.Team) { // no rule leaves this deadline
			a := all.Agents["coder"]
			a.Control.State = control.Resting
			a.Settings.Limits.Session = time.Second
			a.Session = &team.Session{ID: "coder-1", N: 1, Phase: session.Running, StartedAt: time.Now()}
		}); err != nil {
			t.Fatal(err)
		}
		b.after(10 * time.Second)
		if n := strings.Count(b.logged.String(), "changed nothing"); n != 1 {
			t.Errorf("reported %d times", n)
		}
	})
}

// TestStopDuringTheStart checks that a stop during the start is not a failure, and that the next
// start continues.
func TestStopDuringTheStart(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		b.command("coder", "continuous")
		b.settle()
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"adopt", "read"} {
			b.arrange = func(w *fakeFiles) {
				w.reading.set(func(string) error {
					if when == "read" {
						b.cancel()
					}
					return nil
				})
			}
			b.host.adopts.set(func(string) error {
				if when == "adopt" {
					b.cancel()
					return errors.New("we go")
				}
				return nil
			})
			b.open(0, false)
			b.run()
			b.settle()
			if err := b.stop(); err != nil {
				t.Errorf("%s: %v", when, err)
			}
			if ids := b.host.running(); len(ids) != 1 {
				t.Errorf("%s: %v run", when, ids)
			}
		}
		b.arrange = nil
		b.host.adopts.set(nil)
		b.start()
		b.is("coder", "continuous", "continuous")
		b.checkConsistent()
	})
}

// TestLastObservationsAreRecorded checks that an observation that was delivered during a stop is in
// the journal at its end, because its replaced file may be removed then.
func TestLastObservationsAreRecorded(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		for round := range 8 { // the order in which the loop sees the stop and the observation is random
			b.start()
			words := map[uint64]string{}
			_, release := b.faults.Hold() // the loop is in an append when they arrive
			for n := range loop.BatchMax + 50 {
				note := fmt.Sprintf("word %d of round %d", n, round)
				b.disk.writeDesired("coder", "pause", note, time.Now().Add(time.Duration(n+1)*time.Millisecond))
				words[b.files.seq] = note
				b.settle()
			}
			b.cancel()
			b.settle()
			release()
			files := b.files
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
			if note := b.replayed().Agents["coder"].Control.Desired.Note; note != words[files.taken["coder"]] {
				t.Errorf("the last delivered desired state is %q, but the journal has %q", words[files.taken["coder"]], note)
			}
		}
	})
}

// TestWriteWaitsForForeignContent checks that a write that found another program's content waits
// until that content is in the journal, and is then decided again.
func TestWriteWaitsForForeignContent(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		b.files.handing.set(func(string) error { // a slow delivery
			wait.Elapse(time.Minute)
			return nil
		})
		b.files.writing.set(func(string) error {
			b.files.writing.set(nil)
			b.disk.writeDesired("coder", "run_once", "in between", time.Now().Add(time.Second))
			return nil
		})
		if _, err := b.engine.Agents.Command(t.Context(), change.Actor{Kind: "agent", ID: "pm"}, "coder", "pause", ""); err != nil {
			t.Fatal(err)
		}
		b.after(30 * time.Second)
		if s := b.disk.state("coder"); s.Note != "in between" {
			t.Errorf("the content was overwritten before it was recorded: %+v", s)
		}
		b.after(2 * time.Minute)
		b.is("coder", "run_once", "run_once")
	})
}
