package wire

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Routes of a host, for the leader.
const (
	SessionRoute    = "/v1/sessions/{id}"
	AdoptRoute      = SessionRoute + "/adopt"
	OutputRoute     = SessionRoute + "/output" // ?offset=BYTES
	EndedRoute      = SessionRoute + "/ended"
	LeaseRoute      = SessionRoute + "/lease"
	InputRoute      = SessionRoute + "/input"
	CloseInputRoute = SessionRoute + "/close-input"
	EndRoute        = SessionRoute + "/end"
	AckRoute        = SessionRoute + "/ack"
	EvidenceRoute   = SessionRoute + "/evidence"
	TreesRoute      = "/v1/trees"
	TreeRoute       = "/v1/trees/{run}"   // DELETE with ?keep=files: only its checkout
	MarkRoute       = TreeRoute + "/mark" // ?n=CHANGES, to an engine host
	BranchesRoute   = "/v1/branches"      // ?from=HOST, to or from an engine host
	// ?dir=PATH below the repository; with PUT also gone=PATH of a file that is removed first; with GET and list only the times and sizes
	FilesRoute = "/v1/files"
)

// EpochField is the header of a leader's request about a session: the epoch under which it leads. A host that has seen
// a higher one refuses the request.
const EpochField = "Fairlead-Epoch"

// Routes of the leader, for a host.
const (
	RenewRoute = "/v1/renew"
	GrantRoute = "/v1/grants"
	LeaveRoute = "/v1/leave"

	CertificateRoute = "/v1/certificate" // for the next certificate: see hosts/link
	CallerField      = "Fairlead-Caller" // header of a request that a program on the host made: Caller
	TreeField        = "Fairlead-Tree"   // header beside a bundle: carry.Sent
)

// StartIn is a session to start, at most once. The launch has no view, and placeholders for what only the host knows: see Resolve.
type StartIn struct {
	Token   host.Token               `json:"token"`
	Epoch   uint64                   `json:"epoch"`
	OnLost  host.OnLost              `json:"on_lost"`
	Launch  spawn.Launch             `json:"launch"`
	GraceMS int64                    `json:"grace_ms"`
	Confine *sessionhost.Confinement `json:"confine,omitempty"` // nil: no sandbox
}

// Status is a process as its host sees it.
type Status struct {
	PID   int    `json:"pid"`
	Input int64  `json:"input"` // bytes written to its standard input so far
	Label string `json:"label,omitempty"`
}

// AdoptIn and AdoptOut are the question after a session and its answer. Status is nil if nothing of it can be read.
type (
	AdoptIn struct {
		Epoch uint64 `json:"epoch"`
	}
	AdoptOut struct {
		Found  sessionhost.Found `json:"found"`
		Status *Status           `json:"status,omitempty"`
	}
)

// LeaseOut says under which lease a session was started.
type LeaseOut struct {
	Token host.Token `json:"token"`
}

// InputIn is input for a session, at its offset in the stream, so that a repeated request writes nothing twice.
type InputIn struct {
	Offset int64  `json:"offset"`
	Label  string `json:"label,omitempty"`
	Bytes  []byte `json:"bytes"`
}

// EndIn asks a session's process to end.
type EndIn struct {
	GraceMS int64 `json:"grace_ms"`
	Ordered bool  `json:"ordered,omitempty"` // by a person: also if the host has not adopted it
}

// Places are the folders of one machine that occur in launches. All are absolute, without links.
type Places struct {
	Root string `json:"root"` // the repository
	Exe  string `json:"exe"`  // the program fairlead
	Home string `json:"home"`
}

// RenewIn renews the lease of a host, and says what it is. The first one of a daemon has revision and n of 0: it
// asks the host to be taken in.
type RenewIn struct {
	Boot        string   `json:"boot"`
	Labels      []string `json:"labels,omitempty"`
	Capacity    int      `json:"capacity"`
	Version     string   `json:"version"` // of Fairlead
	Places      Places   `json:"places"`
	Incarnation uint64   `json:"incarnation"`
	Daemon      string   `json:"daemon"`
	N           uint64   `json:"n"`
	Revision    uint64   `json:"revision"`
	Found       *Found   `json:"found,omitempty"`  // nil: it has not looked yet
	Config      string   `json:"config,omitempty"` // of an engine host: the identity of its fairlead.yaml
	Engine      string   `json:"engine,omitempty"` // of an engine host: the address at which it listens now
}

// Found is what a host has looked for, and what of that it lacks. It looks at its disk in any case.
type Found struct {
	Uses  []host.Lack `json:"uses,omitempty"`
	Lacks []host.Lack `json:"lacks,omitempty"`
}

// RenewOut is what the leader's journal has of the host, and whether the renewal was taken: it was if By is its own.
type RenewOut struct {
	Host     host.Host    `json:"host"`
	Leases   []host.Lease `json:"leases,omitempty"` // of the sessions placed on it
	Epoch    uint64       `json:"epoch"`
	Revision uint64       `json:"revision"`
	Daemon   string       `json:"daemon,omitempty"` // of the renewal that was taken last
	N        uint64       `json:"n,omitempty"`
	Closed   bool         `json:"closed,omitempty"`
	Uses     []host.Lack  `json:"uses,omitempty"` // programs and variables that sessions with a host use; the host looks for them
	At       time.Time    `json:"at"`             // the leader's clock, for a warning only

	Engines []cluster.EngineHost `json:"engines,omitempty"` // those that can lead
	Stream  bool                 `json:"stream,omitempty"`  // the journal is in their stream
	Leader  string               `json:"leader,omitempty"`  // its name
	Config  string               `json:"config,omitempty"`  // the identity of the leader's fairlead.yaml
	// the journal is on the leader's machine alone. Neither: that is about to change
	Alone bool `json:"alone,omitempty"`
}

// GrantIn asks whether a session may start. The answer is a host.Grant.
type GrantIn struct {
	Token host.Token    `json:"token"`
	Asked host.BootTime `json:"asked"`
}

// CertificateIn has the present certificate of a host, and a request for the next. CertificateOut has that.
type (
	CertificateIn struct {
		Certificate string `json:"certificate"`
		Request     []byte `json:"request"`
	}
	CertificateOut struct {
		Certificate string `json:"certificate"`
	}
)

// Caller is who made a request on a host, as that host saw it. A host is trusted with what runs on it.
type Caller struct {
	Session string `json:"session,omitempty"`
	Foreign string `json:"foreign,omitempty"`
	Unknown bool   `json:"unknown,omitempty"`
	Seen    bool   `json:"seen,omitempty"`
	Own     bool   `json:"own,omitempty"` // it came through the socket of the session's view
}
