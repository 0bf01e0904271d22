package codex

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// Driver drives codex. Its zero value is ready if main calls adapter.Intercept with it.
type Driver struct{ adapter.Behind }

var (
	_ driver.Driver    = Driver{}
	_ adapter.Protocol = Driver{}
)

// Name is the word that fairlead.yaml uses.
func (Driver) Name() string { return "codex" }

// own are the arguments that Fairlead sets.
var own = map[string]string{ //nolint:gosec // flags, no credentials
	"exec":        "",
	"e":           "",
	"--json":      "",
	"--sandbox":   "`mode: WORD`",
	"-s":          "`mode: WORD`",
	"--full-auto": "`mode: workspace-write`",
	"--dangerously-bypass-approvals-and-sandbox": "`mode: danger-full-access`",
	"--yolo":             "`mode: danger-full-access`",
	"--approve-for-me":   "`mode: workspace-write`",
	"--ask-for-approval": "",
	"-a":                 "",
	"--ephemeral":        "", // an ephemeral conversation could not be resumed
	"--cd":               "`workspace: FOLDER`",
	"-C":                 "`workspace: FOLDER`",
}

// Check returns an error for a command that cannot be started, an argument in it that Fairlead sets
// itself, an unknown mode, or an unusable workspace. It starts nothing.
func (d Driver) Check(a driver.Agent) error {
	a = adapter.WithCommand(a, "codex")
	if err := adapter.CheckArguments(a, own); err != nil {
		return err
	}
	if modes[modeOf(a.Mode)] == "" {
		return fmt.Errorf("agent %s: codex has no mode %q; it has %s", a.Name, a.Mode, strings.Join(modeWords(), ", "))
	}
	return adapter.Check(a, d.Needs(a)...)
}

func modeWords() []string { return slices.Sorted(maps.Keys(modes)) }

// Launch describes how the adapter of a session is started.
func (d Driver) Launch(a driver.Agent, s driver.Session) (spawn.Launch, error) {
	return adapter.Launch(d.Name(), adapter.WithCommand(a, "codex"), s, d.Needs(a)...)
}

// Capabilities differ from those of other adapters in one thing: codex runs with approvals off and
// never asks for permission.
func (d Driver) Capabilities(a driver.Agent, kind driver.Kind) driver.Capabilities {
	c := d.Behind.Capabilities(a, kind)
	c.Asks, c.Messages = false, true
	return c
}

// Converse reads one session and sends it prompts.
func (d Driver) Converse(a driver.Agent, s driver.Session, w driver.Wire) driver.Conversation {
	return conversation{d.Behind.Converse(a, s, w)}
}

type conversation struct{ driver.Conversation }

// Answer is refused: codex asks nothing.
func (conversation) Answer(context.Context, string, string) error { return driver.ErrNoAnswer }

// Needs returns the variables with which codex is configured.
func (Driver) Needs(driver.Agent) []string { return []string{"OPENAI_*", "CODEX_*"} }

// sandboxed is the command that tests codex's sandbox on this machine. The sandbox needs kernel
// features that not every system permits; without them, every command of the agent fails.
var sandboxed = []string{"sandbox", "--", "/bin/sh", "-c", "echo it-holds"}

// Probe determines a program's version, whether it knows the arguments that Fairlead uses, and
// whether its sandbox works on this machine.
func (d Driver) Probe(ctx context.Context, a driver.Agent) (driver.Probed, error) {
	a = adapter.WithCommand(a, "codex")
	env := driver.Environment(a, driver.Session{}, d.Needs(a)...)
	path, err := driver.FindProgram(a, env)
	if err != nil {
		return driver.Probed{}, err
	}
	found := driver.Probed{
		Program: "codex", Path: path, Speaks: "exec --json", Resumes: true,
		MCP: []string{"http", "stdio"}, Enforced: enforced(a.Mode, false),
	}
	command := append([]string{path}, a.Command[1:]...)
	stage := adapter.NewStage(speech.NewWriter(io.Discard), a.Workspace, env)
	if err := stage.ProbeProgram(ctx, &found, command, []string{"exec", "resume", "--help"},
		[]string{"--json", "--config", "--skip-git-repo-check", "--model"}); err != nil {
		return found, err
	}
	if modes[modeOf(a.Mode)] == "" {
		found.Warnings = append(found.Warnings, fmt.Sprintf("it has no mode %q; it has %s", a.Mode, strings.Join(modeWords(), ", ")))
	}
	if modeOf(a.Mode) != openMode {
		if says, err := stage.Printed(ctx, append(slices.Clip(command), sandboxed...)); err != nil || !strings.Contains(says, "it-holds") {
			found.Warnings = append(found.Warnings,
				"its sandbox does not work here, so every command of the agent will fail where `sandbox` is off; set `sandbox: workspace`, allow user namespaces (bubblewrap), or run it in a container with `mode: danger-full-access`")
		}
	}
	return found, nil
}
