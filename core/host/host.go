package host

import (
	"maps"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Host is what is known of one host.
type Host struct {
	Name        string   `json:"name"`
	State       State    `json:"state"`
	Boot        string   `json:"boot"`        // of its machine: another value means that all its processes have ended
	Incarnation uint64   `json:"incarnation"` // rises each time it joins or comes back
	Labels      []string `json:"labels,omitempty"`
	Capacity    int      `json:"capacity"`           // sessions at one time; 0: its daemon was never seen
	Key         string   `json:"key,omitempty"`      // public half of the key with which it proves who it is
	Engine      string   `json:"engine,omitempty"`   // HOST:PORT of a host that has the journal and can lead; empty: it only runs sessions
	Leases      uint64   `json:"leases,omitempty"`   // sessions placed on it so far: the number of the last lease
	Leads       bool     `json:"leads,omitempty"`    // it leads the team, so nothing that its sessions leave is elsewhere
	Branches    bool     `json:"branches,omitempty"` // it has led, and not all of its branches have come to the leader

	JoinedAt  time.Time `json:"joined_at"` // of this incarnation
	DoubtedAt time.Time `json:"doubted_at,omitzero"`
	LostAt    time.Time `json:"lost_at,omitzero"`
	DrainedBy string    `json:"drained_by,omitempty"` // human/ann
	RemovedBy string    `json:"removed_by,omitempty"`
	Lacks     []Lack    `json:"lacks,omitempty"`   // as it said last; sorted.
	Missing   []Missing `json:"missing,omitempty"` // the newest missingMax, oldest first
	Late      []Late    `json:"late,omitempty"`    // the newest lateMax, oldest first; the journal has all
}

// Missing is a session that ended with its host's loss. What the host still has of it is fetched when it is back.
type Missing struct {
	Token
	For    string    `json:"for,omitempty"` // what the session was opened for
	OnLost OnLost    `json:"on_lost"`
	At     time.Time `json:"at"`
}

// Late is a report that came under a lease that does not count. It moves nothing.
type Late struct {
	Token
	For  string `json:"for,omitempty"` // as of Missing
	What string `json:"what"`          // how it ended: from the host; untrusted
	Kept
	At time.Time `json:"at"`
}

// Kept is what was fetched of what a session left on its host.
type Kept struct {
	Output int64  `json:"output_bytes,omitempty"` // bytes of its output that had not arrived before
	Files  int    `json:"files,omitempty"`        // reports and artifacts that differ from those of the leader
	Ref    string `json:"ref,omitempty"`          // of its checkout; empty: nothing there was new
	Lacks  string `json:"lacks,omitempty"`        // what could not be kept, and why; empty: all was
}

// Token names a session's lease. A host sends it with all that it reports of the session.
type Token struct {
	Session     string `json:"session"`
	Host        string `json:"host"`
	Incarnation uint64 `json:"incarnation"`
	N           uint64 `json:"lease"` // counts the leases of the host
}

// OnLost is what happens to a session of a lost host.
type OnLost string

const (
	Restart OnLost = "restart" // a new session does its work elsewhere
	Ask     OnLost = "ask"     // a person is asked before a new one begins; it has the deadline of Restart
	Wait    OnLost = "wait"    // it is never replaced; it has no deadline
)

// Lease is where a session is placed.
type Lease struct {
	Token
	Boot   string `json:"boot"` // of the host's machine at that time
	OnLost OnLost `json:"on_lost"`
	Home   bool   `json:"home,omitempty"` // it runs where the leader was, and takes no place
}

// Hosts holds the hosts of a team and the leases of its sessions. Its zero value is empty.
type Hosts struct {
	Hosts  map[string]*Host `json:"hosts,omitempty"`  // by name; a host that left stays, with its incarnation
	Leases map[string]Lease `json:"leases,omitempty"` // by session; until the session is released

	busy map[string]int // places that are taken, by host; cached
}

const (
	hostsMax    = 256   // known ones: each mirrors the journal
	capacityMax = 10000 // sessions of one host
	labelsMax   = 32
	wordMax     = 63 // bytes of a name or label: a label of a domain name
	bootMax     = 64
	keyMax      = 64  // an nkey has 56
	engineMax   = 300 // bytes of an address: a domain name has 253
	whatMax     = 200 // bytes of a late report
	notKeptMax  = 500 // bytes of why something could not be kept
	lateMax     = 20
	missingMax  = 200 // more sessions than a host has places, as a rule
	lacksMax    = 256 // programs and variables that agents with a host use
	lackMax     = 200 // bytes of a name of one
)

// Body is what Apply needs.
type Body struct {
	Host     *Host  `json:"host,omitempty"`     // its new facts
	Lease    *Lease `json:"lease,omitempty"`    // of a session that is placed
	Released string `json:"released,omitempty"` // session whose lease ends
}

// JSONKey is the key of a change in the journal.
func (*Body) JSONKey() string { return "host" }

// Apply applies a change. It does not use the table.
func (t *Hosts) Apply(ch change.Change) {
	body := change.As[Body](ch.Body)
	if t.Hosts == nil {
		t.Hosts = map[string]*Host{}
	}
	if body.Host != nil {
		h := *body.Host
		t.Hosts[h.Name] = &h
	}
	if body.Lease != nil {
		t.count()
		if t.Leases == nil {
			t.Leases = map[string]Lease{}
		}
		t.Leases[body.Lease.Session] = *body.Lease
		t.busy[body.Lease.Host] += body.Lease.takes()
	}
	if l, placed := t.Leases[body.Released]; placed {
		t.count()
		t.busy[l.Host] -= l.takes()
		if delete(t.Leases, body.Released); len(t.Leases) == 0 {
			t.Leases = nil
		}
	}
}

// count makes the cache, after the value was read from a snapshot.
func (t *Hosts) count() {
	if t.busy != nil {
		return
	}
	t.busy = map[string]int{}
	for _, l := range t.Leases {
		t.busy[l.Host] += l.takes()
	}
}

// Clone returns a copy that changes by itself: what is known of a host is replaced as a whole.
func (t *Hosts) Clone() Hosts {
	return Hosts{Hosts: maps.Clone(t.Hosts), Leases: maps.Clone(t.Leases)}
}

// IsZero reports whether there is nothing to write into a snapshot.
func (t Hosts) IsZero() bool { return len(t.Hosts) == 0 && len(t.Leases) == 0 }

// takes is how many places of its host a session takes.
func (l *Lease) takes() int {
	if l.Home {
		return 0
	}
	return 1
}

// Placed is how many sessions are placed on a host. It only reads.
func (t *Hosts) Placed(name string) (n int) {
	for _, l := range t.Leases {
		if l.Host == name {
			n++
		}
	}
	return n
}

// Busy is how many places of a host are taken. It only reads.
func (t *Hosts) Busy(name string) int {
	if t.busy != nil {
		return t.busy[name]
	}
	n := 0
	for _, l := range t.Leases {
		if l.Host == name {
			n += l.takes()
		}
	}
	return n
}

// Names lists the hosts by name.
func (t *Hosts) Names() []string { return slices.Sorted(maps.Keys(t.Hosts)) }

// Counts reports whether words under a token count. If not, they are late: they are kept, shown as late, and
// move nothing. A session with [Wait] goes on when its host comes back, so its token outlives an incarnation.
func (t *Hosts) Counts(token Token) (ok bool, why string) {
	l, placed := t.Leases[token.Session]
	h := t.Hosts[token.Host]
	switch {
	case !placed:
		return false, "the session is over"
	case h == nil || l.Token != token:
		return false, "the session was placed anew since"
	case h.State == Lost || h.State == Left || h.RemovedBy != "":
		return false, "the host is " + string(h.State)
	case l.Boot != h.Boot || l.OnLost != Wait && l.Incarnation != h.Incarnation:
		return false, "the host has come back since"
	}
	return true, ""
}

// MayMove reports whether the work of a session may begin elsewhere: whether its process has ended for
// certain, without word of it.
func (t *Hosts) MayMove(session string) (ok bool, why string) {
	l, placed := t.Leases[session]
	h := t.Hosts[l.Host]
	switch {
	case !placed:
		return true, "it is placed nowhere"
	case h.Boot != l.Boot:
		return true, l.Host + " has restarted"
	case h.State == Left && h.RemovedBy == "":
		return true, l.Host + " has left"
	case l.OnLost == Wait:
		return false, "it waits for " + l.Host + " (on_lost: wait)"
	case h.Incarnation != l.Incarnation:
		return true, l.Host + " was lost, and has come back"
	case h.State == Lost || h.State == Left:
		return true, l.Host + " is lost"
	}
	return false, l.Host + " is " + string(h.State) + ", so it may run there"
}

// Movable lists the sessions for which [Hosts.MayMove] holds, by name.
func (t *Hosts) Movable() []string {
	var sessions []string
	for session := range t.Leases {
		if may, _ := t.MayMove(session); may {
			sessions = append(sessions, session)
		}
	}
	slices.Sort(sessions)
	return sessions
}
