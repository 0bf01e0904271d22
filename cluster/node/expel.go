package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

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
)

// Expel takes the server of an engine host that has left, or is lost, out of the group of servers. The streams that it had a copy of
// get a new one on another server. It needs most of the servers. It may be repeated.
func (n *Node) Expel(ctx context.Context, name string) error {
	nc, err := nats.Connect("", nats.InProcessServer(n), nats.Nkey(n.o.Identity.PublicKey(), n.o.Identity.SignNonce), nats.Name(systemClient), nats.NoReconnect())
	if err != nil {
		return fmt.Errorf("take the server of host %s out of the group: %w", name, err)
	}
	defer nc.Close()
	ask, err := json.Marshal(server.JSApiMetaServerRemoveRequest{Peer: nodeID(name)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, expelWait)
	defer cancel()
	reply, err := nc.RequestWithContext(ctx, expelRoute, ask)
	var said server.JSApiMetaServerRemoveResponse
	if err == nil {
		err = json.Unmarshal(reply.Data, &said)
	}
	if err == nil && said.Error != nil && said.Error.ErrCode != notMember {
		err = errors.New(said.Error.Description)
	}
	if err != nil {
		return fmt.Errorf("take the server of host %s out of the group: %w", name, err)
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
