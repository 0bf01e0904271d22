package seam

import (
	"context"
	"net/http"
)

// Cluster is how the leader of a team reaches its other hosts. Its functions may be called at any time, also
// before anything listens for hosts.
type Cluster struct {
	Team     string   // its name, as its hosts know it
	Name     string   // of this host
	Labels   []string // of this host
	Capacity int      // sessions with `host` that may run on this host at one time
	Folder   string   // for what is kept of sessions on other hosts

	// Dial returns a client for requests to a host, and their base URL. It waits for the host's connection until
	// ctx ends.
	Dial func(ctx context.Context, host string) (*http.Client, string, error)

	// Connected returns the address from which a host is connected; empty: it is not.
	Connected func(host string) string

	// Foreign says why the version of Fairlead on a host and this one cannot talk; empty: they can, as far as is known.
	Foreign func(host string) string

	// Recheck closes the connections of hosts that do not belong to the team any longer.
	Recheck func()
}
