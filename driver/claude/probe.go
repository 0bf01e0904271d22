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

// own are the flags that Fairlead sets.
var own = map[string]string{
	"-p":                             "",
	"--print":                        "",
	"--input-format":                 "",
	"--output-format":                "",
	"--permission-mode":              "`mode: WORD`",
	"--approval-mode":                "`mode: WORD`",
	"--permission-prompt-tool":       "",
	"--dangerously-skip-permissions": "`mode: bypassPermissions`",
	"--yolo":                         "`mode: yolo`",
	"-y":                             "`mode: yolo`",
	"--resume":                       "`resume: always`",
	"--continue":                     "`resume: always`",
	"--session-id":                   "",
	"--fork-session":                 "",
	"--acp":                          "`driver: acp`",
}

// Probe determines a program's version and whether it knows the flags that Fairlead uses.
func (d Driver) Probe(ctx context.Context, a driver.Agent) (driver.Probed, error) {
	a = adapter.WithCommand(a, "claude")
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
	if err := stage.ProbeProgram(ctx, &found, command, []string{"--help"}, []string{"--input-format", "--output-format", row.mode, "--resume", "--mcp-config"}); err != nil {
		return found, err
	}
	if row.modes[mode] == "" {
		found.Warnings = append(found.Warnings, fmt.Sprintf("Fairlead does not know the mode %q; it knows %s", mode, strings.Join(slices.Sorted(maps.Keys(row.modes)), ", ")))
	}
	return found, nil
}
