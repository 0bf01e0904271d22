package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Renewals and answers are lost or late, the machine sleeps, the daemon and the leader restart, and clocks run at
// different rates: at no time does a session run here that the leader lets begin elsewhere.
func TestNeverTwoOwners(t *testing.T) {
	t.Parallel()
	began, moved := 0, 0
	for seed := range uint64(150) {
		w := newWorld(t, seed)
		folder := t.TempDir()
		k := w.daemon(folder, "daemon-0")
		for i := range 300 {
			w.advance(time.Second, false)
			if i%60 == 0 { // long phases of each kind
				w.faults, w.away = w.rand.Float64()*w.rand.Float64(), w.rand.IntN(4) == 0
			}
			_ = k.step(t.Context()) // most fail
			switch w.rand.IntN(60) {
			case 0:
				w.advance(time.Duration(w.rand.Int64N(int64(2*time.Minute))), true)
			case 1:
				k = w.daemon(folder, fmt.Sprintf("daemon-%d", i+1))
			case 2:
				w.restart()
			case 3, 4, 5, 6, 7:
				w.start(k, []host.OnLost{host.Restart, host.Ask, host.Wait}[w.rand.IntN(3)])
			case 8:
				for session, p := range w.shims {
					if p.over {
						_ = w.decide(host.Release{Session: session})
					}
				}
			}
		}
		began, moved = began+w.began, moved+w.moved
	}
	if began < 300 || moved < 100 {
		t.Errorf("%d sessions began and %d moved, which is too few to show anything", began, moved)
	}
}

// The deadline moves with the acknowledgement of a renewal, by when that was sent, and with nothing else.
func TestDeadlineMovesWhenAcknowledged(t *testing.T) {
	w := newWorld(t, 1)
	w.rates = [2]float64{1, 1}
	k := w.daemon(t.TempDir(), "daemon-0")
	step := func() host.BootTime { // sends a renewal, and returns when
		t.Helper()
		w.advance(6*time.Second, false)
		at := w.hostNow()
		_ = k.step(t.Context()) // the test decides whether it fails
		return at
	}
	step()
	first := step()
	p := w.start(k, host.Restart)
	for !p.began {
		w.advance(time.Second, false)
	}
	if p.man.EndAt != first+host.EndAfter {
		t.Errorf("it ends at %v, want %v", time.Duration(p.man.EndAt), time.Duration(first+host.EndAfter))
	}
	w.away = true
	step()
	step()
	if p.man.EndAt != first+host.EndAfter {
		t.Error("a renewal without an answer moved the deadline")
	}
	w.away = false
	second := step()
	if p.man.EndAt != second+host.EndAfter {
		t.Errorf("it ends at %v, want %v", time.Duration(p.man.EndAt), time.Duration(second+host.EndAfter))
	}
}

// A look is no renewal, even if the leader takes it for one.
func TestLookIsNotAcknowledged(t *testing.T) {
	w := newWorld(t, 1)
	w.entry.revision = 0
	k := w.daemon(t.TempDir(), "daemon-0")
	if err := k.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.lost = true
	if err := k.look(t.Context()); !errors.Is(err, errLost) || w.entry.daemon != "daemon-0" {
		t.Fatalf("%v; the leader has %+v", err, w.entry)
	}
	w.lost = false
	w.advance(4*time.Second, false)
	if err := k.step(t.Context()); err != nil || k.guard.Holds(w.hostNow()) { // on a revision that is over by then
		t.Errorf("%v; the host takes the look for its renewal", err)
	}
}

