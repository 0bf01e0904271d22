package acp

import (
	"cmp"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
)

// Driver starts programs that speak the Agent Client Protocol on their standard streams, each behind
// an adapter (package adapter). Its zero value is ready.
type Driver struct {
	adapter.Behind

	// Host serves files and terminals to programs. If it is nil, programs use their own.
	Host Host

	limits limits // zero: the usual ones
}

var (
	_ driver.Driver    = Driver{}
	_ adapter.Protocol = Driver{}
)

// Name is the word that fairlead.yaml uses.
func (Driver) Name() string { return "acp" }

// Check returns an error if the program does not exist or the workspace is unusable. It starts
// nothing.
func (Driver) Check(a driver.Agent) error { return adapter.Check(a) }

// Launch starts the adapter, which starts the program.
func (d Driver) Launch(a driver.Agent, s driver.Session) (driver.Launch, error) {
	return adapter.Launch(d.Name(), a, s)
}

func (d Driver) times() limits {
	return limits{
		greeting: cmp.Or(d.limits.greeting, greetingTime), opening: cmp.Or(d.limits.opening, openingTime),
		cancel: cmp.Or(d.limits.cancel, cancelTime), patience: cmp.Or(d.limits.patience, patience),
	}
}
