package claude

import (
	"cmp"
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

// Driver drives Claude Code and programs that speak the same protocol. Its zero value is ready if
// main calls adapter.Intercept with it.
type Driver struct{ adapter.Behind }

var (
	_ driver.Driver    = Driver{}
	_ adapter.Protocol = Driver{}
)

// Name is the word that fairlead.yaml uses.
func (Driver) Name() string { return "claude" }

// Check returns an error for a command that cannot be started, a flag in it that Fairlead sets
// itself, or an unusable workspace. It starts nothing.
func (d Driver) Check(a driver.Agent) error {
	a = adapter.WithCommand(a, "claude")
	if err := adapter.CheckArguments(a, own); err != nil {
		return err
	}
	return adapter.Check(a, d.Needs(a)...)
}

// Capabilities are those of a program behind an adapter. It reports each message as a whole. Claude Code shows a
// text to its model before the next request, but not where several prompts follow each other: the words of an
// answer could not be assigned to one of them.
func (d Driver) Capabilities(a driver.Agent, kind driver.Kind) driver.Capabilities {
	c := d.Behind.Capabilities(a, kind)
	c.Messages = true
	c.Steers = known(adapter.WithCommand(a, "claude").Command).steers && !adapter.Part{What: kind}.TakesPrompts()
	return c
}

// Converse returns the conversation of one session.
func (d Driver) Converse(a driver.Agent, s driver.Session, w driver.Wire) driver.Conversation {
	return speech.Conversation{Wire: w, Steers: d.Capabilities(a, s.Kind).Steers}
}

// Launch describes how the adapter of a session is started.
func (d Driver) Launch(a driver.Agent, s driver.Session) (spawn.Launch, error) {
	return adapter.Launch(d.Name(), adapter.WithCommand(a, "claude"), s, d.Needs(a)...)
}

// Needs returns the variables with which Claude Code is configured. Those of a cloud only if it is to use that cloud.
// Other programs get their keys from their own configuration.
func (Driver) Needs(a driver.Agent) []string {
	if known(adapter.WithCommand(a, "claude").Command).name != "claude" {
		return nil
	}
	return []string{"ANTHROPIC_*", "CLAUDE_*", "CLAUDE_CODE_USE_BEDROCK?AWS_*", "CLAUDE_CODE_USE_VERTEX?GOOGLE_*"}
}

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
	mode := cmp.Or(a.Mode, row.asks)
	found := driver.Probed{
		Program: row.name, Path: path, Speaks: "stream-json", Resumes: true,
		MCP: []string{"stdio"}, Enforced: row.enforced(mode),
	}
	if row.fills {
		found.MCP = append(found.MCP, "http")
	}
	command := append([]string{path}, a.Command[1:]...)
	stage := adapter.NewStage(speech.NewWriter(io.Discard), a.Workspace, append(env, row.env...))
	if err := stage.ProbeProgram(ctx, &found, command, []string{"--help"},
		[]string{"--input-format", "--output-format", row.mode, "--resume", "--mcp-config"}); err != nil {
		return found, err
	}
	if row.modes[mode] == "" {
		found.Warnings = append(found.Warnings,
			fmt.Sprintf("Fairlead does not know the mode %q; it knows %s", mode, strings.Join(slices.Sorted(maps.Keys(row.modes)), ", ")))
	}
	return found, nil
}
