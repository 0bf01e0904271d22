package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/internal/test/ports"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// clusterOf is the folder of a leader, and its cluster.
func clusterOf(t *testing.T) (dir string, is *hosts.Cluster) {
	t.Helper()
	dir, _ = leader(t)
	is, err := hosts.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, is
}

// cutOff is a leader whose journal is replicated, and whom no other engine host answers.
func cutOff(t *testing.T) *Daemon {
	t.Helper()
	dir, is := clusterOf(t)
	authority, err := ca.Load(worker.Folder(dir))
	if err != nil {
		t.Fatal(err)
	}
	id, err := is.Identify(dir, authority)
	if err != nil {
		t.Fatal(err)
	}
	facts := engine.Facts{
		Stream: true,
		Engines: []cluster.EngineHost{
			{Name: "a", Address: is.Listen, Key: id.PublicKey()},
			{Name: "b", Address: "127.0.0.1:1"},
			{Name: "c", Address: "127.0.0.1:3"},
		},
	}
	if err := engine.StoreFacts(worker.Folder(dir), facts); err != nil {
		t.Fatal(err)
	}
	e := besideOf(t)
	e.signals = make(chan os.Signal, 4)
	if err := e.begin(t.Context(), dir, *is, id, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	d := &Daemon{beside: e, lead: &lead{}}
	if d.space, err = workspace.OpenWorkspace(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.space.Close() })
	return d
}

// opens opens the journal, and says how that ended.
func opens(t *testing.T, d *Daemon) <-chan error {
	t.Helper()
	opened := make(chan error, 1)
	go func() {
		_, err := d.openJournal(t.Context())
		opened <- err
	}()
	return opened
}

// A leader that waits for other engine hosts to open the journal ends when its process is asked to.
func TestAskedWhileNoEngineHostAnswers(t *testing.T) {
	t.Parallel()
	d := cutOff(t)
	opened := opens(t, d)
	d.beside.signals <- syscall.SIGTERM
	if err := wait.For(t, "the end", opened); !errors.Is(err, errAsked) || len(d.beside.signals) != 1 {
		t.Errorf("%v; %d signals are left", err, len(d.beside.signals))
	}
}

// A leader that another one replaces while it waits to open the journal, as after a reload, does not go on when the others answer: it would
// end the other one.
func TestDeposedWhileNoEngineHostAnswers(t *testing.T) {
	t.Parallel()
	d := cutOff(t)
	lost := make(chan struct{})
	d.beside.lost = lost
	d.beside.leads.Store(&engine.Lead{})
	opened := opens(t, d)
	close(lost)
	if err := wait.For(t, "the end", opened); !d.beside.deposedBy(err) || !errors.Is(err, errDeposed) {
		t.Error(err)
	}
}

// A leader that is asked to end does, also if another host has the journal by then.
func TestSignalToALeaderThatWasReplaced(t *testing.T) {
	_, a := leader(t)
	t.Setenv("XDG_RUNTIME_DIR", shortFolder(t))
	d, err := openDaemon(t.Context(), &Daemon{Conf: must(a.Load()), log: slog.New(slog.DiscardHandler), beside: besideOf(t)}, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it has begun", func() bool {
		is := false
		err := d.Engine.Loop.View(t.Context(), func(team *team.Team) { is = team.Hosts.Hosts["a"] != nil })
		return err == nil && is
	})
	if err := d.journal.Close(); err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	err = untilStopped(t.Context(), a, d, signals)
	if !errors.Is(err, journal.ErrClosed) || !d.beside.stopping.Load() {
		t.Errorf("%v; it ends: %t", err, d.beside.stopping.Load())
	}
	_ = d.Close() // it misses the journal
}

