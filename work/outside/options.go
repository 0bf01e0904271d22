package outside

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Options are the dependencies of the controllers. All are interfaces or values, so that a
// simulator can replace them.
type Options struct {
	Name    string // the team's name for people: the folder that it works in
	Config  *config.Config
	Journal journal.Journal
	Host    sessionhost.Host
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

	// Sockets are the sockets that sessions in views of their own have to this daemon; nil: there are none.
	Sockets SessionSockets

	// Proxy connects to the proxy of the sessions, if one runs; nil: it is not watched.
	Proxy func() (ProxyConn, error)

	// ProcessConflicts finds other processes that have a conversation open, before it is resumed;
	// nil disables the search. sessions.ProcessConflicts is the production implementation.
	ProcessConflicts func(ctx context.Context, conversation string, argv []string) ([]sessionhost.ProcessConflict, error)

	// Room says why no session may start on this machine now; empty: one may. nil: nothing is looked at. sessions.Room is the
	// production implementation.
	Room func() (why string)

	// FreeDisk is how many bytes are free where .fairlead is, of how many. nil: no session ends because the disk is full.
	FreeDisk func() (free, all uint64, err error)

	// Look is the evidence about a session that no daemon follows; it changes nothing. nil where a daemon
	// runs. The error says why the evidence is not known.
	Look func(ctx context.Context, session string) (sessionhost.Proof, error)

	// At is the moment whose team is shown, with a journal that ends then; zero: the team is shown as it is now.
	At time.Time

	// Confirmed is the sum of the configuration that Config is; empty: the journal is not told.
	Confirmed string
	// Include returns the file to read in place of one that fairlead.yaml includes; nil: that one.
	Include func(path string) string
	// Unconfirmed is the change of fairlead.yaml that waits for a person, if the files still have that sum; nil: there is none.
	Unconfirmed func(found string) *view.Unconfirmed

	// Cluster is how other hosts of the team are reached; nil: there are none.
	Cluster *Cluster

	Documents Documents // the documents of the crew; nil if there are none
	Sessions  Sessions  // dispatch folders (seed 002); nil if none are watched
}

// ProxyConn is a connection to the proxy of the sessions; *wire.Conn is the production implementation.
type ProxyConn interface {
	Send(m wire.Message, files ...*os.File) error
	Receive() (wire.Message, []*os.File, error)
	Close() error
}

// Included is the file to read in place of one that fairlead.yaml includes.
func (o *Options) Included(path string) string {
	if o.Include == nil || path == "" {
		return path
	}
	return o.Include(path)
}

// Files accesses the live agent_state.json of every agent; agentstate.Files is the production
// implementation.
type Files interface {
	Deliver(to func(agentstate.Seen))
	Add(agent, folder string) error
	Read(agent string) (agentstate.Seen, error)
	Confirm(agentstate.Seen)
	Write(ctx context.Context, agent string, content []byte, newest uint64, isOurs func(file.Sum) bool) error
}

// SessionSockets listens for sessions. A request that comes through a session's socket is that session's.
type SessionSockets interface {
	Open(session, folder string) error // the socket is made in the folder; it is harmless if it is open already
	End(session string)
}

// Documents accesses the folder of the crew's documents; crewdocs.Documents is the production
// implementation.
type Documents interface {
	Make() error
	Begin(to func(crewdocs.Seen)) error
	Confirm(crewdocs.Seen)
	PutAside(seen crewdocs.Seen, why string) (string, error)
	Write(ctx context.Context, name string, content []byte, newest uint64, isOurs func(file.Sum) bool) error
}

// Sessions finds dispatch folders (seed 002) and watches them. WatchSessions is the production
// implementation.
type Sessions interface {
	// News receives a value when a folder may have changed, appeared or disappeared.
	News() <-chan struct{}
	// Paths lists the folders, the newest first, without symbolic links.
	Paths() ([]string, error)
	// Watch sets the folders whose history is watched; all others are no longer watched.
	Watch(paths []string)
}

// Observer reads what a recovery would find, and changes nothing.
type Observer interface {
	// Session returns the outcome of a session, and its process if it runs. It fails if the shim
	// does not answer, with a *Fenced if a daemon with a higher epoch has controlled it.
	Session(ctx context.Context, session string, epoch uint64) (found sessionhost.Found, pid int, err error)

	// File returns the observations of an agent's agent_state.json that Files would deliver first:
	// content recovered from replaced files (FromSwap), then the current file.
	File(ctx context.Context, agent, folder string) ([]agentstate.Seen, error)

	// Orphans is that of a Host.
	Orphans(ctx context.Context, over func(session string) bool) ([]sessionhost.Orphan, error)
}

// Notices is how people are notified.
type Notices struct {
	Targets []notice.Target
	Kinds   map[string]string // of each target, for people: slack, webhook, desktop; without its address

	// Disk says that .fairlead takes almost all of the disk that it should take, or more; empty: it does not. It may be nil.
	Disk func() string
	Look chan struct{} // a value makes Fairlead look again before anything else changes

	// Send delivers one message and tries once. It is called outside of the loop.
	Send func(ctx context.Context, target string, listed []notice.Notice, more int) *notice.Failure
}
