package main

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/test/livetest"
	"github.com/fairlead-dev/fairlead/internal/test/scriptmodel"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Real programs take a task to a merged commit inside the wall, with one failed check and one comment of a person on
// the way, all in one conversation: the last prompt comes with the earlier ones.
func TestLiveTask(t *testing.T) {
	for _, name := range []string{"claude", "opencode", "codex", "qwen", "gemini"} {
		t.Run(name, func(t *testing.T) {
			c := newLiveRig(t, livetest.Programs()[name])
			git := func(args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "git", args...)
				cmd.Dir = c.dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			c.put(".gitignore", "*\n!b.txt\n!check.sh\n!.gitignore\n")
			c.put("check.sh",
				"grep -q two b.txt && exit\ntouch checking; until test -e older; do sleep 0.1; done\necho 'do: bash echo two >> b.txt'\nexit 1\n")
			git("init", "--quiet", "-b", "main")
			git("config", "user.name", "A Person")
			git("config", "user.email", "person@example.org")
			git("add", ".")
			git("commit", "--quiet", "-m", "first")
			conf := strings.Replace(c.has("fairlead.yaml"), `"workspace": "coder"`, `"workspace": "coder", "permissions": {"allow": ["*"]}`,
				1)
			c.put("fairlead.yaml", strings.Replace(conf, `"version": 1`, `"tasks": {"checks": ["sh check.sh"]}, "version": 1`, 1))
			c.must("reload")
			clone := filepath.Join(".agents", "worktrees", "T1")
			c.must("task",
				"First of all.\ndo: bash touch began; until test -e seen; do sleep 0.1; done; grep -qs one b.txt || echo one > b.txt")
			c.await("it works", func() bool { _, err := os.Stat(filepath.Join(c.dir, clone, "began")); return err == nil })
			c.walled()
			c.put(filepath.Join(clone, "seen"), "")
			checks := worktree.Aside(clone, ".checks")
			c.await("it is checked", func() bool { _, err := os.Stat(filepath.Join(c.dir, checks, "checking")); return err == nil })
			c.age()
			c.put(filepath.Join(checks, "older"), "")
			client := c.client()
			until := func(what string, round int) {
				t.Helper()
				c.await(what, func() bool {
					r, err := client.Runs.Show(t.Context(), "T1")
					return err == nil && r.Task.Status == view.TaskNeedsYou && len(r.Steps) > 1 && r.Steps[1].Iteration == round
				})
			}
			until("the check has sent it back, and it has passed then", 1)
			c.age()
			c.must("comment", "T1", "b.txt:2", "there should be a third line\ndo: bash echo three >> b.txt")
			c.must("request", "T1")
			until("it was changed once more", 2)
			c.must("merge", "T1")
			if got := git("show", "main:b.txt"); got != "one\ntwo\nthree\n" {
				t.Errorf("on the branch: %q", got)
			}
			last := c.model.Requests()
			whole := ""
			for _, turn := range last[len(last)-1].Turns {
				whole += turn.Text + "\n"
			}
			wants := []string{"First of all.", "sent back by the step approve", "b.txt:2: there should be a third line"}
			if name != "gemini" { // which resumes a conversation once; then a new one begins, with what is asked for last
				wants = append(wants, "sent back by the step check")
			}
			for _, want := range wants {
				if !strings.Contains(whole, want) {
					t.Errorf("the last prompt came without %q:\n%.4000s", want, whole)
				}
			}
		})
	}
}

// newLiveRigForTasks starts a workspace with one commit, in which a real program takes tasks and may do everything.
func newLiveRigForTasks(t *testing.T, program func(testing.TB, *scriptmodel.Server) livetest.Program) *liveRig {
	t.Helper()
	c := newLiveRig(t, program)
	for _, args := range [][]string{
		{"init", "--quiet", "-b", "main"},
		{"-c", "user.name=P", "-c", "user.email=p@example.org", "commit", "--quiet", "--allow-empty", "-m", "first"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = c.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	c.put("fairlead.yaml",
		strings.Replace(c.has("fairlead.yaml"), `"workspace": "coder"`, `"workspace": "coder", "permissions": {"allow": ["*"]}`, 1))
	c.must("reload")
	return c
}

// An image of a task reaches the model of the real codex, byte for byte.
func TestLiveTaskImage(t *testing.T) {
	c := newLiveRigForTasks(t, livetest.Codex)
	shown := picture(t, 3, 2)
	file := filepath.Join(t.TempDir(), "shown.png")
	if err := os.WriteFile(file, shown, 0o600); err != nil {
		t.Fatal(err)
	}
	c.must("task", "--attach", file, "Look at this.\ndo: bash echo two > b.txt\ndo: say written")
	client := c.client()
	c.await("it is done", func() bool {
		r, err := client.Runs.Show(t.Context(), "T1")
		return err == nil && r.Task.Status == view.TaskNeedsYou
	})
	want := "data:image/png;base64," + base64.StdEncoding.EncodeToString(shown)
	if !slices.ContainsFunc(c.model.Requests(),
		func(r scriptmodel.Request) bool { return r.Says("user", "Look at this.") && r.Says("user", want) }) {
		t.Errorf("no request had the image\n%s", c.state())
	}
}

// Claude Code is told something while it works on a task: its model sees it in the same answer, before the next
// step, and is told once.
func TestLiveTell(t *testing.T) {
	c := newLiveRigForTasks(t, livetest.Claude)
	c.must("task", "First of all.\ndo: bash touch began; until test -e go; do sleep 0.1; done\ndo: bash echo two > b.txt\ndo: say written")
	folder := filepath.Join(".agents", "worktrees", "T1")
	c.await("it works", func() bool { _, err := os.Stat(filepath.Join(c.dir, folder, "began")); return err == nil })
	if out := c.must("tell", "T1", "use the v2 client"); !strings.Contains(out, "gets it at once") {
		t.Errorf("tell says %q", out)
	}
	c.put(filepath.Join(folder, "go"), "")
	client := c.client()
	c.await("it is done", func() bool {
		r, err := client.Runs.Show(t.Context(), "T1")
		return err == nil && r.Task.Status == view.TaskNeedsYou
	})
	says := func(r scriptmodel.Request) bool {
		return slices.ContainsFunc(r.Turns, func(turn scriptmodel.Turn) bool { return strings.Contains(turn.Text, "use the v2 client") })
	}
	same := 0
	for _, r := range c.model.Requests() {
		if says(r) && strings.Contains(r.Answer, "echo two") {
			same++
		}
		for _, turn := range r.Turns {
			if strings.Contains(turn.Text, "While you worked") {
				t.Errorf("it was told again:\n%.1000s", turn.Text)
			}
		}
	}
	if same != 1 {
		t.Errorf("%d requests of the first answer had the text\n%s", same, c.state())
	}
	if events := c.must("events"); strings.Count(events, "the session was given what a person told") != 1 {
		t.Errorf("the journal:\n%s", events)
	}
}
