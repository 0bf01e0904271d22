// Package drivertest is the conformance suite for drivers.
//
// It checks that a driver produces the same facts regardless of how its input is split, resumes at
// every fact, keeps secrets, tolerates hostile output, and stops when asked. To test a driver, call
// Run with some agents that it can really start, and put recorded output into testdata/transcripts.
//
//	testdata/transcripts/NAME.raw     bytes, as an agent wrote them
//	testdata/transcripts/NAME.facts   the driver's facts, one for each line; renewed by UPDATE=1
//	testdata/dialogues/NAME.jsonl     a recorded conversation, as Record writes it
//
// A driver whose agents run behind an adapter is also a protocol: Dialogue feeds it a program's
// recorded output, compares its messages with the recording, and writes its events to NAME.raw.
//
// The one promise: a driver that passes neither loses nor repeats a fact when its reading is
// interrupted.
package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
)

const (
	resumesMax    = 200     // offsets per transcript at which reading resumes
	everySplitMax = 1 << 10 // longer transcripts are split into pieces of some sizes, not at every byte: that takes quadratic time
)

// Case is an agent that the driver can start, and the expected end of its session.
type Case struct {
	Name    string
	Agent   driver.Agent // a workspace is created if it has none
	Session driver.Session
	Tell    func(t *testing.T, p *Process, c driver.Conversation, f driver.Fact) // called with each fact as it arrives; may be nil
	Facts   []string                                                             // kind, space, text; nil: not compared
	OK      bool                                                                 // the expected outcome
}

// Run runs the suite.
func Run(t *testing.T, d driver.Driver, cases ...Case) {
	if d.Name() == "" {
		t.Error("the driver has no name")
	}
	t.Run("Nothing", func(t *testing.T) {
		if d.Check(driver.Agent{Name: "empty", Workspace: t.TempDir()}) == nil {
			t.Error("Check accepts an agent without command and script")
		}
		if d.Outcome(driver.Session{}, session.Exit{Code: 1}, nil).OK {
			t.Error("exit code 1 without a terminal event counts as success")
		}
		if d.Outcome(driver.Session{}, session.Exit{Code: -1, Signal: "SIGKILL"}, nil).OK {
			t.Error("SIGKILL without a terminal event counts as success")
		}
	})
	t.Run("Transcripts", func(t *testing.T) { transcripts(t, d, filepath.Join("testdata", "transcripts")) })
	t.Run("Hostile", func(t *testing.T) { hostile(t, d) })
	t.Run("Waiting", func(t *testing.T) { waiting(t, d) })
	for _, c := range cases {
		if c.Agent.Workspace == "" {
			c.Agent.Workspace = t.TempDir()
		}
		t.Run("Launch/"+c.Name, func(t *testing.T) { launch(t, d, c) })
		t.Run("Capabilities/"+c.Name, func(t *testing.T) { capabilities(t, d, c) })
		t.Run("Play/"+c.Name, func(t *testing.T) { play(t, d, c) })
	}
}

// launch checks how a case would be started.
func launch(t *testing.T, d driver.Driver, c Case) {
	const secret = "swordfish-7c1f"
	c.Agent.Env = append(slices.Clip(c.Agent.Env), "FAIRLEAD_TEST_SECRET="+secret)
	must(t, d.Check(c.Agent))
	l, err := d.Launch(c.Agent, c.Session)
	must(t, err)
	if len(l.Argv) == 0 || !filepath.IsAbs(l.Argv[0]) {
		t.Errorf("argv %q does not begin with the absolute path of a program", l.Argv)
	}
	if l.Dir != c.Agent.Workspace {
		t.Errorf("starts in %s, not in the workspace", l.Dir)
	}
	if !slices.Contains(l.Env, "FAIRLEAD_TEST_SECRET="+secret) {
		t.Error("the environment lacks the configured variables")
	}
	if !slices.ContainsFunc(l.Env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") }) {
		t.Error("the environment has no PATH; it must be complete")
	}
	if strings.Contains(strings.Join(l.Argv, " ")+string(l.Input), secret) {
		t.Error("a value of the environment is in the arguments or in the input, where other users can read it")
	}
	if p := c.Session.Prompt; len(p) > 8 && strings.Contains(strings.Join(l.Argv, " "), p) {
		t.Error("the prompt is in the arguments, where every user of the machine can read it")
	}
	again, err := d.Launch(c.Agent, c.Session)
	must(t, err)
	if !slices.Equal(l.Argv, again.Argv) || !slices.Equal(l.Env, again.Env) || !bytes.Equal(l.Input, again.Input) {
		t.Error("two calls of Launch return different launches")
	}
	tidy := c.Session
	tidy.Kind = driver.Cleanup
	other, err := d.Launch(c.Agent, tidy)
	must(t, err)
	if c.Session.Kind != driver.Cleanup && slices.Equal(l.Argv, other.Argv) && bytes.Equal(l.Input, other.Input) {
		t.Error("a cleanup session is started like an ordinary one (SPEC C4)")
	}
	launchTurn(t, d, c)
	launchLead(t, d, c)
}

