package codex

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
)

// Driver drives codex. Its zero value is ready where main calls adapter.Intercept with it.
type Driver struct{ adapter.Behind }

var (
	_ driver.Driver    = Driver{}
	_ driver.Talker    = Driver{}
	_ driver.Resumer   = Driver{}
	_ driver.Prober    = Driver{}
	_ adapter.Protocol = Driver{}
)

// Name is the word that fairlead.yaml uses.
func (Driver) Name() string { return "codex" }

// ours are words of the command line that we give, and what says the same in fairlead.yaml: what
// holds an agent has one place, so that everybody can be told what it is.
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
	{"--ephemeral", ""}, // a conversation that is nowhere cannot go on
	{"--cd", "`workspace: FOLDER`"},
	{"-C", "`workspace: FOLDER`"},
}

// Check finds a command that cannot be started, a word in it that is ours to give, a mode that there is
// not, or a workspace that cannot be one. It starts nothing.
func (Driver) Check(a driver.Agent) error {
	a = withCommand(a)
	for _, word := range a.Command[1:] {
		for _, o := range ours {
			switch {
			case word != o.word && !strings.HasPrefix(word, o.word+"="):
			case o.instead == "":
				return fmt.Errorf("agent %s: %s is given by Fairlead itself; take it out of `command`", a.Name, o.word)
			default:
				return fmt.Errorf("agent %s: write %s and take %s out of `command`", a.Name, o.instead, o.word)
			}
		}
	}
	if modes[modeOf(a.Mode)] == "" {
		return fmt.Errorf("agent %s: codex has no mode %q; it has %s", a.Name, a.Mode, strings.Join(modeWords(), ", "))
	}
	return adapter.Check(a)
}

func modeWords() []string {
	var words []string
	for word := range modes {
		words = append(words, word)
	}
	slices.Sort(words)
	return words
}

// Launch says how the adapter of a session is started.
func (d Driver) Launch(a driver.Agent, s driver.Session) (driver.Launch, error) {
	return adapter.Launch(d.Name(), withCommand(a), s)
}

// withCommand is the agent with the program that it means where it names none.
func withCommand(a driver.Agent) driver.Agent {
	if len(a.Command) == 0 {
		a.Command = []string{"codex"}
	}
	return a
}
