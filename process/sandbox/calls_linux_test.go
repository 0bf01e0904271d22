package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// callsFile is package policy's table of tool calls and verdicts. Here every call is really made, allowed or
// denied, and only the sandbox protects.
const callsFile = "../../core/policy/testdata/calls.txt"

// toolCall is a line of the table.
type toolCall struct {
	Line int
	Tool string // Bash, or a tool that writes a file
	Dir  string // where it is made
	Arg  string // a command, or a path
}

// outcome is a call's result. Inside says where a file's path led at that moment, because earlier calls may
// have created or removed links.
type outcome struct {
	Err    string
	Inside bool
}

// exception is a kind of call that is not made, with the reason.
type exception struct {
	what *regexp.Regexp
	why  string
}

// leftOut are calls that would damage the machine if the sandbox failed, or prove nothing here.
var leftOut = []exception{
	{regexp.MustCompile(`\b(shutdown|reboot|halt|poweroff|kill|pkill|killall)\b`), "would end more than itself"},
	{regexp.MustCompile(`\b(curl|wget|ssh|scp|npm|cargo|docker|apt|pip)\b`), "speaks to the network or to a service"},
	{regexp.MustCompile(`\bgo (build|get|run|test)\b`), "may fetch modules"},
	{regexp.MustCompile(`\bat now\b`), "would have a service do it later"},
	{regexp.MustCompile(`\bdate (-s|--set|\d)|\bhostname \w`), "would change the machine's clock or name; TestBeyond tries the name"},
	{regexp.MustCompile(`\b(sudo|doas)\b`), "may ask a person for a password"},
	{regexp.MustCompile(`rm -rf (/|~|\$HOME)(\s|$)`), "what it would remove is not ours to bet on a test"},
	{regexp.MustCompile(`/dev/tcp/`), "speaks to the network"},
	{regexp.MustCompile(`/hard\.md`), "one file with a second name outside: the package's page says that this is not prevented"},
}

// endless calls never end and are killed after a moment.
var endless = regexp.MustCompile(`^tail .*(-f|--follow)|/dev/zero|cat zero|cat pipe|^yes|^watch |while true|^select |/dev/tty|^(less|vi|vim|ed) `)

const (
	callPatience = 5 * time.Second
	endlessAfter = 200 * time.Millisecond
)

// scene is a repository with a dispatch in it, and its surroundings.
type scene struct{ root, repo, home, outside, session, out string }

