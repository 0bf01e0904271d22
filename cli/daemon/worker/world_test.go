package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// world is a leader with the real tables and rules, and the shims of host b with the real DeadMan. Its time is true time,
// which both clocks measure with rates of their own.
type world struct {
	t      *testing.T
	rand   *rand.Rand
	at     time.Duration
	rates  [2]float64 // of the host's and the leader's clock
	begun  time.Duration
	hosts  host.Hosts
	watch  host.Watch
	epoch  uint64
	entry  entry
	count  uint64 // changes of all entries
	shims  map[string]*process
	placed int
	began  int
	moved  int
	log    []string

	asleep bool    // the host's machine: no process runs
	faults float64 // how often an answer is lost or late
	away   bool
	lost   bool // every answer is

	uses  []host.Lack // what the leader asks for
	heard *wire.Found // what the host said last
}

type entry struct {
	revision, n uint64
	daemon      string
	closed      bool
}

type process struct {
	token host.Token
	man   host.DeadMan
	began bool
	over  bool
	stuck bool          // its shim does not answer
	endBy time.Duration // true time; 0: it was not asked to end
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 19)), epoch: 1, shims: map[string]*process{}, begun: time.Hour}
	for i := range w.rates {
		w.rates[i] = 1 + (w.rand.Float64()*2-1)*host.RateMax/100
	}
	w.decide(host.Join{Name: "b", Boot: "boot-1", Capacity: 4, Invited: true})
	w.entry, w.watch = w.fresh(), host.NewWatch(w.leaders())
	return w
}

func (w *world) fresh() entry { w.count++; return entry{revision: w.count} }

// restart makes the leader forget what is not in its journal: the lease's entry.
func (w *world) restart() {
	w.epoch++
	w.entry, w.watch = w.fresh(), host.NewWatch(w.leaders())
	w.watch.Revision = w.entry.revision
	w.note("the leader restarts")
}

func (w *world) hostNow() host.BootTime {
	return host.BootTime(float64(w.at)*w.rates[0]) + host.BootTime(w.begun)
}
func (w *world) leaders() host.BootTime { return host.BootTime(float64(w.at) * w.rates[1]) }

func (w *world) decide(in host.Input) error {
	changes, err := w.hosts.Decide(time.Unix(0, 0).Add(w.at), change.Actor{Kind: "human", ID: "ann"}, in)
	for _, ch := range changes {
		w.hosts.Apply(ch)
	}
	return err
}

func (w *world) b() *host.Host { return w.hosts.Hosts["b"] }

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%8.1f ", w.at.Seconds())+fmt.Sprintf(format, args...))
}

// advance lets true time pass. A machine that sleeps runs no shim meanwhile, but its clock counts.
func (w *world) advance(d time.Duration, sleeps bool) {
	w.asleep = sleeps
	for end := w.at + d; w.at < end; {
		w.at = min(end, w.at+500*time.Millisecond)
		w.lead()
		if !sleeps {
			w.shimsDo()
		}
	}
	w.asleep = false
	w.shimsDo()
}

// shimsDo lets each shim look at its clock.
func (w *world) shimsDo() {
	for session, p := range w.shims {
		switch {
		case p.over, p.stuck:
		case !p.began && p.man.MayBegin(w.hostNow()):
			if w.rand.IntN(3) == 0 {
				p.began = true
				w.began++
				w.check(session, "began")
			}
		case !p.began:
			p.over = true // it never begins
		case p.man.Due(w.hostNow() - host.EndWithin/2), p.endBy != 0 && w.at >= p.endBy:
			p.over = true
			w.note("%s ended", session)
		}
	}
}

// lead does what the leader has to do about host b.
func (w *world) lead() {
	switch w.watch.Due(w.leaders(), w.b().RemovedBy != "") {
	case host.DoubtIsDue:
		_ = w.decide(host.Doubt{Name: "b"})
	case host.CloseIsDue:
		if w.entry.revision == w.watch.Revision || w.watch.Revision == 0 {
			w.count++
			w.entry.revision, w.entry.closed = w.count, true
		}
		w.watch.Saw(w.entry.revision, w.entry.closed, w.leaders())
	case host.LossIsDue:
		_ = w.decide(host.Lose{Name: "b"})
	}
	for _, session := range w.hosts.Movable() {
		w.note("%s moves: %s", session, w.b().State)
		w.moved++
		w.check(session, "moves")
		_ = w.decide(host.Release{Session: session})
	}
}

// check fails if a session has a process here although the leader lets it begin elsewhere.
func (w *world) check(session, what string) {
	p := w.shims[session]
	may, why := w.hosts.MayMove(session)
	if p == nil || !p.began || p.over || !may || w.asleep {
		return
	}
	slices.Reverse(w.log)
	w.t.Fatalf("at %v %s %s, while it runs on host b until %v of %v, and the leader says: %s\n%s", w.at, session, what,
		time.Duration(p.man.EndAt), time.Duration(w.hostNow()), why, w.log[:min(40, len(w.log))])
}

