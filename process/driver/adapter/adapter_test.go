package adapter_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
)

var session = driver.Session{ID: "coder-17", Kind: driver.Work, Prompt: "build the whole thing", Attempt: 1}

// agent returns an agent whose program behaves as the mode says.
func agent(mode string) driver.Agent {
	return driver.Agent{Name: "coder", Command: []string{os.Args[0], programVerb, mode}}
}

// when returns a callback that runs at the first fact with this text.
func when(text string,
	do func(p *drivertest.Process, c driver.Conversation),
) func(*testing.T, *drivertest.Process, driver.Conversation, driver.Fact) {
	return func(_ *testing.T, p *drivertest.Process, c driver.Conversation, f driver.Fact) {
		if f.Text == text {
			do(p, c)
		}
	}
}

func TestAdapter(t *testing.T) {
	drivertest.Run(t, plain{},
		drivertest.Case{
			Name: "Work", Session: session, Agent: agent("echo"), OK: true,
			Facts: []string{"said you said: build the whole thing", "said ", "stopped completed"},
		},
		drivertest.Case{
			Name: "Asks", Session: session, Agent: agent("asks"), OK: true,
			Tell: when("may I?", func(_ *drivertest.Process, c driver.Conversation) {
				_ = c.Answer(t.Context(), "q1", "allow")
			}),
			Facts: []string{"permission_asked may I?", "permission_answered allow", "said answered allow", "said ", "stopped completed"},
		},
		drivertest.Case{
			Name: "Relaunched", Session: session, Agent: agent("relaunched"), OK: true,
			Facts: []string{"said you said: build the whole thing", "said ", "stopped completed"},
		},
		drivertest.Case{
			Name:    "Prompts",
			Session: driver.Session{ID: "coder-19", Kind: driver.Turn, Prompt: "one", Attempt: 1, Channel: "reviews", Turn: 7},
			Agent:   agent("echo"), OK: true,
			Tell: talk("two", "three"),
			Facts: []string{
				"said you said: one", "said ", "listening ", "said you said: two", "said ", "listening ",
				"said you said: three", "said ", "listening ", "stopped completed",
			},
		},
		drivertest.Case{
			Name: "Answers twice", Session: driver.Session{ID: "coder-19", Kind: driver.Turn, Prompt: "one", Attempt: 1},
			Agent: agent("twice"), OK: true,
			Tell:  when("an answer to nothing", func(p *drivertest.Process, _ driver.Conversation) { _ = p.CloseInput(t.Context()) }),
			Facts: []string{"listening ", "faulted an answer to nothing", "stopped completed"},
		},
	)
}

// talk sends each text as soon as the agent listens, and then closes its input.
func talk(words ...string) func(*testing.T, *drivertest.Process, driver.Conversation, driver.Fact) {
	return func(t *testing.T, p *drivertest.Process, c driver.Conversation, f driver.Fact) {
		if f.Kind != driver.Listening {
			return
		}
		if f.Input != p.Sent() {
			t.Errorf("it listens after %d of %d bytes", f.Input, p.Sent())
		}
		if len(words) == 0 {
			_ = p.CloseInput(t.Context())
			return
		}
		if err := c.Prompt(t.Context(), words[0]); err != nil {
			t.Error(err)
		}
		words = words[1:]
	}
}

