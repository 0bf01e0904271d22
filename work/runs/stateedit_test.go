package runs

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// editedState is a cancelled run with its file, and that file as a person edited it.
func editedState(t *testing.T, at time.Time) (state runstate.RunState, content, edited []byte) {
	t.Helper()
	r := &workflow.Run{}
	for _, in := range []workflow.Input{
		workflow.RunAsked{
			ID: "r", Plan: workflow.Plan{Name: "w", Steps: []workflow.Step{{ID: "a", Command: []string{"x"}}}},
			Options: workflow.DefaultOptions(1),
		},
		workflow.CancelAsked{By: "ada"},
	} {
		changes, err := r.Decide(in, workflow.Now{At: at})
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range changes {
			r.Apply(ch)
		}
	}
	state = runstate.RunStateOf(r)
	content = state.Render()
	return state, content, bytes.Replace(content, []byte("PENDING"), []byte("COMPLETED"), 1)
}

// TestLookAtTheStateFile checks what counts as an edit of run_state.json, what Fairlead wrote itself, and what is kept aside (X3).
func TestLookAtTheStateFile(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 4, 0, 0, 0, time.UTC)
	state, content, edited := editedState(t, at)
	older := bytes.Replace(content, []byte(`"updated_at": "2026-11-29T04`), []byte(`"updated_at": "2026-11-29T03`), 1)
	write := func(text []byte) func(string) error {
		return func(path string) error { return os.WriteFile(path, text, 0o600) }
	}
	for name, c := range map[string]struct {
		put  func(path string) error
		is   stateNow
		ours bool   // Fairlead may replace it
		why  string // part of the reason; empty: it is an edit
	}{
		"an edit":                   {put: write(edited), is: stateNow{rests: true}},
		"of a task":                 {put: write(edited), is: stateNow{rests: true, task: true}, why: "approved on the page"},
		"of a run that is not over": {put: write(edited), why: "the run is not over"},
		"none":                      {put: func(string) error { return nil }, is: stateNow{rests: true}, ours: true},
		"the same":                  {put: write(content), is: stateNow{rests: true}, ours: true},
		"another layout":            {put: write(append([]byte("\n\n"), content...)), is: stateNow{rests: true}, ours: true},
		"ours, before a crash": {put: func(path string) error {
			if err := os.WriteFile(path, older, 0o600); err != nil {
				return err
			}
			return os.Chtimes(path, at, at.Add(-time.Hour))
		}, is: stateNow{rests: true}, ours: true},
		"an old one": {put: write(older), is: stateNow{rests: true}, why: "the run has changed since"},
		"a link": {
			put: func(path string) error { return os.Symlink("/etc/hosts", path) }, is: stateNow{rests: true},
			why: "is a symbolic link",
		},
		"a folder": {put: func(path string) error { return os.Mkdir(path, 0o700) }, is: stateNow{rests: true}, why: "is no plain file"},
		"a huge file": {
			put: func(path string) error { return os.WriteFile(path, make([]byte, runstate.Content.Most+1), 0o600) },
			is:  stateNow{rests: true}, why: "run_state.json",
		},
	} {
		is := c.is
		is.state, is.path = state, filepath.Join(t.TempDir(), runstate.RunStateName)
		if err := c.put(is.path); err != nil {
			t.Fatal(err)
		}
		pen := statePenFor(t)
		seen, err := pen.look(is.path)
		edit, why := pen.judge(&is, &seen, "ada")
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case c.ours && (edit != nil || why != ""):
			t.Errorf("%s: %+v, %q", name, edit, why)
		case !c.ours && c.why == "" && (edit == nil || edit.Steps["a"].State != workflow.Completed || edit.By != "ada"):
			t.Errorf("%s: %+v, %q", name, edit, why)
		case c.why != "" && (edit != nil || !strings.Contains(why, c.why)):
			t.Errorf("%s: %+v, %q, want %q", name, edit, why, c.why)
		}
		if c.why == "" {
			continue
		}
		if err := pen.keepAside(&seen, why); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if kept, _ := filepath.Glob(is.path + ".foreign-*"); len(kept) != 1 {
			t.Errorf("%s: kept aside are %q", name, kept)
		}
	}
}

func statePenFor(t *testing.T) *stateWriter {
	t.Helper()
	return &stateWriter{e: &Controller{log: slog.New(slog.DiscardHandler)}, m: &runMember{id: "r"}}
}

// TestTornStateFile looks at the file while an editor writes it in place: between the truncation and the last byte nothing is
// decided.
func TestTornStateFile(t *testing.T) {
	t.Parallel()
	state, _, edited := editedState(t, time.Now())
	synctest.Test(t, func(t *testing.T) {
		is := stateNow{state: state, rests: true, path: filepath.Join(t.TempDir(), runstate.RunStateName)}
		if err := os.WriteFile(is.path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		go func() { // the editor writes on
			for _, part := range [][]byte{edited[:len(edited)/2], edited[len(edited)/2:]} {
				wait.Elapse(file.TornFor / 2)
				f, err := os.OpenFile(is.path, os.O_WRONLY|os.O_APPEND, 0)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err = f.Write(part); errors.Join(err, f.Close()) != nil {
					t.Error(err)
				}
			}
		}()
		pen := statePenFor(t)
		seen, err := pen.look(is.path)
		if edit, why := pen.judge(&is, &seen, "ada"); err != nil || why != "" || edit == nil {
			t.Errorf("%+v, %q, %v; want the whole edit", edit, why, err)
		}
	})
}
