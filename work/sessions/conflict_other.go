//go:build !linux

package sessions

import (
	"context"

	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// conflicts finds nothing: Fairlead reads the process table only on Linux.
func conflicts(context.Context, string, string, []string) ([]sessionhost.ProcessConflict, error) {
	return nil, nil
}
