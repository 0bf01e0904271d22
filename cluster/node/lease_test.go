package node

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cluster"
	"github.com/fairlead-dev/fairlead/cluster/ca"
	"github.com/fairlead-dev/fairlead/cluster/lease"
	"github.com/fairlead-dev/fairlead/internal/boottime"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/machine/host"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The tests of package lease are here, because they need a server, and a second test program with one is slow to
// build.

const second = host.BootTime(time.Second)

// bootClock is moved by a test. Each host has its own: they are never compared.
type bootClock struct {
	mu   sync.Mutex
	at   host.BootTime
	each host.BootTime // passes with each look
}

func (c *bootClock) now() host.BootTime {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at += c.each
	return c.at
}

func (c *bootClock) move(d host.BootTime) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at += d
}

// leases is a leader's host with a board, and host b with a keeper.
type leases struct {
	*team
	node  *Node
	hosts host.Hosts

	lead  bootClock
	admin *nats.Conn
	store *lease.Store
	board *lease.Board
	seen  chan host.Renew

	own    bootClock
	id     *ca.Identity
	nc     *nats.Conn
	keeper *lease.Keeper
	man    host.DeadMan // of a session's shim on b
	again  int          // times that it connected to another server
}

func newLeases(t *testing.T) *leases {
	t.Helper()
	l := &leases{team: newTeam(t, "web"), seen: make(chan host.Renew, 100)}
	l.node = l.team.start(l.options(l.host("a", cluster.Engine)))
	l.id = l.host("b", cluster.Engine)
	l.lead.at, l.own.at = 5000*second, 70*second
	var err error
	if l.admin, err = l.node.Connect(t.Context(), func(error) {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.admin.Close)
	js, err := jetstream.New(l.admin)
	if err != nil {
		t.Fatal(err)
	}
	if l.store, err = lease.Create(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	l.decide(host.Join{Name: "b", Boot: "boot1", Capacity: 4, Invited: true})
	l.decide(host.Place{Session: "s1", Host: "b"})
	l.newBoard()
	l.nc, _ = l.connect(l.id, l.node.Address())
	l.keeper = l.newKeeper("b-1")
	return l
}

func (l *leases) newBoard() {
	l.board = lease.NewBoard(l.store, l.lead.now, &l.hosts)
	board := l.board
	go func() {
		if err := board.Follow(l.t.Context(), func(r host.Renew) { l.seen <- r }); err != nil {
			l.t.Error(err)
		}
	}()
}

// newKeeper is that of a new daemon on b.
func (l *leases) newKeeper(daemon string) *lease.Keeper {
	l.t.Helper()
	js, err := jetstream.New(l.nc)
	if err != nil {
		l.t.Fatal(err)
	}
	store, err := lease.Bind(l.t.Context(), js)
	if err != nil {
		l.t.Fatal(err)
	}
	k := lease.NewKeeper(store, host.NewGuard("b", daemon, 1), l.own.now, func() error { l.again++; return l.nc.ForceReconnect() }, func(end host.BootTime) { l.man.Extend(end) })
	k.Guard(func(g *host.Guard) { g.Read(l.hosts.Hosts["b"], "boot1") })
	return k
}

// decide applies what the leader decides about the hosts.
func (l *leases) decide(in host.Input) {
	l.t.Helper()
	changes, err := l.hosts.Decide(time.Now(), "human/ann", in)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, ch := range changes {
		l.hosts.Apply(ch)
	}
}

// renew lets b send a renewal, which must be stored, and waits until the leader has seen it.
func (l *leases) renew() {
	l.t.Helper()
	if err := l.keeper.Step(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	if r := wait.For(l.t, "the renewal", l.seen); r.Name != "b" || r.Incarnation != l.hosts.Hosts["b"].Incarnation {
		l.t.Errorf("%+v", r)
	}
}

func (l *leases) holds() (holds bool, left host.BootTime) {
	l.keeper.Guard(func(g *host.Guard) {
		now := l.own.now()
		end, _ := g.Deadline()
		holds, left = g.Holds(now), end-now
	})
	return holds, left
}

func (l *leases) due(want host.Due) {
	l.t.Helper()
	if got := l.board.Due(l.hosts.Hosts["b"]); got != want {
		l.t.Errorf("%s is due, want %s", got, want)
	}
}

// A host that falls silent ends its sessions by its own deadline, and only after that, with its lease closed, the
// leader lets them begin elsewhere. The host cannot renew a closed lease, and begins anew with another incarnation.
func TestSilentHostLosesItsLease(t *testing.T) {
	t.Parallel()
	l := newLeases(t)
	l.renew()
	if holds, left := l.holds(); !holds || left != 45*second || l.man.EndAt != l.own.now()+45*second {
		t.Errorf("%v %v", holds, time.Duration(left))
	}
	if err := l.keeper.Step(t.Context()); err != nil || len(l.seen) > 0 {
		t.Error("a renewal that is not due", err)
	}
	for range 3 {
		l.own.move(5 * second)
		l.lead.move(5 * second)
		l.renew()
	}
	l.due(host.NothingDue)

	l.lead.move(20 * second) // silence begins
	l.due(host.DoubtIsDue)
	l.decide(host.Doubt{Name: "b"})
	if ok, why := l.hosts.MayMove("s1"); ok {
		t.Error(why)
	}
	l.own.move(44 * second)
	if l.man.Due(l.own.now()) {
		t.Error("the session ends early")
	}
	l.own.move(second)
	if holds, _ := l.holds(); holds || !l.man.Due(l.own.now()) {
		t.Error("the session goes on after its deadline")
	}
	l.lead.move(45 * second)
	l.due(host.CloseIsDue)
	if err := l.board.Close(t.Context(), l.hosts.Hosts["b"]); err != nil {
		t.Fatal(err)
	}
	l.due(host.LossIsDue)
	l.decide(host.Lose{Name: "b"})
	if ok, why := l.hosts.MayMove("s1"); !ok {
		t.Error(why)
	}

	if err := l.keeper.Step(t.Context()); err == nil { // it has not heard of that
		t.Error("a closed lease is renewed")
	}
	if holds, _ := l.holds(); holds {
		t.Error("a closed lease holds")
	}
	l.keeper = l.newKeeper("b-2") // nor has its next daemon
	l.keeper.Guard(func(g *host.Guard) {
		g.Read(&host.Host{Name: "b", State: host.Joined, Boot: "boot1", Incarnation: 1}, "boot1")
	})
	if err := l.keeper.Step(t.Context()); err == nil {
		t.Error("a new daemon renews a closed lease")
	}
	if holds, _ := l.holds(); holds {
		t.Error("a closed lease holds for a new daemon")
	}
	l.decide(host.Join{Name: "b", Boot: "boot1", Capacity: 4})
	l.keeper.Guard(func(g *host.Guard) { g.Read(l.hosts.Hosts["b"], "boot1") })
	l.due(host.NothingDue)
	l.renew()
	if holds, left := l.holds(); !holds || left != 45*second {
		t.Error("the next incarnation has no lease")
	}
}

// A leader cannot close a lease on a revision that is past, so a renewal that it has not seen saves the host.
func TestCloseLosesAgainstRenewal(t *testing.T) {
	t.Parallel()
	l := newLeases(t)
	l.renew()
	stale := lease.NewBoard(l.store, l.lead.now, &l.hosts) // of a leader whose node lags: it sees nothing
	l.lead.move(65 * second)
	if stale.Due(l.hosts.Hosts["b"]) != host.CloseIsDue {
		t.Error("nothing is due after 65 s")
	}
	if err := stale.Close(t.Context(), l.hosts.Hosts["b"]); err == nil || !strings.Contains(err.Error(), "close the lease of host b") {
		t.Error("a renewed lease was closed:", err)
	}
	if due := stale.Due(l.hosts.Hosts["b"]); due != host.NothingDue { // it has learned of the renewal
		t.Error(due)
	}
	l.own.move(5 * second)
	l.renew()
	wait.Until(t, "the close", func() bool { return l.board.Close(t.Context(), l.hosts.Hosts["b"]) == nil })
	if err := stale.Close(t.Context(), l.hosts.Hosts["b"]); err != nil { // what is closed is closed
		t.Error(err)
	}
}

// A new leader takes in the renewals that were stored before it began.
func TestNewLeader(t *testing.T) {
	t.Parallel()
	l := newLeases(t)
	l.renew()
	l.newBoard()
	if r := wait.For(t, "the renewal of before", l.seen); r.Name != "b" {
		t.Errorf("%+v", r)
	}
	l.lead.move(65 * second)
	l.due(host.CloseIsDue)
	if err := l.board.Close(t.Context(), l.hosts.Hosts["b"]); err != nil {
		t.Error(err)
	}
}

// The answer to a renewal is lost. The entry shows its id, so it counts, from when it was sent.
func TestLostAnswerToRenewal(t *testing.T) {
	t.Parallel()
	l := newLeases(t)
	l.own.move(second)
	sent := l.own.now()
	other := l.newKeeper("b-1") // has the same ids: what it stores, the first seems to have sent
	if err := other.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.man = host.DeadMan{}
	if err := l.keeper.Step(t.Context()); err != nil {
		t.Error(err)
	}
	if l.man.EndAt != sent+45*second {
		t.Errorf("the deadline is %v", time.Duration(l.man.EndAt))
	}
	l.keeper = l.newKeeper("b-2") // of another daemon, no renewal counts
	l.man = host.DeadMan{}
	if err := l.keeper.Step(t.Context()); err == nil || l.man.EndAt != 0 {
		t.Error("the renewal of another daemon counts", err)
	}
	l.own.move(5 * second)
	if err := l.keeper.Step(t.Context()); err != nil || l.man.EndAt != l.own.now()+45*second {
		t.Error(err)
	}
}

// Without proof for 3 s a host connects to another server. Its lease holds on meanwhile.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l := newLeases(t)
	l.renew()
	js, err := jetstream.New(l.admin)
	if err != nil {
		t.Fatal(err)
	}
	info, err := js.Stream(t.Context(), cluster.LeaseStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.node.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the loss of the connection", func() bool { return !l.nc.IsConnected() })
	l.own.each = second / 2 // so each try takes 0.5 s by the clock of b
	tries := 0
	for ; l.again == 0; tries++ {
		l.own.move(5 * second)
		if err := l.keeper.Step(t.Context()); err == nil || !strings.Contains(err.Error(), "renew the lease of host b") {
			t.Fatal(err)
		}
	}
	if tries != 6 {
		t.Errorf("it connects elsewhere after %d tries", tries)
	}
	l.own.each = 0
	if holds, _ := l.holds(); !holds {
		t.Error("the lease is over")
	}
	if err := l.node.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the connections", func() bool { return l.nc.IsConnected() && l.admin.IsConnected() })
	l.own.move(5 * second)
	l.renew()
	if after, err := info.Info(t.Context()); err != nil || after.State.Msgs != 1 || l.man.EndAt != l.own.now()+45*second {
		t.Errorf("%+v %v", after.State, err)
	}
}

// What a host writes into its entry is a renewal at most. Entries of other incarnations are nothing.
func TestStrangeEntries(t *testing.T) {
	t.Parallel()
	l := newLeases(t)
	l.renew()
	js, err := jetstream.New(l.nc)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := jetstream.New(l.admin)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"b.99": `{"host":"b","incarnation":99}`, "b.01": "x", "b.x": "x", "b.2": strings.Repeat("x", 500), "c.1": "x", "b": "x",
	} {
		if _, err := admin.Publish(t.Context(), cluster.LeaseSubjects+key, []byte(value)); err != nil {
			t.Fatal(key, err)
		}
	}
	if _, err := js.Publish(t.Context(), cluster.LeaseSubjects+"b.1", []byte("garbage")); err != nil {
		t.Fatal(err)
	}
	if r := wait.For(t, "the change", l.seen); r.Name != "b" || r.Incarnation != 1 {
		t.Errorf("%+v", r)
	}
	if err := l.board.Close(t.Context(), l.hosts.Hosts["b"]); err != nil {
		t.Error(err)
	}
	if _, err := js.Publish(t.Context(), cluster.LeaseSubjects+"b.1", make([]byte, 600)); err == nil {
		t.Error("a value of 600 bytes is stored")
	}
}

// A store without room refuses the bucket with an error that says so.
func TestFullStore(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	o := f.options(f.host("a", cluster.Engine))
	o.StoreMax = 1 << 20
	n := f.start(o)
	nc, err := n.Connect(t.Context(), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	var api *jetstream.APIError
	if _, err := lease.Create(t.Context(), js, 1); err == nil || !errors.As(err, &api) || !strings.Contains(err.Error(), "disk of an engine host is full") {
		t.Error(err)
	}
	if _, err := lease.Bind(t.Context(), js); err == nil || !strings.Contains(err.Error(), "start Fairlead on an engine host first") {
		t.Error(err)
	}
}

func TestBootClock(t *testing.T) {
	first := boottime.Now()
	if next := boottime.Now(); first <= 0 || next < first {
		t.Errorf("%v, then %v", time.Duration(first), time.Duration(next))
	}
}