// TestBadPrograms checks observed ways in which programs end and misbehave.
func TestBadPrograms(t *testing.T) {
	cancel := when("wait", func(_ *drivertest.Process, c driver.Conversation) { _ = c.Cancel(t.Context()) })
	terminate := when("wait", func(p *drivertest.Process, _ driver.Conversation) { _ = syscall.Kill(p.PID(), syscall.SIGTERM) })
	for name, c := range map[string]struct {
		mode  string
		agent func(*driver.Agent)
		tell  func(*testing.T, *drivertest.Process, driver.Conversation, driver.Fact)
		ok    bool
		facts []string // nil: not compared; said facts with a tool are written "kind[tool] text"
	}{
		"Noise": {mode: "noise", ok: true, facts: []string{
			"said[stderr] a warning", "said[stdout] plain words", "said[stdout] [1,2]",
			"faulted a line of the program begins like a message but is not JSON", "said a\uFFFD", "said b", "said ", "stopped completed",
		}},
		"HalfALine": {mode: "half", facts: []string{
			"said whole", "faulted a line of the program begins like a message but is not JSON", "said ", "said[stderr] first",
			"said[stderr] out of memory",
			"stopped failed: the program ended with exit code 3: out of memory",
		}},
		"Liar":   {mode: "liar", facts: []string{"stopped failed: the program ended with exit code 0"}},
		"Killed": {mode: "killed", facts: []string{"stopped failed: the program was ended by SIGKILL"}},
		"Left":   {mode: "left", ok: true, facts: []string{"stopped completed"}},
		"LeftAndDead": {
			mode:  "left dead",
			facts: []string{"said last words", "said ", "stopped failed: the program ended with exit code 0"},
		},
		"NeverAnswers": {mode: "silent", tell: cancel, facts: []string{
			"said wait", "said ", "stopped cancelled: it went on",
		}},
		"Terminated": {mode: "silent", tell: terminate, facts: []string{
			"said wait", "said ", "stopped terminated: asked to stop by a signal",
		}},
		"Deaf": {mode: "deaf", tell: terminate, facts: []string{
			"said wait", "said ", "stopped terminated: asked to stop by a signal",
		}},
		"Unread": {mode: "unread", ok: true},
		"Panics": {
			mode: "echo", agent: func(a *driver.Agent) { a.Model = "panics" },
			tell: func(t *testing.T, _ *drivertest.Process, _ driver.Conversation, f driver.Fact) {
				if f.Kind == driver.Stopped && !strings.Contains(f.Text, "the adapter broke: out of cards") {
					t.Errorf("stopped %q", f.Text)
				}
			},
		},
		"Environment": {mode: "environment", ok: true, agent: func(a *driver.Agent) {
			a.MCP = driver.MCP{URL: "http://127.0.0.1:1/mcp", Token: "secret-4711"}
			a.Env = []string{"OF_THE_AGENT=yes"}
			a.Command = append(a.Command, "-v", "--name", "x y")
		}, facts: []string{
			"said FAIRLEAD_MCP_TOKEN=", "said FAIRLEAD_MCP_URL=", "said FAIRLEAD_AGENT=coder", "said OF_THE_AGENT=yes",
			"said 6 arguments in 001", "stopped completed",
		}},
		"Token": {mode: "token", ok: true, agent: func(a *driver.Agent) {
			a.MCP = driver.MCP{URL: "http://127.0.0.1:1/mcp", Token: "secret-4711"}
		}, facts: []string{"said ***", "said ", "said[stderr] my token is ***", "stopped completed"}},
		"Gone": {mode: "echo", agent: func(a *driver.Agent) { a.Command = []string{"/proc/self/mem"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of them wait for a time limit
			a := agent(c.mode)
			a.Workspace = t.TempDir()
			if c.agent != nil {
				c.agent(&a)
			}
			facts, outcome := run(t, a, session, c.tell)
			if outcome.OK != c.ok {
				t.Errorf("outcome %+v", outcome)
			}
			if stops := slices.DeleteFunc(slices.Clone(facts),
				func(s string) bool { return !strings.HasPrefix(s, "stopped ") }); len(stops) != 1 {
				t.Errorf("%d terminal events: %q", len(stops), facts)
			}
			if c.facts != nil && !equalBut(facts, c.facts, "said[stderr]") {
				t.Errorf("facts\n%s\nwant\n%s", strings.Join(facts, "\n"), strings.Join(c.facts, "\n"))
			}
		})
	}
}

// equalBut compares in order, except for lines with the prefix: they come from another stream, so
// their position is arbitrary.
func equalBut(got, want []string, prefix string) bool {
	split := func(all []string) (main, other []string) {
		for _, s := range all {
			if strings.HasPrefix(s, prefix) {
				other = append(other, s)
			} else {
				main = append(main, s)
			}
		}
		return main, other
	}
	gotMain, gotOther := split(got)
	wantMain, wantOther := split(want)
	return slices.Equal(gotMain, wantMain) && slices.Equal(gotOther, wantOther)
}

// run starts a real agent and returns its facts.
func run(t *testing.T, a driver.Agent, s driver.Session,
	tell func(*testing.T, *drivertest.Process, driver.Conversation, driver.Fact),
) (facts []string, outcome driver.Outcome) {
	t.Helper()
	l, err := plain{}.Launch(a, s)
	if err != nil {
		return []string{"stopped failed: " + err.Error()}, driver.Outcome{Why: err.Error()}
	}
	p := drivertest.Start(t, l)
	talk := plain{}.Converse(a, s, p)
	var stop *driver.Stop
	for f, err := range talk.Facts(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		line := string(f.Kind) + " " + f.Text
		if f.Tool != "" {
			line = string(f.Kind) + "[" + f.Tool + "] " + f.Text
		}
		facts = append(facts, line)
		if f.Kind == driver.Stopped {
			stop = f.Stop
		}
		if tell != nil {
			tell(t, p, talk, f)
		}
	}
	return facts, plain{}.Outcome(s, p.Wait(t), stop)
}

// TestFast checks that 5,000 updates at once arrive completely and in order.
func TestFast(t *testing.T) {
	a := agent("fast")
	a.Workspace = t.TempDir()
	facts, outcome := run(t, a, session, nil)
	if !outcome.OK || len(facts) != 5001 {
		t.Fatalf("%d facts, %+v", len(facts), outcome)
	}
	for i, f := range facts[:5000] {
		if f != "said "+strconv.Itoa(i) {
			t.Fatalf("fact %d is %q", i, f)
		}
	}
}

// TestLongLine checks that a line of 11 MiB (2 MiB with the race detector) arrives completely.
func TestLongLine(t *testing.T) {
	a := agent("long")
	a.Workspace = t.TempDir()
	facts, outcome := run(t, a, session, nil)
	said := 0
	for _, f := range facts {
		if text, ok := strings.CutPrefix(f, "said "); ok {
			said += len(text)
		}
	}
	if !outcome.OK || said != longBytes() {
		t.Errorf("%d bytes said, %+v", said, outcome)
	}
}
