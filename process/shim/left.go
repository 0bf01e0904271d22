package shim

import (
	"context"
	"os"
)

// KeepOrphans makes this process the parent of what its children leave behind, so that EndDescendants finds it. A system
// without a subreaper has no such thing.
func KeepOrphans() error { return becomeSubreaper() }

// EndDescendants ends all descendants of this process, and returns those that it ended. The error names one that does not
// end.
func EndDescendants(ctx context.Context) ([]Process, error) {
	return endAll(ctx, func(all []Process) []Process { return below(all, os.Getpid()) })
}
