package engine

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/cluster"
	"github.com/fairlead-dev/fairlead/cluster/node"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/jetstream"
	"github.com/fairlead-dev/fairlead/journal/sqlite"
)

// The time limits of repairs. A repair that fails is tried again.
const (
	repairWait = 5 * time.Minute // to fetch a copy again
	awayWait   = 30 * time.Second
	drawWait   = 10 * time.Second
)

// CheckCopy compares the copy of the journal in the folder of a cluster, which this host's server keeps, with a journal of this host. The
// server may run. All findings that are not OK are damage, or a fault of reading.
func CheckCopy(ctx context.Context, folder, name string, mirror journal.Journal) []sqlite.Finding {
	return jetstream.ScrubCopy(ctx, node.StoreIn(filepath.Join(folder, StoreFolder)), cluster.JournalStream, name, mirror)
}

// HasCopy reports whether the folder of a cluster has files of the journal's copy.
func HasCopy(folder string) bool {
	return jetstream.HasCopy(node.StoreIn(filepath.Join(folder, StoreFolder)), cluster.JournalStream)
}

// Check is CheckCopy for this server, as soon as it says that it has all messages. A server that could not start again is started.
func (s *Replica) Check(ctx context.Context, mirror journal.Journal) ([]sqlite.Finding, error) {
	if err := s.node.Recheck(ctx); err != nil {
		return nil, err
	}
	if err := jetstream.Current(ctx, s.nc, cluster.JournalStream, s.node.Name()); err != nil {
		return nil, err
	}
	return CheckCopy(ctx, s.o.Folder, s.node.Name(), mirror), ctx.Err()
}

// Repair makes this server fetch its copy of the journal again, if the others are complete. The mirror is that of this host, and must verify.
func (s *Replica) Repair(ctx context.Context, mirror journal.Journal) error {
	ctx, cancel := context.WithTimeout(ctx, repairWait)
	defer cancel()
	err := jetstream.Repair(ctx, s.nc, cluster.JournalStream, mirror, repaired{s.node})
	if err == nil {
		s.damaged.Store(false)
	}
	return err
}

// repaired is a server without its store during a repair. It still connects this process to the others.
type repaired struct{ *node.Node }

// Stop implements jetstream.Node.
func (r repaired) Stop(ctx context.Context) error { return r.WithoutStore(ctx) }

// away makes another server than the one with a damaged copy lead the stream. It may be repeated.
func (s *Replica) away(why *jetstream.Damage) {
	if why.Server == "" || why.Server == s.node.Name() {
		s.damaged.Store(true)
	}
	ctx, cancel := context.WithTimeout(s.ctx, awayWait)
	defer cancel()
	if err := jetstream.LeadElsewhere(ctx, s.nc, cluster.JournalStream, why.Server); err != nil && s.ctx.Err() == nil {
		s.o.Log.Warn("no other server could be asked to lead the journal's stream", "damage", why, "error", err)
	}
}

// Draw makes the server of this host lead the streams of the journal and of the lease, if its copies are complete. Then the loss of another
// engine host delays neither orders nor the renewals of a leader on this host: no server has to be elected.
func (s *Replica) Draw(ctx context.Context) error {
	if s.damaged.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, drawWait)
	defer cancel()
	return errors.Join(
		jetstream.Lead(ctx, s.nc, cluster.JournalStream, s.node.Name()),
		jetstream.Lead(ctx, s.nc, cluster.LeaseStream, s.node.Name()),
	)
}

// Others are the names of the servers that this one is connected to.
func (s *Replica) Others() []string {
	names, _ := s.node.Peers() // a server that ends has none
	return names
}
