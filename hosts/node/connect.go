package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/hosts/ca"

	"github.com/nats-io/nats.go"
)

const (
	reconnectWait = 250 * time.Millisecond
	pingEvery     = time.Second // a server that is gone without a word is noticed after three
)

// ErrRefused is the answer of a server to a host that does not belong to the team.
var ErrRefused = errors.New("the team refuses this host: it was removed, or has left, or its keys are older than its last invitation; to come back, it needs a new invitation")

// ErrPayload is about a server with a limit below cluster.PayloadMax.
var ErrPayload = fmt.Errorf("the server's limit for messages is too low; set max_payload to %d in its configuration and restart it",
	cluster.PayloadMax)

// Connect connects this process to its own server.
func (n *Node) Connect(ctx context.Context, ended func(error)) (*nats.Conn, error) {
	return connect(ctx, n.o.Identity, "", n.o.Log, ended, nats.InProcessServer(n))
}

func connect(ctx context.Context, id *ca.Identity, servers string, log *slog.Logger, ended func(error), more ...nats.Option) (*nats.Conn,
	error,
) {
	if err := id.CheckClock(); err != nil {
		return nil, err
	}
	within := jetstream.ReconnectAfter
	if end, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(end))
	}
	nc, err := nats.Connect(servers, append(more,
		nats.Name(id.Name),
		nats.Nkey(id.PublicKey(), id.SignNonce),
		nats.CustomInboxPrefix(cluster.InboxPrefix(id.Name)),
		nats.Timeout(within),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.ReconnectBufSize(-1), // nothing is sent later than it was meant
		nats.PingInterval(pingEvery),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			if nc.MaxPayload() < cluster.PayloadMax {
				log.Error("connected to another server", "server", nc.ConnectedUrlRedacted(), "error", ErrPayload)
				_ = nc.ForceReconnect() // to yet another one; it fails only if the connection is closed
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("connection to the team", "error", err)
		}),
		nats.ClosedHandler(func(nc *nats.Conn) { ended(explain(nc.LastError(), id)) }),
	)...)
	if err != nil {
		return nil, fmt.Errorf("connect host %s to team %s: %w", id.Name, id.Team(), explain(err, id))
	}
	if nc.MaxPayload() < cluster.PayloadMax {
		took := nc.MaxPayload()
		nc.Close()
		return nil, fmt.Errorf("connect host %s to team %s: %s takes %d bytes: %w", id.Name, id.Team(), servers, took, ErrPayload)
	}
	return nc, nil
}

// explain adds to an error of a connection what to do about it.
func explain(err error, id *ca.Identity) error {
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("no server answers; check the addresses, check that the other hosts run, and that no firewall blocks the connection: %w", err)
	}
	return ca.Explain(err, id.Team(), id.Now())
}
