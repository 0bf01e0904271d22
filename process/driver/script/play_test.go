package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// heard collects a play's events with their times.
type eventLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *eventLog) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(b)
}

func (h *eventLog) lines(t *testing.T) []string {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines []string
	for _, f := range drivertest.Facts(t, Driver{}, &drivertest.Recording{Bytes: bytes.Clone(h.b.Bytes())}, 0) {
		lines = append(lines, string(f.Kind)+" "+f.Text)
	}
	return lines
}

func parse(t testing.TB, source string) *Program {
	t.Helper()
	p, err := Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var work = Part{Name: "coder", Session: "coder-17", Kind: driver.Work, Attempt: 1, Prompt: "build it"}

// play plays a script in virtual time.
func play(t *testing.T, source string, part Part, stage Stage) (End, []string, time.Duration) {
	t.Helper()
	h := &eventLog{}
	stage.Out = h
	began := time.Now()
	end := Play(t.Context(), parse(t, source), part, stage)
	return end, h.lines(t), time.Since(began)
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, got, took := play(t, `
steps:
  - say: "{name} {session} {n} {kind} {attempt} {prompt} {no}"
  - {say: "one two", delay: 100ms}
  - say: "two\nlines\n"
  - sleep: 10s
  - usage: {input_tokens: 5, output_tokens: 6, cost_usd: 0.5}
  - {emit: "raw\n", times: 2}
  - emit: !!binary aGFsbG8K
`, work, Stage{})
		expect(t, got,
			"said coder coder-17 17 session 1 build it {no}",
			"said one ", "said two", "said two", "said lines", "usage_reported ", "said raw", "said raw", "said hallo", "stopped completed")
		if end.Stop == nil || !end.Stop.OK || end.Code != 0 {
			t.Errorf("ended %+v", end)
		}
		if want := 10*time.Second + 100*time.Millisecond; took != want {
			t.Errorf("took %v, want %v", took, want)
		}
	})
}

func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		steps string
		code  int
		stop  string // reason: detail; empty: no terminal event
	}{
		"fail":      {`{fail: "no {kind}", code: 7}`, 7, "failed: no session"},
		"crash":     {`crash`, -1, ""},
		"run":       {`{run: "false"}`, 1, "failed: test.yaml:1:10: run: exit code 1 from false"},
		"run, good": {`{run: "true"}`, 0, "completed"},
		"run, dead": {`{run: "kill -TERM $$"}`, 1, "failed: test.yaml:1:10: run: exit code 143 from kill -TERM $$"},
		"no answer": {`{ask: may I, timeout: 1ms}, {fail: "{answer}"}`, 1, "failed: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			end, _, _ := play(t, "steps: [ "+c.steps+"]", work, Stage{})
			stop := ""
			if end.Stop != nil {
				stop = strings.TrimSuffix(end.Stop.Reason+": "+end.Stop.Detail, ": ")
			}
			if end.Code != c.code || stop != c.stop {
				t.Errorf("ended %+v: %s, want %d: %s", end, stop, c.code, c.stop)
			}
		})
	}
}

func TestCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tidy := work
		tidy.Kind = driver.Cleanup
		_, got, _ := play(t, "steps: [{say: work}]\ncleanup: [{say: '{kind}'}]", tidy, Stage{})
		expect(t, got, "said cleanup", "stopped completed")
		_, got, _ = play(t, "steps: [{say: work}]", tidy, Stage{})
		expect(t, got, "said nothing to tidy", "stopped completed")
	})
}

// TestTurn checks that a session for turns runs the steps of turn or, without them, those of any
// other session.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		talk := work
		talk.Kind = driver.Turn
		_, got, _ := play(t, "steps: [{say: work}]\nturn: [{say: '{kind}'}]", talk, Stage{})
		expect(t, got, "said turn", "stopped completed")
		_, got, _ = play(t, "steps: [{say: work}]\nturn: [{say: '{kind}'}]", work, Stage{})
		expect(t, got, "said work", "stopped completed")
		_, got, _ = play(t, "steps: [{say: work}]", talk, Stage{})
		expect(t, got, "said work", "stopped completed")
	})
}

// TestListening checks that an agent reports listening once for each wait, but not if a prompt is
// already queued.
func TestListening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := make(chan speech.Order)
		go func() {
			wait.Elapse(time.Hour)
			orders <- speech.Order{Type: speech.OrderAnswer, ID: "ask-1", Option: "allow"} // not a prompt: it still waits
			orders <- speech.Order{Type: speech.OrderPrompt, Text: "two"}
			wait.Elapse(time.Minute) // it is idle
			orders <- speech.Order{Type: speech.OrderPrompt, Text: "three"}
			wait.Elapse(time.Hour)
			orders <- speech.Order{Type: speech.OrderPrompt, Text: "four"}
			close(orders)
		}()
		end, got, _ := play(t, "steps: [expect_prompt, {say: '{prompt}'}, {sleep: 2m}, again]", work, Stage{Orders: orders})
		expect(t, got, "said build it", "listening ", "said two", "said three", "listening ", "said four", "listening ",
			"stopped completed: no more prompts")
		if end.Code != 0 {
			t.Errorf("ended %+v", end)
		}
	})
}

