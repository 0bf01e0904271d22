package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Shims is the production Host: a shim beside every agent, a folder for every session.
type Shims struct {
	Folder    string // contains a folder for each session
	Workspace string // marks the processes with the workspace that they belong to
	Scope     string // the cgroup for those of sessions; empty: they get none
	Exe       string // the binary to execute; empty: this one

	mu     sync.Mutex
	leased map[*shimProcess]bool // those with a deadline, until an extension finds them ended
}

var _ sessionhost.Host = (*Shims)(nil)

func (h *Shims) folder(session string) string { return filepath.Join(h.Folder, session) }

// Start implements sessionhost.Host.
func (h *Shims) Start(ctx context.Context, session string, epoch uint64, launch spawn.Launch, grace time.Duration,
) (sessionhost.Process, error) {
	return h.StartLeased(ctx, session, epoch, launch, grace, nil)
}

// StartLeased is Start for a host that has a lease: the shim checks the times of man itself, and Extend moves its
// deadline. If StartBy is over, the error is *spawn.CannotStart.
func (h *Shims) StartLeased(ctx context.Context, session string, epoch uint64, launch spawn.Launch, grace time.Duration,
	man *host.DeadMan,
) (sessionhost.Process, error) {
	if err := os.MkdirAll(h.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of the sessions: %w", err)
	}
	handle, err := shim.Start(ctx, h.folder(session), shim.Spec{
		Session: session, Workspace: h.Workspace, Fence: epoch, Launch: launch, Grace: grace, Scope: h.Scope, Exe: h.Exe, DeadMan: man,
	})
	if err != nil {
		return nil, fencing(err)
	}
	return h.process(handle, handle.Begun(), man != nil && !man.Waits), nil
}

// process keeps a session that has a deadline.
func (h *Shims) process(handle *shim.Handle, s shim.Status, leased bool) *shimProcess {
	p := &shimProcess{Handle: handle, pid: s.AgentPID, start: s.StartTime, input: s.InputOffset, label: s.InputLabel}
	if leased {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.leased == nil {
			h.leased = map[*shimProcess]bool{}
		}
		h.leased[p] = true
	}
	return p
}

// extendPatience is how long a shim may take to answer an extension. One that is stopped must not delay the others,
// nor the next renewal of the host.
const extendPatience = time.Second

// Extend moves the deadline of all sessions that have one and that it has started or adopted, when a renewal of the
// host's lease was acknowledged. All shims are asked at the same time. The error names those that did not take it:
// they end their sessions unless a later extension reaches them.
func (h *Shims) Extend(ctx context.Context, to host.BootTime) error {
	ctx, cancel := context.WithTimeout(ctx, extendPatience)
	defer cancel()
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.leased))
	h.mu.Unlock()
	errs := make([]error, len(all))
	var asked sync.WaitGroup
	for i, p := range all {
		asked.Go(func() {
			switch err := p.Handle.Extend(ctx, to); {
			case errors.Is(err, shim.ErrEnded), errors.Is(err, shim.ErrClosed):
				h.mu.Lock()
				delete(h.leased, p)
				h.mu.Unlock()
			case err != nil:
				errs[i] = fmt.Errorf("session %s: %w", filepath.Base(p.Folder()), fencing(err))
			}
		})
	}
	asked.Wait()
	return errors.Join(errs...)
}

// Adopt implements sessionhost.Host.
func (h *Shims) Adopt(ctx context.Context, session string, epoch uint64) (sessionhost.Process, sessionhost.Found, error) {
	handle, status, err := shim.Adopt(ctx, h.folder(session), epoch)
	if other, is := errors.AsType[*shim.OtherProtocol](err); is {
		return nil, "", &sessionhost.NotAdopted{Why: other.Error(), End: func(ctx context.Context, grace time.Duration) error {
			return shim.EndOther(ctx, h.folder(session), grace)
		}}
	}
	if err != nil {
		return nil, "", fmt.Errorf("adopt %s: %w", session, fencing(err))
	}
	found := FoundAs[status.Phase]
	if handle == nil {
		return nil, found, nil
	}
	return h.process(handle, status, status.LeaseEnd != 0), found, nil
}

// Output implements sessionhost.Host.
func (h *Shims) Output(_ context.Context, session string, offset int64) (io.ReadCloser, error) {
	return shim.Output(h.folder(session), offset)
}

// OutputBytes is the length of a session's output now. The error is fs.ErrNotExist if there is none.
func (h *Shims) OutputBytes(session string) (int64, error) {
	return shim.OutputBytes(h.folder(session))
}

// Sweep implements sessionhost.Host.
func (h *Shims) Sweep(ctx context.Context) ([]string, error) {
	strays, err := shim.EndStrays(ctx, h.Workspace)
	named := make([]string, 0, len(strays))
	for _, p := range strays {
		named = append(named, fmt.Sprintf("%d %s of %s", p.PID, p.Command, p.Session))
	}
	return named, err
}

