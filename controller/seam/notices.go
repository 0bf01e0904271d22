package seam

import (
	"context"

	"github.com/fairlead-dev/fairlead/machine/notice"
)

// Notices is how people are notified.
type Notices struct {
	Targets []notice.Target
	Kinds   map[string]string // of each target, for people: slack, webhook, desktop; without its address

	// Disk says that .fairlead takes almost all of the disk that it should take, or more; empty: it does not. It may be nil.
	Disk func() string
	Look chan struct{} // a value makes Fairlead look again before anything else changes

	// Send delivers one message and tries once. It is called outside of the loop.
	Send func(ctx context.Context, target string, listed []notice.Matter, more int) *notice.Failure
}
