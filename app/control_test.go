package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// agentYAML returns the configuration of one agent, coder, with further settings as lines.
func agentYAML(command string, more ...string) string {
	text := fmt.Sprintf("version: 1\nagents:\n  coder:\n    driver: exec\n    command: [sh, -c, %q]\n    workspace: coder\n", command)
	for _, line := range more {
		text += "    " + line + "\n"
	}
	return text
}

func running(a view.AgentView) bool {
	return a.Badge == view.BadgeRunning && a.Session != nil && a.Session.Phase == "running"
}

func idle(a view.AgentView) bool { return a.Badge == view.BadgeIdle && a.Session == nil }

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) fileSays(what string, ok func(agentstate.State) bool) agentstate.State {
	w.t.Helper()
	var last agentstate.State
	w.until("coder", "agent_state.json says "+what, func(view.AgentView) bool {
		text, err := os.ReadFile(w.path("coder/agent_state.json"))
		if err != nil {
			return false
		}
		if last, err = agentstate.Parse(text); err != nil {
			return false
		}
		return ok(last)
	})
	return last
}

func says(desired, current string) func(agentstate.State) bool {
	return func(s agentstate.State) bool { return s.DesiredState == desired && s.CurrentState == current }
}

func (w *world) sessions() []view.PastSession {
	w.t.Helper()
	why, err := w.engine.Status.Why(context.Background(), "coder")
	if err != nil {
		w.t.Fatal(err)
	}
	return why.Sessions
}

// gated is a command that runs until the file go exists, so that the test decides when it ends.
const gated = `echo begun; until [ -e ../go ]; do sleep 0.01; done; echo done`

// SPEC C1, C3, C8: a one-shot run, from the first content of the file to the last.
func TestRunOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.fileSays("pause and pause", says("pause", "pause"))
	w.command("coder", "run_once")
	w.until("coder", "it runs", running)
	w.fileSays("run_once twice", says("run_once", "run_once"))
	w.write("go", "")
	w.until("coder", "it rests", idle)
	if state := w.fileSays("pause again", says("pause", "pause")); state.SetBy != "agent" {
		t.Errorf("setBy is %q, want the agent's side, which wrote pause", state.SetBy)
	}
	w.took("control/coder", "C1", "C3", "C8")
	w.took("session/coder", "J1", "S1", "S4")
	if s := w.sessions(); len(s) != 1 || s[0].Outcome != "ok" {
		t.Errorf("sessions: %+v", s)
	}
}

// SPEC C4, C9: only a cleanup session receives the cleanup prompt.
func TestRunCleanup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\nagents:\n  coder:\n    driver: exec\n    command: [sh, -c, 'echo \"$0 $@\"']\n    workspace: coder\n",
		nil)
	w.command("coder", "run_cleanup")
	w.until("coder", "it has run", func(a view.AgentView) bool { return idle(a) && len(w.sessions()) == 1 })
	w.command("coder", "run_once")
	w.until("coder", "it has run again", func(a view.AgentView) bool { return idle(a) && len(w.sessions()) == 2 })
	if out := w.output("coder-1"); !strings.Contains(out, "--cleanup-session") {
		t.Errorf("the cleanup session was started without its flag: %q", out)
	}
	if out := w.output("coder-2"); strings.Contains(out, "--cleanup-session") {
		t.Errorf("an ordinary session was started with the flag: %q", out)
	}
	w.took("control/coder", "C4", "C9")
}

