package host

import "time"

// The times of the rules. A host has its sessions ended after EndAfter+EndWithin of its own clock, the leader
// lets them begin elsewhere after LostAfter of its own. That is safe while the clocks' rates differ by at
// most RateMax percent from true time, each in its own direction; TestRates compares them.
const (
	RenewEvery    = BootTime(5 * time.Second)
	LeaderSilence = BootTime(6 * time.Second)  // of the leader's lease: then another host tries to lead; see Term
	DoubtAfter    = BootTime(15 * time.Second) // since a renewal was seen
	EndAfter      = BootTime(45 * time.Second) // since the last acknowledged renewal was sent
	EndWithin     = BootTime(2 * time.Second)  // a session's process has ended so long after its deadline
	LostAfter     = BootTime(65 * time.Second) // since a renewal was seen: 60 s and a margin
	GrantFor      = BootTime(5 * time.Second)  // a host starts a session so long after it asked, or asks again
	RateMax       = 10
)

// Grant is a leader's answer to a host that asks whether it may start a session. The leader gives it only
// after it has appended a change that it decided after the question: a leader that was replaced cannot.
type Grant struct {
	Token
	Epoch uint64
	Asked BootTime // as the host said
}

// Guard is what a host knows of its own right to run sessions. Use NewGuard.
type Guard struct {
	Host        string
	Incarnation uint64 // as the journal has it; 0: none of this boot
	Epoch       uint64 // the highest one seen; the host stores it before it acts on it

	lost     bool // the journal says that the host is lost, or has left
	daemon   string
	n        uint64              // of the last renewal
	sent     map[uint64]BootTime // when renewals on this revision were sent, by number; those that may still count
	revision uint64              // of the lease's entry, as far as known
	closed   bool                // the leader has closed it
	acked    BootTime            // when the last acknowledged renewal was sent
	held     bool                // one of this incarnation was acknowledged
	asked    map[string]BootTime // the last question about each session
}

// sentMax is how many renewals a host remembers: more than it sends within EndAfter.
const sentMax = 16

// RenewalID is what a renewal writes into the entry: it says which one was stored.
type RenewalID struct {
	Daemon string // unlike that of all other daemons
	N      uint64
}

// Renewal is one try to renew a lease: the host sets the entry, if it still has this revision.
type Renewal struct {
	RenewalID
	Incarnation uint64
	Revision    uint64
}

// NewGuard returns the guard of a daemon that has just started: it has no lease. daemon names it alone.
func NewGuard(host, daemon string, epoch uint64) *Guard {
	return &Guard{Host: host, Epoch: epoch, daemon: daemon, sent: map[uint64]BootTime{}, asked: map[string]BootTime{}}
}

// Read takes in what the journal says of the host, whose machine has this boot. A new incarnation begins without
// a lease: renewals of the one before do not count for it. A host that is lost or has left has none at all.
func (g *Guard) Read(h *Host, boot string) {
	incarnation := h.Incarnation
	g.lost = h.State == Lost || h.State == Left
	if g.lost || h.Boot != boot {
		incarnation = 0
	}
	if incarnation != g.Incarnation {
		fresh := NewGuard(g.Host, g.daemon, g.Epoch)
		fresh.Incarnation, fresh.n, fresh.lost = incarnation, g.n, g.lost
		*g = *fresh
	}
}

// SawEpoch takes in an epoch that was read in the journal or in a message.
func (g *Guard) SawEpoch(epoch uint64) { g.Epoch = max(g.Epoch, epoch) }

// Renew begins a renewal, if one is due.
func (g *Guard) Renew(now BootTime) (r Renewal, due bool) {
	if last, waits := g.sent[g.n]; g.Incarnation == 0 || g.closed || waits && now-last < RenewEvery || g.held && now-g.acked < RenewEvery {
		return Renewal{}, false
	}
	g.n++
	g.sent[g.n] = now
	delete(g.sent, g.n-sentMax)
	return Renewal{RenewalID{g.daemon, g.n}, g.Incarnation, g.revision}, true
}

// Stored takes in that a renewal was stored by a majority of the engine hosts, as this revision of the entry. Only
// a positive answer says that.
func (g *Guard) Stored(r Renewal, revision uint64) {
	if r.Incarnation == g.Incarnation {
		g.SawLease(revision, r.RenewalID, false)
	}
}

// SawLease takes in the entry of the lease as it was stored or read. If it holds a renewal of this daemon, that
// one was acknowledged. The lease counts from when it was sent, which is before the leader can have seen it. A
// closed lease is never renewed.
func (g *Guard) SawLease(revision uint64, by RenewalID, closed bool) {
	if revision <= g.revision {
		return
	}
	sent, known := g.sent[by.N]
	g.revision, g.closed = revision, closed
	clear(g.sent)
	if known && !closed && by.Daemon == g.daemon {
		g.held, g.acked = true, sent
	}
}

// Deadline is when the host's leased sessions must end, and whether it has a lease at all.
func (g *Guard) Deadline() (end BootTime, held bool) { return g.acked + EndAfter, g.held }

// Holds reports whether the host has a lease now.
func (g *Guard) Holds(now BootTime) bool {
	end, held := g.Deadline()
	return held && now < end
}

// Ask records that the host asks whether it may start a session. Answers to earlier questions are void.
func (g *Guard) Ask(session string, now BootTime) { g.asked[session] = now }

// MayStart is the host's last check before a session's process starts. lease is the session's as the host
// itself has read it in the journal; nil: it has not. The process may begin until by, which its shim checks.
func (g *Guard) MayStart(lease *Lease, grant Grant, now BootTime) (by BootTime, why string) {
	asked, has := g.asked[grant.Session]
	end, _ := g.Deadline()
	switch {
	case lease == nil || lease.Token != grant.Token:
		return 0, "the journal does not place it here, as far as it was read"
	case lease.Host != g.Host || g.Incarnation == 0 || lease.Incarnation != g.Incarnation:
		return 0, "it is placed on another incarnation"
	case grant.Epoch < g.Epoch:
		return 0, "another leader has begun since"
	case !has || asked != grant.Asked:
		return 0, "the answer is for an earlier question"
	case now >= asked+GrantFor:
		return 0, "the answer came too late"
	case !g.Holds(now):
		return 0, "this host has no lease"
	}
	delete(g.asked, grant.Session)
	return min(asked+GrantFor, end), ""
}
