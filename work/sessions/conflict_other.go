//go:build !linux

package sessions

import (
	"context"

	"github.com/fairlead-dev/fairlead/work/seam"
)

// conflicts finds nothing: Fairlead reads the process table only on Linux.
func conflicts(context.Context, string, string, []string) ([]seam.ProcessConflict, error) {
	return nil, nil
}
