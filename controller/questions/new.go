package questions

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/loop"
)

// QuestionController takes questions to people and answers to agents.
type QuestionController struct {
	*loop.Loop
	sessions *sessions.SessionController
	log      *slog.Logger

	Rules map[string]rulebook // by agent; it does not change after the start

	// Only the loop's goroutine reads or writes these.
	answering map[*sessions.Slot]int // answers that are being told, by slot
}

// New makes the controller of the questions. The error names an agent whose permissions cannot be read.
func New(l *loop.Loop, opts seam.Options, under *sessions.SessionController) (*QuestionController, error) {
	e := &QuestionController{
		Loop: l, sessions: under, log: opts.Log,
		Rules: map[string]rulebook{}, answering: map[*sessions.Slot]int{},
	}
	for i := range opts.Config.Agents {
		conf := &opts.Config.Agents[i]
		rules, err := BookOf(conf)
		if err != nil {
			return nil, err
		}
		e.Rules[conf.Name] = rules
	}
	return e, nil
}
