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
		MCP: []string{"http", "stdio"}, Enforced: enforced(a.Mode),
	}
	command := append([]string{path}, a.Command[1:]...)
	stage := adapter.NewStage(speech.NewWriter(io.Discard), a.Workspace, env)
	if err := stage.ProbeProgram(ctx, &found, command, []string{"exec", "resume", "--help"}, []string{"--json", "--config", "--skip-git-repo-check", "--model"}); err != nil {
		return found, err
	}
	if modes[modeOf(a.Mode)] == "" {
		found.Warnings = append(found.Warnings, fmt.Sprintf("it has no mode %q; it has %s", a.Mode, strings.Join(modeWords(), ", ")))
	}
	if modeOf(a.Mode) != "danger-full-access" {
		if says, err := stage.Printed(ctx, append(slices.Clip(command), sandboxed...)); err != nil || !strings.Contains(says, "it-holds") {
			found.Warnings = append(found.Warnings, "its sandbox does not work here, so every command of the agent will fail; allow user namespaces (bubblewrap), or run it in a container with `mode: danger-full-access`")
		}
	}
	return found, nil
}
