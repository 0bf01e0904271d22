package controller

import (
	"context"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
)

// Traces is Tracker's.
func (y Eyes) Traces(ctx context.Context, over func(string) bool) ([]seam.Trace, error) {
	return sessions.TracesIn(ctx, y.Folder, over)
}