// launchTurn checks how the same agent would be started for a turn in a channel.
func launchTurn(t *testing.T, d driver.Driver, c Case) {
	const prompt = "whose-turn-it-is-4b8e"
	s := driver.Session{ID: c.Session.ID, Kind: driver.Turn, Prompt: prompt, Attempt: 1, Channel: "reviews", Turn: 7}
	l, err := d.Launch(c.Agent, s)
	must(t, err)
	for _, kv := range []string{"FAIRLEAD_SESSION_KIND=turn", "FAIRLEAD_CHANNEL=reviews", "FAIRLEAD_TURN=7"} {
		if !slices.Contains(l.Env, kv) {
			t.Errorf("the environment of a turn lacks %s", kv)
		}
	}
	if strings.Contains(strings.Join(l.Argv, " "), prompt) {
		t.Error("a turn's prompt is in the arguments, where every user of the machine can read it")
	}
	takesInput := d.Capabilities(c.Agent, driver.Turn).Input
	switch told := bytes.Contains(l.Input, []byte(prompt)); {
	case !takesInput && (!told || l.KeepStdin):
		t.Error("an agent that takes no further input must receive its turn's prompt and the end of input at the start")
	case takesInput && !l.KeepStdin:
		t.Error("the driver takes input while the agent runs, but closes the input at the start")
	}
	if s.Prompt = strings.Repeat("x", driver.PromptBytesMax+1); len(l.Input) > 0 {
		if _, err := d.Launch(c.Agent, s); err == nil {
			t.Errorf("a prompt of more than %d bytes is accepted", driver.PromptBytesMax)
		}
	}
}

// launchLead checks how the same agent would be started as lead. An agent that takes no input while
// it runs cannot lead; it only has to be distinguishable from others.
func launchLead(t *testing.T, d driver.Driver, c Case) {
	const prompt = "who-is-alive-9d3a"
	s := driver.Session{ID: c.Session.ID, Kind: driver.Lead, Prompt: prompt, Attempt: 1}
	l, err := d.Launch(c.Agent, s)
	must(t, err)
	if !slices.Contains(l.Env, "FAIRLEAD_SESSION_KIND=lead") {
		t.Error("the environment of a lead lacks FAIRLEAD_SESSION_KIND=lead")
	}
	if slices.ContainsFunc(l.Env, func(kv string) bool { return strings.HasPrefix(kv, "FAIRLEAD_CHANNEL=") }) {
		t.Error("the environment of a lead names a channel")
	}
	if strings.Contains(strings.Join(l.Argv, " "), prompt) {
		t.Error("the prompt of a lead is in the arguments, which every user of the machine can read")
	}
	if d.Capabilities(c.Agent, driver.Lead).Input && !l.KeepStdin {
		t.Error("the driver takes input while the agent runs, but closes that of a lead at the start")
	}
}

