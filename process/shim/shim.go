package shim

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

const (
	spoolBytesDefault   = 1 << 30                // a gigabyte of text is a runaway, not a session
	graceDefault        = 10 * time.Second       // what service managers give; long enough to save a file
	launchBytesMax      = 64 << 20               // the launch carries the first prompt; more belongs in a file
	frameBytesMax       = 1 << 20                // every other message is small; input is cut into pieces
	labelBytesMax       = 512                    // label of a piece of input: a name, not text
	inputPieceBytesMax  = 256 << 10              // one piece of input in one frame, with room for base64
	inputWaitingMax     = 16 << 20               // what an agent that does not read may leave in the shim's memory
	syncEvery           = 20 * time.Millisecond  // at most 50 syncs per second and agent
	readBytes           = 64 << 10               // the size of a pipe
	logBytesMax         = 64 << 10               // the shim has little to say; a loop must not fill the disk
	sessionNameBytesMax = 160                    // it is part of file names, the environment and process lists
	peersMax            = 16                     // a daemon, its successor, and people who look
	writeTimeout        = 10 * time.Second       // a daemon that was stopped must not hold the shim up
	tellTimeout         = time.Second            // the exit is on disk, where it can be read later
	socketLook          = time.Second            // how soon a runtime folder that vanished is made again
	attachPatience      = 10 * time.Second       // a shim that holds the lock but does not answer this long is stuck
	attachPause         = time.Millisecond       // first pause between two looks; doubles up to attachPauseMax
	attachPauseMax      = 100 * time.Millisecond //
	lockPatience        = 2 * time.Second        // another process may inspect the folder briefly
)

// Spec describes what is started, and how.
type Spec struct {
	Session   string       `json:"session"`   // coder-17, build@f8c1-3: letters, digits, ., _, - and @, at most 160, not beginning with .
	Workspace string       `json:"workspace"` // the workspace for finding strays; only its hash is visible
	Fence     uint64       `json:"fence"`     // the daemon's epoch: a shim obeys the highest that it has seen
	Launch    spawn.Launch `json:"launch"`    // it reaches the shim over a socket, never a disk
	PTY       bool         `json:"pty"`       // one pseudo terminal in place of pipes; input and output then pass its line discipline

	DeadMan *host.DeadMan `json:"dead_man,omitempty"` // of a session that a host runs under a lease; nil: none

	Scope string        `json:"scope,omitempty"` // the cgroup in which a session with limits gets one; empty: none. EnterScope has it
	Grace time.Duration `json:"grace_ns"`        // between SIGTERM and SIGKILL where End names none; 0 means 10 s
	Exe   string        `json:"-"`               // the binary that is executed again as the shim; default: this one
}

// Phase is the state of a session's process.
type Phase string

const (
	NeverStarted Phase = "never_started" // no agent ever ran in this folder; Why says whether a start failed
	Running      Phase = "running"       // the shim is alive, and the agent or a part of its tree, too
	Exited       Phase = "exited"        // it ended and its tree is gone; Exit says how
	Lost         Phase = "lost"          // the shim died without an exit record; the tree was found and ended
)

