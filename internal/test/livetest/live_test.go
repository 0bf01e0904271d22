package livetest_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/livetest"
	"github.com/fairlead-dev/fairlead/internal/test/scriptmodel"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/acp"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/claude"
	"github.com/fairlead-dev/fairlead/process/driver/codex"
)

// waitMax is the limit for every wait. Programs need seconds to start, and this machine may have
// two cores and other work.
const waitMax = time.Minute

func TestMain(m *testing.M) {
	adapter.Intercept(acp.Driver{}, claude.Driver{}, codex.Driver{})
	keep := map[string]string{"PATH": "", "HOME": "", "TMPDIR": "", livetest.Variable: ""}
	for name := range keep {
		keep[name] = os.Getenv(name)
	}
	os.Clearenv() // an agent is started with the environment of its daemon, which is empty here
	for name, value := range keep {
		if value != "" {
			os.Setenv(name, value)
		}
	}
	os.Exit(m.Run())
}

var drivers = map[string]driver.Driver{"acp": acp.Driver{}, "claude": claude.Driver{}, "codex": codex.Driver{}}

// story is one program in one workspace, and the number of its starts.
type story struct {
	*testing.T
	ctx     context.Context
	cancel  func()
	model   *scriptmodel.Server
	program livetest.Program
	driver  driver.Driver
	agent   driver.Agent
	starts  int
}

func begin(t *testing.T, ready func(testing.TB, *scriptmodel.Server) livetest.Program) *story {
	t.Helper()
	t.Parallel()
	model := scriptmodel.Start(t)
	p := ready(t, model)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	d := drivers[p.Driver]
	s := &story{T: t, ctx: ctx, cancel: cancel, model: model, program: p, driver: d, agent: driver.Agent{
		Name: "coder", Command: p.Command, Workspace: dir, Env: p.Env,
	}}
	if err := d.Check(s.agent); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.gone()
		for _, way := range p.Way.Tried() {
			if !slices.Contains(p.May, way) {
				t.Errorf("%s tried to connect: %s", p.Name, way)
			}
		}
	})
	return s
}

// path returns the path of a file in the workspace.
func (s *story) path(name string) string { return filepath.Join(s.agent.Workspace, name) }

// has returns the content of a file, or "" if it does not exist.
func (s *story) has(name string) string {
	s.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	return string(b)
}

// gone waits until no process of the program is left.
func (s *story) gone() {
	s.Helper()
	if !wait.Poll(func() bool { return len(s.program.Left()) == 0 }) {
		s.Errorf("processes were left behind:\n%s", strings.Join(s.program.Left(), "\n"))
	}
}

// talk is one session with the program.
type talk struct {
	*story
	process *drivertest.Process
	driver.Conversation
	next  func() (driver.Fact, error, bool)
	began time.Time
	heard []string
	named driver.Conversed
	used  change.Usage
}

// start starts the program for a session.
func (s *story) start(kind driver.Kind, resume, prompt string) *talk {
	s.Helper()
	s.starts++
	session := driver.Session{ID: "coder-" + strconv.Itoa(s.starts), Kind: kind, Prompt: prompt, Attempt: 1, Resume: resume}
	if kind == driver.Turn {
		session.Channel, session.Turn = "reviews", 1
	}
	l, err := s.driver.Launch(s.agent, session)
	if err != nil {
		s.Fatal(err)
	}
	p := drivertest.Start(s, l)
	k := &talk{story: s, process: p, began: time.Now(), Conversation: s.driver.Converse(s.agent, session, p)}
	next, stop := iter.Pull2(k.Facts(s.ctx, 0))
	s.Cleanup(stop)
	k.next = next
	return k
}

// until reads facts up to the expected one.
func (k *talk) until(what string, ok func(driver.Fact) bool) driver.Fact {
	k.Helper()
	late := time.AfterFunc(waitMax, k.cancel)
	defer late.Stop()
	for {
		f, err, more := k.next()
		if !more || err != nil {
			k.Fatalf("waited until %s: %v; events:\n%s\nrequests to the model:\n%s", what, err, strings.Join(k.heard, "\n"), k.asked())
		}
		k.heard = append(k.heard, fmt.Sprintf("%6.1fs %s", time.Since(k.began).Seconds(), drivertest.Render(f)))
		k.used.InputTokens += f.Usage.InputTokens
		k.used.OutputTokens += f.Usage.OutputTokens
		if f.Kind == driver.ConversationNamed {
			k.named = *f.Conversation
		}
		if ok(f) {
			return f
		}
	}
}

func (k *talk) untilKind(kind driver.FactKind) driver.Fact {
	k.Helper()
	return k.until("it has "+string(kind), func(f driver.Fact) bool { return f.Kind == kind })
}