// capabilities compares what a driver declares with what it does: its conversations, its launches and its
// facts in every kind of session.
func capabilities(t *testing.T, d driver.Driver, c Case) {
	for _, kind := range []driver.Kind{driver.Work, driver.Cleanup, driver.Turn, driver.Lead} {
		has := d.Capabilities(c.Agent, kind)
		if (has.Prompts || has.Steers) && !has.Input {
			t.Errorf("%s: %+v declares prompts without input", kind, has)
		}
		s := driver.Session{ID: c.Session.ID, Kind: kind, Prompt: "go on", Attempt: 1}
		wire := &Recording{}
		talk := d.Converse(c.Agent, s, wire)
		for _, op := range []struct {
			name      string
			supported bool
			err       error
		}{
			{"Prompt", has.Input, talk.Prompt(t.Context(), "hello")},
			{"Steer", has.Steers, talk.Steer(t.Context(), "1", "hello")},
			{"Cancel", has.Input, talk.Cancel(t.Context())},
			{"Answer", has.Asks, talk.Answer(t.Context(), "q1", "allow")},
		} {
			declared(t, string(kind)+": "+op.name, op.supported, op.err)
		}
		if !has.Input && !has.Asks && len(wire.Sent) > 0 {
			t.Errorf("%s: an agent without input was sent %q", kind, wire.Sent)
		}
		resumes(t, d, c.Agent, s, has.Resumes)
	}
	has := d.Capabilities(c.Agent, c.Session.Kind)
	missing := c.Agent
	missing.Command = []string{filepath.Join(t.TempDir(), "no-such-program")}
	_, err := d.Probe(t.Context(), missing)
	if err == nil {
		t.Error("Probe examined a program that does not exist")
	}
	declared(t, "Probe", has.Probes, err)
}

// declared checks that an operation is refused as not supported exactly if it is not declared. A
// supported operation may fail in another way.
func declared(t *testing.T, what string, supported bool, err error) {
	t.Helper()
	if refused := errors.As(err, &driver.NotSupportedError{}); refused == supported {
		t.Errorf("%s is declared as supported: %t; it returns %v", what, supported, err)
	}
}

// resumes checks that the id of an earlier conversation reaches the program exactly if the driver
// declares that it resumes.
func resumes(t *testing.T, d driver.Driver, a driver.Agent, s driver.Session, declares bool) {
	const id = "conversation-5e1c"
	fresh, err := d.Launch(a, s)
	must(t, err)
	s.Resume = id
	again, err := d.Launch(a, s)
	must(t, err)
	told := fmt.Sprintf("%q %q %q", again.Argv, again.Env, again.Input)
	switch same := fmt.Sprintf("%q %q %q", fresh.Argv, fresh.Env, fresh.Input) == told; {
	case declares && !strings.Contains(told, id):
		t.Errorf("%s: the driver declares that it resumes, but the launch does not name the conversation", s.Kind)
	case !declares && !same:
		t.Errorf("%s: the driver does not declare that it resumes, but its launch depends on the conversation to resume", s.Kind)
	}
}

