package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
)

// copiesWait is for an answer about the copies: it is only shown.
const copiesWait = 2 * time.Second

// Copies are those of the journal, by name of the host.
func (s *Replica) Copies(ctx context.Context) ([]cluster.Copy, error) {
	ctx, cancel := context.WithTimeout(ctx, copiesWait)
	defer cancel()
	api, err := js.New(s.nc)
	if err != nil {
		return nil, err
	}
	stream, err := api.Stream(ctx, cluster.JournalStream)
	if err != nil {
		return nil, fmt.Errorf("look at the copies of the journal: %w", err)
	}
	is := stream.CachedInfo().Cluster
	if is == nil || is.Leader == "" {
		return nil, fmt.Errorf("look at the copies of the journal: the stream has no leader")
	}
	if len(is.Replicas) == 0 { // it names itself as the leader
		return nil, errors.New("look at the copies of the journal: a server answers that could not join the group of the stream")
	}
	if slices.ContainsFunc(is.Replicas, func(p *js.PeerInfo) bool { return p.Name == is.Leader }) {
		return nil, errors.New("look at the copies of the journal: another server begins to lead the stream")
	}
	all := []cluster.Copy{{Host: is.Leader, Current: true}}
	for _, p := range is.Replicas {
		all = append(all, cluster.Copy{Host: p.Name, Current: jetstream.Complete(p), Lag: p.Lag})
	}
	slices.SortFunc(all, func(a, b cluster.Copy) int { return strings.Compare(a.Host, b.Host) })
	return all, nil
}
