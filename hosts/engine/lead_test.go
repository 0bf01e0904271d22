package engine

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/internal/test/ports"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// A server that cannot read a snapshot leaves the store of that group open.
func TestMain(m *testing.M) {
	testsize.Parallel(8) // they wait for elections
	const nats = "github.com/nats-io/nats-server/v2/server"
	os.Exit(leaktest.Main(m, nats+".(*fileStore).flushStreamStateLoop", nats+"/ats.Register.func1"))
}

// servers are those of engine hosts that have met.
func servers(t *testing.T, names ...string) (list []*Replica) {
	t.Helper()
	options, all := hosts(t, names...)
	return meet(t, options, all)
}

func meet(t *testing.T, options []Options, all []cluster.EngineHost) (list []*Replica) {
	t.Helper()
	for _, o := range options {
		s, err := Start(t.Context(), o, all)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		list = append(list, s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
	defer cancel()
	for _, s := range list {
		if err := s.Meet(ctx, func(cluster.Unreplicated) {}); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// hosts are the engine hosts of a team, whose servers do not run yet.
func hosts(t *testing.T, names ...string) (options []Options, all []cluster.EngineHost) {
	t.Helper()
	authority, err := ca.Create(t.TempDir(), "web", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		o := Options{Folder: t.TempDir(), Listen: ports.Address(2), Log: slog.New(slog.DiscardHandler)}
		id, err := ca.NewIdentity(o.Folder, name, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		request, err := id.Request([]string{name, "127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := authority.Sign(request, name, cluster.Engine, net.IP.IsLoopback, time.Now())
		if err == nil {
			err = id.Install(certificate, authority.PEM())
		}
		if err != nil {
			t.Fatal(err)
		}
		o.Identity = id
		options = append(options, o)
		all = append(all, cluster.EngineHost{Name: name, Address: o.Listen, Key: id.PublicKey()})
	}
	return options, all
}

// A person learns which engine host the others wait for: a firewall may be between.
func TestNotMet(t *testing.T) {
	t.Parallel()
	options, all := hosts(t, "a", "b", "c")
	var said logged
	options[0].Log = slog.New(slog.NewTextHandler(&said, nil))
	s, err := Start(t.Context(), options[0], all)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.quiet = 0
	ctx, end := context.WithCancel(t.Context())
	met := make(chan error, 1)
	var waits atomic.Pointer[cluster.Unreplicated]
	go func() { met <- s.Meet(ctx, func(is cluster.Unreplicated) { waits.Store(&is) }) }()
	wait.Until(t, "the log names the hosts", func() bool { return strings.Contains(said.text(), `code=not_connected hosts="[b c]"`) })
	if is := waits.Load(); is.Code != cluster.NotConnected || !slices.Equal(is.Hosts, []string{"b", "c"}) {
		t.Errorf("%+v", is)
	}
	end()
	if err := <-met; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := strings.Count(said.text(), "are not connected to each other yet"); n != 1 {
		t.Errorf("it was said %d times", n)
	}
}

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	kept strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.Write(b)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}

// The SQLite journal of a leader goes into the stream with its hashes. Of two hosts that claim the lead at one time one gets it,
// and it can hand the lead over.
func TestMoveAndLead(t *testing.T) {
	t.Parallel()
	all := servers(t, "a", "b", "c")
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	one := journal.Change{
		Time: time.Now(), Machine: "team", Entity: "team/team", Row: "E1", To: "x", Trigger: "daemon_started",
		Actor: change.Actor{Kind: "engine", ID: "x"},
	}
	if _, err := j.Append(t.Context(), []journal.Change{one, one}); err != nil {
		t.Fatal(err)
	}
	_, want, err := j.Head(t.Context())
	if err != nil || j.Close() != nil {
		t.Fatal(err)
	}
	for range 2 { // as after a crash
		if err := all[0].Move(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	moved, err := all[1].Open(t.Context(), filepath.Join(t.TempDir(), "mirror.db"), func(why error) { t.Log(why) })
	if err != nil {
		t.Fatal(err)
	}
	seq, hash, err := moved.Head(t.Context())
	if err != nil || seq != 2 || hash != want {
		t.Errorf("the stream ends with change %d, %s, %v; want %s", seq, hash, err, want)
	}
	if err := moved.Close(); err != nil {
		t.Error(err)
	}

	name, revision, err := all[1].Leader(t.Context())
	if err != nil || name != "" || revision != 0 {
		t.Fatalf("%q leads, by revision %d, %v", name, revision, err)
	}
	leads, err := all[0].Claim(t.Context(), revision)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all[1].Claim(t.Context(), revision); err == nil {
		t.Error("two hosts claim the lead on one revision")
	}
	if !leads.Confirmed() {
		t.Error("the claim does not count")
	}
	extended, kept := make(chan host.BootTime, 100), make(chan struct{})
	go func() {
		defer close(kept)
		leads.Keep(t.Context(), func(end host.BootTime) { extended <- end })
	}()
	if end := <-extended; end != leads.Deadline() {
		t.Errorf("the sessions end at %v, and %v was said", leads.Deadline(), end)
	}
	if err := leads.Give(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	<-kept
	if leads.Confirmed() {
		t.Error("a leader that has handed over acts on its lease")
	}
	second, err := all[1].Take(t.Context(), 0, func(err error) { t.Log(err) })
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the third host claims the lead", func() bool { // what it reads may be old
		name, revision, err := all[2].Leader(t.Context())
		if err == nil && name == "b" {
			_, err = all[2].Claim(t.Context(), revision)
		}
		return err == nil && name == "b"
	})
	second.Keep(t.Context(), func(host.BootTime) {})
	if err := second.Give(t.Context(), "a"); err == nil {
		t.Error("a leader that was replaced hands over the lead of the next one")
	}
	wait.Until(t, "all see that the third host leads",
		func() bool { name, _, err := all[0].Leader(t.Context()); return err == nil && name == "c" })
}

// A server draws the lead of the streams to itself. One whose copy is damaged leaves it to others.
func TestDraw(t *testing.T) {
	t.Parallel()
	all := servers(t, "a", "b", "c")
	api, err := js.New(all[0].nc)
	if err != nil {
		t.Fatal(err)
	}
	leads := func(stream string) string {
		is, err := api.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		return is.CachedInfo().Cluster.Leader
	}
	draws := slices.IndexFunc(all, func(s *Replica) bool { return s.node.Name() != leads(cluster.JournalStream) })
	s := all[draws]
	s.damaged.Store(true)
	before := leads(cluster.JournalStream)
	if err := s.Draw(t.Context()); err != nil || leads(cluster.JournalStream) != before {
		t.Errorf("%s leads, %v", leads(cluster.JournalStream), err)
	}
	s.damaged.Store(false)
	wait.Until(t, "it leads", func() bool { return s.Draw(t.Context()) == nil })
	for _, stream := range []string{cluster.JournalStream, cluster.LeaseStream} {
		if got := leads(stream); got != s.node.Name() {
			t.Errorf("%s leads %s, want %s", got, stream, s.node.Name())
		}
	}
}

// While the servers have none that leads the lease's entry, it can be neither read nor claimed. That begins no silence anew: the
// first claim that the servers take is a second late at most.
func TestTakeWhileServersElect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		now := func() host.BootTime { return host.BootTime(time.Since(began)) + host.BootTime(time.Hour) }
		const patience = host.LeaderSilence
		away := func() bool { return time.Since(began) > 2*time.Second && time.Since(began) < 9*time.Second }
		refused := 0
		got, err := take(t.Context(), "b", patience, 0, now,
			func(ctx context.Context) (string, uint64, error) {
				if away() {
					wait.Elapse(time.Second / 2)
					return "", 0, errors.New("no answer")
				}
				return "a", 7, nil
			},
			func(_ context.Context, revision uint64) (uint64, error) {
				if away() {
					return 0, errors.New("no answer")
				}
				return revision, nil
			}, func(error) { refused++ })
		if took := time.Since(began); err != nil || got != 7 || took < 9*time.Second || took > 10*time.Second {
			t.Errorf("claimed on revision %d after %v, %v", got, took, err)
		}
		if refused != 1 {
			t.Errorf("%d claims were said to have failed, want the first one", refused)
		}
	})
}

// A renewal that is seen begins the silence anew. A lease of a host that could not lead is left to others for a while; that does
// not delay it when another one was silent.
func TestTakeSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		now := func() host.BootTime { return host.BootTime(time.Since(began)) }
		const while = host.BootTime(30 * time.Second)
		name := "a"
		ask := func(context.Context) (string, uint64, error) {
			if name == "b" {
				return name, 11, nil
			}
			return name, uint64(min(time.Since(began), 20*time.Second)/(2*time.Second)) + 1, nil
		}
		claim := func(_ context.Context, revision uint64) (uint64, error) { return revision, nil }
		got, err := take(t.Context(), "b", host.LeaderSilence, while, now, ask, claim, func(err error) { t.Error(err) })
		if took := time.Since(began); err != nil || got != 11 || took < 26*time.Second || took > 27*time.Second {
			t.Errorf("claimed on revision %d after %v, %v", got, took, err)
		}
		name, began = "b", time.Now()
		if got, err := take(t.Context(), "b", host.LeaderSilence, while, now, ask, claim, func(err error) { t.Error(err) }); err != nil ||
			got != 11 || time.Since(began) != 30*time.Second {
			t.Errorf("claimed on revision %d after %v, %v", got, time.Since(began), err)
		}
	})
}

// Of four engine hosts one is lost. When it is taken out, the journal has three copies again, and may lose another one.
func TestExpel(t *testing.T) {
	t.Parallel()
	all := servers(t, "a", "b", "c", "d")
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	one := journal.Change{
		Time: time.Now(), Machine: "team", Entity: "team/team", Row: "E1", To: "x", Trigger: "daemon_started",
		Actor: change.Actor{Kind: "engine", ID: "x"},
	}
	if _, err := j.Append(t.Context(), []journal.Change{one}); err != nil || j.Close() != nil {
		t.Fatal(err)
	}
	if err := all[0].Move(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	var lost *Replica // one that has a copy, and is not asked
	var stays []*Replica
	copies, err := all[0].Copies(t.Context())
	if err != nil || len(copies) != 3 {
		t.Fatalf("%+v, %v", copies, err)
	}
	none := slices.IndexFunc(all, func(s *Replica) bool {
		return !slices.ContainsFunc(copies, func(c cluster.Copy) bool { return c.Host == s.o.Identity.Name })
	})
	if err := all[none].Draw(t.Context()); !errors.Is(err, jetstream.ErrNoCopy) {
		t.Errorf("a server without a copy is to lead the stream: %v", err)
	}
	for _, s := range all {
		if lost == nil && s != all[0] && slices.ContainsFunc(copies, func(c cluster.Copy) bool { return c.Host == s.o.Identity.Name }) {
			lost = s
		} else {
			stays = append(stays, s)
		}
	}
	name := lost.o.Identity.Name
	if err := lost.Close(); err != nil {
		t.Fatal(err)
	}
	whole := func(s *Replica) func() bool {
		return func() bool {
			copies, err := s.Copies(t.Context())
			return err == nil && len(copies) == 3 &&
				!slices.ContainsFunc(copies, func(c cluster.Copy) bool { return !c.Current || c.Host == name })
		}
	}
	wait.Until(t, "the server is out of the group", func() bool { return stays[0].Expel(t.Context(), name) == nil })
	wait.Until(t, "three copies that are in step", whole(stays[0]))
	if err := stays[0].Expel(t.Context(), name); err != nil {
		t.Errorf("again: %v", err)
	}
	var rest []cluster.EngineHost
	for _, s := range stays {
		rest = append(rest, s.list[s.o.Identity.Name])
	}
	for _, s := range stays {
		if err := s.Set(t.Context(), rest); err != nil {
			t.Fatal(err)
		}
	}
	if err := stays[2].Close(); err != nil {
		t.Fatal(err)
	}
	moved, err := stays[1].Open(t.Context(), filepath.Join(t.TempDir(), "mirror.db"), func(why error) { t.Log(why) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := moved.Append(t.Context(), []journal.Change{one}); err != nil {
		t.Errorf("with two of three: %v", err)
	}
	if err := moved.Close(); err != nil {
		t.Error(err)
	}
}

// A server that lags names this host, which led before. That is no reason to claim the lead from a leader that is well.
func TestTakeOldAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		now := func() host.BootTime { return host.BootTime(time.Since(began)) + host.BootTime(time.Hour) }
		asked := 0
		got, err := take(t.Context(), "b", host.LeaderSilence, 0, now,
			func(context.Context) (string, uint64, error) {
				if asked++; asked%3 == 0 {
					return "b", 5, nil
				}
				return "a", 7 + uint64(min(time.Since(began), 20*time.Second)/(2*time.Second)), nil
			},
			func(_ context.Context, revision uint64) (uint64, error) { return revision, nil },
			func(err error) { t.Error(err) })
		if took := time.Since(began); err != nil || got != 17 || took < 26*time.Second || took > 27*time.Second {
			t.Errorf("claimed on %d after %v, %v", got, took, err)
		}
	})
}

// A host that could not lead leaves its own entry to others for a while. One that hands the lead over does not wait for that.
func TestTakeHandedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		now := func() host.BootTime { return host.BootTime(time.Since(began)) + host.BootTime(time.Hour) }
		got, err := take(t.Context(), "b", host.LeaderSilence, host.BootTime(30*time.Second), now,
			func(context.Context) (string, uint64, error) {
				if time.Since(began) > 5*time.Second {
					return "b", 9, nil
				}
				return "b", 7, nil
			},
			func(_ context.Context, revision uint64) (uint64, error) { return revision, nil },
			func(err error) { t.Error(err) })
		if took := time.Since(began); err != nil || got != 9 || took > 6*time.Second {
			t.Errorf("claimed on %d after %v, %v", got, took, err)
		}
	})
}