// play starts the agent of a case and runs its session.
func play(t *testing.T, d driver.Driver, c Case) {
	l, err := d.Launch(c.Agent, c.Session)
	must(t, err)
	p := Start(t, l)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var live []driver.Fact
	var stop *driver.Stop
	talk := d.Converse(c.Agent, c.Session, p)
	for f, err := range talk.Facts(ctx, 0) {
		must(t, err)
		live = append(live, f)
		if f.Kind == driver.Stopped {
			stop = f.Stop
		}
		if f.Input > p.Sent() {
			t.Errorf("it has read %d of %d bytes of input", f.Input, p.Sent())
		}
		if c.Tell != nil {
			c.Tell(t, p, talk, f)
		}
	}
	outcome := d.Outcome(c.Session, p.Wait(t), stop)
	if outcome.OK != c.OK {
		t.Errorf("outcome %+v, want OK %t; the agent wrote:\n%s", outcome, c.OK, shorten(string(p.Spool(t))))
	}
	if !outcome.OK && outcome.Why == "" {
		t.Error("a failure without a reason")
	}
	if c.Facts != nil {
		var got []string
		for _, f := range live {
			got = append(got, string(f.Kind)+" "+f.Text)
		}
		if !slices.Equal(got, c.Facts) {
			t.Errorf("facts:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.Facts, "\n"))
		}
	}
	asksIfDeclared(t, d, c.Agent, c.Session.Kind, live)
	same(t, "unchanged", Facts(t, d, &Recording{Bytes: p.Spool(t)}, 0), live)
	resume(t, d, p.Spool(t), live)
}

// asksIfDeclared fails if an agent asks that is declared not to, because nothing would answer.
func asksIfDeclared(t *testing.T, d driver.Driver, a driver.Agent, kind driver.Kind, facts []driver.Fact) {
	t.Helper()
	asks := func(f driver.Fact) bool { return f.Kind == driver.PermissionAsked }
	if !d.Capabilities(a, kind).Asks && slices.ContainsFunc(facts, asks) {
		t.Error("the agent asks for permission, but its driver declares that it does not")
	}
}

// transcripts compares recorded output with its golden facts, split in various ways.
func transcripts(t *testing.T, d driver.Driver, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.raw"))
	must(t, err)
	if len(files) == 0 {
		t.Fatalf("no transcripts in %s; record some", dir)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".raw"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			must(t, err)
			facts := Facts(t, d, &Recording{Bytes: raw}, 0)
			asksIfDeclared(t, d, driver.Agent{}, driver.Work, facts)
			var b strings.Builder
			for _, f := range facts {
				b.WriteString(Render(f) + "\n")
			}
			golden(t, strings.TrimSuffix(file, ".raw")+".facts", b.String())
			for _, sizes := range splits(len(raw)) {
				same(t, "in pieces", facts, Facts(t, d, &Recording{Bytes: raw, Sizes: sizes}, 0))
			}
			resume(t, d, raw, facts)
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		must(t, os.WriteFile(file, []byte(got), 0o666))
		return
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if string(want) != got {
		t.Errorf("%s differs (UPDATE=1 renews it); got:\n%s", file, got)
	}
}

// splits returns ways to split n bytes: at every byte, into single bytes, and into pieces of some
// sizes.
func splits(n int) [][]int {
	ways := [][]int{{1}, {2, 3}, {7}, {4096}}
	for i := 1; i < n && n <= everySplitMax; i++ {
		ways = append(ways, []int{i, n})
	}
	return ways
}

// hostile feeds output that no agent should write, but that some have written.
func hostile(t *testing.T, d driver.Driver) {
	long := strings.Repeat("ä", driver.LineBytesMax) // 2 MiB, and cut in the middle of a character
	for name, output := range map[string]string{
		"Empty":        "",
		"Ends":         "\n\r\n\n\r",
		"HalfLine":     "whole\nhal",
		"HalfEvent":    `{"type":"`,
		"NotUTF8":      "\xff\xfe{\"type\":\"\xff\"}\n{\"type\":\"\xff\"}\n\x00\x01\n",
		"LongLine":     "before\n" + long + "\nafter\n",
		"LongHalf":     long,
		"LongEvent":    `{"type":"said","text":"` + long + "\"}\nafter\n",
		"JustFits":     strings.Repeat("x", driver.LineBytesMax) + "\r\n" + strings.Repeat("y", driver.LineBytesMax+1) + "\n",
		"UnknownEvent": `{"type":"teleported","to":["mars"]}` + "\n{}\n[]\n{\"type\":7}\nnull\n",
		"Deep":         `{"type":` + strings.Repeat("[", 20_000) + "\n",
		"Escapes":      "\x1b[2J\x1b]0;owned\a<script>alert(1)</script>\n",
	} {
		t.Run(name, func(t *testing.T) { Check(t, d, []byte(output), 4093) })
	}
}

// waiting reads output that does not end: the readers must be closed when the loop is left and when
// the context ends.
func waiting(t *testing.T, d driver.Driver) {
	files, err := filepath.Glob(filepath.Join("testdata", "transcripts", "*.raw"))
	must(t, err)
	if len(files) == 0 {
		t.Skip("no transcripts")
	}
	raw, err := os.ReadFile(files[0])
	must(t, err)
	w := &Recording{Bytes: raw, Open: true}
	for range d.Converse(driver.Agent{}, driver.Session{}, w).Facts(t.Context(), 0) {
		break
	}
	if n := w.reads.Load(); n != 0 {
		t.Errorf("%d readers left open after the loop was left", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		var last error
		for _, err := range d.Converse(driver.Agent{}, driver.Session{}, w).Facts(ctx, int64(len(raw))) {
			last = err
		}
		ended <- last
	}()
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the facts ended without an error before the output ended")
		}
	case <-time.After(deadline):
		t.Fatal("the facts did not end with their context")
	}
	if n := w.reads.Load(); n != 0 {
		t.Errorf("%d readers left open after the context ended", n)
	}
}
