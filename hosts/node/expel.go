package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// systemClient is the name of the connection with which this process gives orders to the servers as a group. Only a
	// connection without a port has the right to it.
	systemClient = "fairlead-system"

	expelRoute  = "$JS.API.SERVER.REMOVE"
	expelWait   = 5 * time.Second
	notMember   = 10044 // "server is not a member of the cluster"
	nodeIDBytes = 8

	groupRoute  = "$SYS.REQ.SERVER.PING.JSZ"
	groupActive = 3 * time.Second // since a server answered the one that leads, which asks each second
	groupWait   = 2 * time.Second // for the one server that leads the group to answer
)

// Expel takes the server of an engine host that has left, or is lost, out of the group of servers. The streams that it had a copy of
// get a new one on another server. It needs most of the servers. It may be repeated.
func (n *Node) Expel(ctx context.Context, name string) error {
	var said server.JSApiMetaServerRemoveResponse
	err := n.order(ctx, expelRoute, expelWait, server.JSApiMetaServerRemoveRequest{Peer: nodeID(name)}, &said)
	if err == nil && said.Error != nil && said.Error.ErrCode != notMember {
		err = errors.New(said.Error.Description)
	}
	if err != nil {
		return fmt.Errorf("take the server of host %s out of the group: %w", name, err)
	}
	return nil
}

// order asks the servers as a group.
func (n *Node) order(ctx context.Context, route string, wait time.Duration, ask, said any) error {
	nc, err := nats.Connect("", nats.InProcessServer(n), nats.Nkey(n.o.Identity.PublicKey(), n.o.Identity.SignNonce),
		nats.Name(systemClient), nats.NoReconnect())
	if err != nil {
		return err
	}
	defer nc.Close()
	text, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	reply, err := nc.RequestWithContext(ctx, route, text)
	if err != nil {
		return err
	}
	return json.Unmarshal(reply.Data, said)
}

// Others is nil if one of the other servers leads the group, and all others have all of the group's state: then this one can take it from
// them.
func (n *Node) Others(ctx context.Context) error {
	var said struct {
		Data  *server.JSInfo   `json:"data"`
		Error *server.ApiError `json:"error"`
	}
	err := n.order(ctx, groupRoute, groupWait, server.JSzOptions{LeaderOnly: true}, &said)
	switch {
	case err != nil:
		return fmt.Errorf("no server leads the group of servers: %w", err)
	case said.Error != nil:
		return fmt.Errorf("ask for the group of servers: %w", said.Error)
	case said.Data == nil || said.Data.Meta == nil:
		return errors.New("no server leads the group of servers")
	}
	return complete(said.Data.Meta, n.Name())
}

// complete is nil if the servers of a group but one have all of its state.
func complete(group *server.MetaClusterInfo, but string) error {
	if group.Leader == but {
		return errors.New("no other server leads the group of servers")
	}
	has := 1 // the leader
	for _, peer := range group.Replicas {
		switch {
		case peer.Name == but || peer.Peer == nodeID(but):
		case !peer.Current || peer.Offline || peer.Lag != 0 || peer.Active > groupActive:
			return fmt.Errorf("the server of host %s is not complete or cannot be reached", peer.Name)
		default:
			has++
		}
	}
	if has < cluster.EnginesMin-1 {
		return fmt.Errorf("%d of the other servers are in the group, and %d are needed", has, cluster.EnginesMin-1)
	}
	return nil
}

// nodeID is what a server is called in its group, as NATS makes it of its name: a server that was not seen since the others started
// has no other name there.
func nodeID(name string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(name))
	id := make([]byte, nodeIDBytes)
	for i := range id {
		id[i] = digits[int(sum[i])%len(digits)]
	}
	return string(id)
}