func newScene(t *testing.T) scene {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := scene{root: root, repo: filepath.Join(root, "repo"), home: filepath.Join(root, "home"), outside: filepath.Join(root, "outside")}
	s.session = filepath.Join(s.repo, ".claude/agent-state-machine/20261121_120000")
	s.out = filepath.Join(s.session, "conversations/conv_001/outputs")
	script := "#!/bin/sh\ntouch z ../z /tmp/fairlead-z\n"
	for name, text := range map[string]string{
		"repo/README.md": "read me\n", "repo/a b.txt": "spaced\n", "repo/docs/guide.md": "guide\n", "repo/app.py": "print(1)\n",
		"repo/app.js":      "1\n",
		"repo/src/main.py": "print(2)\n", "repo/src/main.go": "package main\n", "repo/data.csv": "a,b\n",
		"repo/data.json": "{\"a\":{\"b\":1}}\n",
		"repo/run":       script, "repo/run.sh": script, "repo/ls": script, "repo/run.log": "log\n",
		"repo/Makefile": "all:\n\ttouch made\n", "repo/a.c": "int main(){}\n",
		"repo/x": "x\n", "repo/.claude/settings.json": "{}\n", "repo/.claude/agents/backend.md": "backend\n",
		"repo/.fairlead/fairlead.yaml": "version: 1\n",
		"repo/hostile/.git/config":     "[core]\n\tfsmonitor = touch hit\n", "home/.claude/settings.json": "{}\n",
		"home/notes.md": "mine\n", "outside/kept": "kept\n",
	} {
		s.lay(t, filepath.Join(root, name), text)
	}
	for name, text := range map[string]string{
		"state.jsonl": "{}\n", "conversations/messages.jsonl": "",
		"conversations/conv_001/dialogue.md": "# Conversation\n", "conversations/conv_002/outputs/x": "",
	} {
		s.lay(t, filepath.Join(s.session, name), text)
	}
	for name, text := range map[string]string{
		"notes.md": "notes\n", "x": "x\n", "hello.py": "print(1)\n", "bit.md": "bit\n",
		"shebang.txt": "#!/bin/sh\n", "tool.sh": script, "book.ipynb": "{}\n",
	} {
		s.lay(t, filepath.Join(s.out, name), text)
	}
	for link, to := range map[string]string{
		"repo/gitlink": ".git", "repo/inner": ".claude", s.out + "/up": s.session, s.out + "/esc.md": s.session + "/state.jsonl",
		s.out + "/link.md":     s.repo + "/app.py",
		s.out + "/dangling.md": s.repo + "/new.py", s.out + "/loop": s.out + "/loop", s.out + "/repo": s.repo,
	} {
		if !filepath.IsAbs(link) {
			link = filepath.Join(root, link)
		}
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(s.repo, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("git"); err == nil {
		for _, words := range [][]string{
			{"init", "-q", "-b", "main"},
			{"add", "README.md", "docs", "src", "app.py"},
			{"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first"},
		} {
			cmd := exec.CommandContext(t.Context(), "git", words...)
			cmd.Dir, cmd.Env = s.repo, s.environ()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v: %s", words, err, out)
			}
		}
	}
	return s
}

func (s scene) lay(t *testing.T, p, text string) {
	t.Helper()
	mode := os.FileMode(0o600)
	if strings.HasPrefix(text, "#!") {
		mode = 0o700
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}

func (s scene) environ() []string {
	return []string{
		"PATH=/usr/bin:/bin", "HOME=" + s.home, "TMPDIR=" + s.out, "SHELL=/bin/sh", "LC_ALL=C", "GORACE=atexit_sleep_ms=0",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true",
	}
}

// around is everything that must not change: all but the outputs.
func (s scene) around(t *testing.T) map[string]string {
	t.Helper()
	seen := portrait(t, s.root)
	maps.DeleteFunc(seen, func(p, _ string) bool { return below(p, s.out) })
	for _, p := range []string{"/tmp/x", "/dev/shm/x", "/tmp/notes.md", "/tmp/test_script.py", "/tmp/fairlead-z"} {
		if _, err := os.Lstat(p); err == nil {
			seen[p] = "is there"
		}
	}
	return seen
}

// calls reads the table. A line whose argument is neither a command nor a path (a reading tool, a malformed
// input) is skipped.
func (s scene) calls(t *testing.T) (list []toolCall, without int) {
	t.Helper()
	b, err := os.ReadFile(callsFile)
	if err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("⏎", "\n", "{{repo}}", s.repo, "{{session}}", s.session, "{{out}}", s.out, "{{home}}", s.home,
		"{{outside}}", s.outside)
	dir, n := s.repo, 0
	for line := range strings.Lines(string(b)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if below, is := strings.CutPrefix(line, "@dir"); is {
			dir = filepath.Join(s.repo, strings.TrimSpace(below))
		}
		f := strings.SplitN(strings.TrimPrefix(line, "! "), " ", 5)
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "@") || len(f) < 5 {
			continue
		}
		c := toolCall{Line: n, Tool: f[3], Dir: dir, Arg: fill.Replace(f[4])}
		left := slices.ContainsFunc(leftOut, func(e exception) bool { return e.what.MatchString(c.Arg) })
		if c.understand(s) && !left {
			list = append(list, c)
		} else {
			without++
		}
	}
	return list, without
}

// understand returns the argument as a command or an absolute path, if it is one.
func (c *toolCall) understand(s scene) bool {
	if !slices.Contains([]string{"Bash", "Write", "Edit", "MultiEdit", "NotebookEdit"}, c.Tool) {
		return false
	}
	if strings.HasPrefix(c.Arg, "{\"") || strings.HasPrefix(c.Arg, "[\"") {
		var in struct{ Command, FilePath string }
		var raw map[string]any
		if json.Unmarshal([]byte(c.Arg), &raw) != nil {
			return false
		}
		in.Command, _ = raw["command"].(string)
		in.FilePath, _ = raw["file_path"].(string)
		c.Arg = in.Command + in.FilePath
	}
	if c.Arg == "" || strings.ContainsRune(c.Arg, 0) {
		return false
	}
	if c.Tool == "Bash" {
		return true
	}
	if rest, is := strings.CutPrefix(c.Arg, "~"); is {
		c.Arg = s.home + rest
	}
	if !filepath.IsAbs(c.Arg) {
		c.Arg = c.Dir + "/" + c.Arg
	}
	return true
}

// inside reports whether a path leads below a folder, through any links.
func inside(p, folder string) bool {
	p = filepath.Clean(p)
	for rest := ""; ; p, rest = filepath.Dir(p), filepath.Join(filepath.Base(p), rest) {
		if to, err := os.Readlink(p); err == nil && rest == "" { // the last component, which may be a dangling link
			return below(to, folder) && to != p
		}
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return below(filepath.Join(real, rest), folder) && filepath.Join(real, rest) != folder
		}
		if p == "/" || errors.Is(leads(p), unix.ELOOP) {
			return false
		}
	}
}

