package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
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
	if stage.World == nil {
		stage.World = &Memory{}
	}
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
		world := &Memory{}
		end, got, took := play(t, `
pace: 1s
steps:
  - say: "{name} {session} {n} {kind} {attempt} {prompt} {time} {no} ${n}"
  - say: {text: "one two", delay: 100ms}
  - say: {text: abcd, chunk: 3}
  - say: "two\nlines\n"
  - write: {file: "src/{n}.txt", content: "a a b\n"}
  - append: {file: src/17.txt, content: "{prompt}\n"}
  - edit: {file: src/17.txt, replace: a, with: c, all: true}
  - sleep: 10s
  - repeat: {times: 2, steps: [{say: "round {i}"}]}
  - {say: never, every: 2}
  - {say: seventeen, every: 17}
  - {say: never, chance: 0}
  - usage: {input_tokens: 5, output_tokens: 6, cost_usd: 0.5}
  - spawn: sleep 1000
  - {count: 2, rate: 10, ledger: said.txt}
`, work, Stage{World: world})
		expect(t, got,
			"said coder coder-17 17 session 1 build it 2000-01-01T00:00:00Z {no} ${n}",
			"said one ", "said two", "said abc", "said d", "said two", "said lines",
			"tool_called src/17.txt", "tool_called src/17.txt", "tool_called src/17.txt",
			"said round 1", "said round 2", "said seventeen", "usage_reported ",
			"tool_called sleep 1000", "said left running: pid 1 (child)",
			"said coder-17 1/2", "said coder-17 2/2", "stopped completed")
		if end.Stop == nil || !end.Stop.OK || end.Code != 0 {
			t.Errorf("ended %+v", end)
		}
		if b, _ := world.ReadFile("src/17.txt"); string(b) != "c c b\nbuild it\n" {
			t.Errorf("file: %q", b)
		}
		if b, _ := world.ReadFile("said.txt"); string(b) != "coder-17 1/2\ncoder-17 2/2\n" {
			t.Errorf("ledger: %q", b)
		}
		// 12 steps were played with 11 pauses between them; 10 s, 0.1 s for a word, 0.1 s for a line.
		if want := 22*time.Second + 200*time.Millisecond; took != want {
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
		"crash":     {`{crash: SIGSEGV}`, -1, ""},
		"edit":      {`{edit: a, replace: x, with: y}`, 1, "failed: test.yaml:1:10: edit: open a: file does not exist"},
		"nested":    {`{repeat: 2, steps: [{edit: a, replace: x, with: y}]}`, 1, "failed: test.yaml:1:30: edit: open a: file does not exist"},
		"run":       {`{run: "false", tries: 3}`, 1, "failed: test.yaml:1:10: run: exit code 1 from false"},
		"run, slow": {`{run: "hang", timeout: 1m}`, 1, "failed: test.yaml:1:10: run: hang did not end within 1m0s"},
		"may fail":  {`{run: "false", may_fail: true}`, 0, "completed"},
		"prompt":    {`{expect_prompt: tests}`, 1, `failed: test.yaml:1:10: expect_prompt: the prompt "build it" does not contain "tests"`},
		"no prompt": {`expect_prompt, {expect_prompt: , timeout: 1s}`, 1, "failed: test.yaml:1:25: expect_prompt: no prompt came within 1s"},
		"no answer": {`{ask: may I, timeout: 1s, denied: [{fail: "{answer}"}]}`, 1, "failed: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world := &Memory{Command: func(ctx context.Context, command string, _ []string, out io.Writer) (int, error) {
					if command == "hang" {
						<-ctx.Done()
						return -1, nil
					}
					fmt.Fprintln(out, command)
					return 1, nil
				}}
				end, _, _ := play(t, "steps: [ "+c.steps+"]", work, Stage{World: world})
				stop := ""
				if end.Stop != nil {
					stop = strings.TrimSuffix(end.Stop.Reason+": "+end.Stop.Detail, ": ")
				}
				if end.Code != c.code || stop != c.stop {
					t.Errorf("ended %+v: %s, want %d: %s", end, stop, c.code, c.stop)
				}
			})
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
		orders := make(chan Order)
		go func() {
			wait.Elapse(time.Hour)
			orders <- Order{Type: OrderAnswer, ID: "ask-1", Option: "allow"} // not a prompt: it still waits
			orders <- Order{Type: OrderPrompt, Text: "two"}
			wait.Elapse(time.Minute) // it is idle
			orders <- Order{Type: OrderPrompt, Text: "three"}
			wait.Elapse(time.Hour)
			orders <- Order{Type: OrderPrompt, Text: "four"}
		}()
		end, got, _ := play(t, "steps: [{repeat: {times: 4, steps: [expect_prompt, {say: '{prompt}'}, {sleep: 2m}]}}]", work, Stage{Orders: orders})
		expect(t, got, "said build it", "listening ", "said two", "said three", "listening ", "said four", "stopped completed")
		if end.Code != 0 {
			t.Errorf("ended %+v", end)
		}
	})
}

