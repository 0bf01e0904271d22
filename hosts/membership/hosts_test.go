package membership

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/hosts/invite"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/work/outside"
)

// leader is a leader with a loop of its own. Its clocks are those of the bubble.
type leader struct {
	*Controller
	t         *testing.T
	rechecked chan struct{}
	stop      func()
}

// lead starts a leader on a journal. began is when the machine was started.
func lead(t *testing.T, j journal.Journal, began time.Time) *leader {
	is := &leader{t: t, rechecked: make(chan struct{}, 100)}
	opts := outside.Options{
		Config: &config.Config{Dir: t.TempDir()}, BootID: "boot-a", Log: slog.New(slog.DiscardHandler),
		Cluster: &outside.Cluster{
			Team: "shop", Name: "a", Capacity: 2, Folder: t.TempDir(),
			Dial:    func(context.Context, string) (*http.Client, string, error) { return nil, "", errors.New("no link") },
			Foreign: func(string) string { return "" },
			Connected: func(name string) string { // the connections look at the members meanwhile
				if _, member := is.Member(name); !member {
					return ""
				}
				return "192.0.2.1:5000"
			},
			Recheck: func() { is.rechecked <- struct{}{} },
		},
	}
	l := loop.New(t.Context(), loop.Options{Journal: j, Log: opts.Log})
	if err := l.Replay(t.Context()); err != nil {
		t.Fatal(err)
	}
	is.Controller = New(l, opts)
	is.Clock = func() host.BootTime { return host.BootTime(time.Since(began)) }
	l.Register(is.HostHooks())
	if err := l.Tell(t.Context(), &team.Event{Actor: byHosts, What: team.DaemonStarted{BootID: opts.BootID}}); err != nil {
		t.Fatal(err)
	}
	if err := l.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	l.Go(is.HostsBegin)
	is.stop = func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		l.Shutdown(nil)
	}
	synctest.Wait()
	return is
}

// host is what the journal has of a host.
func (l *leader) host(name string) host.Host {
	l.t.Helper()
	h, err := l.known(l.t.Context(), name)
	if err != nil {
		l.t.Fatal(err)
	}
	return h
}

var places = wire.Places{Root: "/srv/shop", Exe: "/bin/fairlead"}

// other is the daemon of another host: the rules of core/host, and nothing else.
type other struct {
	l     *leader
	name  string
	boot  string
	guard *host.Guard
	found *wire.Found
	began time.Time

	engine string // where it says that it listens
}

func (o *other) now() host.BootTime { return host.BootTime(time.Since(o.began)) }

// renew sends what is due, and takes in the answer.
func (o *other) renew() error {
	in := wire.RenewIn{
		Boot: o.boot, Labels: []string{"gpu"}, Capacity: 3, Places: places, Version: "v1", Daemon: o.name + "-1",
		Incarnation: o.guard.Incarnation, Found: o.found, Engine: o.engine,
	}
	r, due := o.guard.Renew(o.now())
	if due {
		in.N, in.Revision = r.N, r.Revision
	}
	out, err := o.l.Renew(o.l.t.Context(), o.name, in)
	if err != nil {
		return err
	}
	o.guard.Read(&out.Host, o.boot)
	o.guard.SawEpoch(out.Epoch)
	o.guard.SawLease(out.Revision, host.RenewalID{Daemon: out.Daemon, N: out.N}, out.Closed)
	return nil
}

func (o *other) must(times int) {
	o.l.t.Helper()
	for range times {
		if err := o.renew(); err != nil {
			o.l.t.Fatal(err)
		}
		wait.Elapse(time.Duration(host.RenewEvery))
	}
}

// joined is a host that was invited and whose daemon runs.
func joined(l *leader, name string) *other {
	l.t.Helper()
	if err := l.Admit(l.t.Context(), invite.Joiner{Member: cluster.Member{Name: name, Key: "U" + name}, Invited: "ann"}); err != nil {
		l.t.Fatal(err)
	}
	o := &other{l: l, name: name, boot: "boot-" + name, guard: host.NewGuard(name, name+"-1", 0), began: time.Now().Add(-time.Hour)}
	o.must(3)
	return o
}

func within(t *testing.T, test func(t *testing.T)) { t.Helper(); synctest.Test(t, test) }