func (w *world) output(session string) string {
	w.t.Helper()
	out, _, err := w.engine.Sessions.Output(context.Background(), session, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(out); err != nil {
		w.t.Fatal(err)
	}
	return text.String()
}

// SPEC C2, C5, C6, C11: sessions follow each other, and a pause interrupts none.
func TestContinuous(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.command("coder", "continuous")
	w.until("coder", "the first session runs", running)
	w.command("coder", "pause")
	w.fileSays("pause is wanted, and it goes on", says("pause", "continuous"))
	if a := w.until("coder", "it still runs", running); a.Session.ID != "coder-1" {
		t.Fatalf("another session runs: %+v", a.Session)
	}
	w.write("go", "")
	w.until("coder", "it rests", idle)
	w.command("coder", "continuous")
	w.until("coder", "three more sessions have run", func(view.AgentView) bool { return len(w.sessions()) >= 4 })
	w.took("control/coder", "C2", "C5", "C6", "C11")
}

// SPEC C16, C20: consecutive failures back off, then pause the agent; a failed one-shot is not
// repeated.
func TestFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML("exit 3", "failures_max: 3", "backoff: {first: 10ms, max: 20ms}"), nil)
	w.command("coder", "continuous")
	a := w.until("coder", "it has given up", func(a view.AgentView) bool { return idle(a) && a.DesiredState == "pause" })
	if !strings.Contains(a.Note, "3 sessions failed in a row") || a.SetBy != control.ByFairlead {
		t.Errorf("the note lacks the reason or the author: %q, %q", a.Note, a.SetBy)
	}
	if n := len(w.sessions()); n != 3 {
		t.Errorf("%d sessions, want 3", n)
	}
	w.command("coder", "run_once")
	a = w.until("coder", "the one-shot has failed", func(a view.AgentView) bool { return idle(a) && len(w.sessions()) == 4 })
	if !strings.Contains(a.Note, "run_once failed") {
		t.Errorf("the note does not say why: %q", a.Note)
	}
	w.took("control/coder", "C16", "C20")
}

// SPEC C20: a command that does not exist is reported, and nothing hangs.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\nagents:\n  coder:\n    driver: exec\n    command: [./gone.sh]\n    workspace: coder\n",
		map[string]string{"coder/gone.sh": "#!/bin/sh\n"})
	if err := os.Chmod(w.path("coder/gone.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(w.path("coder/gone.sh")); err != nil {
		t.Fatal(err)
	}
	w.command("coder", "run_once")
	a := w.until("coder", "it says that it cannot", func(a view.AgentView) bool {
		return idle(a) && a.Note != "" && a.DesiredState == "pause" && len(w.sessions()) == 1
	})
	if !strings.Contains(a.Note, "gone.sh") {
		t.Errorf("the note does not name the command: %q", a.Note)
	}
	if s := w.sessions(); s[0].Outcome != "cannot_start" {
		t.Errorf("outcome %s", s[0].Outcome)
	}
}

// SPEC C17, X9: a session that exceeds its time is ended with all its processes.
func TestSessionLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML("sleep 1000 & echo $!; wait", "limits: {session: 300ms}", "grace: 1s"), nil)
	w.command("coder", "continuous")
	a := w.until("coder", "the limit has ended it", func(a view.AgentView) bool { return idle(a) && a.DesiredState == "pause" })
	if !strings.Contains(a.Note, "session 300ms") {
		t.Errorf("the note does not name the limit: %q", a.Note)
	}
	w.took("control/coder", "C17")
	w.took("session/coder", "S3")
}

// SPEC C18, X8: a hold lets running sessions finish, keeps the desired state, and survives a
// restart.
func TestHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.command("coder", "continuous")
	w.until("coder", "it runs", running)
	if _, err := w.engine.Agents.Hold(context.Background(), human, true, "lunch"); err != nil {
		t.Fatal(err)
	}
	w.write("go", "")
	w.until("coder", "it rests", idle)
	w.fileSays("continuous is still wanted", says("continuous", "pause"))
	w.stop()
	w.start()
	if a := w.until("coder", "it rests", idle); a.DesiredState != "continuous" {
		t.Errorf("desired is %s after the restart", a.DesiredState)
	}
	if view, err := w.engine.Status.Team(context.Background()); err != nil || !view.Hold {
		t.Fatalf("the hold did not survive: %+v, %v", view, err)
	}
	w.write("go2", "")
	if _, err := w.engine.Agents.Hold(context.Background(), human, false, ""); err != nil {
		t.Fatal(err)
	}
	w.until("coder", "it runs again", func(view.AgentView) bool { return len(w.sessions()) > 1 })
	w.took("control/coder", "C18")
}

