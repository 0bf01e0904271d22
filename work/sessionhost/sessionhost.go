package sessionhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// Host runs sessions. The production implementation puts a shim beside each agent; a simulator
// plays sessions in process.
type Host interface {
	// Start starts a session's process at most once. The error is *spawn.AlreadyStarted if the session
	// was started before, and *spawn.CannotStart if the command cannot be executed.
	Start(ctx context.Context, session string, epoch uint64, launch spawn.Launch, grace time.Duration) (Process, error)

	// Adopt finds the outcome of a session that may have been started. The process is nil if
	// nothing of it can be read. The error is *NotAdopted if it runs beside a shim of another protocol.
	Adopt(ctx context.Context, session string, epoch uint64) (Process, Found, error)

	// Output reads a session's output from byte offset on, also after its end. It follows the
	// output while the session runs.
	Output(ctx context.Context, session string, offset int64) (io.ReadCloser, error)

	// Sweep ends processes of sessions whose shim is gone, and describes what it found.
	Sweep(ctx context.Context) ([]string, error)

	// Orphans inspects every session with a folder on this machine except those for which over returns true.
	Orphans(ctx context.Context, over func(session string) bool) ([]Orphan, error)

	// PutAside moves the folder of a dead session aside, so that its name is free again. It returns the new place; no
	// data is lost.
	PutAside(session string) (to string, err error)
}

// Process is a session that runs, or that has ended and was not acknowledged yet.
type Process interface {
	driver.Wire
	PID() int
	Done() <-chan struct{}                           // closed when all its processes are gone and its exit is durable, or it is lost
	Ended(ctx context.Context) (session.Exit, error) // blocks until Done is closed
	End(ctx context.Context, grace time.Duration) error
	Ack(ctx context.Context) error // confirms that its end is in the journal
	Evidence(ctx context.Context) (Proof, error)
	Close() error
}

// CopyOutput appends what a process has said to a file, until the process ends or the file has most bytes. It
// continues where the file ends, because a restart begins with the output of before.
func CopyOutput(ctx context.Context, path string, folder, mode fs.FileMode, most int64,
	output func(context.Context, int64) (io.ReadCloser, error),
) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), folder); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	out, err := output(ctx, info.Size())
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.Copy(file, io.LimitReader(out, most-info.Size()))
	return err
}

// Found is the outcome of a session.
type Found string

const (
	NeverStarted Found = "never_started"
	Running      Found = "running"
	Exited       Found = "exited"
	Lost         Found = "lost"
)

// Proof is the host's current information about a process.
type Proof struct {
	ShimPID    int
	PID        int
	StartedAt  time.Time
	LastByteAt time.Time
	Bytes      int64
	Children   int
	Ports      []int  // TCP ports that are leased for it
	Full       string // why no more output is stored; empty if it is
	Against    string // a contradiction by the system's process table, as text; empty if there is none
	Stopped    bool   // the process was stopped by a signal
	Ended      bool   // the agent has exited; its remaining processes are being ended
	Holds      []string
	Wall       string   // how the view of its session was made (sandbox.Mechanism); empty: it has none
	Unheld     []string // rows (sandbox.Row) that the trial in that view did not hold
	Observed   bool     // found without a daemon: the ids and Against are known, the rest is not
}

// Fenced means that a daemon that started later has taken over the sessions. The daemon that
// receives it must not control any session any more.
type Fenced struct {
	Why string

	// of a host with another configuration than the leader before it: that leader, and the identity of its configuration
	Leader, Config string
}

func (f *Fenced) Error() string { return f.Why }

// NotAdopted means that a session goes on beside a shim that speaks another protocol than this version of Fairlead.
type NotAdopted struct {
	Why string
	End func(ctx context.Context, grace time.Duration) error // ends it; only a person may order that
}

func (n *NotAdopted) Error() string { return n.Why }

// InputWriter is a Process whose input is labeled, so that nothing is written twice: after a crash
// the label of the last input is compared with the journal.
type InputWriter interface {
	// SendAs is Send with a label. The input is the whole text of one action.
	SendAs(ctx context.Context, label string, input []byte) error

	// Input returns how many bytes of input were written in total, including those at the start,
	// and the label of the last labeled input.
	Input() (offset int64, label string)
}

// The journal may not match the machine: it may have been deleted and begun anew, or replaced by an
// old copy. The shims know their sessions and the epochs that they obeyed, so they are asked before
// an epoch begins. A session that the journal does not know is an orphan; nothing starts beside it.

// Orphan is what was found of a session on this machine. Until it is compared with the journal, the
// journal may know the session.
type Orphan struct {
	Session string
	Found   Found
	PID     int    // of the agent's process, if it runs
	Epoch   uint64 // the highest epoch that its shim has obeyed
	Silent  string // why the outcome cannot be read; empty: Found holds
}

// Fairlead is not the only program that can open an agent's conversation: a person may have it open
// in a terminal, or the agent program may have a background service. Two processes in one
// conversation overwrite each other's memory, so Fairlead searches for such a process before it
// resumes a conversation. It cannot find a program that began the conversation itself and shows its
// name neither in an argument, nor in an environment variable, nor in an open file.

// ProcessConflict is a process outside of Fairlead that has a conversation open.
type ProcessConflict struct {
	PID     int
	Program string // as the system reports it
	Sign    string // how the process shows it, as text
	Under   string // what keeps it running: tmux, screen or a service; empty if unknown
}

func (o ProcessConflict) String() string {
	text := fmt.Sprintf("process %d (%s) has it open: %s", o.PID, o.Program, o.Sign)
	if o.Under != "" {
		text += "; it runs under " + o.Under
	}
	return text
}

// Confinement is what the host of a session needs to make its view. The host reads links, folders and .git itself:
// those of another machine say nothing.
type Confinement struct {
	Agent       string   `json:"agent"`
	Driver      string   `json:"driver"`
	Command     []string `json:"command,omitempty"`
	CanWrite    []string `json:"can_write"` // nil: everything in the workspace; empty: nothing
	CannotWrite []string `json:"cannot_write,omitempty"`
	Mode        string   `json:"mode"`           // one of config's Sandbox constants, not off
	Read        []string `json:"read,omitempty"` // these five are those of `sandbox` in fairlead.yaml
	Write       []string `json:"write,omitempty"`
	Hide        []string `json:"hide,omitempty"`
	Sockets     []string `json:"sockets,omitempty"`
	Local       []int    `json:"local,omitempty"`
	Writes      []string `json:"writes,omitempty"` // folders outside of the workspace that the session needs
	Others      []string `json:"others,omitempty"` // workspaces of other agents
	Clone       string   `json:"clone,omitempty"`  // the clone of the work, whose .git is the agent's
	Run         *RunView `json:"run,omitempty"`
	ReadOnly    bool     `json:"read_only,omitempty"`

	Network network.Setting `json:"network"`
}

// RunView is what a step sees of its run's folder. What it writes at Reports and Artifacts lies in folders of the session, from
// which the daemon takes it.
type RunView struct {
	Dir       string   `json:"dir"`
	Reports   string   `json:"reports"`
	Artifacts string   `json:"artifacts"`
	Files     []string `json:"files,omitempty"`
	Folders   []string `json:"folders,omitempty"`
}
