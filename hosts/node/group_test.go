package node

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A server takes the state of the group from the others only if all of them have it.
func TestComplete(t *testing.T) {
	t.Parallel()
	peer := func(name string, current bool, active time.Duration) *server.PeerInfo {
		return &server.PeerInfo{Name: name, Peer: nodeID(name), Current: current, Active: active}
	}
	own := peer("c", false, time.Minute)
	own.Offline = true
	unnamed := *own
	unnamed.Name = "Server name unknown at this time"
	lags, away := peer("b", true, time.Second), peer("b", true, time.Second)
	lags.Lag, away.Offline = 1, true
	for _, tt := range []struct {
		name   string
		leader string
		peers  []*server.PeerInfo
		want   string // in the error; empty: none
	}{
		{"all others are complete", "a", []*server.PeerInfo{peer("b", true, time.Second), own}, ""},
		{"the group does not know the name of this one", "a", []*server.PeerInfo{peer("b", true, time.Second), &unnamed}, ""},
		{"this one is not in the group", "a", []*server.PeerInfo{peer("b", true, time.Second)}, ""},
		{"five hosts", "a", []*server.PeerInfo{peer("b", true, 0), own, peer("d", true, 0), peer("e", true, 0)}, ""},
		{
			"one of five hosts is off", "a",
			[]*server.PeerInfo{peer("b", true, 0), own, peer("d", true, 0), peer("e", false, time.Hour)},
			"host e",
		},
		{"one lags", "a", []*server.PeerInfo{lags, own}, "host b"},
		{"one is off", "a", []*server.PeerInfo{away, own}, "host b"},
		{"one was current, and does not answer", "a", []*server.PeerInfo{peer("b", true, 9*time.Second), own}, "host b"},
		{"this one leads", "c", []*server.PeerInfo{peer("a", true, 0), peer("b", true, 0)}, "no other server leads"},
		{"a group of one", "a", []*server.PeerInfo{own}, "1 of the other servers"},
	} {
		err := complete(&server.MetaClusterInfo{Leader: tt.leader, Replicas: tt.peers}, "c")
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
