package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/hosts/node"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

// The time limits of repairs. A repair that fails is tried again.
const (
	repairWait = 5 * time.Minute // to fetch a copy again
	awayWait   = 30 * time.Second
	drawWait   = 10 * time.Second
	// for a server to join the groups of its streams, after the others have told it of them: a sound one needs a second
	joinWait = 20 * time.Second
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
	for _, stream := range []string{cluster.LeaseStream, cluster.JournalStream} {
		if err := s.joins(ctx, stream); errors.Is(err, errOutside) {
			s.outside.Store(&stream)
			s.damaged.Store(true)
			return []sqlite.Finding{{
				What: fmt.Sprintf("stream %s: %v", stream, err), Do: "it is fetched again from the other engine hosts",
				Seq: 1,
			}}, nil
		} else if err != nil && !errors.Is(err, jetstream.ErrNoCopy) {
			return nil, err
		}
	}
	if err := jetstream.Current(ctx, s.nc, cluster.JournalStream, s.node.Name()); err != nil {
		return nil, err
	}
	return CheckCopy(ctx, s.o.Folder, s.node.Name(), mirror), ctx.Err()
}

var errOutside = errors.New("the server of this host could not join the group of servers that keeps it: a file of the group, such as a snapshot, may be damaged here")

// joins waits until this server works in the group of a stream that it has to keep. If it does not for some time, the error is errOutside.
func (s *Replica) joins(ctx context.Context, stream string) error {
	for end := time.Now().Add(s.joinWait); ; {
		group, err := jetstream.Group(ctx, s.nc, stream, s.node.Name())
		switch {
		case err != nil:
			return err
		case s.node.Joined(group):
			return nil
		case s.node.Storeless(): // it is restarted
			return node.ErrStoreless
		case time.Now().After(end):
			return errOutside
		}
		if !retry.Rest(ctx, metEvery) {
			return ctx.Err()
		}
	}
}

// Repair makes this server fetch its copy of the journal again, if the others are complete. The mirror is that of this host, and must
// verify.
func (s *Replica) Repair(ctx context.Context, mirror journal.Journal) error {
	ctx, cancel := context.WithTimeout(ctx, repairWait)
	defer cancel()
	name := cluster.JournalStream
	if stream := s.outside.Load(); stream != nil && *stream != name {
		name, mirror = *stream, nil
	}
	aside, err := jetstream.Repair(ctx, s.nc, name, mirror, repaired{s.node})
	s.kept(aside)
	if err == nil {
		s.outside.Store(nil)
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
	if s.Damaged() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, drawWait)
	defer cancel()
	return errors.Join(
		jetstream.Lead(ctx, s.nc, cluster.JournalStream, s.node.Name()),
		jetstream.Lead(ctx, s.nc, cluster.LeaseStream, s.node.Name()),
	)
}

// Damaged reports whether the copy of this server or its store is known to be damaged. Then this host is not to lead.
func (s *Replica) Damaged() bool { return s.damaged.Load() || s.node.Damage() != nil }

// Others are the names of the servers that this one is connected to.
func (s *Replica) Others() []string {
	names, _ := s.node.Peers() // a server that ends has none
	return names
}

// CopyEnd is the last change in the copy of the journal that the server in the folder of a cluster has; none if it has none.
func CopyEnd(ctx context.Context, folder string) (journal.Change, error) {
	return jetstream.CopyEnd(ctx, node.StoreIn(filepath.Join(folder, StoreFolder)), cluster.JournalStream)
}

// Salvage makes a SQLite journal at path, where there is none, of the copy that the server in the folder of a cluster has. It is for a
// host that has no mirror: the leader was lost before any host could learn that the journal is in the stream.
func Salvage(ctx context.Context, folder, path string) error {
	part := path + ".part"
	if err := sqlite.Remove(part); err != nil {
		return err
	}
	j, err := sqlite.Open(ctx, part)
	if err != nil {
		return err
	}
	err = jetstream.Salvage(ctx, node.StoreIn(filepath.Join(folder, StoreFolder)), cluster.JournalStream, j)
	if err = errors.Join(err, j.Close()); err != nil {
		return err
	}
	_, err = sqlite.Move(part, path)
	return err
}
