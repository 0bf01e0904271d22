package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// leader is what a host asks of its leader.
type leader interface {
	reachable() bool
	renew(ctx context.Context, in wire.RenewIn) (wire.RenewOut, error)
	grant(ctx context.Context, in wire.GrantIn) (host.Grant, error)
}

// shims are those of this host.
type shims interface {
	Known() []host.Local                                // those whose process has begun
	End(ctx context.Context, session string) error      // of the process
	Extend(ctx context.Context, to host.BootTime) error // moves the deadline of all that have one
}

// Gone says that the host does not belong to its team at present.
type Gone struct {
	Host, Team string
	Why        string
	Left       bool // no session was lost by it
}

func (g *Gone) Error() string { return fmt.Sprintf("host %s of team %s: %s", g.Host, g.Team, g.Why) }

const (
	askWait  = 3 * time.Second // for an answer of the leader
	shimWait = 2 * time.Second // for that of a shim

	// lookN is the number of a renewal that only reads: it is on no revision, so it is never taken, and no other
	// renewal has this number.
	lookN = 1<<53 - 1
)

// leaseKeeper has the lease of a host, and decides by it which sessions run here.
type leaseKeeper struct {
	facts  wire.RenewIn // without the numbers of a renewal
	name   string
	team   string
	folder string
	now    func() host.BootTime
	leader leader
	shims  shims
	find   func(uses, was []host.Lack) []host.Lack // what this machine lacks
	log    *slog.Logger

	learned func(wire.RenewOut) // nil: not needed
	setup   func() string       // nil: there is none

	asking  sync.Mutex // one renewal at a time, so that answers are taken in in their order
	storing sync.Mutex // of the epoch

	mu     sync.Mutex
	guard  *host.Guard
	joined bool   // this daemon was taken in once
	newest uint64 // incarnation that was seen
	closed bool
	is     host.Host
	leases map[string]host.Lease
	ending map[host.Token]bool // processes that were asked to end
	tried  host.BootTime       // when the leader was last asked about the state of the host
	heard  time.Time           // when it last answered; for people
	uses   []host.Lack         // programs and variables that the leader asks about
	lacks  []host.Lack         // at the last look
	again  bool                // not yet reported to the leader: which of uses are here
	no     string              // why it last refused a connection; empty: it did not answer, or there is one
}

// begin reads what the last daemon of the host left.
func (k *leaseKeeper) begin() error {
	epoch, err := loadEpoch(k.folder)
	k.guard = host.NewGuard(k.name, k.facts.Daemon, epoch)
	return err
}

// Epoch is hosts/local's Guard. It takes in an epoch, which is on disk before anything is done by it.
func (k *leaseKeeper) Epoch(epoch uint64) error {
	k.storing.Lock()
	defer k.storing.Unlock()
	k.mu.Lock()
	seen := k.guard.Epoch
	k.mu.Unlock()
	switch {
	case epoch < seen:
		return &sessionhost.Fenced{Why: fmt.Sprintf("host %s has seen epoch %d of the leader, which is above %d: another leader has begun since",
			k.name, seen, epoch)}
	case epoch == seen:
		return nil
	}
	if err := storeEpoch(k.folder, epoch); err != nil {
		return fmt.Errorf("store the epoch of the leader: %w", err)
	}
	k.mu.Lock()
	k.guard.SawEpoch(epoch)
	k.mu.Unlock()
	return nil
}

// Home is hosts/local's Guard.
func (k *leaseKeeper) Home(session string) (host.Lease, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l, placed := k.leases[session]
	return l, placed && l.Home
}

// MayStart is hosts/local's Guard: it asks the leader whether a session may start, and decides.
func (k *leaseKeeper) MayStart(ctx context.Context, token host.Token) (by, end host.BootTime, waits bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	k.mu.Lock()
	known := k.leases[token.Session].Token == token
	k.mu.Unlock()
	if !known { // it was placed since the last renewal
		if err := k.look(ctx); err != nil {
			return 0, 0, false, fmt.Errorf("read the lease of %s: %w", token.Session, err)
		}
	}
	k.mu.Lock()
	asked := k.now()
	k.guard.Ask(token.Session, asked)
	k.mu.Unlock()
	grant, err := k.leader.grant(ctx, wire.GrantIn{Token: token, Asked: asked})
	if err != nil {
		return 0, 0, false, fmt.Errorf("ask the leader whether %s may start: %w", token.Session, err)
	}
	if err := k.Epoch(grant.Epoch); err != nil {
		return 0, 0, false, err
	}
	return k.decide(token, grant)
}

