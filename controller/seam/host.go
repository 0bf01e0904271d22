package seam

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
)

// Host runs sessions. The production implementation puts a shim beside each agent; a simulator
// plays sessions in process.
type Host interface {
	// Start starts a session's process at most once. The error is *AlreadyStarted if the session
	// was started before, and *CannotStart if the command cannot be executed.
	Start(ctx context.Context, session string, epoch uint64, launch driver.Launch, grace time.Duration) (Process, error)

	// Adopt finds the outcome of a session that may have been started. The process is nil if
	// nothing of it can be read.
	Adopt(ctx context.Context, session string, epoch uint64) (Process, Found, error)

	// Output reads a session's output from byte offset on, also after its end. It follows the
	// output while the session runs.
	Output(ctx context.Context, session string, offset int64) (io.ReadCloser, error)

	// Sweep ends processes of sessions whose shim is gone, and describes what it found.
	Sweep(ctx context.Context) ([]string, error)
}

// Process is a session that runs, or that has ended and was not acknowledged yet.
type Process interface {
	driver.Wire
	PID() int
	Done() <-chan struct{}                     // closed when all its processes are gone and its exit is durable, or it is lost
	Ended(ctx context.Context) (Ending, error) // blocks until Done is closed
	End(ctx context.Context, grace time.Duration) error
	Ack(ctx context.Context) error // confirms that its end is in the journal
	Evidence(ctx context.Context) (Proof, error)
	Close() error
}

// CopyOutput appends what a process has said to a file, until the process ends or the file has most bytes. It
// continues where the file ends, because a restart begins with the output of before.
func CopyOutput(ctx context.Context, path string, folder, mode fs.FileMode, most int64, output func(context.Context, int64) (io.ReadCloser, error)) (err error) {
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

// Ending describes how a process ended, as far as it is known.
type Ending struct {
	Lost  bool // no shim recorded the end
	Why   string
	Exit  driver.Exit
	Bytes int64 // of output
	Cut   int64 // bytes of output that were lost because the disk was full
}

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
	Observed   bool // found without a daemon: the ids and Against are known, the rest is not
}

// AlreadyStarted refuses a second start of a session.
type AlreadyStarted struct{ Session string }

func (a *AlreadyStarted) Error() string { return "session " + a.Session + " was started before" }

// Fenced means that a daemon that started later has taken over the sessions. The daemon that
// receives it must not control any session any more.
type Fenced struct {
	Why string

	Leader, Config string // of a host with another configuration than the leader before it: that leader, and the identity of its configuration
}

func (f *Fenced) Error() string { return f.Why }

// CannotStart means that the command could not be executed, and why.
type CannotStart struct{ Why string }

func (c *CannotStart) Error() string { return c.Why }
