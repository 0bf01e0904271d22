package host

import (
	"strings"
	"testing"
	"time"
)

const second = BootTime(time.Second)

func guard(t *testing.T) *Guard {
	t.Helper()
	g := NewGuard("b", "b-1", 3)
	g.Read(&Host{Name: "b", State: Joined, Boot: "boot1", Incarnation: 2}, "boot1")
	return g
}

// renew sends a renewal, which must be due.
func renew(t *testing.T, g *Guard, at BootTime) Renewal {
	t.Helper()
	r, due := g.Renew(at)
	if !due {
		t.Fatalf("no renewal is due at %v", time.Duration(at))
	}
	return r
}

// A lease counts from when its last acknowledged renewal was sent, however late the answer comes.
func TestLeaseCountsFromTheSend(t *testing.T) {
	g := guard(t)
	if _, held := g.Deadline(); held || g.Holds(0) {
		t.Error("a lease before a renewal")
	}
	r := renew(t, g, 10*second)
	if _, due := g.Renew(12 * second); due {
		t.Error("a second renewal within 5 s")
	}
	if g.Holds(12 * second) {
		t.Error("a lease before the answer")
	}
	again := renew(t, g, 16*second) // the answer to the first was lost, as it seems
	g.Stored(r, 1)
	if end, held := g.Deadline(); !held || end != 55*second || !g.Holds(54*second) || g.Holds(55*second) {
		t.Errorf("the lease ends at %v %v", time.Duration(end), held)
	}
	g.Stored(again, 1) // an answer for a revision that is past
	if end, _ := g.Deadline(); end != 55*second {
		t.Errorf("the lease ends at %v", time.Duration(end))
	}
	g.Stored(renew(t, g, 20*second), 9) // revisions of other entries lie between
	if end, _ := g.Deadline(); end != 65*second {
		t.Errorf("the lease ends at %v", time.Duration(end))
	}
}

// The answer to a renewal may be lost. The entry then names the renewal that was stored.
func TestLostAnswer(t *testing.T) {
	g := guard(t)
	first := renew(t, g, 10*second)
	renew(t, g, 16*second)
	g.SawLease(1, first.RenewalID, false)
	if end, held := g.Deadline(); !held || end != 55*second {
		t.Errorf("the lease ends at %v %v", time.Duration(end), held)
	}
	g = guard(t)
	first, next := renew(t, g, 10*second), renew(t, g, 16*second)
	g.SawLease(1, next.RenewalID, false)
	if end, _ := g.Deadline(); end != 61*second {
		t.Errorf("the lease ends at %v", time.Duration(end))
	}
	g.SawLease(1, first.RenewalID, false) // from a reader that lags

	g = guard(t) // a renewal of the daemon before is none of this one
	mine := renew(t, g, 10*second)
	g.SawLease(1, RenewalID{"b-0", mine.N}, false)
	if g.Holds(11 * second) {
		t.Error("the lease of another daemon")
	}
	if r := renew(t, g, 11*second); r.Revision != 1 {
		t.Errorf("%+v", r)
	}
}

// A lease that the leader has closed is over: the host renews it no more.
func TestClosedLease(t *testing.T) {
	g := guard(t)
	g.Stored(renew(t, g, 0), 1)
	g.SawLease(2, RenewalID{}, true)
	if _, due := g.Renew(100 * second); due || g.Holds(46*second) || !g.Holds(44*second) {
		t.Error("a closed lease is renewed, or ends at another time")
	}
	g.Read(&Host{State: Lost, Boot: "boot1", Incarnation: 2}, "boot1")
	if _, due := g.Renew(100 * second); due || g.Incarnation != 0 || g.Holds(second) {
		t.Error("a lost host has a lease")
	}
	g.Read(&Host{State: Joined, Boot: "boot1", Incarnation: 3}, "boot1")
	if r := renew(t, g, 101*second); r.Incarnation != 3 || r.Revision != 0 || g.Epoch != 3 {
		t.Errorf("%+v", r)
	}
	g.Read(&Host{State: Joined, Boot: "boot0", Incarnation: 3}, "boot1")
	if g.Incarnation != 0 {
		t.Error("the incarnation of another boot is its own")
	}
}

// TestMayStart goes through each condition of the last check.
func TestMayStart(t *testing.T) {
	token := Token{"s1", "b", 2, 7}
	for want, edit := range map[string]func(g *Guard, lease **Lease, grant *Grant, now *BootTime){
		"":                              func(*Guard, **Lease, *Grant, *BootTime) {},
		"the journal does not place":    func(_ *Guard, l **Lease, _ *Grant, _ *BootTime) { *l = nil },
		"the journal does not place it": func(_ *Guard, _ **Lease, grant *Grant, _ *BootTime) { grant.N++ },
		"another incarnation": func(g *Guard, l **Lease, grant *Grant, _ *BootTime) {
			grant.Incarnation, (*l).Incarnation = 1, 1
		},
		"another leader":      func(g *Guard, _ **Lease, _ *Grant, _ *BootTime) { g.SawEpoch(4) },
		"an earlier question": func(g *Guard, _ **Lease, _ *Grant, _ *BootTime) { g.Ask("s1", 12*second) },
		"too late":            func(_ *Guard, _ **Lease, _ *Grant, now *BootTime) { *now = 16 * second },
		"no lease":            func(g *Guard, _ **Lease, _ *Grant, _ *BootTime) { g.acked = -40 * second },
	} {
		g := guard(t)
		g.Stored(renew(t, g, 10*second), 1)
		g.Ask("s1", 11*second)
		lease, grant, now := &Lease{Token: token}, Grant{Token: token, Epoch: 3, Asked: 11 * second}, 12*second
		edit(g, &lease, &grant, &now)
		by, why := g.MayStart(lease, grant, now)
		if (why == "") != (want == "") || !strings.Contains(why, want) || why == "" && by != 16*second {
			t.Errorf("%q: %v %q", want, time.Duration(by), why)
		}
		if want == "" {
			if _, why := g.MayStart(lease, grant, now); why == "" {
				t.Error("one grant starts two processes")
			}
		}
	}
	g := guard(t)
	g.Stored(renew(t, g, 10*second), 1)
	g.Ask("s1", 53*second)
	if by, why := g.MayStart(&Lease{Token: token}, Grant{token, 3, 53 * second}, 54*second); why != "" || by != 55*second {
		t.Errorf("it may start until %v, and its lease ends at 55 s: %s", time.Duration(by), why)
	}
	g.SawEpoch(9)
	if g.SawEpoch(2); g.Epoch != 9 {
		t.Error("the epoch falls")
	}
}

