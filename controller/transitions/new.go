package transitions

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/loop"
)

// TransitionController writes the transition log.
type TransitionController struct {
	*loop.Loop
	log *slog.Logger

	LogBytesMax int64 // size at which the log continues in a new file
}

// New makes the writer of the transition log.
func New(l *loop.Loop, log *slog.Logger) *TransitionController {
	return &TransitionController{Loop: l, log: log, LogBytesMax: logBytesMax}
}