// shimProcess makes a sessionhost.Process of a shim's handle.
type shimProcess struct {
	*shim.Handle
	pid   int
	start uint64 // start time of the process, which distinguishes it from a later one with the same PID

	mu    sync.Mutex
	input int64  // offset of the next byte of input
	label string // label of the last labeled input
}

func (p *shimProcess) PID() int { return p.pid }

// ProcessorTime returns what the processes of a session have used so far. known is false if they are gone, or run on another host.
func ProcessorTime(proc sessionhost.Process) (used time.Duration, known bool) {
	if p, here := proc.(*shimProcess); here {
		return shim.ProcessorTime(p.pid)
	}
	return 0, false
}

// Send writes input at its offset in the stream, so that a retry is not written twice.
func (p *shimProcess) Send(ctx context.Context, input []byte) error { return p.SendAs(ctx, "", input) }

// SendAs implements sessionhost.InputWriter.
func (p *shimProcess) SendAs(ctx context.Context, label string, input []byte) error {
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

// Input implements sessionhost.InputWriter.
func (p *shimProcess) Input() (offset int64, label string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.input, p.label
}

// End implements sessionhost.Process.
func (p *shimProcess) End(ctx context.Context, grace time.Duration) error {
	return fencing(p.Handle.End(ctx, grace))
}

// Ack implements sessionhost.Process.
func (p *shimProcess) Ack(ctx context.Context) error { return fencing(p.Handle.Ack(ctx)) }

// fencing converts shim.Fenced to sessionhost.Fenced.
func fencing(err error) error {
	if _, ok := errors.AsType[*shim.Fenced](err); ok {
		return &sessionhost.Fenced{Why: err.Error()}
	}
	return err
}

func (p *shimProcess) Ended(ctx context.Context) (session.Exit, error) {
	select {
	case <-p.Done():
	case <-ctx.Done():
		return session.Exit{}, ctx.Err()
	}
	status, err := p.Status(ctx)
	if err != nil {
		return session.Exit{}, fencing(err)
	}
	if status.Exit == nil {
		return session.Exit{Lost: true, Why: status.Why, SpoolBytes: status.SpoolBytes}, nil
	}
	exit := *status.Exit
	exit.Lost = exit.Why != "" // what it did is not known, and it is no failure of the agent
	return exit, nil
}

// Evidence implements sessionhost.Process.
func (p *shimProcess) Evidence(ctx context.Context) (sessionhost.Proof, error) {
	s, against, err := p.seen(ctx)
	if err != nil {
		return sessionhost.Proof{}, fmt.Errorf("%w; process %d itself %s", err, p.pid, LifeWords[shim.LifeOf(p.pid, p.start)])
	}
	proof := sessionhost.Proof{
		Against: against, Stopped: shim.LifeOf(s.AgentPID, s.StartTime) == shim.Stopped, Ended: s.AgentEnded,
		ShimPID: s.ShimPID, PID: s.AgentPID, StartedAt: s.StartedAt, LastByteAt: s.LastByteAt,
		Ports: s.Ports, Bytes: s.SpoolBytes, Children: s.Children, Full: s.SpoolError,
		Wall: string(s.Wall), Unheld: rowWords(s.Unheld), Use: s.Use,
	}
	if s.SpoolFull {
		proof.Full = "its output has reached its limit (limits.output)"
	}
	for _, way := range []struct {
		name  string
		holds bool
	}{
		{"subreaper", s.Holds.Subreaper},
		{"process group", s.Holds.ProcessGroup},
		{"parent-death signal", s.Holds.ParentDeath},
		{"mark", s.Holds.Mark},
	} {
		if way.holds {
			proof.Holds = append(proof.Holds, way.name)
		}
	}
	return proof, nil
}

// reapedWithin is how long a shim may take to notice that its agent has exited: it is notified by a
// signal and needs CPU time to handle it.
const reapedWithin = 100 * time.Millisecond

// seen asks the shim for its status and compares it with the system's process table.
func (p *shimProcess) seen(ctx context.Context) (s shim.Status, against string, err error) {
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
		if !retry.Rest(ctx, reapedWithin/20) {
			return s, "", ctx.Err()
		}
	}
}

// LifeWords describe the state of a process.
var LifeWords = map[shim.Life]string{
	shim.LifeUnknown: "is not known", shim.Lives: "lives", shim.Stopped: "is stopped",
	shim.Gone: "is gone", shim.Reused: "is gone, and its PID now belongs to another process",
}

// LabeledWire is a wire that labels its input. A driver sends a prompt in one call.
type LabeledWire struct {
	sessionhost.Process
	Writer sessionhost.InputWriter
	Label  string
}

// Send writes the input with the label.
func (w LabeledWire) Send(ctx context.Context, input []byte) error {
	return w.Writer.SendAs(ctx, w.Label, input)
}