// TestDuty goes through what a host has to do about a session.
func TestDuty(t *testing.T) {
	lease := func(incarnation uint64, boot string, onLost OnLost) *Lease {
		return &Lease{Token: Token{"s1", "b", incarnation, 7}, Boot: boot, OnLost: onLost}
	}
	token := Token{"s1", "b", 2, 7}
	lost := &Host{State: Lost, Boot: "boot1", Incarnation: 2}
	for _, c := range []struct {
		name  string
		lease *Lease
		is    Local
		own   *Host
		want  Duty
	}{
		{"placed here", lease(2, "boot1", Restart), Local{}, nil, AskToStart},
		{"its shim is about to begin", lease(2, "boot1", Restart), Local{Shim: true, Token: token}, nil, NoDuty},
		{"runs", lease(2, "boot1", Restart), Local{Shim: true, Began: true, Used: true, Token: token}, nil, ReportStart},
		{"runs, placed anew", lease(3, "boot1", Restart), Local{Shim: true, Began: true, Used: true, Token: token}, nil, EndProcess},
		{"runs, released", nil, Local{Shim: true, Began: true, Used: true, Token: token}, nil, EndProcess},
		{"runs, lost", lease(2, "boot1", Restart), Local{Shim: true, Began: true, Used: true, Token: token}, lost, EndProcess},
		{"waits, lost", lease(2, "boot1", Wait), Local{Shim: true, Began: true, Used: true, Waits: true, Token: token}, lost, ReportStart},
		{"over", nil, Local{Shim: true, Began: true, Over: true, Used: true, Token: token}, nil, ReportEnd},
		{"withdrawn", lease(2, "boot1", Restart), Local{Used: true}, nil, Withdraw},
		{"of an older incarnation", lease(1, "boot1", Restart), Local{}, nil, NoDuty},
		{"waits, never began", lease(1, "boot1", Wait), Local{}, nil, Withdraw},
		{"waits, of an older boot", lease(1, "boot0", Wait), Local{}, nil, NoDuty},
		{"placed, lost", lease(2, "boot1", Restart), Local{}, lost, NoDuty},
		{"of another host", &Lease{Token: Token{"s1", "c", 2, 7}, Boot: "boot1"}, Local{}, nil, NoDuty},
	} {
		g := guard(t)
		if c.own != nil {
			g.Read(c.own, "boot1")
		}
		if got := g.Duty(c.lease, "boot1", c.is); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestDeadMan(t *testing.T) {
	d := DeadMan{StartBy: 5, EndAt: 50}
	if !d.MayBegin(4) || d.MayBegin(5) || d.Due(49) || !d.Due(50) {
		t.Errorf("%+v", d)
	}
	d.Extend(80)
	d.Extend(60)
	if d.Due(79) || !d.Due(80) {
		t.Errorf("%+v", d)
	}
	if d.Waits = true; d.Due(1000) {
		t.Error("a session that waits has a deadline")
	}
}

func TestWatch(t *testing.T) {
	w := NewWatch(100 * second)
	w.Saw(4, false, 110*second)
	w.Saw(3, true, 111*second) // from a reader that lags
	for at, want := range map[BootTime]Due{124: NothingDue, 125: DoubtIsDue, 174: DoubtIsDue, 175: CloseIsDue} {
		if due := w.Due(at*second, false); due != want {
			t.Errorf("at %d: %s, want %s", at, due, want)
		}
	}
	if due := w.Due(111*second, true); due != CloseIsDue {
		t.Errorf("a removed host: %s", due)
	}
	w.Saw(5, true, 130*second) // closing is no renewal
	if early, late := w.Due(174*second, true), w.Due(175*second, false); early != DoubtIsDue || late != LossIsDue {
		t.Errorf("closed: %s, then %s", early, late)
	}
	if !TryToLead(LeaderSilence) || TryToLead(LeaderSilence-1) {
		t.Error("the limit of silence")
	}
}

// TestRates compares the rules of both sides for clocks that are as wrong as allowed, each in the worse
// direction: what the host does by its own clock is over before the leader acts by its own.
func TestRates(t *testing.T) {
	const slow, fast = 1 - RateMax/100.0, 1 + RateMax/100.0
	truly := func(d BootTime, rate float64) float64 { return time.Duration(d).Seconds() / rate }
	if ended, lost := truly(EndAfter+EndWithin, slow), truly(LostAfter, fast); ended >= lost {
		t.Errorf("sessions have ended after %.1f s, and move after %.1f s", ended, lost)
	}
	if DoubtAfter <= 2*RenewEvery || EndAfter <= DoubtAfter {
		t.Error("a host is doubted too early, or ends its sessions before it is doubted")
	}
}
