package controller

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/controller/seam"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// OpenReadOnly opens a team to read it while no daemon runs. Use RunReads in place of Run. Of the
// options, only the output of sessions is asked of Host; Files and what writes are not used.
func OpenReadOnly(ctx context.Context, opts seam.Options) (*Supervisor, error) {
	opts.Journal = &scratch{Journal: opts.Journal}
	folders := readOnlyFiles{}
	for _, a := range opts.Config.Agents {
		folders[a.Name] = a.Workspace
	}
	opts.Files, opts.Documents, opts.Sessions, opts.Waited, opts.Planned = folders, nil, nil, nil, nil
	e, err := Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	e.NoSnapshots()
	return e, nil
}

// RunReads answers requests that only look at the team, until ctx ends.
func (e *Supervisor) RunReads(ctx context.Context) (err error) {
	defer func() { e.Close(err) }()
	return e.Loop.RunReads(ctx)
}

// readOnlyFiles reads agents' files where they are: agents and their workspaces.
type readOnlyFiles map[string]string

var _ seam.Files = readOnlyFiles{}

// Read is Files'.
func (f readOnlyFiles) Read(agent string) (agentfile.Seen, error) {
	folder, known := f[agent]
	if !known {
		return agentfile.Seen{}, errors.New("fairlead.yaml has no agent " + agent)
	}
	seen := sheetAt(filepath.Join(folder, agentfile.FileName))
	seen.Name = agent
	return seen, nil
}

// Add is Files'; nothing is watched.
func (readOnlyFiles) Add(string, string) error { return nil }

// Seen is Files'; nothing is ever seen.
func (readOnlyFiles) Seen() <-chan agentfile.Seen { return nil }

// Took is Files'.
func (readOnlyFiles) Took(agentfile.Seen) {}

// Write is Files'; it refuses.
func (readOnlyFiles) Write(context.Context, string, []byte, uint64, func(file.Sum) bool) error {
	return errors.New("no daemon runs here, so no file is written")
}
