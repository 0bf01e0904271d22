package codex

import (
	"context"
	"fmt"
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

// ours are arguments that Fairlead sets, with the corresponding settings of fairlead.yaml.
// Restrictions of an agent must be configured in one place, so that they can be shown.
var ours = []struct{ word, instead string }{
	{"exec", ""},
	{"e", ""},
	{"--json", ""},
	{"--sandbox", "`mode: WORD`"},
	{"-s", "`mode: WORD`"},
	{"--full-auto", "`mode: workspace-write`"},
	{"--dangerously-bypass-approvals-and-sandbox", "`mode: danger-full-access`"},
	{"--yolo", "`mode: danger-full-access`"},
	{"--approve-for-me", "`mode: workspace-write`"},
	{"--ask-for-approval", ""},
	{"-a", ""},
	{"--ephemeral", ""}, // an ephemeral conversation could not be resumed
	{"--cd", "`workspace: FOLDER`"},
	{"-C", "`workspace: FOLDER`"},
}

// Check returns an error for a command that cannot be started, an argument in it that Fairlead sets
// itself, an unknown mode, or an unusable workspace. It starts nothing.
func (d Driver) Check(a driver.Agent) error {
	a = withCommand(a)
	for _, word := range a.Command[1:] {
		for _, o := range ours {
			switch {
			case word != o.word && !strings.HasPrefix(word, o.word+"="):
			case o.instead == "":
				return fmt.Errorf("agent %s: Fairlead sets %s itself; remove it from `command`", a.Name, o.word)
			default:
				return fmt.Errorf("agent %s: write %s and take %s out of `command`", a.Name, o.instead, o.word)
			}
		}
	}
	if modes[modeOf(a.Mode)] == "" {
		return fmt.Errorf("agent %s: codex has no mode %q; it has %s", a.Name, a.Mode, strings.Join(modeWords(), ", "))
	}
	return adapter.Check(a, d.Needs(a)...)
}

func modeWords() []string {
	var words []string
	for word := range modes {
		words = append(words, word)
	}
	slices.Sort(words)
	return words
}

// Launch describes how the adapter of a session is started.
func (d Driver) Launch(a driver.Agent, s driver.Session) (driver.Launch, error) {
	return adapter.Launch(d.Name(), withCommand(a), s, d.Needs(a)...)
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

// withCommand adds the default program to an agent without a command.
func withCommand(a driver.Agent) driver.Agent {
	if len(a.Command) == 0 {
		a.Command = []string{"codex"}
	}
	return a
}
