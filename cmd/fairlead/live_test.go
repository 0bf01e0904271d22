package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/livetest"
	"github.com/fairlead-dev/fairlead/internal/test/scriptmodel"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
)

// liveRig is a rig with a real agent program, whose model is scripted.
type liveRig struct {
	*rig
	model   *scriptmodel.Server
	program livetest.Program
	env     []string // the daemon's own, and nothing besides
}

// liveWait is far more than a program needs to start on a machine that has other things to do.
const liveWait = 90 * time.Second

// personal are folders of a person's settings, which programs that ran outside have made. Inside they are read-only.
var personal = map[string][]string{
	"claude":   {".claude/plugins", ".claude/skills", ".claude/agents", ".claude/commands"},
	"codex":    {".codex/skills", ".codex/plugins", ".codex/prompts", ".codex/rules"},
	"opencode": {".config/opencode/plugin", ".config/opencode/agent", ".config/opencode/command"},
	"qwen":     {".qwen/extensions", ".qwen/agents", ".qwen/skills"},
	"gemini":   {".gemini/extensions", ".gemini/policies", ".gemini/skills"},
}

// newLiveRig starts a daemon with one agent, coder, in an environment that holds nothing. The machine has to be able to make views.
func newLiveRig(t *testing.T, ready func(testing.TB, *scriptmodel.Server) livetest.Program) *liveRig {
	t.Helper()
	t.Parallel()
	model := scriptmodel.Start(t)
	p := ready(t, model)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, kv := range p.Env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	c := &liveRig{
		rig: &rig{t: t, dir: dir}, model: model, program: p,
		env: livetest.Bare(p.Home),
	}
	// and sandbox: auto, without the key
	coder := map[string]any{"driver": p.Driver, "command": p.Command, "workspace": "coder", "env": env, "turn_timeout": "10m"}
	if p.Name == "codex" || p.Name == "opencode" { // their settings, which Fairlead does not read, have the model's address
		coder["network"] = []string{"model", "packages", strings.TrimSuffix(strings.TrimPrefix(model.URL, "http://"), "/v1")}
	}
	c.putJSON("fairlead.yaml", map[string]any{
		"version":    1,
		"agents":     map[string]any{"coder": coder},
		"channels":   map[string]any{"talk": map[string]any{"agents": []string{"coder"}}},
		"turnConfig": map[string]any{"defaultTimeoutSeconds": 600},
	})
	for _, folder := range personal[p.Name] {
		if err := os.MkdirAll(filepath.Join(p.Home, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.begin()
	t.Cleanup(func() {
		if c.daemon == nil {
			c.begin()
		}
		if out, code := c.fairlead("down", "--now"); code != cli.ExitDone {
			t.Errorf("fairlead down --now: exit code %d: %s", code, out)
			c.kill()
			return
		}
		_ = c.daemon.Wait()
		if strays, err := shim.Strays(dir); err != nil || len(strays) > 0 {
			t.Errorf("processes were left behind: %+v, %v", strays, err)
		}
		c.await("nothing is left of the program", func() bool { return len(p.Left()) == 0 })
		for _, way := range p.Way.Tried() {
			if !slices.Contains(p.May, way) {
				t.Errorf("%s wanted to get out: %s", p.Name, way)
			}
		}
	})
	return c
}

// begin starts the daemon and waits until it says that it is ready.
func (c *liveRig) begin() {
	c.t.Helper()
	cmd := exec.Command(program, "up", "--dir", c.dir, "--listen", "127.0.0.1:0", "--no-browser", "--json")
	c.heard = &bytes.Buffer{}
	cmd.Env, cmd.Stderr = c.env, c.heard
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	late := time.AfterFunc(liveWait, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if first, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(first, `"ready":true`) {
		c.t.Fatalf("the daemon did not get ready: %q, %v, %v; it said: %s", first, err, cmd.Wait(), c.heard)
	}
	c.daemon = cmd
}

func (c *liveRig) putJSON(name string, content any) {
	c.t.Helper()
	b, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		c.t.Fatal(err)
	}
	c.put(name, string(b))
}

// has says what is in a file, "" where there is none.
func (c *liveRig) has(name string) string {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	return string(b)
}

// await waits for a condition, and where it does not come says what is to be seen of the agent.
func (c *liveRig) await(what string, ok func() bool) {
	c.t.Helper()
	if !wait.Poll(ok) {
		c.t.Fatalf("waited until %s\n%s", what, c.state())
	}
}

// state is all that may say why something does not come.
func (c *liveRig) state() string {
	var b strings.Builder
	if c.daemon != nil {
		for _, words := range [][]string{{"ps"}, {"inbox"}, {"why", "coder"}, {"events"}} {
			out, _ := c.fairlead(words...)
			fmt.Fprintf(&b, "--- fairlead %s\n%s\n", strings.Join(words, " "), out)
		}
		fmt.Fprintf(&b, "--- talk\n%s\n", c.conversation("talk"))
	}
	b.WriteString("--- the model was asked\n")
	for _, r := range c.model.Requests() {
		fmt.Fprintf(&b, "%s %s, %d turns, %d tools: %s\n", r.API, r.Model, len(r.Turns), len(r.Tools), r.Answer)
	}
	for _, file := range []string{"output", "spool"} {
		spools, _ := filepath.Glob(filepath.Join(c.dir, ".fairlead", "sessions", "*", file)) // the pattern is well formed
		for _, name := range spools {
			text, _ := os.ReadFile(name)
			fmt.Fprintf(&b, "--- %s\n%s\n", filepath.Base(filepath.Dir(name)), cli.Line(string(text), 6000))
		}
	}
	return b.String()
}

// question waits until the agent asks, and gives what a person is shown.
func (c *liveRig) question(tool string) view.QuestionView {
	c.t.Helper()
	var found view.QuestionView
	client := c.client()
	c.await("coder asks for "+tool, func() bool {
		asked, err := apiclient.Get[api.Questions](context.Background(), client, "/questions", nil)
		all := asked.Questions
		if err != nil {
			c.t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(q view.QuestionView) bool { return q.State == "open" })
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	if found.Tool != tool || found.Agent != "coder" || found.Kind != "permission" || found.Why == "" {
		c.t.Errorf("a question about %s was awaited, and it is %+v", tool, found)
	}
	return found
}

func (c *liveRig) answer(q view.QuestionView, allow bool) {
	c.t.Helper()
	if _, err := c.client().Questions.Answer(context.Background(), q.ID, view.QuestionAnswer{Allow: allow}); err != nil {
		c.t.Fatal(err)
	}
}

// said waits until the agent has said something in the channel, in its turn.
func (c *liveRig) said(text string) {
	c.t.Helper()
	c.await("coder says "+text, func() bool {
		return slices.ContainsFunc(c.entries("talk"), func(e view.ChannelEntry) bool {
			return e.Kind == "turn" && e.By == "coder" && strings.Contains(e.Text, text)
		})
	})
}

// asked waits until the model was asked for something, and gives that request.
func (c *liveRig) asked(text string) (found scriptmodel.Request) {
	c.t.Helper()
	c.await("the model is asked for "+text, func() bool {
		all := c.model.Requests()
		i := slices.IndexFunc(all, func(r scriptmodel.Request) bool { return strings.Contains(r.Answer, text) })
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// killProgram ends the program under its adapter, as a kernel without memory does.
func (c *liveRig) killProgram() {
	c.t.Helper()
	killed := 0
	for _, one := range c.program.Left() {
		id, words, _ := strings.Cut(one, " ")
		if strings.HasPrefix(words, program+" ") { // a shim, an adapter, a server of tools
			continue
		}
		pid, err := strconv.Atoi(id)
		if err != nil {
			c.t.Fatal(err)
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		c.t.Fatalf("there was no program to kill; left are %q", c.program.Left())
	}
}

// walled checks that the session that runs is in a view of its own, which holds everything.
func (c *liveRig) walled() {
	c.t.Helper()
	a := c.view().Agents[0]
	if len(a.Sessions) == 0 || a.Wall != string(sandbox.ByNamespaces) || len(a.Unheld) > 0 {
		c.t.Errorf("its wall is %q, and does not hold %q\n%s", a.Wall, a.Unheld, c.state())
	}
	if !slices.Contains(c.program.Env, "OPENAI_API_KEY="+scriptmodel.Key) && !slices.Contains(c.program.Env, "ANTHROPIC_API_KEY="+scriptmodel.Key) {
		return // its key is in a file of its settings, or it cannot be led to the proxy
	}
	for _, one := range c.program.Left() {
		id, words, _ := strings.Cut(one, " ")
		if strings.HasPrefix(words, program+" ") || strings.HasPrefix(words, "fairlead ") { // a shim, an adapter, process 1
			continue
		}
		if where := keyIn(id, scriptmodel.Key); where != "" {
			c.t.Errorf("process %s has the key in its %s", one, where)
		}
	}
}

// keyIn says where a process has a key: in its environment, its arguments or its memory; empty: nowhere.
func keyIn(pid, key string) string {
	for _, name := range []string{"environ", "cmdline"} {
		if text, _ := os.ReadFile(filepath.Join("/proc", pid, name)); strings.Contains(string(text), key) {
			return name
		}
	}
	maps, _ := os.ReadFile(filepath.Join("/proc", pid, "maps"))
	memory, err := os.Open(filepath.Join("/proc", pid, "mem"))
	if err != nil {
		return "" // it has ended
	}
	defer memory.Close()
	chunk := make([]byte, 1<<20)
	for line := range strings.SplitSeq(string(maps), "\n") {
		var from, to int64
		var rights string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); n < 3 || !strings.HasPrefix(rights, "rw") {
			continue
		}
		for at := from; at < to; at += int64(len(chunk) - len(key)) { // parts overlap by the length of the key
			n, _ := memory.ReadAt(chunk[:min(int64(len(chunk)), to-at)], at)
			if bytes.Contains(chunk[:n], []byte(key)) {
				return "memory"
			}
		}
	}
	return ""
}

// age makes conversations older, where the wall has put the program's folder.
func (c *liveRig) age() {
	c.t.Helper()
	livetest.Age(c.t, filepath.Join(c.dir, ".fairlead", "programs", "coder", "gemini", "gemini"))
}

// A step of a workflow: the program writes in its folder without a question, asks for commands, is allowed and denied,
// and reports over MCP. The run completes, and says what was denied. What a person allowed, the wall still holds.
func (c *liveRig) step(asks bool) {
	t := c.t
	coder, outside := filepath.Join(c.dir, "coder"), filepath.Join(c.program.Home, "outside.txt")
	prompt := "do: write " + filepath.Join(coder, "a.txt") + " hello\n"
	if asks {
		governing := "; : >> " + filepath.Join(coder, "agent_state.json") + "\n" // inside the wall other commands are not asked about
		prompt += "do: bash echo denied > " + filepath.Join(coder, "b.txt") + governing
		prompt += "do: bash echo escaped > " + outside + "; echo allowed > " + filepath.Join(coder, "c.txt") + governing
	}
	prompt += c.program.Use("report_step", `{"status":"COMPLETED","metrics":{"files":"1"}}`) + "\ndo: say reported"
	if err := os.MkdirAll(filepath.Join(c.dir, ".agents", "prompts"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.put(".agents/prompts/work.md", prompt)
	c.putJSON("flow.yaml", map[string]any{
		"name": "flow", "steps": []any{map[string]any{"id": "work", "agent": "coder", "prompt": "work.md"}},
	})
	if _, err := c.client().Runs.Start(context.Background(),
		view.RunFlags{Workflow: filepath.Join(c.dir, "flow.yaml"), RunID: "r"}); err != nil {
		t.Fatal(err)
	}
	if asks {
		q := c.question("Bash")
		if c.has("coder/b.txt") != "" {
			t.Error("the command ran before it was allowed")
		}
		if shown := c.must("inbox"); !strings.Contains(shown, "b.txt") || !strings.Contains(shown, q.ID) {
			t.Errorf("the inbox does not show what is asked:\n%s", shown)
		}
		c.walled()
		c.answer(q, false)
		c.answer(c.question("Bash"), true)
	}
	var run view.RunView
	client := c.client()
	c.await("the run is over", func() bool {
		var err error
		if run, err = client.Runs.Show(context.Background(), "r"); err != nil {
			t.Fatal(err)
		}
		return run.Status == "completed" || run.Status == "failed"
	})
	if run.Status != "completed" || run.Steps[0].Attempts != 1 {
		t.Errorf("the run: %+v\n%s", run, c.state())
	}
	if got := c.has("coder/a.txt"); got != "hello\n" {
		t.Errorf("what was allowed: %q", got)
	}
	if got := c.has("coder/b.txt"); got != "" {
		t.Errorf("what was denied was done: %q", got)
	}
	if asks {
		if _, err := os.Lstat(outside); err == nil || c.has("coder/c.txt") != "allowed\n" {
			t.Errorf("what a person allowed and the sandbox did not was done: %v; what both allowed: %q", err == nil, c.has("coder/c.txt"))
		}
	}
	if asks && !strings.Contains(run.Steps[0].Denied, "Bash") {
		t.Errorf("the run does not say what was denied: %+v", run.Steps[0])
	}
}

// A talk: turns that end over MCP; the daemon is killed while the program answers, then the
// program is; and the conversation goes on.
func (c *liveRig) talk() {
	t := c.t
	c.must("channel", "say", "talk", "The word is xylophone.\n"+c.program.Use("turn_complete", `{"message":"my first words"}`))
	c.said("my first words")
	c.await("the turn is over", func() bool { return c.floor("talk").Holder == "" })

	c.must("channel", "say", "talk", "do: hold one moment please\ndo: say TURN_COMPLETE")
	c.asked("one moment please")
	c.walled()
	before := c.view().Agents[0]
	c.kill()
	c.begin()
	after := c.view().Agents[0]
	if before.Session == nil || after.Session == nil || before.Session.ID != after.Session.ID {
		t.Errorf("the session did not outlive the daemon: %+v, then %+v", before.Session, after.Session)
	}
	if got := c.floor("talk").Holder; got != "coder" {
		t.Errorf("after the daemon's death the turn is with %q", got)
	}

	c.killProgram()
	c.await("the session is over", func() bool {
		now := c.view().Agents[0]
		return now.Session == nil || now.Session.ID != before.Session.ID
	})
	c.age()
	c.model.LetGo()
	c.must("channel", "assign", "talk", "coder") // T18: who crashed does not stand in line again by himself
	c.await("what was not answered is", func() bool { return c.floor("talk").Holder == "" })
	c.must("channel", "say", "talk", c.program.Use("turn_complete", `{"message":"here again"}`))
	c.said("here again")
	if last := c.asked("here again"); !last.Says("user", "xylophone") {
		t.Errorf("the conversation did not go on; the model was shown %+v", last.Turns)
	}
}

// A run that is cancelled in the middle of an answer: the program is told, and is gone.
func (c *liveRig) cancelled() {
	c.put(".agents/prompts/work.md", "do: hold a long thought")
	if _, err := c.client().Runs.Start(context.Background(),
		view.RunFlags{Workflow: filepath.Join(c.dir, "flow.yaml"), RunID: "cut"}); err != nil {
		c.t.Fatal(err)
	}
	c.asked("a long thought")
	c.must("run", "cancel", "cut")
	client := c.client()
	c.await("the run is cancelled, and nothing is at work", func() bool {
		run, err := client.Runs.Show(context.Background(), "cut")
		if err != nil {
			c.t.Fatal(err)
		}
		return run.Status == "cancelled" && c.view().Agents[0].Session == nil
	})
}

// A rate limit of the provider: the agent waits, and this does not count as a failure.
func (c *liveRig) limited() {
	c.must("channel", "say", "talk", "do: error 429 600")
	c.await("the agent waits for its provider", func() bool { return c.view().Agents[0].LimitedUntil != nil })
	if a := c.view().Agents[0]; a.Failures != 0 || a.Session != nil {
		c.t.Errorf("it waits for its provider, and is %+v", a)
	}
}

// Real programs, under a real daemon.
func TestLive(t *testing.T) {
	for _, name := range []string{"claude", "opencode", "qwen", "qwen-stream", "codex", "gemini"} {
		t.Run(name, func(t *testing.T) {
			c := newLiveRig(t, livetest.Programs()[name])
			c.step(name != "codex")
			if name == "opencode" { // one program that is told to stop in the words of its protocol
				c.cancelled()
			}
			c.talk()
			if used := c.view().Agents[0].UsageToday; used.InputTokens == 0 || used.OutputTokens == 0 {
				t.Errorf("no word of what was used today: %+v", used)
			}
			if name == "codex" { // the others try again for a minute before they give up
				c.limited()
			}
		})
	}
}