// A daemon that begins anew obeys no leader that the one before it knew to be replaced.
func TestEpochIsKept(t *testing.T) {
	w := newWorld(t, 1)
	folder := t.TempDir()
	w.epoch = 7
	if err := w.daemon(folder, "daemon-0").step(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := w.daemon(folder, "daemon-1")
	var fenced *sessionhost.Fenced
	if err := k.Epoch(6); !errors.As(err, &fenced) {
		t.Errorf("epoch 6 after 7: %v", err)
	}
	if err := k.Epoch(7); err != nil {
		t.Error(err)
	}
	w.epoch = 6
	if err := k.step(t.Context()); !errors.As(err, &fenced) || k.guard.Incarnation != 0 {
		t.Errorf("an answer of epoch 6 after 7: %v", err)
	}
}

// An epoch that cannot be stored is not acted on.
func TestEpochCannotBeStored(t *testing.T) {
	w := newWorld(t, 1)
	k := w.daemon(t.TempDir()+"/gone", "daemon-0")
	if err := k.step(t.Context()); err == nil || k.guard.Incarnation != 0 || k.guard.Epoch != 0 {
		t.Errorf("%v, incarnation %d", err, k.guard.Incarnation)
	}
}

// A host that was lost ends its sessions before it joins anew, except those that wait for it.
func TestRejoin(t *testing.T) {
	w := newWorld(t, 3)
	w.rates = [2]float64{1, 1}
	k := w.daemon(t.TempDir(), "daemon-0")
	tick := func() error { w.advance(time.Second, false); return k.step(t.Context()) }
	until := func(what string, is func() bool) {
		t.Helper()
		for range 200 {
			if is() {
				return
			}
			_ = tick() // it fails while there is no connection
		}
		t.Fatalf("it never happened: %s", what)
	}
	until("a lease", func() bool { return k.guard.Holds(w.hostNow()) })
	waits, restarts := w.start(k, host.Wait), w.start(k, host.Restart)
	until("both began", func() bool { return waits.began && restarts.began })
	w.away = true
	until("the loss", func() bool { return w.b().State == host.Lost })
	if !restarts.over || waits.over {
		t.Error("the session with a deadline has ended, the one that waits has not")
	}
	stuck := &process{token: host.Token{Session: "coder-0", Host: "b"}, began: true, stuck: true}
	w.shims["coder-0"] = stuck
	w.away = false
	for range 20 {
		if err := tick(); err == nil {
			t.Error("it reports nothing while a session of before does not end")
		}
	}
	if w.b().State != host.Lost {
		t.Error("it joined while a session of before may run")
	}
	stuck.over = true
	until("the return", func() bool { return w.b().State == host.Joined && k.guard.Holds(w.hostNow()) })
	if w.b().Incarnation != 2 || waits.over {
		t.Errorf("incarnation %d, the session that waits is over: %v", w.b().Incarnation, waits.over)
	}
	if p := w.start(k, host.Restart); p == nil {
		t.Error("the host that came back starts nothing")
	}
}

// The daemon of a host that was removed ends its sessions, and then itself. That of a host that has left ends.
func TestGone(t *testing.T) {
	for name, c := range map[string]struct {
		in   host.Input
		runs bool
	}{
		"removed while a session runs": {host.Remove{Name: "b"}, true},
		"removed":                      {host.Remove{Name: "b"}, false},
		"left":                         {host.Leave{Name: "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			k := w.daemon(t.TempDir(), "daemon-0")
			for !k.guard.Holds(w.hostNow()) {
				w.advance(time.Second, false)
				if err := k.step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			p := &process{over: true}
			if c.runs {
				p = w.start(k, host.Restart)
				w.advance(4*time.Second, false)
			}
			if err := w.decide(c.in); err != nil {
				t.Fatal(err)
			}
			for range 200 {
				w.advance(time.Second, false)
				if gone, is := errors.AsType[*Gone](k.step(t.Context())); is {
					if !p.over || gone.Left == c.runs {
						t.Errorf("its session is over: %v; %+v", p.over, gone)
					}
					return
				}
			}
			t.Fatal("its daemon never ended")
		})
	}
}

// A folder that was copied is noticed, on another machine and on the same one.
func TestCopiedFolder(t *testing.T) {
	w := newWorld(t, 5)
	w.rates = [2]float64{1, 1}
	folder := t.TempDir()
	first := w.daemon(folder, "daemon-0")
	for range 10 {
		w.advance(time.Second, false)
		if err := first.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	second := w.daemon(t.TempDir(), "daemon-1")
	var gone *Gone
	for range 20 {
		w.advance(time.Second, false)
		_ = second.step(t.Context()) // one of the two notices it
		if err := first.step(t.Context()); errors.As(err, &gone) {
			return
		}
	}
	t.Error("two daemons renew the same lease")
}

// A leader that has started again knows no renewal. The host renews its lease at once, and its sessions go on.
func TestLeaderStartsAgain(t *testing.T) {
	w := newWorld(t, 7)
	w.rates = [2]float64{1, 1}
	k := w.daemon(t.TempDir(), "daemon-0")
	for w.entry.daemon == "" {
		if err := k.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.advance(6*time.Second, false)
	}
	w.entry = w.fresh()
	if err := errors.Join(k.look(t.Context()), k.step(t.Context())); err != nil || w.entry.daemon != "daemon-0" {
		t.Errorf("%v; the leader has %+v", err, w.entry)
	}
}

// What the leader says about another host or an older incarnation is not taken in.
func TestForeignAnswers(t *testing.T) {
	w := newWorld(t, 6)
	k := w.daemon(t.TempDir(), "daemon-0")
	if err := k.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := w.answer()
	old.Host.Incarnation = 0
	if _, _, err := k.take(old); err == nil || k.guard.Incarnation != 1 {
		t.Errorf("%v, incarnation %d", err, k.guard.Incarnation)
	}
	w.hosts.Hosts["b"].Name = "c"
	w.advance(6*time.Second, false)
	if err := k.step(t.Context()); err == nil {
		t.Error("an answer about host c was taken in")
	}
}

// steady is a leader that takes each renewal.
type steady struct {
	renewed, extended []time.Duration
	began             time.Time
	revision          uint64
}

func (s *steady) reachable() bool { return true }

func (s *steady) renew(_ context.Context, in wire.RenewIn) (wire.RenewOut, error) {
	if in.N > 0 {
		s.renewed = append(s.renewed, time.Since(s.began))
		s.revision++
	}
	wait.Elapse(time.Second) // the way of the answer
	return wire.RenewOut{
		Host: host.Host{Name: "b", State: host.Joined, Boot: "boot-1", Incarnation: 1}, Revision: s.revision,
		Daemon: in.Daemon, N: in.N,
	}, nil
}

func (s *steady) grant(context.Context, wire.GrantIn) (host.Grant, error) { return host.Grant{}, nil }
func (s *steady) Known() []host.Local                                     { return nil }
func (s *steady) End(context.Context, string) error                       { return nil }

func (s *steady) Extend(_ context.Context, to host.BootTime) error {
	s.extended = append(s.extended, time.Duration(to-host.EndAfter))
	return nil
}

// The daemon renews the lease every five seconds, and each answer moves the deadline by when its renewal was sent.
func TestRenewsEveryFiveSeconds(t *testing.T) {
	space, err := workspace.OpenWorkspace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &steady{began: time.Now()}
		k := &leaseKeeper{
			facts: wire.RenewIn{Boot: "boot-1", Daemon: "daemon-0"}, name: "b", team: "shop", folder: folder, leader: s, shims: s,
			find: func(_, _ []host.Lack) []host.Lack { return nil },
			now:  func() host.BootTime { return host.BootTime(time.Since(s.began)) }, log: slog.New(slog.DiscardHandler),
		}
		if err := k.begin(); err != nil {
			t.Fatal(err)
		}
		d := &daemon{Options: Options{Space: space, Log: k.log}, keeper: k, line: &line{came: make(chan struct{}, 1)}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := d.work(ctx, nil); err != nil {
			t.Error(err)
		}
		if n := len(s.renewed); n < 9 || n > 12 || len(s.extended) < n-1 || !slices.Equal(s.extended, s.renewed[:len(s.extended)]) {
			t.Errorf("renewed at %v, moved the deadline by the renewals of %v", s.renewed, s.extended)
		}
		for i, at := range s.renewed[1:] {
			if gap := at - s.renewed[i]; gap < 5*time.Second || gap > 6*time.Second {
				t.Errorf("%v between two renewals", gap)
			}
		}
	})
}

// TestFound checks that a host says at once what it lacks of something that the leader asks for anew.
func TestFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.faults = 0
	k := w.daemon(t.TempDir(), "daemon-1")
	key := host.Lack{What: host.Variable, Name: "KEY"}
	k.find = func(uses, was []host.Lack) []host.Lack {
		if slices.Contains(uses, key) {
			return []host.Lack{key}
		}
		return nil
	}
	settle := func() {
		for range 12 {
			w.advance(time.Second, false)
			_ = k.step(t.Context())
		}
	}
	settle()
	if w.heard == nil || len(w.heard.Uses) != 0 {
		t.Fatalf("the leader heard %+v", w.heard)
	}
	w.uses = []host.Lack{key}
	for range 7 { // the next renewal brings the question, and a second later the answer is there
		w.advance(time.Second, false)
		_ = k.step(t.Context())
	}
	if w.heard == nil || !slices.Equal(w.heard.Uses, w.uses) || !slices.Equal(w.heard.Lacks, []host.Lack{key}) {
		t.Errorf("the leader heard %+v", w.heard)
	}
}
