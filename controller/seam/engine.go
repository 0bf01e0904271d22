package seam

import (
	"context"
	"log/slog"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/journal"
)

// Options are what an engine stands on. All seams are given, so that a simulator can give others.
type Options struct {
	Name    string // of the team, for people: the folder that it works in
	Config  *config.Config
	Journal journal.Journal
	Host    Host
	Files   Files
	Drivers map[string]driver.Driver
	Lookup  func(string) (string, bool) // resolves references to the environment
	BootID  string                      // of the machine: a file torn by a reboot is no wish
	Log     *slog.Logger
	Waited  func(view.InboxItem) // is told, beside the loop, that a person is waited for; nil: nobody is
	Planned func(view.Plan)      // is told what recovery will do, before it does it; nil: nobody is

	// Offer is where an agent finds our own tools in one session; nil: nowhere.
	Offer func(agent, session string) driver.MCP

	// Elsewhere finds who else has a conversation open, before it is resumed; nil: nobody looks. The
	// function of this name is the real one.
	Elsewhere func(ctx context.Context, conversation string, argv []string) ([]Occupant, error)

	Documents Documents // the files of the team's agents; nil: there are none
	Sessions  Sessions  // session folders (seed 002); nil: none are followed
}

// Files is the live agent_state.json of every agent; agentfile.Files is the real one.
type Files interface {
	Add(agent, folder string) error
	Seen() <-chan agentfile.Seen
	Read(agent string) (agentfile.Seen, error)
	Took(agentfile.Seen)
	Write(ctx context.Context, agent string, content []byte, newest uint64, isOurs func(file.Sum) bool) error
}
