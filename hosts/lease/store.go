package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	keyOfLeader = "leader"
	entryMax    = 512             // bytes; a host's name has 63 at most, a daemon's id 32
	bucketMax   = 1 << 20         // bytes of the entry with its history of one
	askWait     = 2 * time.Second // for an answer: the leader's lease lasts 4.5

	// Codes of JetStream's answers that nats.go does not name.
	noStorage   = 10047 // "insufficient storage resources available"
	noResources = 10023 // "insufficient resources": also after the disk was full
)

// Entry is the lease as it is stored.
type Entry struct {
	Host   string `json:"host"`
	Daemon string `json:"daemon"` // unlike that of all other terms
	N      uint64 `json:"n"`      // counts its renewals
}

// parseEntry reads a value. One that is none is of no host: then any may claim the lead.
func parseEntry(value []byte) Entry {
	var e Entry
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if len(value) > entryMax || d.Decode(&e) != nil || d.More() || !host.IsWord(e.Host) {
		return Entry{}
	}
	return e
}

// Store is the bucket with the lease.
type Store struct{ kv jetstream.KeyValue }

// Open finds the bucket, or makes it on so many engine hosts; 0: it is only looked for.
func Open(ctx context.Context, js jetstream.JetStream, copies int) (*Store, error) {
	kv, err := js.KeyValue(ctx, cluster.LeaseBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) && copies > 0 {
		kv, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: cluster.LeaseBucket, Description: "lease of the team's leader", History: 1, Storage: jetstream.FileStorage,
			MaxValueSize: entryMax, MaxBytes: bucketMax, Replicas: copies,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("open the bucket of the leader's lease: %w", explain(err))
	}
	return &Store{kv}, nil
}

// Set stores the entry if it still has a revision; 0: if there is none. An error proves nothing.
func (s *Store) Set(ctx context.Context, e Entry, revision uint64) (uint64, error) {
	value, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	stored, err := s.kv.Update(ctx, keyOfLeader, value, revision) // with revision 0 also a removed entry is refused, unlike by Create
	return stored, explain(err)
}

// Get reads the entry, and its revision; 0: there is none as far as the server knows. It may be old.
func (s *Store) Get(ctx context.Context) (Entry, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	got, err := s.kv.Get(ctx, keyOfLeader)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Entry{}, 0, nil
	}
	if err != nil {
		return Entry{}, 0, explain(err)
	}
	return parseEntry(got.Value()), got.Revision(), nil
}

// explain adds to an error of the engine what to do about it.
func explain(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && (api.ErrorCode == noStorage || api.ErrorCode == noResources):
		return fmt.Errorf("the disk of an engine host is full, or the space for its store; free some space there and restart Fairlead: %w",
			err)
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return fmt.Errorf("no engine host stores anything now; look at the log of an engine host, its disk may be full: %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no majority of the engine hosts answers within %v: %w", askWait, err)
	}
	return err
}
