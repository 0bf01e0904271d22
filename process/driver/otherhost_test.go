package driver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/acp"
	"github.com/fairlead-dev/fairlead/process/driver/claude"
	"github.com/fairlead-dev/fairlead/process/driver/codex"
	"github.com/fairlead-dev/fairlead/process/driver/exec"
	"github.com/fairlead-dev/fairlead/process/driver/script"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// TestOtherHost prepares a session of each driver for another host. No value of this machine's environment may be in
// the launch, and what the host makes of it must be the launch that it would prepare itself.
func TestOtherHost(t *testing.T) {
	const canary = "a value of the leader"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"work": "#!/bin/sh\n", "claude": "#!/bin/sh\n", "codex": "#!/bin/sh\n", "qwen": "#!/bin/sh\n",
		"play.yaml": "steps: [{say: hello}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{
		"PATH", "HOME", "LANG", "LC_ALL", "XDG_CONFIG_HOME", "HTTPS_PROXY", "ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR",
		"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
		"AWS_SECRET_ACCESS_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY", "CODEX_HOME", "TEAM_KEY", "OTHER_SECRET", "FAIRLEAD_TOKEN",
	}
	mcp := driver.MCP{Token: "t", Stdio: []string{"/bin/fairlead", "mcp"}}
	for name, c := range map[string]struct {
		d       driver.Driver
		command []string
		env     []string // of the agent
		flag    string   // the host has this value of CLAUDE_CODE_USE_BEDROCK
	}{
		"exec":                     {exec.Driver{}, []string{"work", "x"}, nil, ""},
		"exec by its path":         {exec.Driver{}, []string{"./work"}, nil, ""},
		"script":                   {script.Driver{}, nil, nil, ""},
		"acp":                      {acp.Driver{}, []string{"qwen", "--acp"}, nil, ""},
		"claude":                   {claude.Driver{}, nil, nil, "0"},
		"claude on Bedrock":        {claude.Driver{}, nil, nil, "1"},
		"claude on Bedrock by env": {claude.Driver{}, nil, []string{"CLAUDE_CODE_USE_BEDROCK=1"}, "0"},
		"claude by another name":   {claude.Driver{}, []string{"qwen"}, nil, "1"},
		"codex":                    {codex.Driver{}, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range names {
				t.Setenv(name, "the host's "+name)
			}
			t.Setenv("PATH", dir)
			t.Setenv("CLAUDE_CODE_USE_BEDROCK", c.flag)
			t.Setenv("CLAUDE_CODE_USE_VERTEX", "0")
			agent := driver.Agent{
				Name: "coder", Command: c.command, Script: filepath.Join(dir, "play.yaml"), Workspace: dir, Model: "m",
				MCP: mcp, Env: append([]string{"LANG=C", "KEY=<the host's TEAM_KEY>"}, c.env...),
			}
			session := driver.Session{ID: "coder-1", Kind: driver.Work, Prompt: "do it", PromptIsTask: true}
			want, err := c.d.Launch(agent, session)
			if err != nil {
				t.Fatal(err)
			}
			host := os.Environ()

			for _, name := range names {
				t.Setenv(name, canary)
			}
			agent.OtherHost, agent.Env[1] = "b", "KEY=<"+driver.Variable("TEAM_KEY")+">"
			if err := c.d.Check(agent); err != nil {
				t.Errorf("checked with this machine's programs: %v", err)
			}
			launch, err := c.d.Launch(agent, session)
			if err != nil {
				t.Fatal(err)
			}
			if shown := fmt.Sprintf("%q %s %q %s", launch.Argv, launch.Dir, launch.Env, launch.Input); strings.Contains(shown, canary) {
				t.Errorf("a value of this machine is in %s", shown)
			}
			got, err := driver.Resolve(launch, host, "b")
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("on the host: %v\n%+v\nwant\n%+v", err, got, want)
			}
			aws := slices.ContainsFunc(got.Env, func(kv string) bool { return strings.HasPrefix(kv, "AWS_") })
			if aws != strings.Contains(name, "Bedrock") || strings.Contains(strings.Join(got.Env, " "), "OTHER_SECRET") {
				t.Errorf("its environment is %q", got.Env)
			}

			lacks := slices.DeleteFunc(slices.Clone(host),
				func(kv string) bool { return strings.HasPrefix(kv, "PATH=") || strings.HasPrefix(kv, "HOME=") })
			got, err = driver.Resolve(launch, lacks, "b")
			switch {
			case c.d.Name() == "script" || name == "exec by its path":
				if err != nil || strings.Contains(strings.Join(got.Env, "\n"), "\nHOME=") {
					t.Errorf("on a host without HOME: %q, %v", got.Env, err)
				}
			case err == nil || !strings.HasPrefix(err.Error(), "host b: agent coder: command ") ||
				!strings.Contains(err.Error(), "install it"):
				t.Errorf("on a host without the program: %v", err)
			}
			if _, err := driver.Resolve(launch, nil, "b"); err == nil ||
				err.Error() != "the environment of host b has no TEAM_KEY; set it where its daemon starts" {
				t.Errorf("on a host without the variable: %v", err)
			}
		})
	}
}

// TestNoForgedPlaceholder checks that a text of a person or an agent is not taken for a placeholder.
func TestNoForgedPlaceholder(t *testing.T) {
	forged := driver.Variable("TEAM_KEY")
	launch := spawn.Launch{Argv: []string{"/bin/true", forged}, Dir: forged, Input: []byte(forged)}
	got, err := driver.Resolve(launch, []string{"TEAM_KEY=secret"}, "b")
	if err != nil || strings.Contains(fmt.Sprint(got, string(got.Input)), "secret") {
		t.Errorf("%+v, %v", got, err)
	}
}
