package runs

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/files/workspace"
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
			why: "no regular file",
		},
		"a folder": {put: func(path string) error { return os.Mkdir(path, 0o700) }, is: stateNow{rests: true}, why: "no regular file"},
		"a huge file": {
			put: func(path string) error { return os.WriteFile(path, make([]byte, workspace.RunFileMax+1), 0o600) },
			is:  stateNow{rests: true}, why: "run_state.json",
		},
	} {
		is := c.is
		is.state, is.path = state, filepath.Join(t.TempDir(), runstate.RunStateName)
		if err := c.put(is.path); err != nil {
			t.Fatal(err)
		}
		there, err := (&statePen{}).look(&is, content, "ada")
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case c.ours && (there.edit != nil || there.why != ""):
			t.Errorf("%s: %+v", name, there)
		case !c.ours && c.why == "" && (there.edit == nil || there.edit.Steps["a"].State != workflow.Completed || there.edit.By != "ada"):
			t.Errorf("%s: %+v", name, there)
		case c.why != "" && (there.edit != nil || !strings.Contains(there.why, c.why)):
			t.Errorf("%s: %+v, want %q", name, there, c.why)
		}
	}
}

// TestTornStateFile looks at the file while an editor writes it in place: between the truncation and the last byte nothing is
// decided.
func TestTornStateFile(t *testing.T) {
	t.Parallel()
	state, content, edited := editedState(t, time.Now())
	is := stateNow{state: state, rests: true, path: filepath.Join(t.TempDir(), runstate.RunStateName)}
	if err := os.WriteFile(is.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	steps := [][]byte{edited[:len(edited)/2], edited[len(edited)/2:]}
	pen := &statePen{pause: func() { // the editor writes on
		if len(steps) == 0 {
			return
		}
		f, err := os.OpenFile(is.path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(steps[0])
		if steps = steps[1:]; errors.Join(err, f.Close()) != nil {
			t.Fatal(err)
		}
	}}
	there, err := pen.look(&is, content, "ada")
	if err != nil || there.why != "" || there.edit == nil {
		t.Errorf("%+v, %v; want the whole edit", there, err)
	}
}

// TestExchangeKeepsAnEdit writes the file while another program edits it, after Fairlead has looked: the edit is kept aside.
func TestExchangeKeepsAnEdit(t *testing.T) {
	t.Parallel()
	_, content, edited := editedState(t, time.Now())
	for name, edit := range map[string][]byte{"no edit": nil, "an edit": edited} {
		path := filepath.Join(t.TempDir(), runstate.RunStateName)
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err == nil && edit != nil {
			err = os.WriteFile(path, edit, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		pen := &statePen{e: &Controller{log: slog.New(slog.DiscardHandler)}, m: &runMember{id: "r"}}
		if err := pen.exchange(path, content, info); err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
			t.Errorf("%s: the file is %q, %v", name, now, err)
		}
		names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
		if want := 1 + min(len(edit), 1); err != nil || len(names) != want {
			t.Errorf("%s: there are %v, want %d", name, names, want)
		}
	}
}
