package sessions

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// MissingDriver stands for the driver of an agent that is no longer configured, if this build does
// not have that driver. The session's output is not interpreted, but its end is recorded.
type MissingDriver struct{}

var errMissingDriver = errors.New("this build of fairlead does not have its driver")

// Name is driver.Driver's.
func (MissingDriver) Name() string { return "deaf" }

// Check is driver.Driver's; it fails.
func (MissingDriver) Check(driver.Agent) error { return errMissingDriver }

// Launch is driver.Driver's; it fails.
func (MissingDriver) Launch(driver.Agent, driver.Session) (spawn.Launch, error) {
	return spawn.Launch{}, errMissingDriver
}

// Converse is driver.Driver's.
func (MissingDriver) Converse(driver.Agent, driver.Session, driver.Wire) driver.Conversation {
	return MissingDriver{}
}

// Facts is driver.Conversation's; it yields nothing.
func (MissingDriver) Facts(context.Context, int64) iter.Seq2[driver.Fact, error] {
	return func(func(driver.Fact, error) bool) {}
}

// Prompt is driver.Conversation's; it fails.
func (MissingDriver) Prompt(context.Context, string) error { return errMissingDriver }

// Steer is driver.Conversation's; it fails.
func (MissingDriver) Steer(context.Context, string, string) error { return driver.ErrNoSteer }

// Cancel is driver.Conversation's; it fails.
func (MissingDriver) Cancel(context.Context) error { return errMissingDriver }

// Answer is driver.Conversation's; it fails.
func (MissingDriver) Answer(context.Context, string, string) error { return driver.ErrNoAnswer }

// Capabilities is driver.Driver's: none.
func (MissingDriver) Capabilities(driver.Agent, driver.Kind) (c driver.Capabilities) { return c }

// Probe is driver.Driver's; it fails.
func (MissingDriver) Probe(context.Context, driver.Agent) (driver.Probed, error) {
	return driver.Probed{}, driver.ErrNoProbe
}

// Outcome is driver.Driver's: only the exit code counts.
func (MissingDriver) Outcome(_ driver.Session, exit session.Exit, _ *driver.Stop) driver.Outcome {
	if exit.Code == 0 && exit.Signal == "" {
		return driver.Outcome{OK: true}
	}
	return driver.Outcome{Why: fmt.Sprintf("it ended with status %d %s", exit.Code, exit.Signal)}
}
