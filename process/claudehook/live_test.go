package claudehook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/livetest"
	"github.com/fairlead-dev/fairlead/internal/test/scriptmodel"
	"github.com/fairlead-dev/fairlead/process/claudehook"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// live is a repository in which the real Claude Code runs with our hooks, against a scripted model.
type live struct {
	t       *testing.T
	program livetest.Program
	repo    string
	talked  bool
}

const liveSession = "0b7c5a8e-5d1e-4f6e-9a51-7c2a7e0f1c12"

func newLive(t *testing.T) *live {
	t.Helper()
	t.Parallel()
	program := livetest.Claude(t, scriptmodel.Start(t))
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	repo, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &live{t: t, program: program, repo: repo}
	hook := filepath.Join(t.TempDir(), "fairlead-hook")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", hook, "../../cmd/fairlead-hook").CombinedOutput(); err != nil {
		t.Fatalf("build the hook: %v: %s", err, out)
	}
	text, err := claudehook.AddHooks(nil, claudehook.Program{Path: hook})
	if err != nil {
		t.Fatal(err)
	}
	l.write(".claude/settings.json", string(text))
	l.write(".claude/agents/coder.md", "---\nname: coder\ndescription: writes and runs programs\n---\nYou write code.\n")
	l.write("README.md", "read me\n")
	l.write("docs/guide.md", "a guide\n")
	return l
}

func (l *live) write(name, text string) {
	l.t.Helper()
	p := filepath.Join(l.repo, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o700); err != nil {
		l.t.Fatal(err)
	}
}

// say gives the program one input, and returns all that it printed.
func (l *live) say(prompt string) string {
	l.t.Helper()
	args := []string{"-p", "--output-format", "stream-json", "--verbose", "--session-id=" + liveSession, prompt}
	if l.talked {
		args[4] = "--resume=" + liveSession
	}
	l.talked = true
	cmd := exec.CommandContext(l.t.Context(), l.program.Command[0], args...)
	cmd.Dir, cmd.Env = l.repo, append(livetest.Bare(l.program.Home), l.program.Env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		l.t.Fatalf("%s: %v: %s", prompt, err, out.String())
	}
	return out.String()
}

// results returns what the tools answered to some commands, in order.
func (l *live) results(commands ...string) (all []string) {
	l.t.Helper()
	var list strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&list, "do: bash %s\n", c)
	}
	for line := range strings.Lines(l.say(list.String() + "do: say that was all")) {
		var m struct {
			Message struct {
				Content json.RawMessage `json:"content"`
			} `json:"message"`
		}
		var parts []struct {
			Type    string `json:"type"`
			Content string `json:"content"`
		}
		if json.Unmarshal([]byte(line), &m) != nil || json.Unmarshal(m.Message.Content, &parts) != nil {
			continue
		}
		for _, p := range parts {
			if p.Type == "tool_result" {
				all = append(all, p.Content)
			}
		}
	}
	if len(all) != len(commands) {
		l.t.Fatalf("%d results of %d commands: %q", len(all), len(commands), all)
	}
	return all
}

func (l *live) exists(name string) bool {
	_, err := os.Stat(filepath.Join(l.repo, name))
	return err == nil
}

// In the real Claude Code, MAIN's commands run in a view: they read, end where they went, and change
// nothing, whatever their arguments hide. An agent's command runs as it is (D8, D9).
func TestLiveCommandsOfMain(t *testing.T) {
	l := newLive(t)
	l.say("/" + claudehook.CommandName)
	commands := []string{
		"ls README.md | cat", "sed '1e touch hidden' README.md", "touch plain", "diff <(echo a) <(echo b) | head -1",
		"awk 'BEGIN{print \"x\" > \"made\"}'", "find . -name README.md -exec touch found +", "gh pr view 12", "cd docs && pwd", "pwd",
	}
	got := l.results(commands...)
	for i, want := range []string{
		"README.md", "denied", "D8", "1c1", "cannot open", "", "a view of the machine", l.repo + "/docs",
		l.repo + "/docs",
	} {
		if !strings.Contains(strings.ToLower(got[i]), strings.ToLower(want)) {
			t.Errorf("%s: %q, should contain %q", commands[i], got[i], want)
		}
	}
	for _, name := range []string{"hidden", "plain", "made", "found"} {
		if l.exists(name) || l.exists("docs/"+name) {
			t.Errorf("%s was written", name)
		}
	}
	if tried := l.program.Way.Tried(); len(tried) > 0 {
		t.Errorf("it tried to get out: %q", tried)
	}
}

// The user's own rules are applied to the original command. Beside another hook that may replace commands MAIN gives
// only plain ones, from the first on; one that replaces a command although fairlead.yaml says that it never does
// is noticed (D8).
func TestLiveBesidesOtherRulesAndHooks(t *testing.T) {
	l := newLive(t)
	l.say("/" + claudehook.CommandName)
	l.write(".claude/settings.local.json", `{"permissions":{"deny":["Bash(cat:*)"]}}`)
	if got := l.results("cat README.md"); !strings.Contains(got[0], "deny") {
		t.Errorf("a denied command: %q", got)
	}
	const trick = "sed '1e touch hidden' README.md"
	// It drops the sandbox, and is slower than ours, so its answer counts.
	l.write("other.sh",
		"#!/bin/sh\nsleep 1\nnode -e 'const i=JSON.parse(require(\"fs\").readFileSync(0)).tool_input; i.command=\"set -u; \"+i.command; console.log(JSON.stringify({hookSpecificOutput:{hookEventName:\"PreToolUse\",permissionDecision:\"allow\",updatedInput:i}}))'\n")
	l.write(".claude/settings.local.json",
		`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"`+l.repo+`/other.sh","timeout":10}]}]}}`)
	if got := l.results("ls README.md", trick); got[0] != "README.md" || !strings.Contains(got[1], "other.sh") || l.exists("hidden") {
		t.Errorf("beside another hook: %q; the command had an effect: %v", got, l.exists("hidden"))
	}
	l.write("fairlead.yaml", "version: 1\ndispatch: {hooks: ['"+l.repo+"/other.sh']}\n")
	l.results("ls")
	if marks, err := filepath.Glob(filepath.Join(l.repo, ".claude/agent-state-machine/*/.unconfined")); err != nil || len(marks) != 1 {
		t.Errorf("the replaced command was not noticed: %q %v", marks, err)
	}
	l.write(".claude/settings.local.json", `{}`)
	if got := l.results(trick); !strings.Contains(got[0], "another hook has replaced") || l.exists("hidden") {
		t.Errorf("afterwards more than plain commands are allowed: %q", got)
	}
}