// SPEC C14: a stop lets the session finish. The desired state stays, and the next start follows it
// (C15).
func TestStopKeepsTheDesiredState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.command("coder", "continuous")
	w.until("coder", "it runs", running)
	if err := w.engine.Agents.Stop(context.Background(), human, false); err != nil {
		t.Fatal(err)
	}
	w.until("coder", "it still runs", running)
	w.write("go", "")
	select {
	case <-w.engine.Loop.Stopped():
	case <-time.After(waitMax):
		t.Fatal("the stop did not complete")
	}
	if s := w.file("coder"); s.DesiredState != "continuous" || s.CurrentState != "pause" {
		t.Errorf("the file says %s and %s", s.DesiredState, s.CurrentState)
	}
	w.stop()
	w.start()
	w.until("coder", "it runs again", func(view.AgentView) bool { return len(w.sessions()) >= 2 })
	w.took("control/coder", "C14", "C15")
}

// SPEC C15: a session outlives the daemon; the next daemon adopts it and follows it to its end.
func TestAdoption(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.command("coder", "run_once")
	pid := w.until("coder", "it runs", running).Session.PID
	w.stop() // the daemon has stopped; the agent still runs
	w.start()
	if a := w.until("coder", "it is found", running); a.Session.PID != pid || a.Session.ID != "coder-1" {
		t.Errorf("another process was found: %+v", a.Session)
	}
	w.stop()
	w.write("go", "") // it ends while no daemon runs
	w.start()
	w.until("coder", "it rests", idle)
	if s := w.sessions(); len(s) != 1 || s[0].Outcome != "ok" {
		t.Errorf("sessions: %+v", s)
	}
	if out := w.output("coder-1"); out != "begun\ndone\n" {
		t.Errorf("output %q", out)
	}
	w.took("session/coder", "S2")
}

// TestPauseWhileDown checks that the desired state is checked last: a file that was written while
// no daemon ran takes effect before a session starts, and a paused agent stays paused.
func TestPauseWhileDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.command("coder", "continuous")
	w.until("coder", "it runs", running)
	w.stop()
	w.foreign(func(s *agentstate.State) { s.DesiredState, s.SetBy, s.Note = "pause", "human", "enough" })
	w.write("go", "")
	w.start()
	a := w.until("coder", "it rests", idle)
	if a.DesiredState != "pause" || a.Note != "enough" {
		t.Errorf("%+v", a)
	}
	if n := len(w.sessions()); n != 1 {
		t.Errorf("%d sessions: recovery started a paused agent", n)
	}
}

// foreign edits agent_state.json as the program of seed 000 does: read, change, truncate, write.
func (w *world) foreign(edit func(*agentstate.State)) {
	w.t.Helper()
	path := w.path("coder/agent_state.json")
	text, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	state, err := agentstate.Parse(text)
	if err != nil {
		w.t.Fatal(err)
	}
	edit(&state)
	state.Timestamp = time.Now().UTC().Format("2006-01-02T15:04:05.000000") + "Z"
	if err := os.WriteFile(path, state.Render(), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// SPEC X10: the file does not lift a pause that a person ordered, and is corrected.
func TestFileLiftsNoOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.fileSays("pause", says("pause", "pause"))
	w.command("coder", "pause")
	for _, by := range []string{"agent", "human"} {
		w.foreign(func(s *agentstate.State) { s.DesiredState, s.SetBy, s.Note = "continuous", by, "started by "+by })
		s := w.fileSays("pause again", func(s agentstate.State) bool { return s.DesiredState == "pause" && s.Note == "no reason given" })
		if s.SetBy != "human" {
			t.Errorf("the author of the pause is %q", s.SetBy)
		}
	}
	if n := len(w.sessions()); n != 0 {
		t.Errorf("%d sessions were started", n)
	}
	w.took("control/coder", "X10")
	w.command("coder", "run_once")
	w.until("coder", "it runs", running)
	w.write("go", "")
	w.until("coder", "it rests", idle)
}

// TestFirstOrderWritesAllFields checks that an order to a foreign agent that has never reported
// writes all five fields. A reader that follows seed 000 resets any other file to pause.
func TestFirstOrderWritesAllFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(agentYAML(gated), "driver:", "loop: foreign\n    driver:", 1), nil)
	w.command("coder", "run_once")
	s := w.fileSays("run_once", says("run_once", "pause"))
	if s.SetBy != "human" || s.Note == "" || s.Timestamp == "" {
		t.Errorf("the file lacks a field: %+v", s)
	}
}

