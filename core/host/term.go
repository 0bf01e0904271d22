package host

// The times of the leader's own lease. A host that sees it silent for LeaderSilence may lead. By then the previous leader has
// stopped to act on its lease, since LeadFor is shorter, also while the clocks' rates differ by RateMax.
const (
	LeaderRenewEvery = BootTime(2e9)   // 2 s
	LeadFor          = BootTime(4.5e9) // 4.5 s since the last acknowledged renewal was sent
)

// Term is what a leader knows of its own lease: an entry beside the journal that only changes by compare-and-set, stored
// by a majority of the engine hosts. It says whether the leader may tell hosts that their renewals count, and start
// sessions. It does not elect a leader: a host
// is elected when its DaemonStarted is appended at the expected end of the journal. Use NewTerm.
type Term struct {
	n        uint64              // of the last renewal
	sent     map[uint64]BootTime // when renewals that may still count were sent
	last     BootTime            // when the last one was
	revision uint64
	acked    BootTime
	over     bool
}

// NewTerm begins with the claim, renewal 0, which was sent at a time and stored as a revision.
func NewTerm(revision uint64, sent BootTime) *Term {
	return &Term{sent: map[uint64]BootTime{}, last: sent, revision: revision, acked: sent}
}

// Renew begins a renewal on a revision, if one is due.
func (t *Term) Renew(now BootTime) (n, revision uint64, due bool) {
	if t.over || now-t.last < LeaderRenewEvery {
		return 0, 0, false
	}
	t.n++
	t.sent[t.n], t.last = now, now
	delete(t.sent, t.n-sentMax)
	return t.n, t.revision, true
}

// Saw takes in the entry as it was stored or read: with renewal n of this term, or with one of another leader.
func (t *Term) Saw(revision, n uint64, own bool) {
	if revision <= t.revision {
		return
	}
	t.revision = revision
	if !own {
		t.over = true
		return
	}
	if sent, known := t.sent[n]; known {
		t.acked = max(t.acked, sent)
	}
}

// Revision is that of the entry, as far as this host knows.
func (t *Term) Revision() uint64 { return t.revision }

// Over reports whether another host has claimed the lead.
func (t *Term) Over() bool { return t.over }

// Confirmed reports whether no other host can lead now, as far as leases say.
func (t *Term) Confirmed(now BootTime) bool { return !t.over && now < t.acked+LeadFor }

// Acked is when the last renewal was sent that was acknowledged.
func (t *Term) Acked() BootTime { return t.acked }

// Deadline is when the leased sessions on the leader's own machine must end.
func (t *Term) Deadline() BootTime { return t.acked + EndAfter }
