package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/controller/seam"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/shim"
)

// Shims is the Host of real life: a shim beside every agent, a folder for every session.
type Shims struct {
	Folder    string // below it, a folder for each session
	Workspace string // whose processes these are; marks them
	Exe       string // the binary that is executed again; empty: this one
}

var _ seam.Host = (*Shims)(nil)

func (h *Shims) folder(session string) string { return filepath.Join(h.Folder, session) }

// Start is Host's.
func (h *Shims) Start(ctx context.Context, session string, epoch uint64, launch driver.Launch, grace time.Duration) (seam.Process, error) {
	if err := os.MkdirAll(h.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the sessions: %w", err)
	}
	handle, err := shim.Start(ctx, h.folder(session), shim.Spec{
		Session: session, Workspace: h.Workspace, Fence: epoch, Argv: launch.Argv, Dir: launch.Dir, Env: launch.Env,
		Input: launch.Input, KeepStdin: launch.KeepStdin, Grace: grace, Exe: h.Exe,
	})
	var started *shim.AlreadyStarted
	var cannot *shim.CannotStart
	switch {
	case errors.As(err, &started):
		return nil, &seam.AlreadyStarted{Session: session}
	case errors.As(err, &cannot):
		return nil, &seam.CannotStart{Why: cannot.Why}
	case err != nil:
		return nil, fmt.Errorf("start the shim of %s: %w", session, fencing(err))
	}
	status, err := handle.Status(ctx)
	if err != nil {
		status = shim.Status{}
	}
	return &held{Handle: handle, pid: status.AgentPID, start: status.StartTime, input: status.InputOffset, label: status.InputLabel}, nil
}

// Adopt is Host's.
func (h *Shims) Adopt(ctx context.Context, session string, epoch uint64) (seam.Process, seam.Found, error) {
	handle, status, err := shim.Adopt(ctx, h.folder(session), epoch)
	if err != nil {
		return nil, "", fmt.Errorf("adopt %s: %w", session, fencing(err))
	}
	found := FoundAs[status.Phase]
	if handle == nil {
		return nil, found, nil
	}
	return &held{Handle: handle, pid: status.AgentPID, start: status.StartTime, input: status.InputOffset, label: status.InputLabel}, found, nil
}

// Output is Host's.
func (h *Shims) Output(_ context.Context, session string, offset int64) (io.ReadCloser, error) {
	return shim.Output(h.folder(session), offset)
}

// Sweep is Host's.
func (h *Shims) Sweep(ctx context.Context) ([]string, error) {
	strays, err := shim.EndStrays(ctx, h.Workspace)
	named := make([]string, 0, len(strays))
	for _, p := range strays {
		named = append(named, fmt.Sprintf("%d %s of %s", p.PID, p.Command, p.Session))
	}
	return named, err
}

// held is a shim's handle in the words of the engine.
type held struct {
	*shim.Handle
	pid   int
	start uint64 // of the process, so that another one with its number is not taken for it

	mu    sync.Mutex
	input int64  // where the next byte of input belongs
	label string // the name of the last of it that had one
}

func (p *held) PID() int { return p.pid }

// Send gives input its place in the stream, so that a repetition is not typed twice.
func (p *held) Send(ctx context.Context, input []byte) error { return p.SendAs(ctx, "", input) }

// SendAs is Typist's.
func (p *held) SendAs(ctx context.Context, label string, input []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.Handle.SendAs(ctx, p.input, label, input)
	switch {
	case errors.Is(err, shim.ErrInputClosed) || errors.Is(err, shim.ErrEnded):
		return fmt.Errorf("%w: %w", driver.ErrNoInput, err)
	case err != nil:
		return fencing(err)
	}
	p.input += int64(len(input))
	if label != "" {
		p.label = label
	}
	return nil
}

// Input is Typist's.
func (p *held) Input() (offset int64, label string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.input, p.label
}

// End is Process's.
func (p *held) End(ctx context.Context, grace time.Duration) error {
	return fencing(p.Handle.End(ctx, grace))
}

// Ack is Process's.
func (p *held) Ack(ctx context.Context) error { return fencing(p.Handle.Ack(ctx)) }

// fencing puts the shim's word for it into ours.
func fencing(err error) error {
	var fenced *shim.Fenced
	if errors.As(err, &fenced) {
		return &seam.Fenced{Why: err.Error()}
	}
	return err
}

func (p *held) Ended(ctx context.Context) (seam.Ending, error) {
	status, err := p.Status(ctx)
	if err != nil {
		return seam.Ending{}, fencing(err)
	}
	if status.Exit == nil {
		return seam.Ending{Lost: true, Why: status.Why, Bytes: status.SpoolBytes}, nil
	}
	exit := driver.Exit{Code: status.Exit.Code, Signal: status.Exit.Signal, At: status.Exit.At}
	return seam.Ending{Exit: exit, Bytes: status.Exit.SpoolBytes, Cut: status.Exit.CutBytes}, nil
}

// Evidence is Process's.
func (p *held) Evidence(ctx context.Context) (seam.Proof, error) {
	s, against, err := p.seen(ctx)
	if err != nil {
		return seam.Proof{}, fmt.Errorf("%w; process %d itself %s", err, p.pid, LifeWords[shim.LifeOf(p.pid, p.start)])
	}
	proof := seam.Proof{
		Against: against, Stopped: shim.LifeOf(s.AgentPID, s.StartTime) == shim.Stopped, Ended: s.AgentEnded,
		ShimPID: s.ShimPID, PID: s.AgentPID, StartedAt: s.StartedAt, LastByteAt: s.LastByteAt,
		Bytes: s.SpoolBytes, Children: s.Children, Full: s.SpoolError,
	}
	if s.SpoolFull {
		proof.Full = "the spool is full"
	}
	for name, holds := range map[string]bool{
		"subreaper": s.Holds.Subreaper, "process group": s.Holds.ProcessGroup, "parent-death signal": s.Holds.ParentDeath,
		"mark": s.Holds.Mark, "cgroup": s.Holds.Cgroup,
	} {
		if holds {
			proof.Holds = append(proof.Holds, name)
		}
	}
	return proof, nil
}

// reapedWithin is how long a shim may take to notice that its agent has ended: it hears
// of it by a signal, and has to be given the processor.
const reapedWithin = 100 * time.Millisecond

// seen asks the shim, and compares what it says with the system's own process table.
func (p *held) seen(ctx context.Context) (s shim.Status, against string, err error) {
	for began := time.Now(); ; {
		if s, err = p.Status(ctx); err != nil || s.Phase != shim.Running || s.AgentEnded || s.AgentPID == 0 {
			return s, "", err
		}
		life := shim.LifeOf(s.AgentPID, s.StartTime)
		if life != shim.Gone && life != shim.Reused {
			return s, "", nil
		}
		if time.Since(began) > reapedWithin {
			return s, fmt.Sprintf("its shim says that it runs as process %d, and that process %s", s.AgentPID, LifeWords[life]), nil
		}
		if !loop.Rest(ctx, reapedWithin/20) {
			return s, "", ctx.Err()
		}
	}
}

// lifeWords say of a process what became of it.
var LifeWords = map[shim.Life]string{
	shim.LifeUnknown: "is not known", shim.Lives: "lives", shim.Stopped: "is stopped",
	shim.Gone: "is gone", shim.Reused: "is gone, and its number is another process's by now",
}
