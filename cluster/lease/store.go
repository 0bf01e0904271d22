package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/cluster"
	"github.com/fairlead-dev/fairlead/journal/attempt"
	"github.com/fairlead-dev/fairlead/machine/host"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	entryMax  = 512      // bytes; a host's name has 63 at most, a daemon's id daemonMax
	daemonMax = 64       // bytes
	bucketMax = 64 << 20 // bytes of all entries, 200,000 incarnations: a host cannot fill the disk of the journal

	// Codes of JetStream's answers that nats.go does not name.
	noStorage   = 10047 // "insufficient storage resources available"
	noResources = 10023 // "insufficient resources": also after the disk was full
)

// Entry is the lease of one incarnation, as it is stored.
type Entry struct {
	Host        string `json:"host"`
	Incarnation uint64 `json:"incarnation"`
	Daemon      string `json:"daemon,omitempty"` // that sent the renewal
	N           uint64 `json:"n,omitempty"`      // counts its renewals
	Closed      bool   `json:"closed,omitempty"` // by the leader
}

// key is the name of an incarnation's entry.
func key(name string, incarnation uint64) string {
	return name + "." + strconv.FormatUint(incarnation, 10)
}

// parseKey is the inverse of key.
func parseKey(text string) (name string, incarnation uint64, ok bool) {
	name, number, ok := strings.Cut(text, ".")
	incarnation, err := strconv.ParseUint(number, 10, 64)
	return name, incarnation, ok && err == nil && host.IsWord(name) && key(name, incarnation) == text
}

// parseEntry reads the value of a key. A value that no [Keeper] writes is an entry without a renewal, since its
// host has changed it and the leader needs the revision.
func parseEntry(name string, incarnation uint64, value []byte) Entry {
	var e Entry
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if len(value) > entryMax || d.Decode(&e) != nil || d.More() || e.Host != name || e.Incarnation != incarnation || len(e.Daemon) > daemonMax {
		return Entry{Host: name, Incarnation: incarnation}
	}
	return e
}

// Store is the bucket with the leases of a team.
type Store struct {
	js jetstream.JetStream
	kv jetstream.KeyValue
}

// Create makes the bucket on so many engine hosts, if there is none. Only an engine host may.
func Create(ctx context.Context, js jetstream.JetStream, replicas int) (*Store, error) {
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: cluster.LeaseBucket, Description: "leases of the team's hosts", History: 1, Storage: jetstream.FileStorage,
		MaxValueSize: entryMax, MaxBytes: bucketMax, Replicas: replicas,
	})
	if err != nil {
		return nil, fmt.Errorf("make the bucket of the leases: %w", explain(err))
	}
	return &Store{js, kv}, nil
}

// Bind finds the bucket.
func Bind(ctx context.Context, js jetstream.JetStream) (*Store, error) {
	kv, err := js.KeyValue(ctx, cluster.LeaseBucket)
	if err != nil {
		return nil, fmt.Errorf("find the bucket of the leases: %w", explain(err))
	}
	return &Store{js, kv}, nil
}

// set stores an entry if its key still has a revision; 0: if there is none. An error proves nothing.
func (s *Store) set(ctx context.Context, e Entry, revision uint64) (uint64, error) {
	value, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, attempt.ReconnectAfter)
	defer cancel()
	stored, err := s.kv.Update(ctx, key(e.Host, e.Incarnation), value, revision) // with revision 0 also a removed entry is refused, unlike by Create
	return stored, explain(err)
}

// get reads an entry, and its revision; 0: there is none as far as the server knows. It may be old.
func (s *Store) get(ctx context.Context, name string, incarnation uint64) (Entry, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt.ReconnectAfter)
	defer cancel()
	got, err := s.kv.Get(ctx, key(name, incarnation))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Entry{}, 0, nil
	}
	if err != nil {
		return Entry{}, 0, explain(err)
	}
	return parseEntry(name, incarnation, got.Value()), got.Revision(), nil
}

// explain adds to an error of the engine what to do about it.
func explain(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && (api.ErrorCode == noStorage || api.ErrorCode == noResources):
		return fmt.Errorf("the disk of an engine host is full, or the space for its store; free some space there and restart Fairlead: %w", err)
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return fmt.Errorf("no engine host stores anything now; look at the log of an engine host, its disk may be full: %w", err)
	case errors.Is(err, jetstream.ErrBucketNotFound):
		return fmt.Errorf("the team has no leases yet; start Fairlead on an engine host first: %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no engine host answers within %v; it is tried again on another one: %w", attempt.ReconnectAfter, err)
	}
	return err
}
