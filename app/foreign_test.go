package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/files/agentstate"
)

// foreignLoopWord makes the test binary run as a foreign agent: the main loop of seed 000, with its
// read-modify-write that truncates in place. It does not know Fairlead.
const foreignLoopWord = "ENGINE_TEST_FOREIGN_LOOP"

// foreignLoop reads its file, follows the desired state, and writes its own state. A continuous session takes a moment, a one-shot
// until the file "end" is there: Fairlead promises to count one that it has seen begin, and orders one again that was over before it
// looked, because the file is then as after a write that had not read the order.
func foreignLoop() {
	const file = agentstate.FileName
	read := func() map[string]any {
		for {
			text, err := os.ReadFile(file)
			state := map[string]any{}
			if err == nil && json.Unmarshal(text, &state) == nil {
				return state
			}
			if os.IsNotExist(err) {
				return map[string]any{"desired_state": "pause", "current_state": "unknown", "loop": "theirs"}
			}
			wait.Pause(time.Millisecond) // another program is writing
		}
	}
	first := read()
	write := func(desired, current string) {
		state := first
		if os.Getenv(foreignLoopWord) != "deaf" {
			state = read()
		}
		if os.Getenv(foreignLoopWord) == "slow" {
			wait.Pause(60 * time.Millisecond) // it writes back what it read before
		}
		if desired != "" {
			state["desired_state"] = desired
			state["setBy"], state["note"] = "agent", ""
		}
		state["current_state"] = current
		state["timestamp"] = time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
		text, err := json.MarshalIndent(state, "", "  ")
		if err == nil {
			err = os.WriteFile(file, text, 0o644)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	session := func(kind string) {
		fmt.Println("session", kind)
		for kind != "continuous" && os.Remove("end") != nil {
			wait.Pause(time.Millisecond) // until the test ends it
		}
		wait.Pause(100 * time.Millisecond)
	}
	for os.Getenv(foreignLoopWord) == "deaf" { // it always writes back its first content
		write("", "pause")
		wait.Pause(70 * time.Millisecond)
	}
	for {
		switch state := read(); state["desired_state"] {
		case "continuous":
			if state["current_state"] != "continuous" {
				write("", "continuous")
			}
			session("continuous")
		case "run_once", "run_cleanup":
			kind := state["desired_state"].(string)
			write("", kind)
			session(kind)
			write("pause", "pause")
		default:
			if state["current_state"] != "pause" || os.Getenv(foreignLoopWord) == "slow" { // this variant writes at each step
				write("", "pause")
			}
			if os.Getenv(foreignLoopWord) == "slow" {
				wait.Pause(400 * time.Millisecond)
			}
			wait.Pause(10 * time.Millisecond)
		}
	}
}

// newForeignLoop starts a supervisor with one agent, coder, which is a foreign loop: a quick one,
// or one that is slow between its read and its write of the file.
func newForeignLoop(t *testing.T, speed string) *world {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newWorld(t, fmt.Sprintf(`version: 1
agents:
  coder:
    driver: exec
    loop: foreign
    command: [%q]
    workspace: coder
    env: {%s: %s}
    grace: 1s
`, self, foreignLoopWord, speed), nil)
}

// F4: a newer order applies at the end of a foreign one-shot, regardless of the time between the
// loop's read and write of its file.
func TestSlowForeignLoop(t *testing.T) {
	t.Parallel()
	w := newForeignLoop(t, "slow")
	is := func(desired, current string) {
		t.Helper()
		w.until("coder", desired+" is wanted and "+current+" is done", func(a view.AgentView) bool {
			return a.DesiredState == desired && a.CurrentState == current
		})
	}
	is("pause", "pause")
	for round := range 3 {
		w.command("coder", "run_once")
		is("run_once", "run_once")
		w.write("coder/end", "")
		wait.Pause(time.Duration(80+40*round) * time.Millisecond) // around its end: before, during and after the write
		w.command("coder", "continuous")
		is("continuous", "continuous")
		w.command("coder", "pause")
		is("pause", "pause")
	}
}

// TestForeignLoop runs the loop of seed 000 as a real program on a real file. Fairlead commands and
// watches it, keeps it running from up to down, and never changes the fields that it owns.
func TestForeignLoop(t *testing.T) {
	t.Parallel()
	w := newForeignLoop(t, "quick")
	program := w.until("coder", "its program runs", func(a view.AgentView) bool {
		return a.Session != nil && a.Session.Phase == "running" && a.CurrentState == "pause"
	}).Session
	if program.Kind != "foreign" {
		t.Errorf("%+v", program)
	}
	reports := func(desired, current string) {
		t.Helper()
		w.until("coder", desired+" is wanted and "+current+" is done", func(a view.AgentView) bool {
			return a.DesiredState == desired && a.CurrentState == current
		})
		w.fileSays(desired+" and "+current, says(desired, current))
	}
	done := func(kind string) int {
		out, err := w.engine.opts.Host.Output(context.Background(), program.ID, 0) // the output so far
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		text, err := io.ReadAll(out)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "session "+kind+"\n")
	}
	for _, kind := range []string{"run_once", "run_cleanup"} {
		w.command("coder", kind)
		reports(kind, kind)
		w.write("coder/end", "")
		reports("pause", "pause")
		if n := done(kind); n != 1 {
			t.Errorf("%s was done %d times", kind, n)
		}
	}
	w.command("coder", "continuous")
	reports("continuous", "continuous")
	w.command("coder", "pause")
	reports("pause", "pause")

	w.command("coder", "continuous")
	reports("continuous", "continuous")
	if _, err := w.engine.Agents.Hold(context.Background(), human, true, ""); err != nil {
		t.Fatal(err)
	}
	reports("pause", "pause")
	w.stop() // the hold and its desired state survive a restart; so does the program
	w.start()
	if a := w.until("coder", "it is found",
		func(a view.AgentView) bool { return a.Session != nil && a.Session.Phase == "running" }); a.Session.PID != program.PID {
		t.Errorf("another program runs: %+v", a.Session)
	}
	reports("pause", "pause")
	if _, err := w.engine.Agents.Hold(context.Background(), human, false, ""); err != nil {
		t.Fatal(err)
	}
	reports("continuous", "continuous")
	if n := done("run_once"); n != 1 {
		t.Errorf("%d one-shots were done", n)
	}
	if s := w.file("coder"); len(s.Extra) != 1 || s.Extra[0].Name != "loop" || string(s.Extra[0].Raw) != `"theirs"` {
		t.Errorf("its own field is %+v", s.Extra)
	}
	w.took("control/coder", "F1", "F2", "F3", "F5", "C18")
	w.took("session/coder", "S1", "S2")

	if err := w.engine.Agents.Stop(context.Background(), human, false); err != nil { // down ends the program
		t.Fatal(err)
	}
	select {
	case <-w.engine.Loop.Stopped():
	case <-time.After(waitMax):
		t.Fatal("the stop was never complete")
	}
	if _, err := os.Stat(filepath.Join("/proc", fmt.Sprint(program.PID))); err == nil {
		t.Errorf("process %d still runs", program.PID)
	}
	if s := w.file("coder"); s.DesiredState != "continuous" {
		t.Errorf("the desired state for the next start is %q", s.DesiredState)
	}
}

// TestForeignLoopThatDies checks that a foreign program that dies is started again, and that its
// desired state stays.
func TestForeignLoopThatDies(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, fmt.Sprintf(`version: 1
agents:
  coder:
    driver: exec
    loop: foreign
    command: [%q]
    workspace: coder
    env: {%s: "1"}
    grace: 1s
`, self, foreignLoopWord), nil)
	w.command("coder", "continuous")
	working := func(a view.AgentView) bool {
		return a.Session != nil && a.Session.Phase == "running" && a.CurrentState == "continuous"
	}
	first := w.until("coder", "it works", working).Session
	killed, err := os.FindProcess(first.PID)
	if err == nil {
		err = killed.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.until("coder", "it works again", func(a view.AgentView) bool { return working(a) && a.Session.ID != first.ID })
	if a := w.until("coder", "it works", working); a.DesiredState != "continuous" {
		t.Errorf("%+v", a)
	}
}

// F4: the inbox lists a foreign loop that keeps overwriting an order without reading it. The order
// is kept.
func TestForeignLoopThatKeepsOrdersOut(t *testing.T) {
	t.Parallel()
	w := newForeignLoop(t, "deaf")
	w.until("coder", "it works", func(a view.AgentView) bool { return a.CurrentState == "pause" })
	w.command("coder", "continuous")
	wait.Until(t, "a card for it in the inbox", func() bool {
		items, err := w.engine.Status.Inbox(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(items) == 1 && strings.Contains(items[0].Why, "keeps writing")
	})
	why, err := w.engine.Status.Why(t.Context(), "coder")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(why.Evidence, func(e view.Evidence) bool { return strings.Contains(e.What, "keeps writing") && !e.Holds }) {
		t.Errorf("why has no evidence for it: %+v", why.Evidence)
	}
	if why.Agent.DesiredState != "continuous" {
		t.Errorf("the desired state is %s", why.Agent.DesiredState)
	}
	w.command("coder", "pause") // as the loop writes it
	if items, err := w.engine.Status.Inbox(t.Context()); err != nil || len(items) != 0 {
		t.Errorf("%+v %v", items, err)
	}
}
