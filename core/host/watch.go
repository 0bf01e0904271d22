package host

// Watch is what a leader has seen of the lease of one incarnation. A lease is an entry beside the journal
// that only changes by compare-and-set on its revision, stored by a majority of the engine hosts.
//
// A leader may see renewals late, so their absence proves nothing. Therefore it closes the lease before it
// declares the host lost: it sets the entry on the last revision that it saw. If that succeeds, no later
// renewal was acknowledged, and none will be.
type Watch struct {
	Revision uint64
	Seen     BootTime // when this leader saw the last renewal, or began to lead
	Closed   bool
}

// NewWatch begins with a full time: a new leader cannot know when the last renewal was sent.
func NewWatch(now BootTime) Watch { return Watch{Seen: now} }

// Saw takes in a revision of the entry. An older one, from a reader that lags, has no effect.
func (w *Watch) Saw(revision uint64, closed bool, now BootTime) {
	if revision <= w.Revision {
		return
	}
	w.Revision, w.Closed = revision, closed
	if !closed {
		w.Seen = now
	}
}

// Due is what a leader has to do about a host.
type Due string

const (
	NothingDue Due = "nothing"
	DoubtIsDue Due = "doubt" // decide [Doubt]
	CloseIsDue Due = "close" // close the lease on Revision, then call Saw with the result
	LossIsDue  Due = "lose"  // decide [Lose]
)

// Due says what is due. removed is set for a removed host, whose lease is closed at once.
func (w *Watch) Due(now BootTime, removed bool) Due {
	silence := now - w.Seen
	switch {
	case silence >= LostAfter && w.Closed:
		return LossIsDue
	case (silence >= LostAfter || removed) && !w.Closed:
		return CloseIsDue
	case silence >= DoubtAfter:
		return DoubtIsDue
	}
	return NothingDue
}

// TryToLead reports whether the leader's lease was silent for so long that a host should try to lead. It is
// liveness only. What elects is the append of DaemonStarted with the journal's end pinned.
func TryToLead(silence BootTime) bool { return silence >= LeaderSilence }
