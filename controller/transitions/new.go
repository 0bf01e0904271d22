package transitions

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/loop"
)

// Controller writes the transition log.
type Controller struct {
	*loop.Loop
	opts seam.Options
	log  *slog.Logger

	LogBytesMax int64 // size at which the log continues in a new file
}

// New makes the writer of the transition log.
func New(l *loop.Loop, opts seam.Options) *Controller {
	return &Controller{Loop: l, opts: opts, log: opts.Log, LogBytesMax: logBytesMax}
}