// Status is the observed state of a session's process.
type Status struct {
	Phase   Phase  `json:"phase"`
	Why     string `json:"why,omitempty"` // one line for people: why it could not start, or was lost
	Session string `json:"session,omitempty"`
	Fence   uint64 `json:"fence"` // the highest epoch that was seen

	ShimPID   int       `json:"shim_pid,omitempty"`
	AgentPID  int       `json:"agent_pid,omitempty"`  // in a view: of its process 1
	StartTime uint64    `json:"start_time,omitempty"` // the agent's, in clock ticks since boot
	BootID    string    `json:"boot_id,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	Ports     []int     `json:"ports,omitempty"` // leased for the agent

	Wall   sandbox.Mechanism `json:"wall,omitempty"`   // how its view was made; empty: it has none
	Unheld []sandbox.Row     `json:"unheld,omitempty"` // what the wall does not hold, as its trial has shown before the start

	LeaseEnd host.BootTime `json:"lease_end,omitempty"` // the shim ends the session then; 0: never

	SpoolBytes  int64     `json:"spool_bytes"` // synced, readable
	SpoolFull   bool      `json:"spool_full,omitempty"`
	SpoolError  string    `json:"spool_error,omitempty"` // why the spool currently accepts nothing
	LastByteAt  time.Time `json:"last_byte_at,omitzero"`
	InputOffset int64     `json:"input_offset"`           // offset of the next byte of input
	InputLabel  string    `json:"input_label,omitempty"`  // label of the last input that had one
	InputWaits  int64     `json:"input_waits,omitempty"`  // received bytes that the agent has not read
	InputClosed bool      `json:"input_closed,omitempty"` // the agent sees, or will see, the end of its input
	Ending      bool      `json:"ending,omitempty"`       // End was ordered, or the agent ended and its tree is being ended
	// living processes of the tree beside the agent; not when it was started or adopted
	Children   int           `json:"children,omitempty"`
	Use        session.Use   `json:"use,omitzero"`          // now; not when it was started or adopted
	Exit       *session.Exit `json:"exit,omitempty"`        //
	Swept      []Process     `json:"swept,omitempty"`       // lost: processes found alive and ended now
	Acked      bool          `json:"acked,omitempty"`       //
	Holds      Holds         `json:"holds"`                 // which mechanisms hold the tree
	AgentEnded bool          `json:"agent_ended,omitempty"` // the agent itself ended; its tree may still be ending
	Version    int           `json:"shim_version,omitzero"` // of the protocol the shim speaks
}

// Holds lists the mechanisms that contain an agent's tree, for `fairlead why`.
type Holds struct {
	Subreaper    bool `json:"subreaper"`
	ProcessGroup bool `json:"process_group"`
	ParentDeath  bool `json:"parent_death"`
	Mark         bool `json:"mark"`
}

// Fenced is returned to a daemon with an outdated epoch: another one, with a higher epoch, has taken
// over. The daemon must stop.
type Fenced struct{ Mine, Seen uint64 }

func (f *Fenced) Error() string {
	return fmt.Sprintf("fenced: this daemon's epoch is %d, and the shim has obeyed %d: another daemon has taken over; stop this one",
		f.Mine, f.Seen)
}

// InputGap refuses input that begins after the bytes received so far.
type InputGap struct{ Offset, Taken int64 }

func (g *InputGap) Error() string {
	return fmt.Sprintf("input at offset %d would leave a gap: %d bytes were taken so far; send from there", g.Offset, g.Taken)
}

// InputFull refuses input because the agent does not read what it was already given.
type InputFull struct{ Waits int64 }

func (f *InputFull) Error() string {
	return fmt.Sprintf("the agent has not read the %d bytes of input that wait for it: send again when it has, or end it", f.Waits)
}

var (
	// ErrInputClosed refuses input after CloseInput, or if the agent was started without KeepStdin.
	ErrInputClosed = errors.New("the agent's standard input is closed for the rest of this session")
	// ErrEnded refuses an order to an agent that has ended.
	ErrEnded = errors.New("the agent has ended: start a new session")
	// ErrNoDeadline refuses to extend a session that was started without a DeadMan, or by a version of Fairlead
	// that had none.
	ErrNoDeadline = errors.New("the session has no deadline")
	// ErrClosed is returned by a handle after Close.
	ErrClosed = errors.New("this handle was closed: adopt the session again")
)

func (s *Spec) check() error {
	switch {
	case !IsSession(s.Session):
		return fmt.Errorf("session name %.200q: use 1 to %d letters, digits, '.', '_', '-' and '@', without '.' at the beginning",
			s.Session, sessionNameBytesMax)
	case len(s.Launch.Argv) == 0 || s.Launch.Argv[0] == "":
		return &spawn.CannotStart{Why: "the command is empty; name a program"}
	case s.Launch.Dir != "" && !filepath.IsAbs(s.Launch.Dir):
		return fmt.Errorf("working directory %q: must be absolute", s.Launch.Dir)
	case s.Launch.Ports < 0 || s.Launch.Ports > PortsMax:
		return fmt.Errorf("%d ports: a session leases at most %d", s.Launch.Ports, PortsMax)
	case len(s.Launch.Input) > launchBytesMax/2:
		return fmt.Errorf("first input of %d bytes: at most %d; put it into a file and name the file", len(s.Launch.Input), launchBytesMax/2)
	}
	for _, a := range s.Launch.Argv {
		if strings.ContainsRune(a, 0) {
			return &spawn.CannotStart{Why: fmt.Sprintf("argument %q holds a zero byte", a)}
		}
	}
	return nil
}

// IsSession reports whether a text can be the name of a session, and so that of a folder.
func IsSession(name string) bool {
	return name != "" && len(name) <= sessionNameBytesMax && name[0] != '.' && strings.Trim(name, sessionLetters) == ""
}

const sessionLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@"
