package controller

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/sandbox"
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

// yes lists the attempts that must succeed. All others must fail.
const yes = "inside deeper temp mode null read granted"

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
			if len(why.Layers) != 3 || why.Layers[2].Name != sessions.LayerSandbox || !why.Layers[2].Holds || !strings.Contains(why.Layers[2].Text, w.path("granted")) {
				t.Errorf("the layers are %+v", why.Layers)
			}
			if left, _ := filepath.Glob(w.path(".fairlead/tmp/*")); len(left) > 0 {
				t.Errorf("its temporary folder still has %q", left)
			}
		})
	}
}

// TestCommitInASandbox checks that git can commit in a sandbox, also in a linked worktree, and that
// files that worktrees share are unchanged.
func TestCommitInASandbox(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	inASandbox(t)
	base := t.TempDir()
	repo, tree := filepath.Join(base, "main"), filepath.Join(base, "tree")
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, words := range [][]string{
		{"init", "-q", repo},
		{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"},
		{"-C", repo, "worktree", "add", "-q", tree},
	} {
		if out, err := exec.Command("git", words...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", words, err, out)
		}
	}
	before, err := os.ReadFile(filepath.Join(repo, ".git", "config"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, `
version: 1
agents:
  coder:
    workspace: `+tree+`
    sandbox: workspace
    failures_max: 1
    command: [sh, -c, "echo x > x; git add x && git -c user.name=a -c user.email=a@b commit -qm x; echo x > ../main/.git/hooks/x; echo x >> ../main/.git/config; touch done"]
`, nil)
	w.command("coder", "run_once")
	view := w.until("coder", "it has committed", func(v view.AgentView) bool {
		_, err := os.Stat(filepath.Join(tree, "done"))
		return err == nil && v.Session == nil
	})
	out, err := exec.Command("git", "-C", tree, "log", "--format=%s").CombinedOutput()
	if err != nil || string(out) != "x\nfirst\n" {
		t.Errorf("its log is %q, %v; %+v\n%s", out, err, view, w.output("coder-1"))
	}
	if after, err := os.ReadFile(filepath.Join(repo, ".git", "config")); err != nil || string(after) != string(before) {
		t.Errorf("the configuration is %q, %v", after, err)
	}
	if _, err := os.Stat(filepath.Join(repo, ".git", "hooks", "x")); err == nil {
		t.Error("the agent created a hook")
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
				w.engine.Boxed.Once.Do(func() { w.engine.Boxed.Why = c.without })
			}
			w.command("coder", "run_once")
			w.until("coder", "it could not be started", func(v view.AgentView) bool { return v.Session == nil && strings.Contains(v.Note, c.want) })
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
	why, err := w.engine.Why(t.Context(), "coder")
	if err != nil || !strings.Contains(why.Layers[2].Text, "write in src, its own temporary folder") || !strings.Contains(why.Layers[1].Text, "the kernel holds the folders of can_write") {
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
	w.engine.Boxed.Once.Do(func() { w.engine.Boxed.Why = "there is no sandbox here: old kernel" })
	w.command("coder", "run_once")
	w.until("coder", "its session is over", func(v view.AgentView) bool {
		return v.Session == nil && v.CurrentState == "pause" && len(w.sessions()) > 0
	})
	if _, err := os.Stat(w.path("coder/ran")); err != nil {
		t.Error(err)
	}
	why, err := w.engine.Why(t.Context(), "coder")
	if err != nil || why.Layers[2].Holds || !strings.Contains(why.Layers[2].Text, "old kernel") || !strings.Contains(why.Layers[1].Text, "words alone") {
		t.Errorf("the layers are %+v, %v", why.Layers, err)
	}
}

// TestPlacesOfASandbox checks that can_write narrows the sandbox to the folders with the listed
// files, and that links that the agent created are not followed.
func TestPlacesOfASandbox(t *testing.T) {
	t.Parallel()
	for entries, want := range map[string]string{
		"":                     "",
		"src/**":               "src",
		"src/ docs/a/**":       "src docs/a",
		"./src/**":             "src",
		"src/** *.md":          ".",
		"*.md src/**":          ".",
		"**":                   ".",
		"src":                  ".",
		"src/*":                "src",
		"src/**/*.go":          "src",
		"src/main.go":          "src",
		"src/a/b":              "src/a/b",
		"src/[ab]/c":           "src",
		"~/notes/**":           "~/notes",
		"~/.notes":             "~/.notes",
		"~/*.md":               "~",
		"/srv/data/**":         "/srv/data",
		"*.md /srv/data/x.txt": ". /srv/data",
		"/*.md":                "/",
	} {
		if got := strings.Join(sessions.WriteFolders(strings.Fields(entries)), " "); got != want {
			t.Errorf("%s: %s, want %s", entries, got, want)
		}
	}
	if all := sessions.WriteFolders(nil); len(all) != 1 || all[0] != "." {
		t.Errorf("without can_write the sandbox grants %q", all)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if at, err := sessions.FolderIn(dir, "/no/such"); err == nil || !strings.Contains(err.Error(), "create it first") {
		t.Errorf("a missing folder is %s, %v", at, err)
	}
	if at, err := sessions.FolderIn(dir, "out/x"); err == nil {
		t.Errorf("the sandbox grants %s", at)
	}
	if at, err := sessions.FolderIn(dir, "new/deep"); err != nil || at != filepath.Join(dir, "new/deep") {
		t.Errorf("a new folder is %s, %v", at, err)
	}
}

// TestForgedCheckout checks that a .git file that the agent wrote grants only what the repository
// knows.
func TestForgedCheckout(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	victim, workspace := filepath.Join(dir, "victim"), filepath.Join(dir, "w")
	for _, p := range []string{filepath.Join(victim, "worktrees", "x"), filepath.Join(victim, "objects"), workspace, filepath.Join(workspace, "worktrees", "y")} {
		if err := os.MkdirAll(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(p, text string) {
		t.Helper()
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, said := range []string{victim, filepath.Join(victim, "worktrees", "x"), "../victim/worktrees/x", "", "/", strings.Repeat("x/", 9000)} {
		write(filepath.Join(workspace, ".git"), "gitdir: "+said+"\n")
		if got := sessions.GitFolders(workspace); len(got) > 0 {
			t.Errorf("%.40q grants %q", said, got)
		}
	}
	write(filepath.Join(victim, "worktrees", "x", "gitdir"), filepath.Join(workspace, ".git")+"\n")
	write(filepath.Join(workspace, ".git"), fmt.Sprintf("gitdir: %s\n", filepath.Join(victim, "worktrees", "x")))
	if got := sessions.GitFolders(workspace); len(got) != 3 { // its own folder, objects, logs
		t.Errorf("a known checkout grants %q", got)
	}
}

// TestProgramPlaces checks the folders that programs use, by their commands and the environment.
func TestProgramPlaces(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "CODEX_HOME=" + home + "/c", "XDG_CACHE_HOME=" + home + "/k"}
	for _, c := range []struct {
		driver  string
		command []string
		want    string
	}{
		{"exec", []string{"claude"}, ""},
		{"acp", []string{"own-agent"}, ""},
		{"claude", []string{"/opt/claude"}, ".claude .claude.json .cache/claude-cli-nodejs"},
		{"claude", []string{"sh"}, ".claude .claude.json .cache/claude-cli-nodejs"},
		{"codex", []string{"codex"}, "c .codex"},
		{"acp", []string{"npx", "-y", "opencode-ai@1.18", "acp"}, ".config/opencode .local/share/opencode .local/state/opencode k/opencode"},
		{"acp", []string{"qwen", "--acp"}, ".qwen"},
	} {
		got := sessions.ProgramPlaces(c.driver, c.command, env)
		want := strings.Fields(c.want)
		found := 0
		for _, p := range got {
			for _, w := range want {
				if p == filepath.Join(home, w) {
					found++
				}
			}
		}
		if len(got) != len(want) || found != len(want) {
			t.Errorf("%s %q may write %q, want %q", c.driver, c.command, got, want)
		}
	}
}

// TestLinksOfTheAgentGrantNothing checks that a granted path inside a folder that the agent may
// write is not resolved, so that a link that the agent created for its next session has no effect.
// Links elsewhere belong to a person.
func TestLinksOfTheAgentGrantNothing(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(rest string) string { return filepath.Join(dir, rest) }
	for _, p := range []string{"w/src", "w/home", "victim/qwen", "dotfiles/qwen", "person", "data"} {
		if err := os.MkdirAll(at(p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"w/home/.qwen": "victim/qwen", "w/out": "victim", "data/out": "victim", // the agent's
		"person/.qwen": "dotfiles/qwen", "seat": "w", // a person's
	} {
		if err := os.Symlink(at(to), at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, home string
		canWrite   []string
		write      []string
		want       string
	}{
		{"home in the workspace", "w/home", nil, nil, "w"},
		{"home in the workspace, by a person's link", "seat/home", nil, nil, "w"},
		{"a home that keeps its settings elsewhere", "person", nil, nil, "w dotfiles/qwen"},
		{"a place in the workspace", "person", nil, []string{"w/out"}, "w dotfiles/qwen"},
		{"a place below another, in any order", "person", nil, []string{"data/out", "data"}, "w dotfiles/qwen data"},
		{"a workspace of which a part is granted", "w/home", []string{"src/"}, []string{"w/out"}, "w/src w/home/.qwen w/out"},
	} {
		box := seam.Confinement{Driver: "acp", Command: []string{"qwen"}, CanWrite: c.canWrite}
		for _, p := range c.write {
			box.Write = append(box.Write, at(p))
		}
		got, err := sessions.PlacesOf(box, driver.Launch{Dir: at("w"), Env: []string{"HOME=" + at(c.home)}}, dir)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		want := strings.Fields(c.want)
		for i := range want {
			want[i] = at(want[i]) // a link of the agent; the sandbox refuses it
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q is granted, want %q", c.name, got, want)
		}
	}
}

// FuzzCheckout checks that an agent's .git file grants only what the repository knows as this
// checkout.
func FuzzCheckout(f *testing.F) {
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	workspace, other := filepath.Join(dir, "w"), filepath.Join(dir, "main", "worktrees", "other")
	for _, p := range []string{workspace, other, filepath.Join(dir, "main", "objects")} {
		if err := os.MkdirAll(p, 0o755); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(other, "gitdir"), []byte(filepath.Join(dir, "elsewhere", ".git")), 0o644); err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"gitdir: ../main/worktrees/other", "gitdir: " + other + "\n", "gitdir: \x00", "gitdir:", "x", "", "gitdir: ~", "gitdir: .", "gitdir: worktrees/.."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(workspace, ".git"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := sessions.GitFolders(workspace); len(got) > 0 {
			t.Errorf("%q grants %q", text, got)
		}
	})
}