func (w *world) reachable() bool { return !w.away }

var errLost = errors.New("the answer was lost")

// faulty lets a request be lost, or its answer be lost or late.
func (w *world) faulty(do func()) error {
	switch x := w.rand.Float64(); {
	case w.away || x < w.faults/3:
		return errLost
	case w.lost, x < w.faults*2/3:
		do()
		return errLost
	case x < w.faults:
		w.advance(time.Duration(w.rand.Int64N(int64(8*time.Second))), false)
		do()
		w.advance(time.Duration(w.rand.Int64N(int64(60*time.Second))), w.rand.IntN(3) == 0)
		return nil
	}
	do()
	return nil
}

func (w *world) renew(_ context.Context, in wire.RenewIn) (out wire.RenewOut, err error) {
	lost := w.faulty(func() {
		h := w.b()
		w.heard = in.Found
		switch {
		case in.N == 0 && in.Revision == 0:
			before := h.Incarnation
			err = w.decide(host.Join{Name: "b", Boot: in.Boot, Labels: in.Labels, Capacity: in.Capacity})
			if w.b().Incarnation != before {
				w.entry, w.watch = w.fresh(), host.NewWatch(w.leaders())
				w.note("host b has incarnation %d", w.b().Incarnation)
			}
		case in.Incarnation == h.Incarnation && in.Revision == w.entry.revision && !w.entry.closed:
			w.count++
			w.entry = entry{revision: w.count, n: in.N, daemon: in.Daemon}
			w.watch.Saw(w.count, false, w.leaders())
			_ = w.decide(host.Renew{Name: "b", Incarnation: in.Incarnation})
		}
		out = w.answer()
	})
	return out, errors.Join(err, lost)
}

func (w *world) answer() wire.RenewOut {
	out := wire.RenewOut{
		Host: *w.b(), Epoch: w.epoch, Revision: w.entry.revision, Daemon: w.entry.daemon, N: w.entry.n,
		Closed: w.entry.closed, Uses: w.uses,
	}
	for _, session := range slices.Sorted(func(yield func(string) bool) {
		for session := range w.hosts.Leases {
			if !yield(session) {
				return
			}
		}
	}) {
		out.Leases = append(out.Leases, w.hosts.Leases[session])
	}
	return out
}

func (w *world) grant(_ context.Context, in wire.GrantIn) (out host.Grant, err error) {
	lost := w.faulty(func() {
		if ok, why := w.hosts.Counts(in.Token); !ok {
			err = errors.New(why)
			return
		}
		out = host.Grant{Token: in.Token, Epoch: w.epoch, Asked: in.Asked}
	})
	return out, errors.Join(err, lost)
}

// Known, End and Extend are the shims'.
func (w *world) Known() (list []host.Local) {
	for _, p := range w.shims {
		if p.began {
			list = append(list, host.Local{Token: p.token, Shim: true, Began: true, Used: true, Over: p.over, Waits: p.man.Waits})
		}
	}
	return list
}

func (w *world) End(_ context.Context, session string) error {
	if w.shims[session].stuck || w.rand.IntN(4) == 0 {
		return errors.New("the shim does not answer")
	}
	if p := w.shims[session]; p.endBy == 0 {
		p.endBy = w.at + time.Second
	}
	return nil
}

func (w *world) Extend(_ context.Context, to host.BootTime) error {
	for _, p := range w.shims {
		if p.began && !p.over && p.endBy == 0 && !p.man.Due(w.hostNow()) {
			p.man.Extend(to)
		}
	}
	return nil
}

// daemon begins a daemon of the host.
func (w *world) daemon(folder, name string) *leaseKeeper {
	k := &leaseKeeper{
		facts: wire.RenewIn{Boot: "boot-1", Capacity: 4, Daemon: name},
		name:  "b", team: "shop", folder: folder, now: w.hostNow, leader: w, shims: w, log: slog.New(slog.DiscardHandler),
		find: func(_, _ []host.Lack) []host.Lack { return nil },
	}
	if err := k.begin(); err != nil {
		w.t.Fatal(err)
	}
	return k
}

// start places a session on the host and has it started there.
func (w *world) start(k *leaseKeeper, onLost host.OnLost) *process {
	w.placed++
	session := fmt.Sprintf("coder-%d", w.placed)
	if w.decide(host.Place{Session: session, Host: "b", OnLost: onLost}) != nil {
		return nil
	}
	token := w.hosts.Leases[session].Token
	if w.rand.IntN(3) == 0 {
		w.advance(time.Duration(w.rand.Int64N(int64(20*time.Second))), false)
	}
	by, end, waits, err := k.MayStart(w.t.Context(), token)
	if err != nil {
		return nil
	}
	p := &process{token: token, man: host.DeadMan{StartBy: by, EndAt: end, Waits: waits}}
	w.shims[session] = p
	w.note("%s may begin until %v and ends at %v", session, time.Duration(by), time.Duration(end))
	return p
}