// decide is the last check of this host before a session starts.
func (k *leaseKeeper) decide(token host.Token, grant host.Grant) (by, end host.BootTime, waits bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var lease *host.Lease
	if l, placed := k.leases[token.Session]; placed {
		lease, waits = &l, l.OnLost == host.Wait
	}
	why := "the leader's answer is about another lease"
	if grant.Token == token {
		by, why = k.guard.MayStart(lease, grant, k.now())
	}
	if why != "" {
		return 0, 0, false,
			&wire.Problem{Code: wire.NotHere, Why: fmt.Sprintf("%s does not start on host %s: %s", token.Session, k.name, why)}
	}
	end, _ = k.guard.Deadline()
	return by, end, waits, nil
}

// look reads what the leader has of the host.
func (k *leaseKeeper) look(ctx context.Context) error {
	k.asking.Lock()
	defer k.asking.Unlock()
	k.mu.Lock()
	in := k.facts
	in.Incarnation, in.N = k.guard.Incarnation, lookN
	k.mu.Unlock()
	if in.Incarnation == 0 {
		return errors.New("this host has no lease yet")
	}
	return k.ask(ctx, in)
}

// next is the renewal that is due, if one is.
func (k *leaseKeeper) next() (in wire.RenewIn, due bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	in = k.facts
	if k.guard.Incarnation != 0 && !k.closed {
		r, due := k.guard.Renew(now)
		if !due && k.again {
			in.Incarnation, in.N = k.guard.Incarnation, lookN
			return in, true
		}
		in.Incarnation, in.N, in.Revision = r.Incarnation, r.N, r.Revision
		return in, due
	}
	if k.tried != 0 && now-k.tried < host.RenewEvery || k.guard.Incarnation == 0 && k.joined && k.runs() {
		return in, false // before a host joins again, its sessions have ended
	}
	k.tried = now
	if k.guard.Incarnation != 0 { // the lease is closed: the journal soon says that the host is lost
		in.Incarnation, in.N = k.guard.Incarnation, lookN
	}
	return in, true
}

// runs reports whether a session runs here that the loss of the host ends.
func (k *leaseKeeper) runs() bool {
	return slices.ContainsFunc(k.shims.Known(), func(is host.Local) bool { return is.Began && !is.Over && !is.Waits })
}

// needs reports whether the leader may still ask for a session. Until it has answered, it may for all.
func (k *leaseKeeper) needs(session string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, placed := k.leases[session]
	return placed || k.is.State == ""
}

// step does what is due. Call it every second. Its error is that of the renewal, after which the lease holds on until
// its deadline, or a *Gone.
func (k *leaseKeeper) step(ctx context.Context) error {
	err := k.renew(ctx)
	if _, gone := errors.AsType[*Gone](err); gone {
		return errors.Join(err, k.endOthers(ctx))
	}
	return errors.Join(err, k.endOthers(ctx), k.gone())
}

