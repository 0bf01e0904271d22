package seam

import (
	"context"
	"io"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
)

// Host is where sessions run. The real one puts a shim beside each agent; a simulator
// plays them in process.
type Host interface {
	// Start starts a session's process, once for ever: a session that was started before
	// gives *AlreadyStarted, a command that cannot be executed *CannotStart.
	Start(ctx context.Context, session string, epoch uint64, launch driver.Launch, grace time.Duration) (Process, error)

	// Adopt finds what became of a session that was perhaps started. The process is nil
	// where nothing can be read of it.
	Adopt(ctx context.Context, session string, epoch uint64) (Process, Found, error)

	// Output is a session's output, also when it is long over; it follows while it runs.
	Output(ctx context.Context, session string, offset int64) (io.ReadCloser, error)

	// Sweep ends what is left of sessions whose shim is gone, and says what it found.
	Sweep(ctx context.Context) ([]string, error)
}

// Process is one running session, or one that has ended and was not acknowledged yet.
type Process interface {
	driver.Wire
	PID() int
	Done() <-chan struct{}                     // its tree is gone and its exit is durable, or it is lost
	Ended(ctx context.Context) (Ending, error) // after Done
	End(ctx context.Context, grace time.Duration) error
	Ack(ctx context.Context) error // its end is in the journal
	Evidence(ctx context.Context) (Proof, error)
	Close() error
}

// Found says what became of a session.
type Found string

const (
	NeverStarted Found = "never_started"
	Running      Found = "running"
	Exited       Found = "exited"
	Lost         Found = "lost"
)

// Ending is how a process ended, as far as anybody knows.
type Ending struct {
	Lost  bool // nobody saw it
	Why   string
	Exit  driver.Exit
	Bytes int64 // of output
	Cut   int64 // bytes of output that were lost, because the disk took no more
}

// Proof is what the host knows of a process, asked just now.
type Proof struct {
	ShimPID    int
	PID        int
	StartedAt  time.Time
	LastByteAt time.Time
	Bytes      int64
	Children   int
	Full       string // why no more output is taken; empty: it is
	Against    string // what the system's process table says against the rest; empty: nothing
	Stopped    bool   // the process was stopped by a signal
	Ended      bool   // the agent itself has ended; its tree is being ended
	Holds      []string
}

// AlreadyStarted refuses a second start of one session.
type AlreadyStarted struct{ Session string }

func (a *AlreadyStarted) Error() string { return "session " + a.Session + " was started before" }

// Fenced says that another daemon, which was started later, has taken the sessions over.
// Whoever is told so must drive nobody any more.
type Fenced struct{ Why string }

func (f *Fenced) Error() string { return f.Why }

// CannotStart says that the command could not be executed, and why.
type CannotStart struct{ Why string }

func (c *CannotStart) Error() string { return c.Why }
