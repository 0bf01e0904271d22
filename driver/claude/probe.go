package claude

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

// ours are the flags that Fairlead sets, with the corresponding settings of fairlead.yaml.
// Restrictions of an agent must be configured in one place, so that they can be shown.
var ours = []struct{ flag, instead string }{
	{"-p", ""},
	{"--print", ""},
	{"--input-format", ""},
	{"--output-format", ""},
	{"--permission-mode", "`mode: WORD`"},
	{"--approval-mode", "`mode: WORD`"},
	{"--permission-prompt-tool", ""},
	{"--dangerously-skip-permissions", "`mode: bypassPermissions`"},
	{"--yolo", "`mode: yolo`"},
	{"-y", "`mode: yolo`"},
	{"--resume", "`resume: always`"},
	{"--continue", "`resume: always`"},
	{"--session-id", ""},
	{"--fork-session", ""},
	{"--acp", "`driver: acp`"},
}

// checkFlags finds a flag in an agent's command that Fairlead sets itself.
func checkFlags(a driver.Agent) error {
	for _, word := range a.Command[1:] {
		for _, o := range ours {
			if word != o.flag && !strings.HasPrefix(word, o.flag+"=") {
				continue
			}
			if o.instead == "" {
				return fmt.Errorf("agent %s: Fairlead sets the flag %s itself; remove it from `command`", a.Name, o.flag)
			}
			return fmt.Errorf("agent %s: use %s instead, and remove the flag %s from `command`", a.Name, o.instead, o.flag)
		}
	}
	return nil
}

// Probe determines a program's version and whether it knows the flags that Fairlead uses.
func (d Driver) Probe(ctx context.Context, a driver.Agent) (driver.Probed, error) {
	a = withCommand(a)
	env := driver.Environment(a, driver.Session{}, d.Needs(a)...)
	path, err := driver.FindProgram(a, env)
	if err != nil {
		return driver.Probed{}, err
	}
	row := known(a.Command)
	mode := a.Mode
	if mode == "" {
		mode = row.asks
	}
	found := driver.Probed{
		Program: row.name, Path: path, Speaks: "stream-json", Resumes: true,
		MCP: []string{"stdio"}, Enforced: row.enforced(mode),
	}
	if row.fills {
		found.MCP = append(found.MCP, "http")
	}
	command := append([]string{path}, a.Command[1:]...)
	stage := adapter.NewStage(speech.NewWriter(io.Discard), a.Workspace, append(env, row.env...))
	version, err := stage.Printed(ctx, append(slices.Clip(command), "--version"))
	if err != nil {
		return found, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	if number := adapter.VersionIn(version); number != "" {
		found.Program += " " + number
	} else {
		found.Warnings = append(found.Warnings, "it does not print its version; is this the right program?")
	}
	help, err := stage.Printed(ctx, append(slices.Clip(command), "--help"))
	if err != nil {
		return found, fmt.Errorf("ask %s for its flags: %w", path, err)
	}
	for _, flag := range []string{"--input-format", "--output-format", row.mode, "--resume", "--mcp-config"} {
		if !strings.Contains(help, flag) {
			found.Warnings = append(found.Warnings, fmt.Sprintf("it does not know the flag %s; use another version", flag))
		}
	}
	if row.modes[mode] == "" {
		found.Warnings = append(found.Warnings, fmt.Sprintf("Fairlead does not know the mode %q; it knows %s", mode, strings.Join(slices.Sorted(maps.Keys(row.modes)), ", ")))
	}
	return found, nil
}
