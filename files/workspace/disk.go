package workspace

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// Disk is how much disk the folder of a workspace takes.
type Disk struct {
	Bytes    int64 `json:"bytes"`
	Budget   int64 `json:"budget_bytes"` // team.disk in fairlead.yaml; 0: no limit
	Sessions int64 `json:"-"`            // part of Bytes: output of agents
}

// MeasureDisk looks at all files of the folder.
func MeasureDisk(ctx context.Context, dir string, budget int64) (Disk, error) {
	d := Disk{Budget: budget}
	var err error
	if d.Bytes, err = file.DiskUse(ctx, filepath.Join(dir, ".fairlead")); err == nil {
		d.Sessions, err = file.DiskUse(ctx, filepath.Join(dir, ".fairlead", "sessions"))
	}
	if err != nil {
		return d, fmt.Errorf("measure %s: %w", filepath.Join(dir, ".fairlead"), err)
	}
	return d, nil
}

// Level is 0 below four fifths of the budget, 1 below it, and 2 at it or above.
func (d Disk) Level() int {
	switch {
	case d.Budget == 0 || d.Bytes < d.Budget/5*4:
		return 0
	case d.Bytes < d.Budget:
		return 1
	}
	return 2
}

// String says how much is taken of what.
func (d Disk) String() string {
	text := ".fairlead takes " + file.Size(d.Bytes)
	if d.Budget > 0 {
		text += " of " + file.Size(d.Budget) + " (team.disk in fairlead.yaml)"
	}
	return text + ", of which the output of sessions is " + file.Size(d.Sessions)
}

// WayOut says what a person can do at the budget.
const WayOut = "`fairlead compact --dry-run` says what compressing old output and the old part of the journal would free; nothing is deleted, and nothing stops"
