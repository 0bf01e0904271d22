package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/work/agents"
	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
)

// SPEC X2: during an append no answer, notification, write or start happens.
func TestNothingBeforeTheAppend(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		var notified []journal.Change
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for ch, err := range b.engine.Loop.Changes(ctx, b.engine.Loop.Head(), "") {
				if err != nil {
					return
				}
				notified = append(notified, ch)
			}
		}()
		b.settle()
		notified = nil
		writes := b.files.writes
		file := string(b.disk.text("coder"))

		entered, release := b.faults.Hold()
		answered := make(chan error, 1)
		go func() {
			_, err := b.engine.Agents.Command(t.Context(), human, "coder", "continuous", "")
			answered <- err
		}()
		if batch := <-entered; len(batch) != 2 {
			t.Errorf("%d changes, want the desired state and the session", len(batch))
		}
		b.after(time.Hour)
		select {
		case err := <-answered:
			t.Errorf("answered before the append was durable: %v", err)
		default:
		}
		if len(notified) > 0 || b.files.writes != writes || string(b.disk.text("coder")) != file || b.host.startsOf("coder") > 0 {
			t.Errorf("notified %v, %d writes, %d starts before the append was durable", notified, b.files.writes-writes,
				b.host.startsOf("coder"))
		}
		release()
		if err := <-answered; err != nil {
			t.Error(err)
		}
		b.settle()
		if len(notified) < 2 || b.files.writes == writes || b.host.startsOf("coder") != 1 {
			t.Errorf("notified %d, %d writes, %d starts afterwards", len(notified), b.files.writes-writes, b.host.startsOf("coder"))
		}
		b.is("coder", "continuous", "continuous")
	})
}

// TestOneAppendForMany checks that one append serves all waiting callers.
func TestOneAppendForMany(t *testing.T) {
	t.Parallel()
	const callers = 100
	names := make([]string, callers)
	for i := range names {
		names[i] = fmt.Sprintf("a%d", i)
	}
	inBubble(t, strings.Join(names, " "), func(t *testing.T, b *bubble) {
		b.start()
		_, release := b.faults.Hold()
		before := b.faults.Appends()
		answered := make(chan uint64, callers)
		for _, name := range names {
			go func() {
				seq, err := b.engine.Agents.Command(t.Context(), human, name, "pause", "together")
				if err != nil {
					t.Error(err)
				}
				answered <- seq
			}()
		}
		b.settle()
		release()
		seqs := map[uint64]bool{}
		for range callers {
			seqs[<-answered] = true
		}
		if n := b.faults.Appends() - before; n > 2 { // the first request alone, the rest together
			t.Errorf("%d appends for %d callers", n, callers)
		}
		if len(seqs) != callers {
			t.Errorf("%d callers received %d different sequence numbers", callers, len(seqs))
		}
		b.settle()
		for seq := range seqs {
			if got := b.history()[seq-1]; got.Seq != seq || got.Machine != "control" {
				t.Fatalf("a caller received %d, which is %+v", seq, got)
			}
		}
	})
}

// TestFailedAppend checks that a failed append stops the engine with an error, that all waiting
// callers get the error, and that nothing starts. The next start continues from the journal, with
// or without the batch.
func TestFailedAppend(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored=%v", stored), func(t *testing.T) {
			inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
				b.start()
				_, release := b.faults.Hold()
				errs := make(chan error, 3)
				for _, agent := range []string{"coder", "pm"} {
					go func() {
						_, err := b.engine.Agents.Command(t.Context(), human, agent, "continuous", "")
						errs <- err
					}()
				}
				b.settle()
				if stored {
					b.faults.FailAfter(1)
				} else {
					b.faults.FailBefore(1)
				}
				release()
				err := b.failed()
				if !errors.Is(err, journaltest.ErrInjected) || !strings.Contains(err.Error(), "fairlead up") {
					t.Errorf("the engine stopped with %v", err)
				}
				for range 2 {
					if err := <-errs; err == nil || !strings.Contains(err.Error(), "no space left") {
						t.Errorf("a waiting caller got %v", err)
					}
				}
				if b.host.startsOf("coder")+b.host.startsOf("pm") > 0 {
					t.Error("a session was started")
				}
				if _, err := b.engine.Agents.Command(t.Context(), human, "coder", "pause", ""); !errors.Is(err, loop.ErrClosed) ||
					!strings.Contains(err.Error(), "no space left") {
					t.Errorf("a later caller got %v", err)
				}
				for ch, err := range b.engine.Loop.Changes(t.Context(), 1<<40, "") {
					if !errors.Is(err, loop.ErrClosed) {
						t.Errorf("a watcher got %v, %v", ch, err)
					}
				}
				b.engine = nil
				b.start()
				taken := 0
				for _, agent := range []string{"coder", "pm"} {
					if view := b.view(agent); view.DesiredState == "continuous" {
						taken++
						b.is(agent, "continuous", "continuous")
					} else {
						b.is(agent, "pause", "pause")
					}
				}
				if starts := b.host.startsOf("coder") + b.host.startsOf("pm"); starts != taken || (stored && taken == 0) ||
					(!stored && taken != 0) {
					t.Errorf("%d agents should run, but %d were started", taken, starts)
				}
			})
		})
	}
}

