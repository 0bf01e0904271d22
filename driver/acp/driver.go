package acp

import (
	"cmp"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
)

// Driver starts programs that speak the Agent Client Protocol on their standard streams, each behind
// an adapter (package adapter). Its zero value is ready.
type Driver struct {
	// Host serves files and terminals to programs; nil: they use their own.
	Host Host

	limits limits // zero: the usual ones
}

var (
	_ driver.Driver    = Driver{}
	_ driver.Talker    = Driver{}
	_ driver.Resumer   = Driver{}
	_ driver.Prober    = Driver{}
	_ adapter.Protocol = Driver{}
)

// Name is the word that fairlead.yaml uses.
func (Driver) Name() string { return "acp" }

// Check finds a program that is not there, or a workspace that cannot be one. It starts nothing.
func (Driver) Check(a driver.Agent) error { return adapter.Check(a) }

// Launch starts the adapter, which starts the program.
func (d Driver) Launch(a driver.Agent, s driver.Session) (driver.Launch, error) {
	return adapter.Launch(d.Name(), a, s)
}

// Converse listens to one session and tells it things.
func (Driver) Converse(_ driver.Agent, _ driver.Session, w driver.Wire) driver.Conversation {
	return adapter.Converse(w)
}

// Outcome believes the terminal event, and nothing else.
func (Driver) Outcome(s driver.Session, exit driver.Exit, stop *driver.Stop) driver.Outcome {
	return adapter.Outcome(s, exit, stop)
}

// TakesInput is true: prompts are given one after the other.
func (Driver) TakesInput() bool { return true }

// Steers is false: what is said in the middle of an answer is given when that is over.
func (Driver) Steers() bool { return false }

// Resumes says whether a conversation can go on. The protocol has it; whether a program does is
// known when it was greeted (Probe), and a session that cannot go on says so (NotResumed).
func (Driver) Resumes(driver.Agent) bool { return true }

func (d Driver) times() limits {
	return limits{
		greeting: cmp.Or(d.limits.greeting, greetingTime), opening: cmp.Or(d.limits.opening, openingTime),
		cancel: cmp.Or(d.limits.cancel, cancelTime), patience: cmp.Or(d.limits.patience, patience),
	}
}
