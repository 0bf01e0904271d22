package script_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/script"
)

// agent returns a script agent with its own workspace.
func agent(t testing.TB, source string) driver.Agent {
	t.Helper()
	file := filepath.Join(t.TempDir(), "coder.script.yaml")
	if err := os.WriteFile(file, []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	return driver.Agent{Name: "coder", Script: file, Workspace: t.TempDir()}
}

var session = driver.Session{ID: "coder-17", Kind: driver.Work, Prompt: "build the whole thing", Attempt: 1}

func TestDriver(t *testing.T) {
	tidy := driver.Session{ID: "coder-18", Kind: driver.Cleanup, Attempt: 1}
	drivertest.Run(t, script.Driver{},
		drivertest.Case{
			Name: "Work", Session: session, OK: true,
			Agent: agent(t, `
steps:
  - say: "{session}: {prompt}"
  - run: printf 'one\ntwo'; echo "$FAIRLEAD_SESSION $PROMPT"; pwd >/dev/null
`),
			Facts: []string{
				"said coder-17: build the whole thing",
				`tool_called printf 'one\ntwo'; echo "$FAIRLEAD_SESSION $PROMPT"; pwd >/dev/null`,
				"said one", "said twocoder-17 build the whole thing", "stopped completed",
			},
		},
		drivertest.Case{
			Name: "Cleanup", Session: tidy, OK: true, Agent: agent(t, "steps: [{say: work}]\ncleanup: [{say: '{kind} {prompt}'}]"),
			Facts: []string{"said cleanup ", "stopped completed"},
		},
		drivertest.Case{
			Name: "Fails", Session: session, Agent: agent(t, "steps: [{fail: no network, code: 9}]"),
			Facts: []string{"stopped failed: no network"},
		},
		drivertest.Case{
			Name: "Crashes", Session: session, Agent: agent(t, "steps: [{emit: 'half a '}, crash]"),
			Facts: []string{"said half a "},
		},
		drivertest.Case{Name: "LeavesWithoutAWord", Session: session, Agent: agent(t, "steps: [{run: 'kill -9 $PPID'}, {say: x}]")},
		drivertest.Case{
			Name: "Shouts", Session: session, OK: true,
			Agent: agent(t,
				`steps: [{emit: "a lot of text, ", times: 1000000}, {emit: "\n"}, {emit: !!binary AAH//go=}, {run: "head -c 300000 /dev/zero | tr '\\0' x"}]`),
		},
		drivertest.Case{
			Name: "Asks", Session: session, OK: true,
			Agent: agent(t, "steps: [{ask: push?, tool: git_push}, {say: '{answer}'}]"),
			Tell: func(t *testing.T, _ *drivertest.Process, c driver.Conversation, f driver.Fact) {
				if f.Kind != driver.PermissionAsked {
					return
				}
				if f.Tool != "git_push" || len(f.Ask.Options) != 2 || f.Ask.Options[0].Kind != "allow_once" {
					t.Errorf("asked %+v", f)
				}
				if err := c.Answer(t.Context(), f.Ask.ID, f.Ask.Options[0].ID); err != nil {
					t.Error(err)
				}
			},
			Facts: []string{"permission_asked push?", "permission_answered allow", "said allow", "stopped completed"},
		},
		drivertest.Case{
			Name: "Listens", Session: session, OK: true,
			Agent: agent(t, "steps: [expect_prompt, {say: ready}, expect_prompt, {say: '{prompt}'}]"),
			Tell: func(t *testing.T, _ *drivertest.Process, c driver.Conversation, f driver.Fact) {
				if f.Kind == driver.Listening {
					if err := c.Prompt(t.Context(), "line two\nand three"); err != nil {
						t.Error(err)
					}
				}
			},
			Facts: []string{"said ready", "listening ", "said line two", "said and three", "stopped completed"},
		},
		drivertest.Case{
			Name: "Steered", Session: session, OK: true, // the text is confirmed when a step reads it, not when it arrives
			Agent: agent(t, "steps: [expect_prompt, {say: works}, expect_prompt, {say: '{prompt}'}]"),
			Tell: func(t *testing.T, _ *drivertest.Process, c driver.Conversation, f driver.Fact) {
				if f.Kind == driver.Listening {
					if err := c.Steer(t.Context(), "7", "use v2"); err != nil {
						t.Error(err)
					}
				}
				if f.Kind == driver.TextRead && f.ID != "7" {
					t.Errorf("read %+v", f)
				}
			},
			Facts: []string{"said works", "listening ", "text_read use v2", "said use v2", "stopped completed"},
		},
		drivertest.Case{
			Name: "Cancelled", Session: session, Agent: agent(t, "steps: [{say: a}, {run: sleep 1000}]"),
			Tell: func(t *testing.T, _ *drivertest.Process, c driver.Conversation, f driver.Fact) {
				if f.Kind == driver.ToolCalled {
					if err := c.Cancel(t.Context()); err != nil {
						t.Error(err)
					}
				}
			},
			Facts: []string{"said a", "tool_called sleep 1000", "stopped cancelled: cancelled by an order"},
		},
	)
}

// TestDriverTalks checks that a session for turns handles one prompt after the other.
func TestDriverTalks(t *testing.T) {
	drivertest.Run(t, script.Driver{},
		drivertest.Case{
			Name: "Prompts", OK: true, // one prompt after the other, the last one during an answer
			Session: driver.Session{
				ID: "coder-19", Kind: driver.Turn, Prompt: "the floor is yours", Attempt: 1, Channel: "reviews",
				Turn: 7,
			},
			Agent: agent(t, `
steps: [{say: not this}]
turn:
  - expect_prompt
  - say: "{kind}: {prompt}"
  - run: echo $FAIRLEAD_CHANNEL $FAIRLEAD_TURN
  - again
`),
			Tell: func(t *testing.T, p *drivertest.Process, c driver.Conversation, f driver.Fact) {
				if f.Kind != driver.Listening {
					return
				}
				if f.Input != p.Sent() {
					t.Errorf("it listens after %d of %d bytes", f.Input, p.Sent())
				}
				if f.Input > 100 { // all was read
					if err := p.CloseInput(t.Context()); err != nil {
						t.Error(err)
					}
					return
				}
				for _, text := range []string{"and again", "and meanwhile"} {
					if err := c.Prompt(t.Context(), text); err != nil {
						t.Error(err)
					}
				}
			},
			Facts: []string{
				"said turn: the floor is yours", "tool_called echo $FAIRLEAD_CHANNEL $FAIRLEAD_TURN", "said reviews 7", "listening ",
				"said turn: and again", "tool_called echo $FAIRLEAD_CHANNEL $FAIRLEAD_TURN", "said reviews 7",
				"said turn: and meanwhile", "tool_called echo $FAIRLEAD_CHANNEL $FAIRLEAD_TURN", "said reviews 7", "listening ",
				"stopped completed: no more prompts",
			},
		},
	)
}

// TestDriverAndSignals checks the driver's reaction to signals, and to processes left behind.
func TestDriverAndSignals(t *testing.T) {
	drivertest.Run(t, script.Driver{},
		drivertest.Case{
			Name: "Terminated", Session: session, Agent: agent(t, "steps: [{say: a}, {hang: waiting}]"),
			Tell: func(_ *testing.T, p *drivertest.Process, _ driver.Conversation, f driver.Fact) {
				if f.Kind == driver.Thought {
					p.Signal(syscall.SIGTERM)
				}
			},
			Facts: []string{"said a", "thought waiting", "stopped terminated: asked to stop by a signal"},
		},
		drivertest.Case{
			Name: "LeavesChildren", Session: session, OK: true,
			Agent: agent(t,
				"steps: [{run: 'sleep 3 > /dev/null 2>&1 & setsid sleep 3 > /dev/null 2>&1 & (setsid sleep 3 > /dev/null 2>&1 &)'}]"),
		},
	)
}

// TestFaultyAtStart checks that a script that became faulty after Check reports the fault instead
// of running.
func TestFaultyAtStart(t *testing.T) {
	a := agent(t, "steps: [{say: a}]\nsed: 3")
	if err := (script.Driver{}).Check(a); err == nil || !strings.Contains(err.Error(), "coder.script.yaml:2:1") {
		t.Errorf("check: %v", err)
	}
	l, err := script.Driver{}.Launch(a, session)
	if err != nil {
		t.Fatal(err)
	}
	p := drivertest.Start(t, l)
	if exit := p.Wait(t); exit.Code != script.CodeFaulty {
		t.Errorf("exit %+v", exit)
	}
	facts := drivertest.Facts(t, script.Driver{}, p, 0)
	if len(facts) != 2 || facts[0].Kind != driver.Faulted || facts[1].Kind != driver.Stopped || facts[1].Stop.OK {
		t.Errorf("facts %+v", facts)
	}
}

func TestLaunchRefuses(t *testing.T) {
	a := agent(t, "steps: [{say: a}]")
	if _, err := (script.Driver{}).Launch(a, driver.Session{ID: "coder-1", Kind: driver.Foreign}); err == nil {
		t.Error("a script is accepted with its own loop")
	}
	long := session
	long.Prompt = strings.Repeat("x", driver.PromptBytesMax+1)
	if _, err := (script.Driver{}).Launch(a, long); err == nil {
		t.Error("a prompt beyond the limit was accepted")
	}
	if err := (script.Driver{}).Converse(a, session, &drivertest.Recording{}).Prompt(t.Context(), long.Prompt); err == nil {
		t.Error("a prompt beyond the limit was sent")
	}
	if err := (script.Driver{}).Check(driver.Agent{Name: "coder", Script: a.Script, Workspace: a.Script}); err == nil {
		t.Error("a file is accepted as a workspace")
	}
}

func FuzzFacts(f *testing.F) {
	files, _ := filepath.Glob("testdata/transcripts/*.raw")
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil {
			f.Add(b, 5)
		}
	}
	f.Add([]byte(`{"type":"stopped"}{"type":"said","text":"\ud800"}`), 1)
	f.Fuzz(func(t *testing.T, output []byte, piece int) {
		drivertest.Check(t, script.Driver{}, output, piece)
	})
}

