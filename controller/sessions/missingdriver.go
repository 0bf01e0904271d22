package sessions

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/fairlead-dev/fairlead/driver"
)

// deaf is the driver of an agent that is configured no more and whose own driver this
// build does not have: nobody understands what it says, but how it ends is seen.
type Deaf struct{}

var errDeaf = errors.New("this build of fairlead does not have its driver")

func (Deaf) Name() string { return "deaf" }

func (Deaf) Check(driver.Agent) error { return errDeaf }

func (Deaf) Launch(driver.Agent, driver.Session) (driver.Launch, error) {
	return driver.Launch{}, errDeaf
}

func (Deaf) Converse(driver.Agent, driver.Session, driver.Wire) driver.Conversation { return Deaf{} }

func (Deaf) Facts(context.Context, int64) iter.Seq2[driver.Fact, error] {
	return func(func(driver.Fact, error) bool) {}
}

func (Deaf) Prompt(context.Context, string) error { return errDeaf }

func (Deaf) Cancel(context.Context) error { return errDeaf }

func (Deaf) Outcome(_ driver.Session, exit driver.Exit, _ *driver.Stop) driver.Outcome {
	if exit.Code == 0 && exit.Signal == "" {
		return driver.Outcome{OK: true}
	}
	return driver.Outcome{Why: fmt.Sprintf("it ended with status %d %s", exit.Code, exit.Signal)}
}
