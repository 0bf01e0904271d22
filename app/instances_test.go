package app

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/read/view"
)

// TestInstances checks an agent with three instances. It follows its desired state and works for
// two runs in worktrees at the same time, each session with its own ports; a third run waits. All
// sessions outlive a daemon, and the next one adopts them.
func TestInstances(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\nagents:\n  ada: {command: [sh, ../play.sh], workspace: ada, instances: 3, ports: 2}\n", map[string]string{
		"play.sh": `
for dir in "$PWD/.." "$REPO_DIR/.." "$REPO_DIR/../../.."; do if [ -e "$dir/play.sh" ]; then top=$dir; fi; done
echo "$PORT_1 $PORT_2" > "$top/ports.${RUN_ID:-own}"
echo made > made.txt
until [ -e "$top/release" ]; do sleep 0.02; done
if [ -n "$RUN_ID" ]; then
  echo '{"schema":"v0","run_id":"'$RUN_ID'","step_id":"'$STEP_ID'","agent":"'$AGENT_ID'","status":"ok","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z"}' > "$REPORT_PATH"
fi
`,
		"ada/.keep": "", "p.md": "work", "flow.yaml": "name: tree\nsteps:\n  - {id: work, agent: ada, prompt: p.md}\n",
	})
	for _, args := range [][]string{{"init", "-q"}, {"add", "flow.yaml", "p.md", "play.sh", "ada/.keep"}, {"commit", "-qm", "first"}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
		cmd.Dir = w.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	y := &runWorld{App: w.engine, t: t, dir: w.dir}
	<-y.Loop.Ready()
	w.command("ada", "run_once")
	w.until("ada", "its own work runs", func(a view.AgentView) bool { return a.Session != nil && a.Session.PID > 0 })
	for _, id := range []string{"r1", "r2", "r3"} {
		y.start(view.RunFlags{Workflow: "flow.yaml", RunID: id, GitWorktree: true, Workdir: "ada"})
	}
	three := func(a view.AgentView) bool {
		return len(a.Sessions) == 3 &&
			!slices.ContainsFunc(a.Sessions, func(s view.SessionView) bool { return s.PID == 0 || len(s.Ports) != 2 })
	}
	before := w.until("ada", "three sessions run", three)
	for i, want := range []team.Purpose{team.ForControl, team.ForStep("r1", "work"), team.ForStep("r2", "work")} {
		if s := before.Sessions[i]; s.Slot != i || s.For != want {
			t.Errorf("in slot %d: %+v", i, s)
		}
	}
	if before.Session.ID != before.Sessions[0].ID || before.Status != view.StatusRunning {
		t.Errorf("%+v", before)
	}
	waits := fmt.Sprintf("it waits in the queue behind control (%s), run/r1/work (%s), run/r2/work (%s)", before.Sessions[0].ID,
		before.Sessions[1].ID, before.Sessions[2].ID)
	y.until("r3", "it waits and says behind whom", func(v view.RunView) bool { return v.Steps[0].WaitsFor == waits })
	why, err := w.engine.Status.Why(context.Background(), "ada")
	if err != nil || !slices.ContainsFunc(why.Evidence, func(e view.Evidence) bool { return e.What == "step work of run r3: "+waits }) ||
		!strings.Contains(why.Verdict, before.Sessions[2].ID+" is running on step work of run r2") {
		t.Errorf("why says %s: %+v, %v", why.Verdict, why.Evidence, err)
	}

	w.stop() // the daemon stops; its sessions continue
	w.start()
	y.App = w.engine
	<-y.Loop.Ready()
	after := w.until("ada", "three sessions are adopted", three)
	for i, s := range after.Sessions {
		if was := before.Sessions[i]; s.ID != was.ID || s.PID != was.PID || s.For != was.For || !slices.Equal(s.Ports, was.Ports) {
			t.Errorf("adopted: %+v, before: %+v", s, was)
		}
	}
	for _, entity := range []string{"session/ada", "session/ada/1", "session/ada/2"} {
		w.took(entity, "J1", "S1", "S2")
	}
	w.write("release", "")
	for _, id := range []string{"r1", "r2", "r3"} {
		if v := y.until(id, "it completes", over); v.Status != "completed" {
			t.Errorf("%+v", v)
		}
	}
	w.until("ada", "all sessions are over", func(a view.AgentView) bool { return len(a.Sessions) == 0 && a.Status == view.StatusIdle })
	seen := map[string]bool{}
	for i, id := range []string{"own", "r1", "r2"} {
		text, err := os.ReadFile(filepath.Join(w.dir, "ports."+id))
		want := fmt.Sprintln(before.Sessions[i].Ports[0], before.Sessions[i].Ports[1])
		if err != nil || string(text) != want || seen[want] {
			t.Errorf("%s has the ports %q, but leased are %q, %v", id, text, want, err)
		}
		seen[want] = true
	}
}

// TestInstancesInOneFolder checks that runs without a worktree share the agent's folder, so that
// they run one after the other.
func TestInstancesInOneFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\nagents:\n  ada: {command: [sh, ../play.sh], workspace: ada, instances: 3}\n", map[string]string{
		"play.sh": `
until [ -e "../release" ]; do sleep 0.02; done
echo '{"schema":"v0","run_id":"'$RUN_ID'","step_id":"'$STEP_ID'","agent":"'$AGENT_ID'","status":"ok","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z"}' > "$REPORT_PATH"
`,
		"ada/.keep": "", "p.md": "work", "flow.yaml": "name: tree\nsteps:\n  - {id: work, agent: ada, prompt: p.md}\n",
	})
	y := &runWorld{App: w.engine, t: t, dir: w.dir}
	<-y.Loop.Ready()
	for _, id := range []string{"r1", "r2"} {
		y.start(view.RunFlags{Workflow: "flow.yaml", RunID: id, Workdir: "ada"})
	}
	y.until("r2", "it waits for slot 0", func(v view.RunView) bool {
		return strings.HasSuffix(v.Steps[0].WaitsFor,
			"its run has no folder of its own, so only the first of the sessions of ada may do it")
	})
	if a := w.until("ada", "the first runs", func(a view.AgentView) bool { return a.Session != nil }); len(a.Sessions) != 1 {
		t.Errorf("open sessions: %+v", a.Sessions)
	}
	w.write("release", "")
	for _, id := range []string{"r1", "r2"} {
		if v := y.until(id, "it completes", over); v.Status != "completed" {
			t.Errorf("%+v", v)
		}
	}
}