// TestNoMorePrompts checks that an agent that waits for a prompt completes when no more prompts can come.
func TestNoMorePrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := make(chan Order)
		go func() {
			wait.Elapse(time.Hour)
			orders <- Order{Type: OrderPrompt, Text: "two"}
			close(orders)
		}()
		end, got, took := play(t, "steps: [{repeat: {times: 9, steps: [expect_prompt, {say: '{prompt}'}]}}, {say: never}]", work, Stage{Orders: orders})
		expect(t, got, "said build it", "listening ", "said two", "listening ", "stopped completed: no more prompts")
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

// TestOn checks that the steps of on depend on the prompt: the first case that it contains, in the
// order of the file, else the steps of else, else none.
func TestOn(t *testing.T) {
	const source = `
lead:
  - on: {prompt: {it: [{say: "start: {prompt}"}]}}
  - expect_prompt
  - repeat:
      times: 5
      steps:
        - expect_prompt
        - on:
            prompt:
              "[WAKE AGENTS]": [{say: wakes}, {on: {prompt: {Lyra: [{say: "Lyra, too"}]}}}]
              "[SUMMON AGENTS]": [{say: summons}]
              "I am {name}": [{say: it is me}]
            else: [{say: "else: {prompt}"}]
          every: 17
        - on: {prompt: {nothing: [{say: never}]}}
steps: [{say: work}]
`
	synctest.Test(t, func(t *testing.T) {
		lead := work
		lead.Kind = driver.Lead
		orders := make(chan Order, 6)
		for _, text := range []string{"[SUMMON AGENTS]\nwith [WAKE AGENTS] in it", "[SUMMON AGENTS]", "who?", "I am coder", "[WAKE AGENTS] <agent name=\"Lyra\">"} {
			orders <- Order{Type: OrderPrompt, Text: text}
		}
		close(orders)
		_, got, _ := play(t, source, lead, Stage{Orders: orders})
		expect(t, got, "said start: build it", "said wakes", "said summons", "said else: who?", "said it is me", "said wakes", "said Lyra, too", "stopped completed")
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
	synctest.Test(t, func(t *testing.T) {
		world := &Memory{Command: func(_ context.Context, command string, _ []string, out io.Writer) (int, error) {
			fmt.Fprintln(out, command)
			return 0, nil
		}}
		var out strings.Builder
		Play(t.Context(), parse(t, "steps: [{run: tool, says: false}, {run: TURN_COMPLETE, says: true}]"), work, Stage{World: world, Out: &out})
		for _, want := range []string{`{"type":"said","text":"tool","tool":"run"}`, `{"type":"said","text":"TURN_COMPLETE"}`} {
			if !strings.Contains(out.String(), want+"\n") {
				t.Errorf("the events lack %[2]s:\n%[1]s", out.String(), want)
			}
		}
	})
}

// TestRandomChoices checks that the same session makes the same random choices, and that others make others.
func TestRandomChoices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := "seed: 3\norder: random\nsessions: [{steps: &s [{repeat: 40, steps: [{say: x, chance: 0.5}, {one_of: [[{say: a}], [{say: b}]]}]}, {sleep: 1s..2s}]}, {steps: *s}]"
		drawn := make(map[string]bool)
		for n := range 5 {
			part := work
			part.Session = fmt.Sprintf("coder-%d", n)
			_, got, took := play(t, source, part, Stage{})
			_, again, tookAgain := play(t, source, part, Stage{})
			expect(t, again, got...)
			if took != tookAgain {
				t.Errorf("took %v, then %v", took, tookAgain)
			}
			drawn[strings.Join(got, " ")] = true
		}
		if len(drawn) < 4 {
			t.Errorf("five sessions made %d different random choices", len(drawn))
		}
	})
}

func TestOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := make(chan Order)
		go func() {
			wait.Elapse(time.Hour)
			orders <- Order{Type: OrderAnswer, ID: "ask-1", Option: "allow"}
			orders <- Order{Type: OrderAnswer, ID: "ask-2", Option: "deny"}
			orders <- Order{Type: OrderAnswer, ID: "ask-3", Option: "allow everything"}
			wait.Elapse(time.Hour) // it listens by then
			orders <- Order{Type: OrderPrompt, Text: "and faster"}
			orders <- Order{Type: OrderPrompt, Text: "unread"}
			close(orders)
		}()
		end, got, _ := play(t, `
steps:
  - {ask: one, allowed: [{say: yes}], denied: [{say: no}]}
  - {ask: two, allowed: [{say: yes}], denied: [{say: no}]}
  - {ask: three, allowed: [{say: yes}], denied: [{say: "{answer}"}]}
  - expect_prompt
  - {expect_prompt: faster}
  - say: "{prompt}"
  - sleep: 1s
`, work, Stage{Orders: orders})
		expect(t, got, "permission_asked one", "permission_answered allow", "said yes",
			"permission_asked two", "permission_answered deny", "said no", "permission_asked three",
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
	for name, c := range map[string]struct {
		steps string
		stops time.Duration // how long it may continue after SIGTERM
	}{
		"sleep":         {"{sleep: 10h}", 0},
		"hang":          {"{hang: why}", 0},
		"ask":           {"{ask: may I}", 0},
		"expect_prompt": {"expect_prompt, expect_prompt", 0},
		"say":           {"{say: " + strings.Repeat("word ", 1000) + ", delay: 10m}", 0},
		"count":         {"{count: 1000000, rate: 0.1}", 0},
		"repeat":        {"{repeat: 1000000, steps: [{sleep: 10m}]}", 0},
		"run":           {"{run: stubborn}", stopGrace},
		"run, quick":    {"{run: quick}", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world := &Memory{Command: func(ctx context.Context, command string, _ []string, _ io.Writer) (int, error) {
					var quick <-chan time.Time
					if command == "quick" {
						quick = time.After(time.Minute + time.Second)
					}
					select {
					case <-ctx.Done():
						return -1, nil
					case <-quick:
						return 0, nil
					}
				}}
				source := "steps: [" + c.steps + ", {say: never}]"

				orders, stop := make(chan Order), make(chan struct{})
				go func() { wait.Elapse(time.Minute); orders <- Order{Type: OrderCancel} }()
				end, _, took := play(t, source, work, Stage{World: world, Orders: orders})
				if end.Code != CodeCancelled || end.Stop == nil || end.Stop.Reason != "cancelled" || took != time.Minute {
					t.Errorf("cancel: %+v after %v", end, took)
				}

				go func() { wait.Elapse(time.Minute); close(stop) }()
				end, got, took := play(t, source, work, Stage{World: world, Stop: stop})
				if end.Code != CodeTerminated || end.Stop == nil || end.Stop.Reason != "terminated" || took != time.Minute+c.stops {
					t.Errorf("stop: %+v after %v", end, took)
				}
				if strings.Contains(strings.Join(got, "\n"), "never") {
					t.Error("stop: the next step was played")
				}

				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				h := &eventLog{}
				end = Play(ctx, parse(t, source), work, Stage{Out: h, World: world})
				if end.Stop != nil || end.Signal != "SIGKILL" || strings.Contains(h.b.String(), "stopped") {
					t.Errorf("gone: %+v", end)
				}
			})
		})
	}
}

// TestOutputBroken checks that an agent stops if its output cannot be written.
func TestOutputBroken(t *testing.T) {
	world := &Memory{}
	end := Play(t.Context(), parse(t, "steps: [{say: a}, {write: b, content: c}]"), work, Stage{Out: brokenPipe{}, World: world})
	if _, err := world.ReadFile("b"); err == nil || end.Stop != nil {
		t.Errorf("it continued: %+v", end)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestOutputs checks that files of a dispatch go to its output folder and nowhere else, and that a
// question's arguments are reported.
func TestOutputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, outputs := &Memory{}, &Memory{}
		end, got, _ := play(t, `
steps:
  - write: {file: "{outputs}/hello_{n}.py", content: "print('hello')\n"}
  - edit: {file: "{outputs}/hello_{n}.py", replace: hello, with: hullo}
  - say: "it lies in {outputs}"
`, work, Stage{World: world, Outputs: outputs, Folder: "/s/conv_001/outputs"})
		expect(t, got, "tool_called /s/conv_001/outputs/hello_17.py", "tool_called /s/conv_001/outputs/hello_17.py",
			"said it lies in /s/conv_001/outputs", "stopped completed")
		if b, err := outputs.ReadFile("hello_17.py"); end.Code != 0 || string(b) != "print('hullo')\n" {
			t.Errorf("%+v: %q, %v", end, b, err)
		}
		if b, err := world.ReadFile("hello_17.py"); err == nil {
			t.Errorf("it is in the workspace, too: %q", b)
		}
		end, _, _ = play(t, `steps: [{write: {file: "{outputs}/a", content: b}}]`, work, Stage{World: world})
		if end.Code == 0 || !strings.Contains(end.Stop.Detail, OutputsVariable) {
			t.Errorf("a session without an output folder: %+v", end)
		}
	})
	if _, err := Parse("a.yaml", []byte(`steps: [{write: {file: "{outputs}/../state.jsonl", content: b}}]`)); err == nil {
		t.Error("a file beside the outputs must be refused before any step runs")
	}
	h := &eventLog{}
	stage := Stage{Out: h, World: &Memory{}}
	Play(t.Context(), parse(t, `steps: [{ask: "May I?", tool: Bash, args: {command: "rm -r {name}"}, timeout: 1ms}, {write: {file: a, content: b}}, {run: echo hello}]`), work, stage)
	raw := h.b.String()
	for _, want := range []string{`"tool":"Bash","id":"ask-1"`, `"args":{"command":"rm -r coder"}`, `"args":{"file_path":"a"}`, `"args":{"command":"echo hello"}`} {
		if !strings.Contains(raw, want) {
			t.Errorf("%s is not reported:\n%s", want, raw)
		}
	}
}