// TestLifeOfAHost follows a host from its invitation to its loss and back.
func TestLifeOfAHost(t *testing.T) {
	within(t, func(t *testing.T) {
		l := lead(t, memory.New(), time.Now())
		defer func() { l.stop() }()
		if h := l.host("a"); h.State != host.Joined || h.Capacity != 2 {
			t.Errorf("the leader itself: %+v", h)
		}
		b := joined(l, "b")
		beside, _ := l.Beside()
		if known := beside.Known["b"]; !known.Connected || known.Version != "v1" || known.Lease < 0 {
			t.Errorf("beside the journal: %+v", known)
		}
		if h := l.host("b"); h.State != host.Joined || h.Capacity != 3 || h.Key != "Ub" || !b.guard.Holds(b.now()) {
			t.Errorf("%+v, with a lease: %v", h, b.guard.Holds(b.now()))
		}
		for round, step := range []struct {
			silence time.Duration
			want    host.State
		}{{9 * time.Second, host.Joined}, {2 * time.Second, host.Doubted}, {48 * time.Second, host.Doubted}, {3 * time.Second, host.Lost}} {
			wait.Elapse(step.silence) // the last renewal was 5 s before the first
			synctest.Wait()
			if h := l.host("b"); h.State != step.want {
				t.Fatalf("round %d: it is %s, want %s", round, h.State, step.want)
			}
		}
		if b.guard.Holds(b.now()) {
			t.Error("it is lost, and holds a lease")
		}
		b.must(3)
		if h := l.host("b"); h.State != host.Joined || h.Incarnation != 3 || !b.guard.Holds(b.now()) {
			t.Errorf("back: %+v", h)
		}
	})
}

// TestDoubtEnds checks that a renewal ends a doubt, and that the leader's own machine is never doubted.
func TestDoubtEnds(t *testing.T) {
	within(t, func(t *testing.T) {
		l := lead(t, memory.New(), time.Now())
		defer func() { l.stop() }()
		b := joined(l, "b")
		wait.Elapse(20 * time.Second)
		synctest.Wait()
		if h := l.host("b"); h.State != host.Doubted {
			t.Fatalf("it is %s", h.State)
		}
		b.must(1)
		if h := l.host("b"); h.State != host.Joined || h.Incarnation != 2 {
			t.Errorf("%+v", h)
		}
		wait.Elapse(time.Hour)
		synctest.Wait()
		if h := l.host("a"); h.State != host.Joined {
			t.Errorf("the leader is %s", h.State)
		}
	})
}

// TestAnotherLeader checks that leases go on when the leader starts again, and that no renewal of before counts
// for it.
func TestAnotherLeader(t *testing.T) {
	within(t, func(t *testing.T) {
		j := memory.New()
		began := time.Now()
		l := lead(t, j, began)
		b := joined(l, "b")
		was := l.heard["b"].Revision
		l.stop()
		wait.Elapse(30 * time.Second)
		l = lead(t, j, began)
		defer func() { l.stop() }()
		b.l = l
		b.must(1)
		if got := l.heard["b"].Revision; got <= was {
			t.Errorf("the entry has %d, and had %d before: the host takes no older one", got, was)
		}
		b.must(2)
		if h := l.host("b"); h.State != host.Joined || h.Incarnation != 2 || !b.guard.Holds(b.now()) || b.guard.Epoch != 2 {
			t.Errorf("%+v, epoch %d", h, b.guard.Epoch)
		}
	})
}

// TestLeaderWhoseClockIsBehind checks that leases go on with a leader whose clock shows an earlier time than that of the one before.
func TestLeaderWhoseClockIsBehind(t *testing.T) {
	within(t, func(t *testing.T) {
		j := memory.New()
		l := lead(t, j, time.Now())
		b := joined(l, "b")
		l.heard["b"].Revision += uint64(time.Hour/time.Millisecond) << 16
		b.must(2)
		l.stop()
		b.l = lead(t, j, time.Now())
		defer func() { b.l.stop() }()
		before, _ := b.guard.Deadline()
		b.must(2)
		if after, holds := b.guard.Deadline(); !holds || after <= before {
			t.Errorf("the deadline of its sessions is %v, and was %v before", after, before)
		}
	})
}

