package membership

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// A session of the leader's machine begins soon after the look at the leader's lease, or not at all, also if the disk is slow before
// that: another host may lead.
func TestStartSoonAfterTheLease(t *testing.T) {
	t.Parallel()
	now := host.BootTime(time.Hour)
	looked, by := host.BootTime(0), host.BootTime(0)
	c := &Controller{
		Clock:  func() host.BootTime { return now },
		leases: map[string]host.Lease{"coder-1": {Token: host.Token{Session: "coder-1", Host: "a"}, Home: true}},
	}
	c.is = &outside.Cluster{
		Name: "a", Stream: true, Deadline: func() host.BootTime { return now + host.EndAfter },
		Confirmed: func() bool { looked = now; return true },
		NoteLease: func(host.Lease) error { now += host.BootTime(20 * time.Second); return nil },
		StartLeased: func(_ context.Context, _ string, _ uint64, _ spawn.Launch, _ time.Duration, man *host.DeadMan) (sessionhost.Process,
			error,
		) {
			by = man.StartBy
			return nil, nil
		},
	}
	if _, err := (&Router{c: c}).Start(t.Context(), "coder-1", 1, spawn.Launch{}, 0); err != nil {
		t.Fatal(err)
	}
	if by != looked+host.GrantFor {
		t.Errorf("it may begin until %v, and the lease was looked at at %v", by, looked)
	}
}
