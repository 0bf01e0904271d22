package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/cluster/wire"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/host"
	"github.com/fairlead-dev/fairlead/shim"
)

const (
	sessionsMax = 10000       // the highest capacity of a host
	streamsMax  = 4096        // outputs that are read at one time: each has a file and a buffer
	bodiesMax   = 16          // bodies that are read at one time: together 128 MiB
	orderWithin = time.Minute // what a shim is asked for takes milliseconds, and 10 seconds if it hangs
)

// Sessions are those of this host, for a leader. It is made with its exported fields.
type Sessions struct {
	Shims *sessions.Shims
	Guard Guard
	Log   *slog.Logger

	mu      sync.Mutex
	all     map[string]*session // those with a process that was not acknowledged yet, or with a request
	closed  bool
	streams atomic.Int64
	bodies  atomic.Int64
}

// Guard decides with the rules of machine/host.
type Guard interface {
	// MayStart asks the leader whether a session may start. It may begin until by, and ends at end unless it waits. The
	// error says why it may not start.
	MayStart(ctx context.Context, token host.Token) (by, end host.BootTime, waits bool, err error)

	// Epoch returns a *seam.Fenced if a higher epoch was seen. A new highest one is stored first.
	Epoch(epoch uint64) error
}

// session is one that this host works on.
type session struct {
	turn chan struct{} // holds a value while a request changes the session
	refs int           // requests; Sessions.mu guards it
	proc atomic.Pointer[process]
}

// process is what the shim of a session holds.
type process struct {
	seam.Process
	epoch    uint64
	found    seam.Found
	lease    lease
	replaced chan struct{} // closed when another one is used
}

// with calls do while no other request changes the session.
func (s *Sessions) with(ctx context.Context, id string, do func(*session) error) error {
	s.mu.Lock()
	if s.all == nil {
		s.all = map[string]*session{}
	}
	if s.closed {
		s.mu.Unlock()
		return &wire.Problem{Code: wire.Busy, Why: "the daemon of this host stops"}
	}
	if len(s.all) >= sessionsMax {
		maps.DeleteFunc(s.all, func(_ string, one *session) bool {
			proc := one.proc.Load()
			return one.refs == 0 && proc != nil && isDone(proc) // its record can be read again
		})
	}
	one := s.all[id]
	switch {
	case one == nil && len(s.all) >= sessionsMax:
		s.mu.Unlock()
		return busy("this host works on %d sessions, which is the limit", sessionsMax)
	case one == nil:
		one = &session{turn: make(chan struct{}, 1)}
		s.all[id] = one
	}
	one.refs++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.refs--; one.refs == 0 && one.proc.Load() == nil {
			delete(s.all, id)
		}
	}()
	select {
	case one.turn <- struct{}{}:
		defer func() { <-one.turn }()
		return do(one)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func busy(format string, limit int64) error {
	return &wire.Problem{Code: wire.Busy, Why: fmt.Sprintf(format, limit)}
}

// start starts a session at most once.
func (s *Sessions) start(ctx context.Context, id string, in wire.StartIn) (status wire.Status, err error) {
	err = s.with(ctx, id, func(one *session) error {
		if err := s.Guard.Epoch(in.Epoch); err != nil {
			return err
		}
		proc, err := s.adopt(ctx, id, one, in.Epoch)
		switch {
		case err != nil:
			return err
		case proc == nil || proc.found == seam.NeverStarted:
		case proc.lease.Token != in.Token:
			return &seam.CannotStart{Why: fmt.Sprintf("host %s had a session %s under another lease; move its folder aside there: %s", in.Token.Host, id, s.folder(id))}
		default:
			return &seam.AlreadyStarted{Session: id}
		}
		launch, err := s.launch(in)
		if err != nil {
			return err
		}
		var man host.DeadMan
		if man.StartBy, man.EndAt, man.Waits, err = s.Guard.MayStart(ctx, in.Token); err != nil {
			return err
		}
		l := lease{in.Token, in.OnLost}
		if err := s.writeLease(l); err != nil {
			return err
		}
		began, err := s.begin(ctx, id, in, launch, &man)
		if err != nil {
			return err
		}
		s.keep(one, &process{began, in.Epoch, seam.Running, l, make(chan struct{})})
		status = statusOf(began)
		return nil
	})
	return status, err
}

// begin starts a session's shim, which checks the times of man itself.
func (s *Sessions) begin(ctx context.Context, id string, in wire.StartIn, launch driver.Launch, _ *host.DeadMan) (seam.Process, error) {
	return s.Shims.Start(ctx, id, in.Epoch, launch, time.Duration(in.GraceMS)*time.Millisecond)
}

// launch is a session's launch on this machine.
func (s *Sessions) launch(in wire.StartIn) (driver.Launch, error) {
	l := in.Start
	return driver.Launch{Argv: l.Argv, Dir: l.Dir, Env: l.Env, Input: l.Input, KeepStdin: l.KeepStdin, Ports: l.Ports, PortsFor: l.PortsFor}, nil
}

// adopt returns what the shim of a session holds, for a leader of this epoch. It is nil if no session was begun under a
// lease; then nothing is created.
func (s *Sessions) adopt(ctx context.Context, id string, one *session, epoch uint64) (*process, error) {
	if held := one.proc.Load(); held != nil && held.epoch == epoch {
		return held, nil
	}
	l, err := s.readLease(id)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, s.never(ctx, id)
	}
	proc, found, err := s.Shims.Adopt(ctx, id, epoch)
	if err != nil {
		return nil, err
	}
	adopted := &process{proc, epoch, found, *l, make(chan struct{})}
	if found == seam.NeverStarted {
		_ = proc.Close() // there is none
		return adopted, nil
	}
	s.keep(one, adopted)
	return adopted, nil
}

// never returns an error if a session without a lease began nevertheless.
func (s *Sessions) never(ctx context.Context, id string) error {
	if _, err := os.Lstat(s.folder(id)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	sight, err := shim.Look(ctx, s.folder(id))
	if err == nil && sight.Phase != shim.NeverStarted {
		err = fmt.Errorf("session %s of this host has no lease, so it is not the leader's; move its folder aside: %s", id, s.folder(id))
	}
	return err
}

func (s *Sessions) folder(id string) string { return filepath.Join(s.Shims.Folder, id) }

// keep replaces the process of a session.
func (s *Sessions) keep(one *session, proc *process) {
	if before := one.proc.Swap(proc); before != nil {
		close(before.replaced)
		_ = before.Close() // nothing was requested of it
	}
}

// Close closes the connections to the shims. The processes keep running.
func (s *Sessions) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, one := range s.all {
		s.keep(one, nil)
	}
}

func statusOf(proc seam.Process) wire.Status {
	status := wire.Status{PID: proc.PID()}
	if writer, is := proc.(seam.InputWriter); is {
		status.Input, status.Label = writer.Input()
	}
	return status
}
