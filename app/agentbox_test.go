package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// attempts is a program that tries actions in its sandbox. Each line of tries.txt records the
// result of one attempt.
const attempts = `
: > tries.txt
try() { name=$1; shift; if "$@" 2>/dev/null; then echo "$name yes"; else echo "$name no"; fi >> tries.txt; }
put() { echo x > "$1"; }
try inside put in.txt
try deeper sh -c 'mkdir -p a/b && echo x > a/b/c'
try temp sh -c 'echo x > "$TMPDIR/t"'
try mode chmod +x in.txt
try null put /dev/null
try read sh -c 'cat ../outside/kept > /dev/null'
try granted put ../granted/new
try outside put ../outside/new
try overwrite put ../outside/kept
try append sh -c 'echo x >> ../outside/kept'
ln -s ../outside link
try link put link/new
ln -s ../outside/kept one
try filelink put one
try hardlink ln ../outside/kept second
try remove rm -f ../outside/kept
try movein mv ../outside/kept kept
try moveout mv in.txt ../outside/moved
try mkdir mkdir ../outside/dir
try child sh -c 'sh -c "echo x > ../outside/new"'
try left sh -c '(setsid sh -c "echo x > ../outside/new"; test -e ../outside/new)'
try state put ../.fairlead/x
try root put ../new.txt
try sibling put ../other/x
try home put "$HOME/x"
try tmp put "$OUTER/x"
touch done
`

// yes lists the attempts that must succeed. All others must fail. The home folder is the session's own.
const yes = "inside deeper temp mode null read granted home"

func checkAttempts(t *testing.T, w *world, workspace string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, workspace, "tries.txt"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(text))
	if len(lines) != 2*strings.Count(attempts, "\ntry ") {
		t.Errorf("attempts:\n%s", text)
	}
	for i := 0; i+1 < len(lines); i += 2 {
		want := "no"
		if strings.Contains(" "+yes+" ", " "+lines[i]+" ") {
			want = "yes"
		}
		if lines[i+1] != want {
			t.Errorf("%s: %s, want %s", lines[i], lines[i+1], want)
		}
	}
	if kept, err := os.ReadFile(w.path("outside/kept")); err != nil || string(kept) != "kept\n" {
		t.Errorf("the file outside is %q, %v", kept, err)
	}
	if left, err := filepath.Glob(filepath.Join(os.Getenv("HOME"), "*")); err != nil || len(left) > 0 {
		t.Errorf("the person's home folder has %q, %v", left, err)
	}
	if left, err := filepath.Glob(w.path("outside/*")); err != nil || len(left) != 1 {
		t.Errorf("the files outside are %q, %v", left, err)
	}
}

func inASandbox(t *testing.T) {
	t.Helper()
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
}

// boxedWorld returns a world with one agent in a sandbox, and folders around it that the agent may
// not write.
func boxedWorld(t *testing.T, agent string) *world {
	t.Helper()
	inASandbox(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("OUTER", t.TempDir())
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("CODEX_HOME", "")
	files := map[string]string{"outside/kept": "kept\n", "granted/old": "", "other/old": "", "coder/try.sh": attempts, "coder.yaml": `
steps:
  - run: "sh try.sh"
`}
	return newWorld(t, "version: 1\nagents:\n  coder: {workspace: coder, failures_max: 1, sandbox: {write: [granted]}, "+agent+"}\n", files)
}

// TestAgentInItsSandbox checks that an agent's program and all its child processes write only where
// they may, regardless of how they are started.
func TestAgentInItsSandbox(t *testing.T) {
	for name, agent := range map[string]string{
		"exec":   `driver: exec, command: [sh, try.sh]`,
		"script": `driver: script, script: coder.yaml`,
		"acp":    `driver: acp, session_prompt: go, command: [sh, try.sh]`,
		"claude": `driver: claude, session_prompt: go, command: [sh, try.sh]`,
		"codex":  `driver: codex, session_prompt: go, mode: danger-full-access, command: [sh, try.sh]`,
	} {
		t.Run(name, func(t *testing.T) {
			w := boxedWorld(t, agent)
			w.command("coder", "run_once")
			w.until("coder", "it has tried", func(v view.AgentView) bool {
				_, err := os.Stat(w.path("coder/done"))
				return err == nil && v.Session == nil
			})
			checkAttempts(t, w, "coder")
			why := w.why("coder")
			if len(why.Layers) != 3 || why.Layers[2].Name != sessions.LayerSandbox || !why.Layers[2].Holds ||
				!strings.Contains(why.Layers[2].Text, w.path("granted")) {
				t.Errorf("the layers are %+v", why.Layers)
			}
			if left, _ := filepath.Glob(w.path(".fairlead/tmp/*")); len(left) > 0 {
				t.Errorf("its temporary folder still has %q", left)
			}
		})
	}
}

// TestCommitInASandbox checks that git looks, and does not commit, in a person's repository and in a linked worktree of it, unless
// the configuration opens the git directory.
func TestCommitInASandbox(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	inASandbox(t)
	for name, c := range map[string]struct {
		workspace, sandbox string
		commits            bool
	}{
		"a checkout":          {"main", "workspace", false},
		"a checkout, opened":  {"main", "{write: [\"BASE/main/.git\"]}", true},
		"a worktree":          {"tree", "workspace", false},
		"a worktree, opened":  {"tree", "{write: [\"BASE/main/.git\"]}", true},
		"a folder of one":     {"main/sub", "workspace", false},
		"a checkout, no wall": {"main", "off", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			base := t.TempDir()
			repo, at := filepath.Join(base, "main"), filepath.Join(base, c.workspace)
			git := func(words ...string) string {
				t.Helper()
				out, err := exec.Command("git", words...).CombinedOutput()
				if err != nil {
					t.Fatalf("git %q: %v: %s", words, err, out)
				}
				return string(out)
			}
			git("init", "-q", repo)
			git("-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
			git("-C", repo, "worktree", "add", "-q", filepath.Join(base, "tree"))
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, `
version: 1
agents:
  coder:
    workspace: `+at+`
    sandbox: `+strings.ReplaceAll(c.sandbox, "BASE", base)+`
    failures_max: 1
    command: [sh, -c, "echo x > x; git log --format=%s > log; git status --short > status; git add x && git -c user.name=a -c user.email=a@b commit -qm x; touch done"]
`, nil)
			w.command("coder", "run_once")
			w.until("coder", "it has tried", func(v view.AgentView) bool {
				_, err := os.Stat(filepath.Join(at, "done"))
				return err == nil && v.Session == nil
			})
			want := "first\n"
			if c.commits {
				want = "x\n" + want
			}
			if out := git("-C", at, "log", "--format=%s"); out != want {
				t.Errorf("its log is %q, want %q\n%s", out, want, w.output("coder-1"))
			}
			if log, err := os.ReadFile(filepath.Join(at, "log")); err != nil || string(log) != "first\n" {
				t.Errorf("inside, its log is %q, %v", log, err)
			}
			if status, err := os.ReadFile(filepath.Join(at, "status")); err != nil || !strings.Contains(string(status), "?? ") {
				t.Errorf("inside, its status is %q, %v", status, err)
			}
			if _, err := os.Lstat(filepath.Join(at, ".claude")); err == nil {
				t.Error("a folder that the view needed is left")
			}
			why, err := w.engine.Status.Why(t.Context(), "coder")
			said := ""
			for _, l := range why.Layers {
				if l.Name == view.LayerGit && l.Holds {
					said = l.Text
				}
			}
			if want := "a commit fails: .git is read-only; use a task, or `sandbox: {write: [" + repo +
				"/.git]}` in fairlead.yaml"; err != nil || c.commits != (said == "") || !c.commits && said != want {
				t.Errorf("why says %q (%v), want %q", said, err, want)
			}
		})
	}
}