// An engine host that was asked to end does not lead, also if it has claimed the lead meanwhile.
func TestDownOfAHostThatClaims(t *testing.T) {
	dir, _ := leader(t)
	l := leadOf(t, dir, &members{all: map[string]cluster.Member{}})
	t.Setenv("XDG_RUNTIME_DIR", shortFolder(t))
	invited, err := l.Invite(t.Context(), "human/ann", nil, true)
	if err != nil {
		t.Fatal(err)
	}
	b, out := hostApp(t)
	if _, err := (worktree.Git{Dir: b.Dir}).Ask(t.Context(), "init", "--quiet"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.Dir, "fairlead.yaml"), []byte("version: 1\nagents: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := hosts.Join(t.Context(), b, []string{invited.Token},
		hosts.Joining{Name: "b", Engine: true, Listen: ports.Address(2)}); err != nil {
		t.Fatal(err)
	}
	e := besideOf(t)
	if leads, err := e.mayLead(t.Context(), b, UpOptions{}, true); leads || err != nil {
		t.Fatal(leads, err)
	}
	ended := make(chan bool, 1)
	go func() {
		claimed, err := e.follow(t.Context(), b, UpOptions{}, make(chan os.Signal), 0)
		if err != nil {
			t.Error(err)
		}
		ended <- claimed
	}()
	wait.Until(t, "the host is ready", func() bool { return strings.Contains(out.String(), "ready host b of team web\n") })
	e.leads.Store(&engine.Lead{})
	client, err := b.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Down(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if wait.For(t, "the end of the host", ended) {
		t.Error("it leads, although it was asked to end")
	}
}

// A leader that has served goes on as a host, whatever ended its daemon: another one can lead, and its sessions go on. One that cannot
// start ends, and a person sees why.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	full := errors.New("mirror the journal: the disk is full")
	for _, c := range []struct {
		name                          string
		err                           error
		first, served, leads, stopped bool
		want                          bool
	}{
		{"the disk is full", full, true, true, true, false, true},
		{"it cannot start", full, true, false, true, false, false},
		{"another one leads at its start", errDeposed, true, false, true, false, true},
		{"it was to take over", full, false, false, true, false, true},
		{"it was asked to end", full, true, true, true, true, false},
		{"it has the journal alone", full, true, true, false, false, false},
		{"it has ended", nil, true, true, true, false, false},
	} {
		e := &engines{said: c.served, facts: engine.Facts{Stream: true}}
		e.stopping.Store(c.stopped)
		if c.leads {
			e.leads.Store(&engine.Lead{})
		}
		if got := e.goesOn(c.err, c.first); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	dir, _ := leader(t)
	e := besideOf(t)
	var err error
	if e.space, err = workspace.OpenWorkspace(dir); err != nil {
		t.Fatal(err)
	}
	e.leads.Store(&engine.Lead{})
	if err := os.RemoveAll(filepath.Join(dir, ".fairlead")); err != nil {
		t.Fatal(err)
	}
	if e.goesOn(errDeposed, false) {
		t.Error("its folder is gone")
	}
}

// A store of a server that the team does not have any longer is removed, also if Fairlead ended when the journal had just come back to
// this machine. Without knowledge of the team it stays.
func TestStoreOfBefore(t *testing.T) {
	t.Parallel()
	dir, is := clusterOf(t)
	folder := worker.Folder(dir)
	store := filepath.Join(folder, engine.StoreFolder)
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		facts engine.Facts
		stays bool
	}{
		{engine.Facts{}, true},
		{engine.Facts{Stream: true, Engines: []cluster.EngineHost{{Name: "a"}}}, true},
		{engine.Facts{Engines: []cluster.EngineHost{{Name: "a"}}}, false},
	} {
		if err := engine.StoreFacts(folder, c.facts); err != nil {
			t.Fatal(err)
		}
		if err := besideOf(t).begin(t.Context(), dir, *is, nil, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		if stays := cli.Exists(store); stays != c.stays {
			t.Errorf("%+v: it is there: %t", c.facts, stays)
		}
	}
}

// The server of an engine host that leaves, joins again and leaves again is taken out of the group again.
func TestExpelledAgain(t *testing.T) {
	t.Parallel()
	e := &engines{server: &engine.Replica{}, removed: map[string]bool{"b": true, "c": true}}
	e.leads.Store(&engine.Lead{})
	e.removeMembers([]string{"c"})
	if e.removes("b") || !e.removes("c") {
		t.Error(e.removed)
	}
}

// A server that cannot start when the third engine host joins is tried again: no other change may come.
func TestServerOfAnEngineHostIsTriedAgain(t *testing.T) {
	t.Parallel()
	dir, _ := leader(t)
	e := besideOf(t)
	l, err := openLead(t.Context(), &config.Config{Dir: dir}, slog.New(slog.DiscardHandler), e)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	own := cluster.EngineHost{Name: "a", Address: l.is.Listen, Key: "of before the cluster was made anew"}
	at, err := own.Routes()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	l.engines(func() ([]cluster.EngineHost, []string) {
		return []cluster.EngineHost{own, {Name: "b", Address: "127.0.0.1:1"}, {Name: "c", Address: "127.0.0.1:3"}}, nil
	})
	is := func(ok func() bool) func() bool {
		return func() bool {
			e.mu.Lock()
			defer e.mu.Unlock()
			return ok()
		}
	}
	wait.Until(t, "it fails", is(func() bool { return e.applying }))
	if why := e.gap.is(); why.Code != cluster.ServerFailed || why.Fault == "" {
		t.Errorf("%+v", why)
	}
	taken.Close()
	wait.Until(t, "it runs", is(func() bool { return e.server != nil && !e.applying }))
	wait.Until(t, "it waits for the others", func() bool { return e.gap.is().Code == cluster.NotConnected })
}

// A host that claimed the lead with another fairlead.yaml than the one in the journal learns that, and says why it does not lead, until its
// file is the same.
func TestHostThatWasFencedOff(t *testing.T) {
	t.Parallel()
	dir, is := clusterOf(t)
	e := besideOf(t)
	if err := e.begin(t.Context(), dir, *is, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	own, err := config.Sum(dir)
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	e.facts = engine.Facts{Engines: []cluster.EngineHost{{Name: "a"}, {Name: "b"}}, Leader: "b", Config: own}
	e.mu.Unlock()
	why := e.mayNotLead()
	e.demote(&sessionhost.Fenced{Why: "it is no engine host of the team any longer"})
	e.work.Wait()
	if is := why(); is != nil {
		t.Errorf("its file is the same: %+v", is)
	}
	text := "version: 1\nagents: {}\n# changed\n"
	e.demote(fmt.Errorf("recover: %w", &sessionhost.Fenced{Why: "other", Leader: "c", Config: config.SumOf([]byte(text))}))
	e.work.Wait()
	if is := why(); is == nil || is.Leader != "c" || is.Ref != "" {
		t.Fatalf("its file is another one: %+v", is)
	}
	if err := os.WriteFile(filepath.Join(dir, config.FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if is := why(); is != nil {
		t.Errorf("its file is the same again: %+v", is)
	}
}

// A host that listens at all of its addresses does not say one: it would be what the network gives it at that moment.
func TestAddressThatAnEngineHostSays(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"192.0.2.7:4222": "192.0.2.7:4222", "build.lan:4222": "build.lan:4222", "0.0.0.0:4222": "",
		"[::]:4222": "",
	} {
		c := hosts.Cluster{Name: "b", Team: "web", Listen: listen}
		if is := c.Worker(engine.Facts{}); is.Engine != want {
			t.Errorf("with --listen %s it says %q, want %q", listen, is.Engine, want)
		}
	}
}
