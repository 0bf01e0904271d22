package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logged are the sequences of all lines, full files first.
func logged(t *testing.T, path string) []uint64 {
	t.Helper()
	names, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
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

// SPEC X6: every transition is in the log once, over restarts, torn lines and full files.
func TestTransitionLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log", "transitions.jsonl")
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		for round := range 6 {
			b.start()
			b.engine.logBytesMax = 3000 // about ten lines
			done := make(chan error, 1)
			e := b.engine
			go func() { done <- e.LogTransitions(t.Context(), path) }()
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
		b.start() // writes what is missing, and the torn line goes
		e, done := b.engine, make(chan error, 1)
		go func() { done <- e.LogTransitions(t.Context(), path) }()
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
			t.Errorf("it never began anew: %v", full)
		}
	})
}

// A log that somebody else wrote into is not guessed at; a folder that takes nothing is tried again.
func TestTransitionLogFaults(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		foreign := filepath.Join(dir, "foreign.jsonl")
		if err := os.WriteFile(foreign, []byte("hello\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.engine.LogTransitions(t.Context(), foreign); err == nil || !strings.Contains(err.Error(), "move the file away") {
			t.Errorf("%v", err)
		}
		blocked := filepath.Join(dir, "blocked")
		if err := os.WriteFile(blocked, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(blocked, "transitions.jsonl")
		done := make(chan error, 1)
		e := b.engine
		go func() { done <- e.LogTransitions(t.Context(), path) }()
		b.after(3 * logRetry)
		if err := os.Remove(blocked); err != nil {
			t.Fatal(err)
		}
		b.after(2 * logRetry)
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
			t.Errorf("said %d times", n)
		}
	})
}
