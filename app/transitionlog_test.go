package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/transitions"
)

// logged returns the Seqs of all lines, full files first.
func logged(t *testing.T, path string) []uint64 {
	t.Helper()
	names, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { // without moved logs of another journal
		_, err := strconv.Atoi(strings.TrimPrefix(name, path+"."))
		return err != nil
	})
	slices.SortFunc(names, func(a, b string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(a, path+"."))
		m, _ := strconv.Atoi(strings.TrimPrefix(b, path+"."))
		return n - m
	})
	var seqs []uint64
	for _, name := range append(names, path) {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the next file was not begun yet
		}
		for line := range bytes.Lines(text) {
			var what struct {
				Seq   uint64 `json:"seq"`
				Event string `json:"event"`
			}
			if err := json.Unmarshal(line, &what); err != nil || what.Event != "state_transition" {
				t.Fatalf("%s: %q: %v", name, line, err)
			}
			seqs = append(seqs, what.Seq)
		}
	}
	return seqs
}

// SPEC X6: every transition is in the log once, across restarts, torn lines and full files.
func TestTransitionLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log", "transitions.jsonl")
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		for round := range 6 {
			b.start()
			b.engine.Transitions.LogBytesMax = 3000 // about ten lines
			done := make(chan error, 1)
			e := b.engine
			go func() { done <- e.Transitions.LogTransitions(t.Context(), path) }()
			for range 5 {
				b.command("coder", "run_once")
				b.settle()
				for _, id := range b.host.running() {
					b.host.session(id).exit(0)
				}
				b.settle()
			}
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if round%2 == 0 { // killed in the middle of a line
				file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprint(file, `{"timestamp":"2026-`)
				file.Close()
			}
		}
		b.start() // adds what is missing and removes the torn line
		e, done := b.engine, make(chan error, 1)
		go func() { done <- e.Transitions.LogTransitions(t.Context(), path) }()
		b.settle()
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		seqs := logged(t, path)
		if len(seqs) != len(b.history()) {
			t.Errorf("%d lines for %d changes", len(seqs), len(b.history()))
		}
		for i, seq := range seqs {
			if seq != uint64(i)+1 {
				t.Fatalf("line %d is of change %d", i+1, seq)
			}
		}
		if full, _ := filepath.Glob(path + ".*"); len(full) < 3 {
			t.Errorf("no new file was begun: %v", full)
		}
	})
}

// TestTransitionLogFaults checks that a log that another program wrote into is not continued, and
// that a folder that cannot be written is tried again.
func TestTransitionLogFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		foreign := filepath.Join(dir, "foreign.jsonl")
		if err := os.WriteFile(foreign, []byte("hello\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.engine.Transitions.LogTransitions(t.Context(), foreign); err == nil || !strings.Contains(err.Error(), "move the file away") {
			t.Errorf("%v", err)
		}
		blocked := filepath.Join(dir, "blocked")
		if err := os.WriteFile(blocked, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(blocked, "transitions.jsonl")
		done := make(chan error, 1)
		e := b.engine
		go func() { done <- e.Transitions.LogTransitions(t.Context(), path) }()
		b.after(3 * transitions.LogRetry)
		if err := os.Remove(blocked); err != nil {
			t.Fatal(err)
		}
		b.after(2 * transitions.LogRetry)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := len(logged(t, path)); n != len(b.history()) {
			t.Errorf("%d lines for %d changes", n, len(b.history()))
		}
		if n := strings.Count(b.logged.String(), "log of transitions cannot be written"); n != 1 {
			t.Errorf("reported %d times", n)
		}
	})
}

// journalTells checks that the log has each change of the journal once, in order.
func (b *bubble) journalTells(path string) {
	b.t.Helper()
	history := b.history()
	seqs := logged(b.t, path)
	if len(seqs) != len(history) {
		b.t.Fatalf("%d lines for %d changes", len(seqs), len(history))
	}
	for i, ch := range history {
		if seqs[i] != ch.Seq {
			b.t.Fatalf("line %d is of change %d, want %d", i+1, seqs[i], ch.Seq)
		}
	}
}

// SPEC X6: a supervisor that is killed at any moment, also in the middle of a line, omits nothing
// and writes nothing twice.
func TestTransitionLogIsWholeAfterEveryCut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log", "transitions.jsonl")
			rnd := rand.New(rand.NewPCG(seed, 0))
			inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
				for range 8 {
					b.open(1+rnd.IntN(40), rnd.IntN(2) == 0)
					b.engine.Transitions.LogBytesMax = 4000 // some twenty lines
					ctx, cut := context.WithCancel(t.Context())
					done, e := make(chan error, 1), b.engine
					go func() { done <- e.Transitions.LogTransitions(ctx, path) }()
					b.run()
					for range rnd.IntN(6) {
						b.settle()
						_, _ = b.engine.Agents.Command(ctx, human, []string{"coder", "pm"}[rnd.IntN(2)],
							[]string{"run_once", "pause"}[rnd.IntN(2)], "")
						b.each(func(s *fakeSession) { s.exit(0) })
					}
					cut()
					<-done
					b.die()
					tear(t, path, rnd)
				}
				b.start()
				done, e := make(chan error, 1), b.engine
				go func() { done <- e.Transitions.LogTransitions(t.Context(), path) }()
				b.settle()
				if err := b.stop(); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				b.journalTells(path)
			})
		})
	}
}

// tear removes some bytes from the end, like a kill during a write, or a disk that lost unsynced
// data.
func tear(t *testing.T, path string, rnd *rand.Rand) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return // nothing was written yet
	}
	if err := os.Truncate(path, info.Size()-rnd.Int64N(min(info.Size(), 400))); err != nil {
		t.Fatal(err)
	}
}

// TestTransitionLogOfALostJournal checks that a log whose last line belongs to a change that this
// journal does not have belongs to another journal. It is kept, and the log of this journal is
// complete.
func TestTransitionLogOfALostJournal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "transitions.jsonl")
	run := func(t *testing.T, b *bubble, orders int) {
		b.start()
		b.engine.Transitions.LogBytesMax = 3000
		done, e := make(chan error, 1), b.engine
		go func() { done <- e.Transitions.LogTransitions(t.Context(), path) }()
		for range orders {
			b.command("coder", "run_once")
			b.settle()
			b.each(func(s *fakeSession) { s.exit(0) })
			b.settle()
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		b.journalTells(path)
	}
	for n, orders := range []int{9, 2, 5} { // the second journal is shorter than the first, the third longer than the second
		inBubble(t, "coder", func(t *testing.T, b *bubble) {
			b.after(time.Duration(n) * time.Hour)
			run(t, b, orders)
			run(t, b, 1)
		})
	}
	for _, aside := range []string{"aside-1", "aside-2"} {
		if len(logged(t, path+"."+aside)) == 0 {
			t.Errorf("the log of a lost journal is not kept as %s", aside)
		}
	}
}
