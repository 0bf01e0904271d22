package codex

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

// sandboxed is what is run in codex's own sandbox to see whether that can be made here: it needs what a
// kernel gives to some and not to others, and without it every command of the agent fails.
var sandboxed = []string{"sandbox", "--", "/bin/sh", "-c", "echo it-holds"}

// Probe looks at a program: its version, whether it knows the words that we give, and whether its sandbox
// can be made on this machine.
func (Driver) Probe(ctx context.Context, a driver.Agent) (driver.Probed, error) {
	a = withCommand(a)
	env := driver.Environment(a, driver.Session{})
	path, err := driver.FindProgram(a, env)
	if err != nil {
		return driver.Probed{}, err
	}
	found := driver.Probed{
		Program: "codex", Path: path, Speaks: "exec --json", Resumes: true,
		MCP: []string{"http", "stdio"}, Enforced: enforced(a.Mode),
	}
	command := append([]string{path}, a.Command[1:]...)
	stage := adapter.NewStage(speech.NewWriter(io.Discard), a.Workspace, env)
	says, err := stage.Printed(ctx, append(slices.Clip(command), "--version"))
	if err != nil {
		return found, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	if number := adapter.VersionIn(says); number != "" {
		found.Program += " " + number
	} else {
		found.Warnings = append(found.Warnings, "it does not say its version; is this the program that is meant?")
	}
	help, err := stage.Printed(ctx, append(slices.Clip(command), "exec", "resume", "--help"))
	if err != nil {
		return found, fmt.Errorf("ask %s what it knows of `exec resume`: %w", path, err)
	}
	for _, flag := range []string{"--json", "--config", "--skip-git-repo-check", "--model"} {
		if !strings.Contains(help, flag) {
			found.Warnings = append(found.Warnings, fmt.Sprintf("`exec resume` does not know the flag %s; another version is needed", flag))
		}
	}
	if modes[modeOf(a.Mode)] == "" {
		found.Warnings = append(found.Warnings, fmt.Sprintf("it has no mode %q; it has %s", a.Mode, strings.Join(modeWords(), ", ")))
	}
	if modeOf(a.Mode) != "danger-full-access" {
		if says, err := stage.Printed(ctx, append(slices.Clip(command), sandboxed...)); err != nil || !strings.Contains(says, "it-holds") {
			found.Warnings = append(found.Warnings, "its sandbox cannot be made here, so every command of the agent will fail; allow user namespaces (bubblewrap), or run it in a container with `mode: danger-full-access`")
		}
	}
	return found, nil
}
