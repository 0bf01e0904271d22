package outside

import (
	"context"
	"net/http"
	"time"

	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// Cluster is how the leader of a team reaches its other hosts. Its functions may be called at any time, also
// before anything listens for hosts.
type Cluster struct {
	Team     string   // its name, as its hosts know it
	Name     string   // of this host
	Labels   []string // of this host
	Capacity int      // sessions with `host` that may run on this host at one time
	Key      string   // public half of its key
	Address  string   // at which it listens for hosts: HOST:PORT
	Stream   bool     // the journal is in the stream of the engine hosts
	Lost     bool     // the others that could lead are lost, so this host goes on with what it has of the journal
	Folder   string   // for what is kept of sessions on other hosts

	// Dial returns a client for requests to a host, and their base URL. It waits for the host's connection until
	// ctx ends.
	Dial func(ctx context.Context, name string) (*http.Client, string, error)

	// Connected returns the address from which a host is connected; empty: it is not.
	Connected func(name string) string

	// The sessions of this machine have leases, too, when the journal is in the stream, because another machine may lead
	// one day. NoteLease keeps that of a session on disk, before its process starts. StartLeased starts it. Confirmed reports
	// whether no other host can lead now, and Deadline is when the sessions here end unless the leader's lease is renewed.
	NoteLease   func(host.Lease) error
	StartLeased func(ctx context.Context, session string, epoch uint64, launch spawn.Launch, grace time.Duration,
		man *host.DeadMan) (sessionhost.Process, error)
	Confirmed func() bool // nil: always
	Deadline  func() host.BootTime

	// Engines is called when the engine hosts of the team have changed; read returns them, by name, and those that were engine
	// hosts and have left.
	Engines func(read func() (now []cluster.EngineHost, gone []string))

	// Copies are those of the journal in the stream, as they were seen last.
	Copies func() []cluster.Copy

	// Unreplicated says why the journal is not in the stream, as far as this machine knows.
	Unreplicated func() cluster.Unreplicated

	// Foreign says why the version of Fairlead on a host and this one cannot talk; empty: they can, as far as is known.
	Foreign func(host string) string

	// Recheck closes the connections of hosts that do not belong to the team any longer.
	Recheck func()
}
