package confine

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// started is a command of MAIN in a process of its own, with a temporary folder of the test.
func started(t *testing.T, c Command, three *os.File) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	c.Not, c.Programs = "/not", append(c.Programs, "cat", "ls", "sleep", "bash", "sh")
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{Verb}, c.Args()...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if three != nil {
		cmd.ExtraFiles = []*os.File{three}
	}
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	return cmd, &said
}

func TestArgs(t *testing.T) {
	for _, c := range []Command{
		{Programs: []string{"ls", "git"}, Not: "/repo", Text: "ls -- x"},
		{Programs: []string{"ls"}, Network: true, Stays: true, Not: "/", Text: "--"},
	} {
		got, err := parse(c.Args())
		if err != nil || !slices.Equal(got.Args(), c.Args()) || got.Text != c.Text {
			t.Errorf("%+v is read as %+v, %v", c, got, err)
		}
	}
	for _, args := range [][]string{{}, {"ls"}, {"--", "ls", "x"}, {"--programs"}, {"--not", "--"}, {"--program", "ls", "--", "ls"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q is understood", args)
		}
	}
}

// The folder in which a command ends is handed back through a pipe, also if the command leaves a process behind; the
// command itself has no such descriptor. Nothing else than a pipe is passed on.
func TestFolderIsHandedBack(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd, said := started(t,
		Command{Text: "cd /usr; sleep 1000 >/dev/null 2>&1 & until read -r name </proc/$!/comm && [ $name = sleep ]; do :; done; ls /proc/$!/fd /proc/self/fd"}, w)
	err = cmd.Run()
	w.Close()
	var back bytes.Buffer
	if _, err2 := back.ReadFrom(r); err != nil || err2 != nil || back.String() != "/usr\n" {
		t.Errorf("%v, %v: handed back %q; it said %s", err, err2, &back, said)
	}
	if list := strings.Fields(said.String()); slices.Contains(list[:max(0, slices.Index(list, "/proc/self/fd:"))], "3") {
		t.Errorf("the process that is left behind has descriptor 3: %s", said)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	cmd, said = started(t, Command{Text: "cd /usr"}, file)
	if err := cmd.Run(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	if info, err := file.Stat(); err != nil || info.Size() > 0 {
		t.Errorf("a file was written to: %v, %v", info, err)
	}
}

// A command may write to a temporary folder of its own. The folder is removed when the command has ended, and not before.
func TestTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd, said := started(t, Command{Text: "echo kept > \"$TMPDIR/x\"; cat \"$TMPDIR/x\"; echo other > \"$TMPDIR/../y\""}, nil)
	if err := cmd.Run(); err == nil || !strings.HasPrefix(said.String(), "kept\n") {
		t.Fatalf("%v: %s", err, said)
	}
	parent, err := tempParent()
	if err != nil {
		t.Fatal(err)
	}
	mine, err := makeTemp() // of a process that runs
	if err != nil {
		t.Fatal(err)
	}
	Sweep()
	left, err := os.ReadDir(parent)
	if err != nil || len(left) != 1 || left[0].Name() != filepath.Base(mine) {
		t.Errorf("left are %v, %v; should be %s", left, err, mine)
	}
	if err := os.Chmod(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd, said = started(t, Command{Text: "echo ran", Agent: true}, nil)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != sandbox.CannotSandbox || !strings.Contains(said.String(), "nothing was run") {
		t.Errorf("with a folder that others may write: %v, %s", err, said)
	}
}

// The shell explains a failure, and becomes the last program of a command that stays: no process of the command is above it.
func TestShell(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd, said := started(t, Command{Text: "touch x"}, nil)
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), "delegate to an agent") {
		t.Errorf("%v: %s", err, said)
	}
	cmd, said = started(t, Command{Text: "cat /proc/self/status", Stays: true}, nil)
	if err := cmd.Run(); err != nil || sandbox.Abilities().By == sandbox.ByNamespaces && !strings.Contains(said.String(), "PPid:\t1\n") {
		t.Errorf("%v: %s", err, said)
	}
}