func (k *talk) untilSaid(text string) {
	k.Helper()
	line := ""
	k.until("it says "+text, func(f driver.Fact) bool {
		if f.Kind != driver.Said || f.Tool != "" {
			return false
		}
		line += f.Text
		found := strings.Contains(line, text)
		if !f.Part {
			line = ""
		}
		return found
	})
}

// asked summarizes the requests to the model so far.
func (s *story) asked() string {
	var b strings.Builder
	for _, r := range s.model.Requests() {
		fmt.Fprintf(&b, "%s %s, %d turns, %d tools: %s\n", r.API, r.Model, len(r.Turns), len(r.Tools), r.Answer)
	}
	return b.String()
}

// answer answers a question with an option of a kind, as a person does.
func (k *talk) answer(ask driver.Fact, kind string) {
	k.Helper()
	i := slices.IndexFunc(ask.Ask.Options, func(o driver.Option) bool { return o.Kind == kind })
	if i < 0 {
		k.Fatalf("%s is not among the options %+v", kind, ask.Ask.Options)
	}
	if err := k.Conversation.Answer(k.ctx, ask.Ask.ID, ask.Ask.Options[i].ID); err != nil {
		k.Fatal(err)
	}
	k.until("the answer was reported", func(f driver.Fact) bool { return f.Kind == driver.PermissionAnswered && f.Ask.ID == ask.Ask.ID })
}

func (k *talk) tell(text string) {
	k.Helper()
	if err := k.Prompt(k.ctx, text); err != nil {
		k.Fatal(err)
	}
}

// end reads up to the terminal event and waits for the end of the process.
func (k *talk) end() *driver.Stop {
	k.Helper()
	stop := k.untilKind(driver.Stopped).Stop
	k.process.Wait(k)
	k.gone()
	if testing.Verbose() {
		k.Logf("%d. ended after %.1fs:\n%s", k.starts, time.Since(k.began).Seconds(), strings.Join(k.heard, "\n"))
	}
	return stop
}

// saw reports whether the model received a text in its newest request that offers tools.
func (s *story) saw(text string) bool {
	requests := s.model.Requests()
	for i := len(requests) - 1; i >= 0; i-- {
		if len(requests[i].Tools) > 0 {
			return requests[i].Says("user", text)
		}
	}
	return false
}

// untilAsked waits until the model received a text.
func (s *story) untilAsked(text string) {
	s.Helper()
	late := time.After(waitMax)
	for {
		changed := s.model.Changed()
		if s.saw(text) {
			return
		}
		select {
		case <-changed:
		case <-late:
			s.Fatalf("waited until the model receives %q; requests:\n%s", text, s.asked())
		}
	}
}

// killProgram kills the program behind the adapter, as a kernel without memory does.
func (k *talk) killProgram() {
	k.Helper()
	killed := 0
	for _, line := range k.program.Left() {
		pid, err := strconv.Atoi(strings.Fields(line)[0])
		if err != nil {
			k.Fatal(err)
		}
		if pid != k.process.PID() && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		k.Fatalf("no program to kill; left: %q", k.program.Left())
	}
}

// asks plays an allowed write, a denied one, and a cancel during an answer. It returns the
// conversation.
func (s *story) asks() string {
	s.Helper()
	k := s.start(driver.Turn, "", "The word is xylophone.\ndo: write "+s.path("a.txt")+" hello\ndo: say written")
	ask := k.untilKind(driver.PermissionAsked)
	if ask.Tool != "Write" || !slices.ContainsFunc(k.heard, func(f string) bool { return strings.Contains(f, " tool_called ") }) {
		s.Errorf("it asks for %s before the call was reported:\n%s", ask.Tool, strings.Join(k.heard, "\n"))
	}
	if got := s.has("a.txt"); got != "" {
		s.Errorf("it wrote %q before the permission", got)
	}
	k.answer(ask, "allow_once")
	k.untilKind(driver.Listening)
	if got := s.has("a.txt"); got != "hello\n" {
		s.Errorf("the file has %q", got)
	}
	if k.used.OutputTokens == 0 {
		s.Errorf("no usage was reported:\n%s", strings.Join(k.heard, "\n"))
	}
	id := k.named.ID
	if id == "" || k.named.Resumed || k.named.Enforced == "" {
		s.Errorf("the conversation is named %+v", k.named)
	}

	k.tell("do: bash echo denied > " + s.path("b.txt") + "\ndo: say without it")
	ask = k.untilKind(driver.PermissionAsked)
	if ask.Tool != "Bash" || !strings.Contains(string(ask.Raw), "echo denied") {
		s.Errorf("it asks for %s: %s %s", ask.Tool, ask.Text, ask.Raw)
	}
	k.answer(ask, "reject_once")
	k.untilKind(driver.Listening)
	if got := s.has("b.txt"); got != "" {
		s.Errorf("the denied command ran: %q", got)
	}

	k.tell("do: hold one moment please")
	k.untilSaid("one moment")
	if err := k.Cancel(s.ctx); err != nil {
		s.Fatal(err)
	}
	if stop := k.end(); stop.OK || stop.Reason != "cancelled" {
		s.Errorf("after a cancel it ended with %+v", stop)
	}
	return id
}