// TestNoSandboxNoAgent checks that an agent is not started without its sandbox, or without one of
// the folders that it needs, and that the status says why.
func TestNoSandboxNoAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ without, agent, want string }{
		"no Landlock":   {"there is no sandbox here: old kernel", "sandbox: workspace", "old kernel"},
		"no such place": {"", "sandbox: {write: [nowhere]}", "nowhere, which does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.without == "" {
				inASandbox(t)
			}
			w := newWorld(t, `
version: 1
agents:
  coder: {workspace: coder, failures_max: 1, command: [sh, -c, "touch ran"], `+c.agent+`}
`, nil)
			if c.without != "" {
				w.engine.Sessions.Boxed.Once.Do(func() { w.engine.Sessions.Boxed.Why = c.without })
			}
			w.command("coder", "run_once")
			w.until("coder", "it could not be started",
				func(v view.AgentView) bool { return v.Session == nil && strings.Contains(v.Note, c.want) })
			if _, err := os.Stat(w.path("coder/ran")); err == nil {
				t.Error("it was started")
			}
		})
	}
}

// TestBoundsHoldByTheKernel checks that an agent with can_write runs in the sandbox without further
// configuration, so that it also restricts a program that never asks.
func TestBoundsHoldByTheKernel(t *testing.T) {
	inASandbox(t)
	w := newWorld(t, `
version: 1
agents:
  coder:
    workspace: coder
    failures_max: 1
    command: [sh, -c, "echo x > src/new; echo x > main.go; echo x > ../outside/new; touch src/ran"]
    permissions: {can_write: ["src/**/*.txt"]}
`, map[string]string{"outside/kept": "", "coder/kept": ""})
	w.command("coder", "run_once")
	w.until("coder", "its session is over", func(v view.AgentView) bool {
		return v.Session == nil && v.CurrentState == "pause" && len(w.sessions()) > 0
	})
	for path, want := range map[string]bool{"coder/src/new": true, "coder/src/ran": true, "coder/main.go": false, "outside/new": false} {
		if _, err := os.Stat(w.path(path)); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	why, err := w.engine.Status.Why(t.Context(), "coder")
	if err != nil || !strings.Contains(why.Layers[2].Text, "write in src, a home and a temporary folder of their own") ||
		!strings.Contains(why.Layers[1].Text, "the kernel holds the folders of can_write") {
		t.Errorf("the layers are %+v, %v", why.Layers, err)
	}
}

// TestBoundsWithoutTheKernel checks that an agent with can_write starts if the kernel has no
// sandbox, and that its layers say what is not enforced.
func TestBoundsWithoutTheKernel(t *testing.T) {
	w := newWorld(t, `
version: 1
agents:
  coder: {workspace: coder, failures_max: 1, command: [sh, -c, "touch ran"], permissions: {can_write: ["src/**"]}}
`, nil)
	w.engine.Sessions.Boxed.Once.Do(func() { w.engine.Sessions.Boxed.Why = "there is no sandbox here: old kernel" })
	w.command("coder", "run_once")
	w.until("coder", "its session is over", func(v view.AgentView) bool {
		return v.Session == nil && v.CurrentState == "pause" && len(w.sessions()) > 0
	})
	if _, err := os.Stat(w.path("coder/ran")); err != nil {
		t.Error(err)
	}
	why, err := w.engine.Status.Why(t.Context(), "coder")
	if err != nil || why.Layers[2].Holds || !strings.Contains(why.Layers[2].Text, "old kernel") ||
		!strings.Contains(why.Layers[1].Text, "words alone") {
		t.Errorf("the layers are %+v, %v", why.Layers, err)
	}
}
