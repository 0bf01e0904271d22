package seam

import (
	"context"
	"log/slog"
	"time"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/journal"
)

// Options are the dependencies of the controllers. All are interfaces or values, so that a
// simulator can replace them.
type Options struct {
	Name    string // the team's name for people: the folder that it works in
	Config  *config.Config
	Journal journal.Journal
	Host    Host
	Files   Files
	Drivers map[string]driver.Driver
	Lookup  func(string) (string, bool) // resolves references to environment variables
	BootID  string                      // of the machine: a file torn by a reboot is not a command
	Log     *slog.Logger

	RunsOnly bool // only runs are done: agents that are to run, channels, the crew and dispatch folders wait for `fairlead up`

	Notices *Notices        // how people are notified; nil: there are no targets
	Planned func(view.Plan) // called with the recovery's plan before it is carried out; may be nil

	// Offer returns how an agent reaches Fairlead's own tools in one session; nil if there are
	// none.
	Offer func(agent, session string) driver.MCP

	// ProcessConflicts finds other processes that have a conversation open, before it is resumed;
	// nil disables the search. sessions.ProcessConflicts is the production implementation.
	ProcessConflicts func(ctx context.Context, conversation string, argv []string) ([]ProcessConflict, error)

	// Look is the evidence about a session that no daemon follows; it changes nothing. nil where a daemon
	// runs. The error says why the evidence is not known.
	Look func(ctx context.Context, session string) (Proof, error)

	// At is the moment whose team is shown, with a journal that ends then; zero: the team is shown as it is now.
	At time.Time

	// Cluster is how other hosts of the team are reached; nil: there are none.
	Cluster *Cluster

	Documents Documents // the documents of the crew; nil if there are none
	Sessions  Sessions  // dispatch folders (seed 002); nil if none are watched
}

// Files accesses the live agent_state.json of every agent; agentfile.Files is the production
// implementation.
type Files interface {
	Add(agent, folder string) error
	Seen() <-chan agentfile.Seen
	Read(agent string) (agentfile.Seen, error)
	Took(agentfile.Seen)
	Write(ctx context.Context, agent string, content []byte, newest uint64, isOurs func(file.Sum) bool) error
}