// TestRemovedMember checks that a host that is removed gets no lease, and has to go.
func TestRemovedMember(t *testing.T) {
	within(t, func(t *testing.T) {
		l := lead(t, memory.New(), time.Now())
		defer func() { l.stop() }()
		b := joined(l, "b")
		if m, ok := l.Member("b"); !ok || m.Key != "Ub" || m.Role != cluster.Host {
			t.Errorf("%+v, %v", m, ok)
		}
		if _, err := l.loop.Submit(t.Context(), change.Actor{Kind: "human", ID: "ann"}, "", host.Remove{Name: "b"}); err != nil {
			t.Fatal(err)
		}
		<-l.rechecked
		if _, ok := l.Member("b"); ok {
			t.Error("a removed host is a member")
		}
		var no *wire.Problem
		if err := b.renew(); !errors.As(err, &no) || no.Code != wire.Refused {
			t.Errorf("it renews: %v", err)
		}
		if err := l.Admit(t.Context(), invite.Joiner{Member: cluster.Member{Name: "a", Key: "Ux"}, Invited: "ann"}); err == nil ||
			!strings.Contains(err.Error(), "the machine of the leader") {
			t.Errorf("a second a: %v", err)
		}
		if _, err := l.Renew(t.Context(), "zoe", wire.RenewIn{Places: places}); err == nil {
			t.Error("a stranger renews")
		}
		if _, err := l.Renew(t.Context(), "b", wire.RenewIn{Places: wire.Places{Root: `/srv/"`, Exe: "/bin/fairlead"}}); err == nil ||
			!strings.Contains(err.Error(), "move it to another folder") {
			t.Errorf("a path that cannot be written into JSON: %v", err)
		}
	})
}

// TestGrantOfALeaderThatIsCutOff checks that no host starts a session by the word of a leader that another one may have replaced.
func TestGrantOfALeaderThatIsCutOff(t *testing.T) {
	within(t, func(t *testing.T) {
		l := lead(t, memory.New(), time.Now())
		defer func() { l.stop() }()
		joined(l, "b")
		token := host.Token{Session: "coder-1", Host: "b", Incarnation: l.host("b").Incarnation, N: 1}
		if err := l.loop.View(t.Context(),
			func(t *team.Team) { t.Hosts.Leases = map[string]host.Lease{"coder-1": {Token: token, Boot: "boot-b"}} }); err != nil {
			t.Fatal(err)
		}
		for _, confirmed := range []bool{true, false} {
			l.is.Confirmed = func() bool { return confirmed }
			grant, err := l.Grant(t.Context(), "b", wire.GrantIn{Token: token})
			var no *wire.Problem
			if confirmed && (err != nil || grant.Token != token) || !confirmed && (!errors.As(err, &no) || no.Code != wire.NotHere) {
				t.Errorf("confirmed %t: %+v, %v", confirmed, grant, err)
			}
		}
	})
}

// TestAddressOfAnEngineHost checks that the team learns where an engine host listens now, which it says with its renewals. A host that
// keeps no journal does not become an engine host by its own word.
func TestAddressOfAnEngineHost(t *testing.T) {
	within(t, func(t *testing.T) {
		l := lead(t, memory.New(), time.Now())
		defer func() { l.stop() }()
		b := joined(l, "b")
		if err := l.Admit(t.Context(),
			invite.Joiner{
				Member: cluster.Member{Name: "c", Role: cluster.Engine, Key: "Uc"}, Address: "c:4222",
				Invited: "ann",
			}); err != nil {
			t.Fatal(err)
		}
		c := &other{l: l, name: "c", boot: "boot-c", guard: host.NewGuard("c", "c-1", 0), began: time.Now()}
		for _, s := range []struct {
			of         *other
			says, want string
			refused    bool
		}{
			{c, "", "c:4222", false},
			{c, "c:4222", "c:4222", false},
			{c, "192.0.2.9:4222", "192.0.2.9:4222", false},
			{c, "", "192.0.2.9:4222", false},
			{c, "192.0.2.9", "192.0.2.9:4222", true},
			{b, "b:4222", "", false},
		} {
			s.of.engine = s.says
			wait.Elapse(2 * time.Duration(host.RenewEvery))
			var no *wire.Problem
			if err := s.of.renew(); errors.As(err, &no) != s.refused || err != nil && no == nil {
				t.Errorf("%s says %q: %v", s.of.name, s.says, err)
			}
			if got := l.host(s.of.name).Engine; got != s.want {
				t.Errorf("%s says %q: it is at %q, want %q", s.of.name, s.says, got, s.want)
			}
		}
		if now, _ := l.engineHosts(); len(now) != 1 || now[0].Address != "192.0.2.9:4222" {
			t.Errorf("%+v", now)
		}
	})
}

