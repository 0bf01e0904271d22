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

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

const (
	sessionsMax = 10000       // the highest capacity of a host
	streamsMax  = 4096        // outputs that are read at one time: each has a file and a buffer
	bodiesMax   = 16          // bodies that are read at one time: together 128 MiB
	orderWithin = time.Minute // what a shim is asked for takes milliseconds, and 10 seconds if it hangs
)

// Sessions are those of this host, for a leader. It is made with its exported fields.
type Sessions struct {
	Shims   *sessions.Shims
	Guard   Guard
	Sockets outside.SessionSockets // of sessions in views; nil: none
	Root    string                 // the repository
	Exe     string                 // the program fairlead
	Log     *slog.Logger

	boxed sessions.SandboxProof

	mu      sync.Mutex
	all     map[string]*session // those with a process that was not acknowledged yet, or with a request
	closed  bool
	streams atomic.Int64
	bodies  atomic.Int64
}

// Guard decides with the rules of core/host.
type Guard interface {
	// MayStart asks the leader whether a session may start. It may begin until by, and ends at end unless it waits. The
	// error says why it may not start.
	MayStart(ctx context.Context, token host.Token) (by, end host.BootTime, waits bool, err error)

	// Home is the lease of a session that began here without one, while no other machine could lead; false: it has none.
	Home(session string) (host.Lease, bool)

	// Epoch returns a *sessionhost.Fenced if a higher epoch was seen. A new highest one is stored first.
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
	sessionhost.Process
	epoch    uint64
	found    sessionhost.Found
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
			if one.refs > 0 || proc == nil || !isDone(proc) {
				return false
			}
			s.keep(one, nil) // its record can be read again
			return true
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
		case proc != nil && proc.lease.Token != in.Token && proc.found == sessionhost.Running && !isDone(proc):
			return &spawn.CannotStart{Why: fmt.Sprintf("host %s runs a session %s under an earlier lease, as process %d", in.Token.Host, id,
				proc.PID())}
		case proc != nil && proc.lease.Token == in.Token && proc.found != sessionhost.NeverStarted:
			return &spawn.AlreadyStarted{Session: id}
		}
		launch, err := s.launch(ctx, id, in)
		if err != nil {
			return err
		}
		var man host.DeadMan
		if man.StartBy, man.EndAt, man.Waits, err = s.Guard.MayStart(ctx, in.Token); err != nil {
			return err
		}
		if proc == nil || proc.lease.Token != in.Token {
			if err := s.makeRoom(id, one); err != nil {
				return err
			}
		}
		l := lease{in.Token, in.OnLost}
		if err := s.writeLease(l); err != nil {
			return err
		}
		// the shim checks these times itself
		began, err := s.Shims.StartLeased(ctx, id, in.Epoch, launch, time.Duration(in.GraceMS)*time.Millisecond, &man)
		if err != nil {
			return err
		}
		s.keep(one, &process{began, in.Epoch, sessionhost.Running, l, make(chan struct{})})
		status = statusOf(began)
		return nil
	})
	return status, err
}

// launch is a session's launch on this machine, with its environment, and in the sandbox of its agent.
func (s *Sessions) launch(ctx context.Context, id string, in wire.StartIn) (spawn.Launch, error) {
	in, err := wire.Resolve(in, os.Environ(), in.Token.Host)
	if err != nil {
		return spawn.Launch{}, err
	}
	launch := in.Launch
	launch.View = nil // only this machine makes one
	if in.Confine == nil {
		return launch, nil
	}
	if launch, err = s.boxed.Confine(ctx, launch, *in.Confine, s.Root, s.Exe, s.temp(id)); err != nil {
		return launch, &spawn.CannotStart{Why: err.Error()}
	}
	if launch, err = sessions.WithSocket(s.Sockets, launch, id, s.Exe, s.temp(id)); err != nil {
		return launch, &spawn.CannotStart{Why: err.Error()}
	}
	return launch, nil
}

// temp is the temporary folder of a session in a sandbox. It is removed when the session was acknowledged.
func (s *Sessions) temp(id string) string {
	return filepath.Join(filepath.Dir(s.Shims.Folder), "tmp", id)
}

// leave removes what the view of a session was made of.
func (s *Sessions) leave(id string) error { return sessions.EndPlaces(s.Sockets, id, s.temp(id)) }

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
	if given, home := s.Guard.Home(id); l == nil && home {
		l = &lease{given.Token, given.OnLost}
		if err := s.writeLease(*l); err != nil {
			return nil, err
		}
	}
	if l == nil {
		return nil, s.never(ctx, id)
	}
	proc, found, err := s.Shims.Adopt(ctx, id, epoch)
	if err != nil {
		return nil, err
	}
	adopted := &process{proc, epoch, found, *l, make(chan struct{})}
	if found == sessionhost.NeverStarted {
		_ = proc.Close() // there is none
		return adopted, nil
	}
	s.keep(one, adopted)
	if found == sessionhost.Running {
		sessions.ListenAgain(s.Sockets, id, s.temp(id), s.Log)
	}
	return adopted, nil
}

// never returns an error if a session without a lease runs nevertheless. One that is over is not the leader's.
func (s *Sessions) never(ctx context.Context, id string) error {
	if _, err := os.Lstat(s.folder(id)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	sight, err := shim.Look(ctx, s.folder(id))
	if err == nil && sight.Phase == shim.Running {
		err = fmt.Errorf("a session %s runs on this host as process %d, without a lease; `kill %d` ends it", id, sight.AgentPID,
			sight.AgentPID)
	}
	return err
}

// makeRoom moves the folder of another session aside that had the same name, without a lease or under an earlier one, and
// that is over: the host was of another team, or ran Fairlead by itself.
func (s *Sessions) makeRoom(id string, one *session) error {
	s.keep(one, nil)
	if _, err := os.Lstat(s.folder(id)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	to, err := s.Shims.PutAside(id)
	if err != nil {
		return fmt.Errorf("move the folder of an earlier session %s aside: %w", id, err)
	}
	s.Log.Warn("an earlier session of the same name is over; its folder was moved aside", "session", id, "to", to)
	return nil
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

func statusOf(proc sessionhost.Process) wire.Status {
	status := wire.Status{PID: proc.PID()}
	if writer, is := proc.(sessionhost.InputWriter); is {
		status.Input, status.Label = writer.Input()
	}
	return status
}
