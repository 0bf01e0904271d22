package server

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/outside"
)

// house is a team that has one of each: agents that Fairlead starts and others, a channel, a crew, tasks and a target of notices.
const house = `version: 1
agents:
  coder: {description: Writes code, driver: exec, command: ["true"]}
  reviewer: {description: Reads code, driver: exec, command: ["true"]}
  asker: {description: Asks, driver: script, script: played.script.yaml}
  limited: {description: Reaches its limit, driver: script, script: played.script.yaml}
  worker: {description: Does tasks, driver: script, script: played.script.yaml}
  scout: {description: Looks around, loop: foreign}
  pilot: {description: Finds the way, loop: foreign}
  julian: {description: Leads the team, driver: script, script: julian.script.yaml}
channels:
  reviews: {agents: [scout, pilot]}
team: {lead: julian, size: 2}
notify: {targets: {phone: {url: "https://127.0.0.1:1/x"}}}
`

// houseFiles are the files of the repository. The test plays all programs that they name.
var houseFiles = map[string]string{
	"julian.script.yaml": julianScript,
	"played.script.yaml": "steps: [{say: hello}]\n",
	"nightly.yaml":       "name: nightly\nsteps:\n  - {id: build, command: [\"true\"]}\n",
	"gate.yaml":          "name: gate\nsteps:\n  - {id: build, command: [\"true\"], report_optional: true}\n  - {id: review, command: [\"true\"], report_optional: true, needs: [build], human_in_the_loop: true}\n",
}