// failed waits until the engine has stopped by itself, and returns its error.
func (b *bubble) failed() error {
	b.t.Helper()
	select {
	case err := <-b.ran:
		b.cancel()
		b.files.close()
		if err == nil {
			b.t.Fatal("the engine stopped without an error")
		}
		return err
	case <-time.After(time.Hour):
		b.t.Fatal("the engine did not stop")
		return nil
	}
}

// TestOvertakenByAnother checks that an engine stops when another daemon's start is in the journal.
// It writes no further change and starts no agent.
func TestOvertakenByAnother(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
		b.start()
		first, files, fate, cancel, ran := b.engine, b.files, b.crashPoint, b.cancel, b.ran
		b.start()
		second, files2, fate2, cancel2, ran2 := b.engine, b.files, b.crashPoint, b.cancel, b.ran
		_, err := first.Agents.Command(t.Context(), human, "pm", "continuous", "")
		if err == nil || !strings.Contains(err.Error(), "another fairlead") {
			t.Errorf("the first engine answers %v", err)
		}
		b.engine, b.files, b.crashPoint, b.cancel, b.ran = first, files, fate, cancel, ran
		if err := b.failed(); !strings.Contains(err.Error(), "another fairlead") {
			t.Errorf("the engine stopped with %v", err)
		}
		b.engine, b.files, b.crashPoint, b.cancel, b.ran = second, files2, fate2, cancel2, ran2
		if n := b.host.startsOf("pm"); n != 0 {
			t.Errorf("%d starts", n)
		}
	})
}

// TestFenced checks that a refusal by the host as fenced stops the engine, for every kind of
// request.
func TestFenced(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"start", "end", "ended", "adopt"} {
		t.Run(when, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				b.start()
				overtake := func() {
					b.host.mu.Lock()
					b.host.fence = 1 << 40
					b.host.mu.Unlock()
				}
				if when == "start" {
					overtake()
				}
				b.command("coder", "run_once")
				b.settle()
				switch when {
				case "end":
					overtake()
					if err := b.engine.Agents.Stop(t.Context(), human, true); err != nil {
						t.Fatal(err)
					}
				case "ended":
					overtake()
					b.host.session("coder-1").exit(0)
				case "adopt":
					overtake()
					if err := b.stop(); err != nil {
						t.Fatal(err)
					}
					b.open(0, false)
					b.run()
				}
				err := b.failed()
				var fenced *sessionhost.Fenced
				if !errors.As(err, &fenced) || !strings.Contains(err.Error(), "another fairlead") {
					t.Errorf("the engine stopped with %v", err)
				}
				b.engine = nil
				b.after(time.Hour)
				want := 1
				if when == "start" {
					want = 0
				}
				if n := b.host.startsOf("coder"); n != want {
					t.Errorf("%d starts, want %d", n, want)
				}
			})
		})
	}
}

// TestWritersAtATime checks the limit of parallel file writes, and that a delayed write contains
// the state of its time.
func TestWritersAtATime(t *testing.T) {
	t.Parallel()
	const many = 3 * agents.WritersMax
	var names []string
	for i := range many {
		names = append(names, fmt.Sprintf("a%d", i))
	}
	inBubble(t, strings.Join(names, " "), func(t *testing.T, b *bubble) {
		b.start()
		b.settle()
		at, most := 0, 0
		var mu sync.Mutex
		gate := make(chan struct{})
		b.files.writing.set(func(string) error {
			mu.Lock()
			at++
			most = max(most, at)
			mu.Unlock()
			<-gate
			mu.Lock()
			at--
			mu.Unlock()
			return nil
		})
		for _, name := range names {
			b.command(name, "continuous")
		}
		b.settle()
		if most != agents.WritersMax {
			t.Errorf("%d files are written in parallel, want %d", most, agents.WritersMax)
		}
		for _, name := range names {
			b.command(name, "pause")
		}
		close(gate)
		b.settle()
		for _, name := range names {
			b.is(name, "pause", "continuous")
			if text := string(b.disk.text(name)); !strings.Contains(text, `"desired_state": "pause"`) {
				t.Errorf("%s: %s", name, text)
			}
		}
	})
}

// TestForeignWriteOutlivesAFailedAppend checks that another program's write is not overwritten
// before it is in the journal. If its append fails, the next start finds the write in the file.
func TestForeignWriteOutlivesAFailedAppend(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		b.settle()
		gate := make(chan struct{})
		b.files.writing.set(func(string) error { <-gate; return nil })
		b.command("coder", "continuous") // this causes a write, which waits
		b.settle()
		entered, release := b.faults.Hold()
		b.disk.writeDesired("coder", "run_once", "theirs", time.Now())
		<-entered
		close(gate) // now Fairlead's write could replace it
		b.settle()
		if text := string(b.disk.text("coder")); !strings.Contains(text, "theirs") {
			t.Errorf("the file was overwritten: %s", text)
		}
		b.faults.FailBefore(1)
		release()
		if err := b.failed(); !errors.Is(err, journaltest.ErrInjected) {
			t.Error(err)
		}
		b.engine = nil
		b.start()
		b.settle()
		if view := b.view("coder"); view.DesiredState != "run_once" || view.Note != "theirs" {
			t.Errorf("%+v", view)
		}
	})
}
