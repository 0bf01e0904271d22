package transitions

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/loop"
)

// Controller writes the transition log.
type Controller struct {
	*loop.Loop
	log *slog.Logger

	LogBytesMax int64 // size at which the log continues in a new file
}

// New makes the writer of the transition log.
func New(l *loop.Loop, log *slog.Logger) *Controller {
	return &Controller{Loop: l, log: log, LogBytesMax: logBytesMax}
}
