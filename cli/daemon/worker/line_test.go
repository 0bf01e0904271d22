package worker

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

type closable struct {
	connection
	done chan struct{}
}

func (c *closable) Done() <-chan struct{} { return c.done }
func (c *closable) Close() error          { close(c.done); return nil }

// A host leaves a leader that answers nothing after twelve seconds, and one that says itself that another may lead after six. An answer of
// another kind ends no connection.
func TestDrop(t *testing.T) {
	busy := fmt.Errorf("renew the lease of host d: %w", &wire.Problem{Code: wire.Busy})
	for _, tt := range []struct {
		says  error
		after time.Duration
	}{
		{errors.New("no answer"), answersWithin},
		{busy, 6 * time.Second},
		{&wire.Problem{Code: wire.BadRequest}, answersWithin},
		{nil, answersWithin},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &line{came: make(chan struct{}, 1)}
			c := &closable{done: make(chan struct{})}
			l.up(c)
			heard := time.Now()
			for l.at() != nil && time.Since(heard) < time.Minute {
				wait.Elapse(time.Second)
				l.drop(heard, tt.says)
			}
			if took := time.Since(heard); took != tt.after+time.Second {
				t.Errorf("%v: left after %v", tt.says, took)
			}
		})
	}
}