// TestTwoDaemons checks that of two daemons of one host only one has the lease.
func TestTwoDaemons(t *testing.T) {
	within(t, func(t *testing.T) {
		l := lead(t, memory.New(), time.Now())
		defer func() { l.stop() }()
		b := joined(l, "b")
		in := wire.RenewIn{
			Boot: b.boot, Labels: []string{"gpu"}, Capacity: 3, Places: places, Daemon: "b-2", Incarnation: 2, N: 7,
			Revision: l.heard["b"].Revision - 1,
		}
		if out, err := l.Renew(t.Context(), "b", in); err != nil || out.Daemon != "b-1" {
			t.Errorf("a renewal on an old revision: %+v, %v", out, err)
		}
		in.Revision++
		if out, err := l.Renew(t.Context(), "b", in); err != nil || out.Daemon != "b-2" || out.N != 7 {
			t.Errorf("one on the present revision: %+v, %v", out, err)
		}
	})
}

// TestAnswered checks that a fault which the host found is not taken for one of this machine.
func TestAnswered(t *testing.T) {
	there, here := &wire.Problem{Code: wire.Failed, Why: "git is not installed here"}, errors.New("the disk is full")
	if got := answered(there).Error(); got != "it answers: git is not installed here" {
		t.Error(got)
	}
	if got := answered(here); !errors.Is(got, here) {
		t.Error(got)
	}
}

// TestLacks checks that what a host says it lacks is in the journal once, and keeps sessions that use it away.
func TestLacks(t *testing.T) {
	within(t, func(t *testing.T) {
		l := lead(t, memory.New(), time.Now())
		defer func() { l.stop() }()
		l.uses = []host.Lack{{What: host.Program, Name: "claude"}, {What: host.Variable, Name: "KEY"}}
		b := joined(l, "b")
		says := func(found *wire.Found) host.Host {
			t.Helper()
			b.found = found
			b.must(1)
			return l.host("b")
		}
		key, disk := host.Lack{What: host.Variable, Name: "KEY"}, host.Lack{What: host.Disk}
		for _, c := range []struct {
			name  string
			found *wire.Found
			want  []host.Lack
		}{
			{"it has not looked for all", &wire.Found{Lacks: []host.Lack{disk}}, nil},
			{
				"a variable, and what no agent uses", &wire.Found{Uses: l.uses, Lacks: []host.Lack{key, {What: host.Program, Name: "rm"}}},
				[]host.Lack{key},
			},
			{"the same", &wire.Found{Uses: l.uses, Lacks: []host.Lack{key}}, []host.Lack{key}},
			{"its disk", &wire.Found{Uses: l.uses, Lacks: []host.Lack{key, disk}}, []host.Lack{disk, key}},
			{"nothing", &wire.Found{Uses: l.uses}, nil},
			{"a variable again", &wire.Found{Uses: l.uses, Lacks: []host.Lack{key}}, []host.Lack{key}},
			{"it has not looked", nil, nil},
		} {
			before := l.loop.Head()
			if got := says(c.found).Lacks; !slices.Equal(got, c.want) {
				t.Errorf("%s: %v", c.name, got)
			}
			if c.name == "the same" && l.loop.Head() != before {
				t.Error("what was known is in the journal again")
			}
		}
	})
}

// TestUses lists what the sessions of an agent need of a host.
func TestUses(t *testing.T) {
	conf := config.Agent{Command: []string{"claude", "-p"}}
	if got := usesOf(&conf); got != nil {
		t.Errorf("an agent without a host: %v", got)
	}
	conf.Host.Any = true
	if got := usesOf(&conf); !slices.Equal(got, []host.Lack{{What: host.Program, Name: "claude"}}) {
		t.Errorf("%v", got)
	}
	conf.Command[0] = "./claude"
	if got := usesOf(&conf); got != nil {
		t.Errorf("a program of the checkout: %v", got)
	}
}

// A host does not leave while a session runs there that takes no place, from when it led the team.
func TestLeaveWithASession(t *testing.T) {
	within(t, func(t *testing.T) {
		l := lead(t, memory.New(), time.Now())
		defer func() { l.stop() }()
		joined(l, "b")
		if _, err := l.loop.Submit(t.Context(), byHosts, "",
			host.Place{Session: "coder-1", Host: "b", OnLost: host.Wait, Home: true}); err != nil {
			t.Fatal(err)
		}
		if err := l.Leave(t.Context(), "b"); err == nil ||
			!strings.Contains(err.Error(), "1 sessions are placed on host b; drain it first") {
			t.Errorf("with a session: %v", err)
		}
		if _, err := l.loop.Submit(t.Context(), byHosts, "", host.Release{Session: "coder-1"}); err != nil {
			t.Fatal(err)
		}
		if err := l.Leave(t.Context(), "b"); err != nil || l.host("b").State != host.Left {
			t.Errorf("without one: %v", err)
		}
	})
}