// TestNoMorePrompts checks that an agent that waits for a prompt completes when no more prompts can come.
func TestNoMorePrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := make(chan speech.Order)
		go func() {
			wait.Elapse(time.Hour)
			orders <- speech.Order{Type: speech.OrderPrompt, Text: "two"}
			close(orders)
		}()
		end, got, took := play(t, "steps: [{say: once}, expect_prompt, {say: '{prompt}'}, again, {say: never}]", work,
			Stage{Orders: orders})
		expect(t, got, "said once", "said build it", "listening ", "said two", "listening ", "stopped completed: no more prompts")
		if end.Code != 0 || end.Stop == nil || !end.Stop.OK || took != time.Hour {
			t.Errorf("ended %+v after %v", end, took)
		}
	})
}

// TestLead checks that a lead runs the steps of lead, else those of turn, else those of a session.
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lead := work
		lead.Kind = driver.Lead
		for source, want := range map[string]string{
			"lead: [{say: '{kind}'}]\nturn: [{say: a talk}]\nsteps: [{say: work}]": "said lead",
			"turn: [{say: a talk}]\nsteps: [{say: work}]":                          "said a talk",
			"steps: [{say: work}]": "said work",
		} {
			_, got, _ := play(t, source, lead, Stage{})
			expect(t, got, want, "stopped completed")
		}
		_, got, _ := play(t, "lead: [{say: no}]\nsteps: [{say: work}]", work, Stage{})
		expect(t, got, "said work", "stopped completed")
	})
}

// TestTurns checks that sessions are chosen in turn by the number in the session's ID.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []string
		for n := range 5 {
			part := work
			part.Session = fmt.Sprintf("coder-%d", n+1)
			_, got, _ := play(t, "sessions: [{steps: [{say: a}]}, {steps: [{say: b}]}, {steps: [{say: c}]}]", part, Stage{})
			all = append(all, got[0])
		}
		expect(t, all, "said a", "said b", "said c", "said a", "said b")
	})
}

// TestRunSays checks that a command's output is tool output and, with says, text of the agent.
func TestRunSays(t *testing.T) {
	var out strings.Builder
	part := work
	part.Prompt = `{"type":"thought","text":"hm"}`
	Play(t.Context(), parse(t, "steps: [{run: echo tool, says: false}, {run: printf TURN_COMPLETE, says: true}, {run: cat, raw: true}]"),
		part, Stage{Out: &out})
	for _, want := range []string{
		`"args":{"command":"echo tool"}`, `{"type":"said","text":"tool","tool":"run"}`,
		`{"type":"said","text":"TURN_COMPLETE"}`, "\n" + part.Prompt,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the events lack %[2]s:\n%[1]s", out.String(), want)
		}
	}
}

// TestRunGets checks that a command gets the prompt and the answer as data: what they contain is not run.
func TestRunGets(t *testing.T) {
	evil := work
	evil.Prompt = "$(touch owned) `touch owned`; touch owned\n" + strings.Repeat("long ", 100_000)
	dir := t.TempDir()
	_, got, _ := play(t, `
steps:
  - expect_prompt
  - run: cat > whole
  - run: 'echo "$NAME $SESSION $N $KIND $ATTEMPT"; printf "%s\n" "$PROMPT" | head -n 1'
    says: true
`, evil, Stage{Dir: dir})
	if all := strings.Join(got, "\n"); !strings.Contains(all,
		"said coder coder-17 17 session 1\nsaid $(touch owned) `touch owned`; touch owned\n") {
		t.Error(all)
	}
	if whole, err := os.ReadFile(filepath.Join(dir, "whole")); err != nil || string(whole) != evil.Prompt {
		t.Errorf("a command read %d bytes of %d: %v", len(whole), len(evil.Prompt), err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "owned")); err == nil {
		t.Error("the prompt was run")
	}
}

func TestOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := make(chan speech.Order)
		go func() {
			wait.Elapse(time.Hour)
			orders <- speech.Order{Type: speech.OrderAnswer, ID: "ask-1", Option: "allow"}
			orders <- speech.Order{Type: speech.OrderAnswer, ID: "ask-2", Option: "deny"}
			orders <- speech.Order{Type: speech.OrderAnswer, ID: "ask-3", Option: "allow everything"}
			wait.Elapse(time.Hour) // it listens by then
			orders <- speech.Order{Type: speech.OrderPrompt, Text: "and faster"}
			orders <- speech.Order{Type: speech.OrderPrompt, Text: "unread"}
			close(orders)
		}()
		end, got, _ := play(t, `
steps:
  - {ask: one, tool: Bash, args: {command: "rm -r {name}"}}
  - say: "{answer}"
  - ask: two
  - say: "{answer}"
  - ask: three
  - say: "{answer}"
  - expect_prompt
  - expect_prompt
  - say: "{prompt}"
  - sleep: 1s
`, work, Stage{Orders: orders})
		expect(t, got, "permission_asked one", "permission_answered allow", "said allow",
			"permission_asked two", "permission_answered deny", "said deny", "permission_asked three",
			`faulted ask-3 was answered with "allow everything", which was not offered`, "said not offered",
			"listening ", "said and faster", "stopped completed: 1 prompts were not read; the script has no expect_prompt for them")
		if end.Code != 0 {
			t.Errorf("ended %+v", end)
		}
	})
}

// TestInterrupts checks that a cancel order or SIGTERM ends an agent in any step. The end of its
// context does so without a terminal event.
func TestInterrupts(t *testing.T) {
	for name, steps := range map[string]string{
		"sleep":         "{sleep: 10h}",
		"hang":          "{hang: why}",
		"ask":           "{ask: may I}",
		"expect_prompt": "expect_prompt, expect_prompt",
		"say":           "{say: " + strings.Repeat("word ", 1000) + ", delay: 10m}",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := "steps: [" + steps + ", {say: never}]"

				orders, stop := make(chan speech.Order), make(chan struct{})
				go func() { wait.Elapse(time.Minute); orders <- speech.Order{Type: speech.OrderCancel} }()
				end, _, took := play(t, source, work, Stage{Orders: orders})
				if end.Code != CodeCancelled || end.Stop == nil || end.Stop.Reason != "cancelled" || took != time.Minute {
					t.Errorf("cancel: %+v after %v", end, took)
				}

				go func() { wait.Elapse(time.Minute); close(stop) }()
				end, got, took := play(t, source, work, Stage{Stop: stop})
				if end.Code != CodeTerminated || end.Stop == nil || end.Stop.Reason != "terminated" || took != time.Minute {
					t.Errorf("stop: %+v after %v", end, took)
				}
				if strings.Contains(strings.Join(got, "\n"), "never") {
					t.Error("stop: the next step was played")
				}

				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				h := &eventLog{}
				end = Play(ctx, parse(t, source), work, Stage{Out: h})
				if end.Stop != nil || end.Signal != "SIGKILL" || strings.Contains(h.b.String(), "stopped") {
					t.Errorf("gone: %+v", end)
				}
			})
		})
	}
}

// TestInterruptsACommand checks that a command is ended with the play, and that SIGTERM lets it finish.
func TestInterruptsACommand(t *testing.T) {
	dir := t.TempDir()
	begun := func() {
		wait.Until(t, "the command runs", func() bool { _, err := os.Stat(filepath.Join(dir, "begun")); return err == nil })
	}
	orders, stop := make(chan speech.Order), make(chan struct{})
	go func() { begun(); orders <- speech.Order{Type: speech.OrderCancel} }()
	end, _, _ := play(t, "steps: [{run: 'touch begun; sleep 600'}, {say: never}]", work, Stage{Orders: orders, Dir: dir})
	if end.Code != CodeCancelled || end.Stop == nil || end.Stop.Reason != "cancelled" {
		t.Errorf("cancel: %+v", end)
	}
	if err := os.Remove(filepath.Join(dir, "begun")); err != nil {
		t.Fatal(err)
	}
	go func() { begun(); close(stop) }()
	source := "steps: [{run: 'touch begun; sleep 0.1; touch finished'}, {say: never}]"
	end, got, _ := play(t, source, work, Stage{Stop: stop, Dir: dir})
	if end.Code != CodeTerminated || end.Stop == nil || strings.Contains(strings.Join(got, "\n"), "never") {
		t.Errorf("stop: %+v %q", end, got)
	}
	if _, err := os.Stat(filepath.Join(dir, "finished")); err != nil {
		t.Error("the command could not finish")
	}
}

// TestOutputBroken checks that an agent stops if its output cannot be written.
func TestOutputBroken(t *testing.T) {
	dir := t.TempDir()
	end := Play(t.Context(), parse(t, "steps: [{say: a}, {run: touch b}]"), work, Stage{Out: brokenPipe{}, Dir: dir})
	if _, err := os.Stat(filepath.Join(dir, "b")); err == nil || end.Stop != nil {
		t.Errorf("it continued: %+v", end)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
