package questions

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/loop"
)

// Controller takes questions to people and answers to agents.
type Controller struct {
	*loop.Loop
	sessions *sessions.Controller
	log      *slog.Logger

	// Only the loop's goroutine reads or writes these.
	answering map[*sessions.Slot]int // answers that are being told, by slot
}

// New makes the controller of the questions. The error names an agent whose permissions cannot be read.
func New(l *loop.Loop, opts seam.Options, under *sessions.Controller) (*Controller, error) {
	e := &Controller{
		Loop: l, sessions: under, log: opts.Log,
		answering: map[*sessions.Slot]int{},
	}
	for i := range opts.Config.Agents {
		if _, err := BookOf(&opts.Config.Agents[i]); err != nil {
			return nil, err
		}
	}
	return e, nil
}