// TestLiveAsks checks a program that asks: an allowed write, a denied one, a cancel during an answer,
// and a conversation that is resumed after that and after the program was killed.
func TestLiveAsks(t *testing.T) {
	for _, name := range []string{"opencode", "qwen", "qwen-stream"} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, livetest.Programs()[name])

			id := s.asks()

			k := s.start(driver.Turn, id, "do: hold another moment please")
			k.untilSaid("another moment")
			if k.named.ID == "" || !k.named.Resumed || !s.saw("xylophone") {
				t.Errorf("the conversation did not go on after the cancel: %+v; the model was asked:\n%s", k.named, s.asked())
			}
			id = k.named.ID // a program may report a new id
			k.killProgram()
			if stop := k.end(); stop.OK {
				t.Errorf("after SIGKILL it ended with %+v", stop)
			}

			k = s.start(driver.Work, id, "do: say still here")
			k.untilSaid("still here")
			if !k.named.Resumed || !s.saw("xylophone") {
				t.Errorf("the conversation did not go on after the kill: %+v; the model was asked:\n%s", k.named, s.asked())
			}
			if stop := k.end(); !stop.OK {
				t.Errorf("the work ended with %+v", stop)
			}
		})
	}
}

// TestLiveGeminiAsks checks Gemini CLI, whose conversation can be resumed a minute later.
func TestLiveGeminiAsks(t *testing.T) {
	s := begin(t, livetest.Gemini)
	id := s.asks()
	livetest.Age(t, filepath.Join(s.program.Home, ".gemini"))
	k := s.start(driver.Work, id, "do: say here")
	k.untilSaid("here")
	if !k.named.Resumed || !s.saw("xylophone") {
		t.Errorf("the conversation did not go on: %+v; the model was asked:\n%s", k.named, s.asked())
	}
	if stop := k.end(); !stop.OK {
		t.Errorf("the work ended with %+v", stop)
	}
}

// TestLiveAsksNot checks programs that ask for no permission: their own sandbox limits them, and they
// report it.
func TestLiveAsksNot(t *testing.T) {
	s := begin(t, livetest.Codex)
	k := s.start(driver.Turn, "", "The word is xylophone.\ndo: write "+s.path("a.txt")+" hello\ndo: say written")
	k.untilKind(driver.Listening)
	if got := s.has("a.txt"); got != "hello\n" {
		t.Errorf("the file has %q; events:\n%s", got, strings.Join(k.heard, "\n"))
	}
	if id := k.named; id.ID == "" || id.Resumed || id.Enforced == "" || k.used.OutputTokens == 0 {
		t.Errorf("the conversation is named %+v, used %+v", id, k.used)
	}
	k.tell("do: hold one moment please")
	s.untilAsked("one moment")
	if err := k.Cancel(s.ctx); err != nil {
		t.Fatal(err)
	}
	if stop := k.end(); stop.OK || stop.Reason != "cancelled" {
		t.Errorf("after a cancel it ended with %+v", stop)
	}
	id := k.named.ID
	k = s.start(driver.Work, id, "do: say still here")
	k.untilSaid("still here")
	if !k.named.Resumed || !s.saw("xylophone") {
		t.Errorf("the conversation did not go on: %+v; the model was asked:\n%s", k.named, s.asked())
	}
	if stop := k.end(); !stop.OK {
		t.Errorf("the work ended with %+v", stop)
	}
}

// TestLiveRefused checks that an error of the provider is a failure, regardless of the
// program's exit code.
func TestLiveRefused(t *testing.T) {
	for _, name := range []string{"opencode", "qwen", "qwen-stream", "codex", "gemini"} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, livetest.Programs()[name])
			k := s.start(driver.Work, "", "do: error 400")
			stop := k.untilKind(driver.Stopped).Stop
			exit := k.process.Wait(t)
			if outcome := s.driver.Outcome(driver.Session{}, exit, stop); outcome.OK || outcome.Why == "" {
				t.Errorf("the model refused, but the outcome is %+v; events:\n%s", outcome, strings.Join(k.heard, "\n"))
			}
			k.gone()
		})
	}
}