func leads(p string) error {
	_, err := os.Stat(p)
	return err
}

// TestCalls makes every call of the table in a sandbox; only its outputs may differ afterwards.
func TestCalls(t *testing.T) {
	need(t)
	s := newScene(t)
	list, without := s.calls(t)
	if len(list) < 300 {
		t.Fatalf("%d calls are left of the table, and %d left out: what is wrong with reading it?", len(list), without)
	}
	every := testsize.Pick(3, 1, 1)
	list = slices.DeleteFunc(list, func(c toolCall) bool { return c.Tool == "Bash" && c.Line%every != 0 })
	before := s.around(t)
	result := s.try(t, list)
	after := s.around(t)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what was outside has changed:\n%s%s", diff, blame(t, list))
	}
	worked, wrote, bash := 0, 0, 0
	for _, c := range list {
		r, tried := result[c.Line]
		well := tried && r.Err == ""
		if !tried {
			t.Errorf("calls.txt:%d: was not tried", c.Line)
		}
		if well {
			worked++
		}
		switch {
		case c.Tool == "Bash" && well && strings.Contains(c.Arg, s.out):
			bash++
		case c.Tool == "Bash":
		case well != r.Inside && (well || filepath.Clean(c.Arg) == c.Arg):
			t.Errorf("calls.txt:%d: %s %s: %q, and it leads into the outputs: %v", c.Line, c.Tool, c.Arg, r.Err, r.Inside)
		case well:
			wrote++
		}
	}
	if wrote < 20 || bash*every < 4 {
		t.Errorf("%d files were written and %d commands went well in the outputs: too few", wrote, bash)
	}
	t.Logf("%d calls tried, %d went well, %d of them wrote a file and %d had to do with the outputs; %d are left out", len(list), worked,
		wrote, bash, without)
}

// try makes all calls in one sandbox, in order, and returns the results.
func (s scene) try(t *testing.T, list []toolCall) map[int]outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	argv := boxed(os.Args[0], []string{os.Args[0]}, box{Write: []string{s.out}})
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.repo, append(s.environ(), actVar+"=calls", inVar+"="+s.out)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	result := map[int]outcome{}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return result
}

// blame finds the call that made a change, each in a scene of its own.
func blame(t *testing.T, list []toolCall) string {
	for i := range list {
		s := newScene(t)
		fresh, _ := s.calls(t)
		before := s.around(t)
		s.try(t, fresh[i:i+1])
		if !cmp.Equal(before, s.around(t)) {
			return fmt.Sprintf("it was calls.txt:%d: %s %s", list[i].Line, list[i].Tool, list[i].Arg)
		}
	}
	return "no single call does it"
}

// makeCalls is the sandboxed side.
func makeCalls() {
	var list []toolCall
	if err := json.NewDecoder(os.Stdin).Decode(&list); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Unsetenv(actVar)
	result, out := map[int]outcome{}, os.Getenv(inVar)
	for _, c := range list {
		r := outcome{Inside: c.Tool != "Bash" && inside(c.Arg, out)}
		if err := c.make(); err != nil {
			r.Err = err.Error()
		}
		result[c.Line] = r
	}
	_ = json.NewEncoder(os.Stdout).Encode(result)
}

func (c toolCall) make() error {
	switch c.Tool {
	case "Bash":
		return c.bash()
	case "Write":
		if err := os.MkdirAll(filepath.Dir(c.Arg), 0o700); err != nil {
			return err
		}
		return os.WriteFile(c.Arg, []byte("written\n"), 0o600)
	}
	f, err := os.OpenFile(c.Arg, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("edited\n")
	return errors.Join(err, f.Close())
}

func (c toolCall) bash() error {
	patience := callPatience
	if endless.MatchString(c.Arg) {
		patience = endlessAfter
	}
	cmd := exec.Command("/bin/bash", "-c", c.Arg)
	cmd.Dir = c.Dir
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = endlessAfter
	if err := cmd.Start(); err != nil {
		return err
	}
	// The whole group: its children hold our pipe open.
	end := time.AfterFunc(patience, func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) })
	defer end.Stop()
	err := cmd.Wait()
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	return err
}
