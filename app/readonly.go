package app

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/work/outside"

	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// OpenReadOnly opens a team for reading while no daemon runs. Use RunReads instead of Run. Of the
// options, Host is used only to read the output of sessions; Files and everything that writes are
// not used.
func OpenReadOnly(ctx context.Context, opts outside.Options) (*App, error) {
	opts.Journal = &dryJournal{Journal: opts.Journal}
	folders := readOnlyFiles{}
	for _, a := range opts.Config.Agents {
		folders[a.Name] = a.Workspace
	}
	opts.Files, opts.Documents, opts.Sessions, opts.Notices, opts.Planned = folders, nil, nil, nil, nil
	e, err := Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	e.Loop.NoSnapshots()
	return e, nil
}

// RunReads answers read requests until ctx ends.
func (e *App) RunReads(ctx context.Context) (err error) {
	defer func() { e.Close(err) }()
	return e.Loop.RunReads(ctx)
}

// readOnlyFiles maps agents to their workspaces and reads the files there.
type readOnlyFiles map[string]string

var _ outside.Files = readOnlyFiles{}

// Read implements outside.Files.
func (f readOnlyFiles) Read(agent string) (agentstate.Seen, error) {
	folder, known := f[agent]
	if !known {
		return agentstate.Seen{}, errors.New("fairlead.yaml has no agent " + agent)
	}
	seen := fileVersion(filepath.Join(folder, agentstate.FileName))
	seen.Name = agent
	return seen, nil
}

// Add implements outside.Files; nothing is watched.
func (readOnlyFiles) Add(string, string) error { return nil }

// Deliver implements outside.Files; it delivers nothing.
func (readOnlyFiles) Deliver(func(agentstate.Seen)) {}

// Took implements outside.Files.
func (readOnlyFiles) Confirm(agentstate.Seen) {}

// Write implements outside.Files; it always fails.
func (readOnlyFiles) Write(context.Context, string, []byte, uint64, func(file.Sum) bool) error {
	return errors.New("no daemon runs here, so no file is written")
}
