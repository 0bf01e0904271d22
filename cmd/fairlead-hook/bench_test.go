package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// programs are built once: this one, fairlead, and one that does nothing.
func programs(tb testing.TB) (dir string) {
	tb.Helper()
	dir = tb.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "empty.go"), []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	for name, what := range map[string]string{"fairlead": "../fairlead", "fairlead-hook": ".", "empty": filepath.Join(dir, "empty.go")} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), what)
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as the README installs them
		if out, err := build.CombinedOutput(); err != nil {
			tb.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	return dir
}

// timed runs a hook to its end.
func timed(tb testing.TB, input string, words ...string) (took time.Duration, out string) {
	tb.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	var said bytes.Buffer
	var failed bytes.Buffer
	cmd.Dir = os.Getenv("CLAUDE_PROJECT_DIR") // an agent's command sees no other folder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &said, &failed
	began := time.Now()
	if err := cmd.Run(); err != nil {
		tb.Fatalf("%v: %v\n%s", words, err, failed.String())
	}
	return time.Since(began), said.String()
}

func event(session, name, more string) string {
	return fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":%q%s}`, session, os.Getenv("CLAUDE_PROJECT_DIR"), name, more)
}

// begin has a session with an open conversation in a repository of its own.
func begin(tb testing.TB, hook string) {
	tb.Helper()
	home := tb.TempDir()
	tb.Setenv("HOME", home)
	tb.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	tb.Setenv("CLAUDE_PROJECT_DIR", filepath.Join(home, "repo"))
	agents := filepath.Join(home, "repo/.claude/agents")
	if err := os.MkdirAll(agents, 0o755); err != nil {
		tb.Fatal(err)
	}
	for i := range 20 {
		text := fmt.Sprintf("---\nname: agent-%d\ndescription: Use for work of kind %d, programs and databases\n---\n", i, i)
		if err := os.WriteFile(filepath.Join(agents, fmt.Sprintf("agent-%d.md", i)), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	for _, prompt := range []string{"/agent-state-machine", "Look around"} {
		if _, out := timed(tb, event("s1", "UserPromptSubmit", fmt.Sprintf(`,"prompt":%q`, prompt)), hook, "UserPromptSubmit"); out == "" {
			tb.Fatalf("%s: no answer", prompt)
		}
	}
}

// BenchmarkHook measures whole processes beside a Go program that does nothing, in turn: a hook
// outside of any session, one whose call is allowed, one whose call is denied and recorded, and
// interpreters that do nothing where there are any.
func BenchmarkHook(b *testing.B) {
	dir := programs(b)
	hook, fairlead := filepath.Join(dir, "fairlead-hook"), filepath.Join(dir, "fairlead")
	begin(b, hook)
	bash := func(command string) string {
		return fmt.Sprintf(`,"tool_name":"Bash","tool_input":{"command":%q},"tool_use_id":"t1"`, command)
	}
	type run struct {
		name, input string
		words       []string
		took        []time.Duration
		every       int // the slow ones are not started each time
	}
	runs := []*run{
		{name: "empty", words: []string{filepath.Join(dir, "empty")}},
		{name: "outside", words: []string{hook, "PreToolUse"}, input: event("s2", "PreToolUse", bash("ls"))},
		{name: "allowed", words: []string{hook, "PreToolUse"}, input: event("s1", "PreToolUse", bash("git log --oneline | head -5"))},
		{name: "denied", words: []string{hook, "PreToolUse"}, input: event("s1", "PreToolUse", bash("make"))},
		{name: "shell", words: []string{"/bin/bash", "-c", "ls"}},
		{
			name:  "confined",
			words: []string{hook, "exec", "--programs", "ls,sh,gzip,xz", "--stays", "--not", os.Getenv("CLAUDE_PROJECT_DIR"), "--", "ls"},
		},
		{
			name:  "confined-folder",
			words: []string{hook, "exec", "--programs", "ls,sh,gzip,xz", "--not", os.Getenv("CLAUDE_PROJECT_DIR"), "--", "ls"},
		},
		{
			name:  "agent",
			words: []string{hook, "exec", "--programs", "sh", "--agent", "--stays", "--not", os.Getenv("CLAUDE_PROJECT_DIR"), "--", "ls"},
		},
		{name: "fairlead-outside", words: []string{fairlead, "hook", "PreToolUse"}, input: event("s2", "PreToolUse", bash("ls"))},
		{name: "fairlead-allowed", words: []string{fairlead, "hook", "PreToolUse"}, input: event("s1", "PreToolUse", bash("ls"))},
	}
	for name, words := range map[string][]string{"python3": {"/usr/bin/python3", "-c", ""}, "node": {"node", "-e", ""}} {
		if path, err := exec.LookPath(words[0]); err == nil {
			runs = append(runs, &run{name: name, words: append([]string{path}, words[1:]...), every: 5})
		}
	}
	for n := 0; b.Loop(); n++ {
		for _, r := range runs {
			if r.every > 0 && n%r.every != 0 {
				continue
			}
			took, out := timed(b, r.input, r.words...)
			if denied := strings.Contains(out, "deny"); denied != (r.name == "denied") {
				b.Fatalf("%s: %q", r.name, out)
			}
			r.took = append(r.took, took)
		}
	}
	middle := func(r *run) float64 {
		slices.SortFunc(r.took, func(a, b time.Duration) int { return cmp.Compare(a, b) })
		return r.took[len(r.took)/2].Seconds() * 1000
	}
	for _, r := range runs {
		b.ReportMetric(middle(r), "ms/"+r.name)
		b.ReportMetric(middle(r)/middle(runs[0]), "empty-programs/"+r.name)
	}
	b.ReportMetric(0, "ns/op") // of all of them together: says nothing
}
