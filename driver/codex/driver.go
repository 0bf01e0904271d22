package codex

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
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
var own = map[string]string{
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
func (d Driver) Launch(a driver.Agent, s driver.Session) (driver.Launch, error) {
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
