package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// Snapshots lie beside the mirror, and in an object store for hosts that join. An object is named by its Seq.
const (
	metaHash   = "hash"
	metaFormed = "format"
)

func objectName(seq uint64) string { return fmt.Sprintf("%020d", seq) }

// SaveSnapshot keeps a snapshot on this host and shares it; see [journal.Journal].
func (j *Journal) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if err := journal.CheckSnapshot(&s); err != nil {
		return err
	}
	if err := j.ready(ctx, s.Seq); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	if err := j.mirror.SaveSnapshot(ctx, s); err != nil {
		return err
	}
	err := j.remote.share(ctx, s)
	for late := time.Now().Add(caughtUp); errors.Is(err, nats.ErrNoResponders) && time.Now().Before(late); err = j.remote.share(ctx, s) {
		select { // a store that was just created, or has lost its leader, does not answer yet
		case <-time.After(pauseMost):
		case <-ctx.Done():
		}
	}
	if err != nil {
		return fmt.Errorf("the snapshot is kept on this host, but other hosts do not get it: %w", err)
	}
	return nil
}

func (r *remote) bucket() string { return r.name + "-snapshots" }

func (r *remote) share(ctx context.Context, s journal.Snapshot) error {
	store, err := r.js.ObjectStore(ctx, r.bucket())
	if errors.Is(err, js.ErrBucketNotFound) {
		store, err = r.js.CreateOrUpdateObjectStore(ctx,
			js.ObjectStoreConfig{Bucket: r.bucket(), Replicas: r.stream.CachedInfo().Config.Replicas})
	}
	if err != nil {
		return err
	}
	meta := js.ObjectMeta{Name: objectName(s.Seq), Metadata: map[string]string{metaHash: s.Hash.String(), metaFormed: s.Format}}
	if _, err := store.Put(ctx, meta, strings.NewReader(string(s.Data))); err != nil {
		return err
	}
	names, err := objects(ctx, store)
	if err != nil {
		return err
	}
	for _, name := range names[:max(0, len(names)-journal.SnapshotsKept)] {
		if err := store.Delete(ctx, name); err != nil && !errors.Is(err, js.ErrObjectNotFound) { // another host may be faster
			return err
		}
	}
	return nil
}

// objects are the names of the shared snapshots, the oldest first.
func objects(ctx context.Context, store js.ObjectStore) (names []string, err error) {
	infos, err := store.List(ctx)
	if errors.Is(err, js.ErrNoObjectsFound) {
		return nil, nil
	}
	for _, o := range infos {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	return names, err
}

// Latest is the newest snapshot of this host or of the shared ones; see [journal.Journal]. If the servers don't answer,
// it is that of this host.
func (j *Journal) Latest(ctx context.Context) (journal.Snapshot, bool, error) {
	if err := j.ready(ctx, 0); err != nil {
		return journal.Snapshot{}, false, fmt.Errorf("read snapshot: %w", err)
	}
	own, ok, err := j.mirror.Latest(ctx)
	if err != nil {
		return own, ok, err
	}
	if s, found := j.remote.shared(ctx, own.Seq); found && j.mirror.SaveSnapshot(ctx, s) == nil { // it refuses one of another history
		return s, true, nil
	}
	return own, ok, nil
}

// shared fetches the newest shared snapshot, if it is newer than a seq. None is ever needed, so no failure counts.
func (r *remote) shared(ctx context.Context, than uint64) (s journal.Snapshot, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, caughtUp)
	defer cancel()
	store, err := r.js.ObjectStore(ctx, r.bucket())
	if err != nil {
		return s, false
	}
	names, err := objects(ctx, store)
	if err != nil {
		return s, false
	}
	for _, name := range slices.Backward(names) {
		if name <= objectName(than) {
			return s, false
		}
		info, err := store.GetInfo(ctx, name)
		if err != nil || info.Size > journal.SnapshotBytesMax || s.Hash.UnmarshalText([]byte(info.Metadata[metaHash])) != nil {
			continue
		}
		if _, err := fmt.Sscanf(name, "%d", &s.Seq); err != nil {
			continue
		}
		s.Format = info.Metadata[metaFormed]
		if s.Data, err = store.GetBytes(ctx, name); err == nil && journal.CheckSnapshot(&s) == nil {
			return s, true
		}
	}
	return s, false
}