// TestForeignWriters checks writes of another program: SPEC C3 by file, C22, X7, C13, C12, C21.
func TestForeignWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.fileSays("pause", says("pause", "pause"))

	w.foreign(func(s *agentstate.State) {
		s.DesiredState, s.SetBy, s.Note = "run_once", "human", "from elsewhere"
		s.Extra = append(s.Extra, file.Field{Name: "colour", Raw: []byte(`"teal"`)})
	})
	if a := w.until("coder", "it obeys the file", running); a.SetBy != "file" {
		t.Errorf("the file's setBy is shown as the author: %q", a.SetBy)
	}
	why, err := w.engine.Status.Why(t.Context(), "coder")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range why.Evidence {
		if strings.Contains(e.What, "human") {
			t.Errorf("the file's setBy is shown as evidence: %s", e.What)
		}
	}
	s := w.fileSays("run_once", says("run_once", "run_once"))
	if len(s.Extra) != 1 || s.Extra[0].Name != "colour" || s.Note != "from elsewhere" {
		t.Errorf("the other program's fields were not kept: %+v", s)
	}

	w.foreign(func(s *agentstate.State) { s.CurrentState = "pause" })
	w.fileSays("run_once again", says("run_once", "run_once"))
	w.write("go", "")
	w.until("coder", "it rests", idle)

	w.foreign(func(s *agentstate.State) { s.DesiredState = "turbo" })
	s = w.fileSays("turbo, and a note", func(s agentstate.State) bool { return strings.Contains(s.Note, "turbo") })
	if s.DesiredState != "turbo" || s.CurrentState != "pause" {
		t.Errorf("an unknown desired state was changed: %+v", s)
	}

	if err := os.WriteFile(w.path("coder/agent_state.json"), []byte(`{"desired_state": contin`), 0o644); err != nil {
		t.Fatal(err)
	}
	w.fileSays("pause", says("pause", "pause"))
	w.until("coder", "Fairlead has set the pause of a corrupt file", func(a view.AgentView) bool { return a.SetBy == control.ByFairlead })
	kept, err := filepath.Glob(w.path("coder/agent_state.json.corrupt-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("the corrupt bytes were not kept once: %v %v", kept, err)
	}

	if err := os.Remove(w.path("coder/agent_state.json")); err != nil {
		t.Fatal(err)
	}
	w.fileSays("pause, written anew", says("pause", "pause"))
	w.took("control/coder", "C3", "C22", "C13", "C12", "C21")
	if n := len(w.sessions()); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
}

// SPEC X4: an impossible command is refused with a reason and changes nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML("true"), nil)
	_, err := w.engine.Agents.Command(context.Background(), human, "codr", "continuous", "")
	if err == nil || !strings.Contains(err.Error(), "coder") {
		t.Errorf("an unknown agent: %v", err)
	}
	_, err = w.engine.Agents.Command(context.Background(), human, "coder", "turbo", "")
	var refusal *table.Refusal
	if !errors.As(err, &refusal) || refusal.Row != "C13" {
		t.Errorf("an unknown desired state: %v", err)
	}
}