// houseAt serves the house in a git repository.
func houseAt(t testing.TB) *served {
	t.Helper()
	dir := newWorkspace(t)
	for name, text := range houseFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{"init -q -b main", "add nightly.yaml", "commit -q -m first"} {
		if err := git(dir, strings.Fields(args)...); err != nil {
			t.Fatalf("git %s: %v", args, err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	files := agentstate.Watch(log)
	folders, err := dispatchctl.WatchSessions(dir, log)
	if err != nil {
		t.Fatal(err)
	}
	notices := &outside.Notices{
		Targets: []notice.Target{{Name: "phone", Events: notice.Usual(), PerHour: 20}}, Kinds: map[string]string{"phone": "ntfy"},
		Send: func(context.Context, string, []notice.Notice, int) *notice.Failure { return nil },
	}
	sup := superviseWith(t, dir, house,
		outside.Options{Journal: memory.New(), Files: files, Sessions: folders, Notices: notices}, files.Close,
		folders.Close)
	lead := &julian{host: sup.host, may: make(chan struct{}, 64)}
	for range cap(lead.may) {
		lead.may <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var leading sync.WaitGroup
	t.Cleanup(func() { cancel(); leading.Wait() })
	sup.host.direct(func() {
		sup.host.plays = func(p *player) {
			if strings.HasPrefix(p.session, "julian-") {
				leading.Go(func() { lead.lead(ctx, p) })
				return
			}
			playStep(p)
		}
	})
	return serveAt(t, sup, dir, waitsUsual, listenAny(t))
}

func git(dir string, args ...string) error {
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
	cmd.Dir = dir
	return cmd.Run()
}

// playStep plays the steps of runs: the agent of a task writes a file, and every command ends well.
func playStep(p *player) {
	if agent, _, _ := strings.Cut(p.session, "-"); agent == "worker" {
		_ = os.WriteFile(filepath.Join(p.launch.Dir, "a.txt"), fmt.Appendf(nil, "by %s\n", p.session), 0o600) // the test reads it
		_ = git(p.launch.Dir, "add", "a.txt")
		_ = git(p.launch.Dir, "commit", "-q", "-m", p.session)
		p.say("{\"type\":\"said\",\"text\":\"done\"}\n{\"type\":\"stopped\",\"ok\":true,\"reason\":\"completed\"}\n")
		p.leave()
	} else if step, _, is := strings.Cut(p.session, "@"); is {
		if file := valueOf(p.launch.Env, task.File); file != "" {
			playTask(file, step)
		}
		p.say("hello\n" + reportOf(p.launch.Env))
		p.leave()
	}
}

// playTask does what the steps of a task do, in this process.
func playTask(file, step string) {
	t, err := task.Load(file)
	switch {
	case err != nil:
	case step == task.StepPrepare:
		err = t.Prepare(context.Background(), io.Discard)
	case step == task.StepCheck:
		err = t.Check(context.Background(), io.Discard)
	}
	if err != nil {
		panic(err)
	}
}

// valueOf is the value of a variable of an environment.
func valueOf(env []string, name string) string {
	for _, word := range env {
		if value, is := strings.CutPrefix(word, name+"="); is {
			return value
		}
	}
	return ""
}

// reportOf is the report of a step that ends well.
func reportOf(env []string) string {
	return fmt.Sprintf("<<<RUN_REPORT_JSON\n{\"schema\":\"agent_run_report_v1\",\"run_id\":%q,\"step_id\":%q,\"agent\":\"script\",\"status\":\"COMPLETED\","+
		"\"started_at\":\"2026-11-21T09:30:00Z\",\"ended_at\":\"2026-11-21T09:30:01Z\",\"artifacts\":[],\"metrics\":{},\"logs\":[]}\nRUN_REPORT_JSON>>>\n", valueOf(env, "RUN_ID"), valueOf(env, "STEP_ID"))
}

// gif is the smallest image that is one.
var gif, _ = base64.StdEncoding.DecodeString("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")

// gate starts a run and returns its id when it waits for a person.
func (s *served) gate(t testing.TB, c *client.Client) string {
	t.Helper()
	run, err := c.Runs.Start(t.Context(), view.RunFlags{Workflow: "gate.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	s.untilRun(t, c, run.ID, "waiting")
	return run.ID
}

// task starts a task and returns its id when it waits for a person.
func (s *served) task(t testing.TB, c *client.Client) string {
	t.Helper()
	run, err := c.Runs.Start(t.Context(),
		view.RunFlags{Task: &view.TaskFlags{
			Text: "write a.txt", Agent: "worker",
			Attachments: []view.TaskAttachment{{Name: "a.gif", Image: gif}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	s.untilRun(t, c, run.ID, "waiting")
	return run.ID
}

func (s *served) untilRun(t testing.TB, c *client.Client, id, status string) (run view.RunView) {
	t.Helper()
	var err error
	if !wait.Poll(func() bool {
		run, err = c.Runs.Show(context.WithoutCancel(t.Context()), id)
		return err != nil || run.Status == status || run.Status == "failed"
	}) || err != nil || run.Status != status {
		t.Fatalf("run %s is %s, not %s: %v: %+v", id, run.Status, status, err, run.Steps)
	}
	return run
}

// question lets asker ask for permission to run a command.
func (s *served) question(t testing.TB, c *client.Client) (id string, asker *player) {
	t.Helper()
	asker = s.sup.host.player("asker-1")
	if asker == nil {
		asker = s.sup.begin(t, "asker", 1)
	}
	return s.ask(t, c, asker), asker
}

// ask lets an agent that works ask.
func (s *served) ask(t testing.TB, c *client.Client, asker *player) (id string) {
	t.Helper()
	asker.say(fmt.Sprintf(`{"type":"permission_asked","id":"ask-%d","tool":"Bash","text":"rm -rf build","args":{"command":"rm -rf build"},"options":[{"id":"y","kind":"allow_once"},{"id":"n","kind":"reject_once"}]}`+"\n", s.sup.head(t)))
	wait.Until(t, "it is asked", func() bool {
		all, err := client.Get[api.Questions](t.Context(), c, "/questions", nil)
		for _, q := range all.Questions {
			if q.Session == asker.session && q.State == "open" {
				id = q.ID
			}
		}
		return err == nil && id != ""
	})
	return id
}

// lived is a house in which something of each kind has happened, and names of it that a request may use.
func lived(t testing.TB) (*served, *strings.Replacer) {
	t.Helper()
	s := houseAt(t)
	c := dial(t, s)
	describeAgents(t, s.dir)
	giveIndex(t, s)
	coder := s.sup.begin(t, "coder", 1)
	coder.say("hello\n")
	s.sup.over(t, coder)
	limited := s.sup.begin(t, "limited", 1)
	limited.say(`{"type":"stopped","ok":false,"reason":"rate_limited","detail":"429"}` + "\n")
	limited.exit(1)
	wait.Until(t, "it is limited", func() bool {
		why, err := c.Why(t.Context(), "limited")
		return err == nil && why.Agent.LimitedUntil != nil
	})
	answered, _ := s.question(t, c)
	if _, err := c.Questions.Answer(t.Context(), answered, view.QuestionAnswer{Allow: true, Scope: "always"}); err != nil {
		t.Fatal(err)
	}
	asker := s.sup.host.player("asker-1")
	asker.say(`{"type":"permission_asked","id":"open","tool":"Bash","text":"git push","args":{"command":"git push"},"options":[{"id":"y","kind":"allow_once"}]}` + "\n")
	names := []string{
		"RUN1", s.gate(t, c), "RUN2", s.gate(t, c), "RUN3", s.gate(t, c), "TASK1", s.task(t, c), "TASK2", s.task(t, c),
		"TASK3", s.task(t, c),
	}
	changes, err := client.Get[view.TaskChanges](t.Context(), c, "/runs/T1/changes", nil)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := c.Questions.Saved(t.Context())
	if err != nil || len(saved) != 1 {
		t.Fatal(saved, err)
	}
	open, err := client.Get[api.Questions](t.Context(), c, "/questions", nil)
	if err != nil || len(open.Questions) != 1 {
		t.Fatal(open, err)
	}
	return s, strings.NewReplacer(append(names, "FROM", changes.From, "TO", changes.To, "SAVED", saved[0].ID, "OPEN",
		open.Questions[0].ID)...)
}

// askAll makes one call of each route in a house, as formed by how, and complains about what is missing in the answers. What
// is only read is asked until it is as it is to be.
func askAll(t *testing.T, s *served, names *strings.Replacer,
	how func(askedOnce) (path string, answered func(text string, h http.Header)),
) {
	t.Helper()
	for _, c := range everyRouteAsked() {
		c.path, c.body, c.want = names.Replace(c.path), names.Replace(c.body), names.Replace(c.want)
		if c.id == "read-output-file" {
			writeOutput(t, s.dir, "quay", "hello.py", "print('hello')\n")
		}
		path, answered := how(c)
		missing := func() string {
			text, h := s.want(t, c.status(), c.method, api.Base+path, c.body)
			for _, want := range strings.Fields(c.want) {
				if !strings.Contains(text, want) {
					return fmt.Sprintf("%s %s: %s is not in\n%s", c.id, path, want, text)
				}
			}
			answered(text, h)
			return ""
		}
		why := missing()
		if why != "" && c.method == http.MethodGet && wait.Poll(func() bool { why = missing(); return why == "" }) {
			continue
		}
		if why != "" {
			t.Error(why)
		}
	}
}