// TestReadsPrompts checks that only a script with more than one expect_prompt reads further prompts during
// a session for turns.
func TestReadsPrompts(t *testing.T) {
	dir := t.TempDir()
	reads := func(a driver.Agent, kind driver.Kind) bool { return script.Driver{}.Capabilities(a, kind).Prompts }
	for source, readsPrompts := range map[string]bool{ // the steps of lead do not matter
		"steps: [{say: hello}]":                                     false,
		"steps: [expect_prompt, {say: '{prompt}'}]":                 false,
		"steps: [expect_prompt, {say: a}, expect_prompt]":           true,
		"steps: [expect_prompt, again]":                             true,
		"sessions: [[expect_prompt, again], [{say: hello}]]":        false,
		"steps: [{say: a}]\nturn: [expect_prompt, {say: b}, again]": true,
		"steps: [expect_prompt, again]\nturn: [{say: c}]":           false,
	} {
		path := filepath.Join(dir, "prompts.yaml")
		if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := reads(driver.Agent{Name: "a", Script: path}, driver.Turn); got != readsPrompts {
			t.Errorf("%s: reads prompts: %v, want %v", source, got, readsPrompts)
		}
		if got := reads(driver.Agent{Name: "a", Script: path}, driver.Lead); got != readsPrompts {
			t.Errorf("%s: without lead it reads prompts as lead: %v, want as in a session for turns: %v", source, got, readsPrompts)
		}
		lead := source + "\nlead: [{say: d}, expect_prompt, again]\n"
		if err := os.WriteFile(path, []byte(lead), 0o600); err != nil {
			t.Fatal(err)
		}
		a := driver.Agent{Name: "a", Script: path}
		if got := reads(a, driver.Turn); got != readsPrompts {
			t.Errorf("%s: with lead it reads prompts in a session for turns: %v, want %v", source, got, readsPrompts)
		}
		if !reads(a, driver.Lead) {
			t.Errorf("%s: it reads no prompts as lead", source)
		}
	}
	if reads(driver.Agent{Name: "a", Script: filepath.Join(dir, "none.yaml")}, driver.Turn) {
		t.Error("a missing script reads prompts")
	}
}