func (k *leaseKeeper) renew(ctx context.Context) error {
	k.asking.Lock()
	defer k.asking.Unlock()
	if !k.leader.reachable() { // a renewal that fails at once would delay the next one
		return nil
	}
	in, due := k.next()
	if !due {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	return k.ask(ctx, in)
}

// found looks for the programs and variables that the leader asks about.
func (k *leaseKeeper) found() *wire.Found {
	k.mu.Lock()
	uses, was := k.uses, k.lacks
	k.again = false
	k.mu.Unlock()
	lacks := k.find(uses, was)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lacks = lacks
	return &wire.Found{Uses: uses, Lacks: lacks}
}

// ask sends a renewal and takes in the answer.
func (k *leaseKeeper) ask(ctx context.Context, in wire.RenewIn) error {
	in.Found = k.found()
	if k.setup != nil {
		in.Config = k.setup()
	}
	out, err := k.leader.renew(ctx, in)
	if err != nil {
		return fmt.Errorf("renew the lease of host %s: %w", k.name, err)
	}
	if out.Host.Name != k.name {
		return fmt.Errorf("the leader answered host %q for host %s", out.Host.Name, k.name)
	}
	if err := k.Epoch(out.Epoch); err != nil {
		return err
	}
	if k.learned != nil && len(out.Engines) > 0 {
		k.learned(out)
	}
	end, moved, err := k.take(out)
	if err != nil || !moved {
		return err
	}
	// Sessions of an older incarnation end first. The shim of one that does not answer now does not take a deadline
	// that comes after its own.
	err = k.endOthers(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shimWait)
	defer cancel()
	if late := k.shims.Extend(ctx, end); late != nil {
		err = errors.Join(err, fmt.Errorf("move the deadline of the sessions here: %w", late))
	}
	return err
}

// take takes in an answer, and returns the deadline if it moved.
func (k *leaseKeeper) take(out wire.RenewOut) (end host.BootTime, moved bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if out.Host.Incarnation < k.newest {
		return 0, false,
			fmt.Errorf("the leader knows incarnation %d of host %s, which has been %d: its journal is an old copy", out.Host.Incarnation,
				k.name, k.newest)
	}
	k.guard.Read(&out.Host, k.facts.Boot)
	was, held := k.guard.Deadline()
	if k.guard.Incarnation != 0 {
		k.guard.SawLease(out.Revision, host.RenewalID{Daemon: out.Daemon, N: out.N}, out.Closed)
	}
	k.newest, k.is, k.closed, k.heard = out.Host.Incarnation, out.Host, out.Closed, time.Now()
	k.no = ""
	if !slices.Equal(k.uses, out.Uses) {
		k.uses, k.again = out.Uses, true
	}
	k.leases = make(map[string]host.Lease, len(out.Leases))
	for _, l := range out.Leases {
		k.leases[l.Session] = l
	}
	switch {
	case k.joined && out.Host.Boot != k.facts.Boot:
		err = k.goneFor("another machine has joined under its name, so the folder .fairlead/cluster was copied; keep it on one machine",
			false)
	case held && !out.Closed && out.Daemon != "" && out.Daemon != k.facts.Daemon: // empty: the leader has started again
		err = k.goneFor("another daemon renews its lease, so the folder .fairlead/cluster was copied; keep it in one place", false)
	}
	k.joined = k.joined || k.guard.Incarnation != 0
	end, holds := k.guard.Deadline()
	return end, holds && (!held || end > was), err
}

// endOthers ends the processes of sessions that have no lease here.
func (k *leaseKeeper) endOthers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shimWait)
	defer cancel()
	var faults []error
	for _, session := range k.others() {
		k.log.Warn("a session ends, because it has no lease on this host", "session", session.Session)
		if err := k.shims.End(ctx, session.Session); err != nil {
			faults = append(faults, fmt.Errorf("end %s, which has no lease here: %w", session.Session, err))
			k.mu.Lock()
			delete(k.ending, session) // again, at the next step
			k.mu.Unlock()
		}
	}
	return errors.Join(faults...)
}

// others are the sessions to end. It names each once.
func (k *leaseKeeper) others() (list []host.Token) {
	known := k.shims.Known() // first: the lease of one that starts now is known before its process
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.is.State == "" {
		return nil // the leader has not answered this daemon
	}
	ending := map[host.Token]bool{}
	for _, is := range known {
		var lease *host.Lease
		if l, placed := k.leases[is.Token.Session]; placed {
			lease = &l
		}
		if k.guard.Duty(lease, k.facts.Boot, is) != host.EndProcess {
			continue
		}
		if ending[is.Token] = true; !k.ending[is.Token] {
			list = append(list, is.Token)
		}
	}
	k.ending = ending
	return list
}

func (k *leaseKeeper) goneFor(why string, left bool) error {
	return &Gone{Host: k.name, Team: k.team, Why: why, Left: left}
}

// gone reports that the host was removed or has left, once its sessions have ended.
func (k *leaseKeeper) gone() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.is.RemovedBy == "" && k.is.State != host.Left, k.runs():
		return nil
	case k.is.RemovedBy != "":
		return k.goneFor(k.is.RemovedBy+
			" removed it from the team; `fairlead cluster leave` forgets the team here, and an invitation lets it join again", false)
	}
	return k.goneFor("it has left the team, or was removed while no session ran on it; an invitation lets it join again", true)
}