// The settings that are pinned for git hinder none of its reading commands, and keep it from every program that a
// repository, or the environment, names.
func TestGitReads(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	repo, flag := t.TempDir(), filepath.Join(t.TempDir(), "flag")
	t.Chdir(repo)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git",
			append([]string{"-c", "user.name=x", "-c", "user.email=x@example.invalid"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := func(text string) (string, error) {
		cmd, said := started(t, Command{Text: text, Programs: []string{"git"}, Stays: true}, nil)
		err := cmd.Run()
		return said.String(), err
	}
	git("init", "-q")
	write("a", "a\n")
	git("add", "a")
	git("commit", "-qm", "first")
	write("a", "a\nb\n")
	for command, want := range map[string]string{
		"git diff": "+b\n", "git diff HEAD -- a": "+b\n", "git diff --stat": "1 insertion", "git diff --cached": "",
		"git diff-files -p":      "+b\n",
		"git diff-index -p HEAD": "+b\n", "git diff --no-ext-diff": "+b\n", "git show HEAD": "+a\n", "git log -p -1": "+a\n",
		"git log --oneline": "first",
		"git status":        "modified:", "git status -s": " M a", "git blame a": "Not Committed Yet", "git grep -n b": "a:2:b",
		"git branch -a": "*", "git stash list": "",
		"git reflog": "first", "git ls-files": "a\n", "git rev-parse HEAD": "\n", "git shortlog -sn HEAD": "x", "git config user.name": "",
	} {
		if out, err := run(command); err != nil && command != "git config user.name" || !strings.Contains(out, want) {
			t.Errorf("%s: %v: %q, want %q", command, err, out, want)
		}
	}
	t.Setenv("GIT_EXTERNAL_DIFF", filepath.Join(repo, "evil"))
	if out, err := run("git diff"); err != nil || !strings.Contains(out, "+b\n") {
		t.Errorf("with GIT_EXTERNAL_DIFF: %v: %s", err, out)
	}
	write("evil", "#!/bin/sh\n: >> '"+flag+"'\ncat\n")
	evil := filepath.Join(repo, "evil")
	write(".gitattributes", "a diff=evil\n")
	for _, setting := range []string{
		"diff.external", "diff.evil.command", "diff.evil.textconv", "core.fsmonitor", "core.pager",
		"pager.diff",
	} {
		git("config", setting, evil)
		for _, command := range []string{
			"git diff", "git status", "git --paginate diff", "git log -p -1",
			"git diff --ext-diff --textconv",
		} {
			out, _ := run(command) // it may fail, because git cannot start the program
			if _, err := os.Lstat(flag); err == nil {
				t.Fatalf("%s with %s ran the program: %s", command, setting, out)
			}
		}
		if out, err := run("git diff --no-ext-diff --no-textconv"); err != nil || !strings.Contains(out, "+b\n") {
			t.Errorf("%s: %v: %s", setting, err, out)
		}
		git("config", "--unset", setting)
	}
}

// An agent's command writes in the project, and neither in what decides about later sessions nor outside, whatever program does it.
func TestAgentsCommand(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	home, project := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Chdir(project)
	for _, dir := range []string{
		filepath.Join(project, ".claude"), filepath.Join(project, ".git"),
		filepath.Join(home, ".local", "state", "fairlead"),
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	settings := filepath.Join(project, ".claude", "settings.json")
	if err := os.WriteFile(settings, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"echo x > made && cat made":                           0,
		"mkdir -p sub && cd sub && echo x > made":             0,
		"for f in .claude/*.json; do echo y > $f; done":       2,
		"pushd .claude; echo y > settings.json":               1,
		"mv .claude other":                                    1,
		"find . -name settings.json -exec cp made {} ';'":     0, // it says so, and goes on
		"python3 -c 'open(\".claude/settings.json\", \"w\")'": 1,
		"echo y > .git/config":                                2,
		"rm -rf " + home + "/.local; ls " + home + "/.local":  2,
		"echo y > " + home + "/new; test -e " + home + "/new": 0, // the command's own home
		"kill -9 $$": 137,
		"exit 7":     7,
		"kill -0 " + strconv.Itoa(os.Getpid()) + " 2>/dev/null": 1,
	} {
		c := Command{Agent: true, Not: project, Text: text, Stays: true}
		cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{Verb}, c.Args()...)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != want && (want != 2 || got != 1) {
			t.Errorf("%s: %d, want %d: %s", text, got, want, out)
		}
	}
	if now, err := os.ReadFile(settings); err != nil || string(now) != "{}\n" {
		t.Errorf("the settings are %q (%v)", now, err)
	}
	for p, there := range map[string]bool{
		filepath.Join(project, "made"): true, filepath.Join(project, "sub", "made"): true, filepath.Join(project, ".git", "config"): false,
		filepath.Join(home, "new"): false, filepath.Join(home, ".local", "state", "fairlead"): true,
	} {
		if _, err := os.Lstat(p); (err == nil) != there {
			t.Errorf("%s is there: %v, want %v", p, err == nil, there)
		}
	}
}

// What an agent's command leaves in the background goes on, in the same view.
func TestAgentsBackground(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	project := t.TempDir()
	t.Chdir(project)
	if _, err := os.Lstat(filepath.Join(project, ".claude")); err == nil {
		t.Fatal("it is there already")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := Command{
		Agent: true, Not: project,
		Text: "sh -c 'until [ -e go ]; do :; done; mkdir .claude; echo y > .claude/settings.json; echo done > went' </dev/null >/dev/null 2>&1 & cd /usr",
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{Verb}, c.Args()...)...)
	cmd.ExtraFiles = []*os.File{w}
	out, err := cmd.CombinedOutput()
	w.Close()
	if folder, err2 := io.ReadAll(r); err != nil || err2 != nil || string(folder) != "/usr\n" {
		t.Errorf("%q, %v, %v: %s", folder, err, err2, out)
	}
	if err := os.WriteFile(filepath.Join(project, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the process in the background ends", func() bool {
		_, err := os.Stat(filepath.Join(project, "went"))
		return err == nil
	})
	if _, err := os.Lstat(filepath.Join(project, ".claude", "settings.json")); err == nil {
		t.Error("it wrote settings")
	}
	wait.Until(t, "what was made for the view is removed", func() bool {
		Sweep()
		_, err := os.Lstat(filepath.Join(project, ".claude"))
		return err != nil
	})
}

// TestAgentsFolders: a folder of the person to which an agent's command has gone is not written by the next one, and a cache is that of
// one project. The twins are the project's own.
func TestAgentsFolders(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	home, project, other := t.TempDir(), t.TempDir(), t.TempDir()
	bin := filepath.Join(home, ".local", "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("GOCACHE", filepath.Join(home, ".cache", "go-build"))
	for _, c := range []struct {
		project, dir, text, want string
	}{
		{project, bin, "echo x > tool || echo refused", "refused"},
		{project, project, "echo x > tool && cat tool", "x"},
		{project, project, "mkdir -p $GOCACHE && echo mine > $GOCACHE/entry && cat $GOCACHE/entry", "mine"},
		{project, project, "cat $GOCACHE/entry", "mine"},
		{other, other, "cat $GOCACHE/entry || echo empty", "empty"},
	} {
		t.Chdir(c.dir)
		code, out := Command{Agent: true, Not: c.project, Text: c.text, Stays: true}.code(t, Verb)
		if code != 0 || !strings.HasSuffix(strings.TrimSpace(out), c.want) {
			t.Errorf("%s in %s: %d %s, want %s", c.text, c.dir, code, out, c.want)
		}
	}
	if _, err := os.Lstat(filepath.Join(bin, "tool")); err == nil {
		t.Error("the person's folder was written")
	}
}