// TestDriverLeads checks that a lead handles a summon, a question and a wake in one session, and
// reports as alive only members that it has started. A new session has started none.
func TestDriverLeads(t *testing.T) {
	file, err := filepath.Abs(filepath.Join("testdata", "lead.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const (
		lyra   = `{"name":"Lyra","status":"alive","gridPosition":0}`
		kael   = `{"name":"Kael","status":"alive","gridPosition":1}`
		status = `said [AGENT_STATUS] {"agents":[`
		wake   = "[WAKE AGENTS]\n- Kael\n<agent name=\"Kael\" color=\"#000\" colorName=\"Night\" position=\"1\">\n  <soul>\nI am Kael.\n  </soul>\n</agent>\n"
	)
	born := func(name, seat string) string {
		return `said [AGENT_REGISTERED] {"name":"` + name + `","color":"#c9b1e8","colorName":"Violet","gender":"woman","gridPosition":` +
			seat +
			`,"faceVariant":{"eyes":"standard","mouth":"gentle"},"individuationArtifact":"I am ` + name + `."}` + "\n"
	}
	var cases []drivertest.Case
	gotEvents := map[string]*strings.Builder{}
	dialogues := []struct{ name, first, then, events string }{
		{
			"Summons", "[SUMMON AGENTS]\nFree seats: 0, 1, 2\n", "Who of your team is alive?",
			"said I write to them.\n" + born("Lyra", "0") + "said [Lyra]: So this is where I am.\n" + born("Kael", "1") +
				"said [Kael]: So this is where I am.\n" +
				status + kael + "," + lyra + "]}\nlistening \n" + status + kael + "," + lyra + "]}\nlistening \n",
		},
		{
			"Wakes", "Who of your team is alive?", wake,
			status + "]}\nlistening \nsaid I wake them.\nsaid [Kael]: I am Kael. I was asleep, I think.\n" + status + kael +
				"]}\nlistening \n",
		},
	}
	for _, c := range dialogues {
		gotEvents[c.name] = &strings.Builder{}
		listened := 0
		cases = append(cases, drivertest.Case{
			Name: c.name, OK: true, Agent: driver.Agent{Name: "julian", Script: file, Workspace: t.TempDir()},
			Session: driver.Session{ID: "julian-1", Kind: driver.Lead, Prompt: c.first, Attempt: 1},
			Tell: func(t *testing.T, p *drivertest.Process, talk driver.Conversation, f driver.Fact) {
				if f.Kind == driver.Said || f.Kind == driver.Listening {
					gotEvents[c.name].WriteString(string(f.Kind) + " " + f.Text + "\n")
				}
				if f.Kind != driver.Listening {
					return
				}
				act := talk.Prompt
				if listened++; listened == 2 {
					act = func(ctx context.Context, _ string) error { return p.CloseInput(ctx) }
				}
				if err := act(t.Context(), c.then); err != nil {
					t.Error(err)
				}
			},
		})
	}
	drivertest.Run(t, script.Driver{}, cases...)
	for _, c := range dialogues {
		if got := gotEvents[c.name].String(); got != c.events {
			t.Errorf("%s: events:\n%s\nwant\n%s", c.name, got, c.events)
		}
	}
}
