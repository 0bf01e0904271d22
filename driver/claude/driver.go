package claude

import (
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
)

// Driver drives Claude Code, and what speaks as it does. Its zero value is ready where main calls
// adapter.Intercept with it.
type Driver struct{}

var (
	_ driver.Driver    = Driver{}
	_ driver.Talker    = Driver{}
	_ driver.Resumer   = Driver{}
	_ driver.Prober    = Driver{}
	_ adapter.Protocol = Driver{}
)

// Name is the word that fairlead.yaml uses.
func (Driver) Name() string { return "claude" }

// Check finds a command that cannot be started, a flag in it that is ours to give, or a workspace that
// cannot be one. It starts nothing.
func (Driver) Check(a driver.Agent) error {
	a = withCommand(a)
	if err := checkFlags(a); err != nil {
		return err
	}
	return adapter.Check(a)
}

// Launch says how the adapter of a session is started.
func (d Driver) Launch(a driver.Agent, s driver.Session) (driver.Launch, error) {
	return adapter.Launch(d.Name(), withCommand(a), s)
}

// Converse listens to one session and tells it things.
func (Driver) Converse(_ driver.Agent, _ driver.Session, w driver.Wire) driver.Conversation {
	return adapter.Converse(w)
}

// Outcome believes the terminal event, and nothing else.
func (Driver) Outcome(s driver.Session, exit driver.Exit, stop *driver.Stop) driver.Outcome {
	return adapter.Outcome(s, exit, stop)
}

// TakesInput is true: prompts are kept by the adapter until it is their turn.
func (Driver) TakesInput() bool { return true }

// Steers is false: what is said in the middle of an answer is heard after it. Claude Code would mix it
// into the answer, and then nobody could say which words answer what.
func (Driver) Steers() bool { return false }

// Resumes is true: all programs that are known take an earlier conversation by its id.
func (Driver) Resumes(driver.Agent) bool { return true }

// withCommand is the agent with the program that it means where it names none.
func withCommand(a driver.Agent) driver.Agent {
	if len(a.Command) == 0 {
		a.Command = []string{"claude"}
	}
	return a
}
