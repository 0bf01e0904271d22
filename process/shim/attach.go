package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// Adopt determines the state of a session, as a daemon with this epoch: it connects to a living
// shim, reads the exit record if there is one, and ends the tree if the shim died without one. An
// epoch below the highest seen is refused with *Fenced. A living shim of another protocol is refused with
// *OtherProtocol; once it is gone, the session is lost, because its exit record is not read. After Adopt with phase NeverStarted, no
// start with a lower epoch succeeds, not even one in progress: a missing folder is created, because
// it has to store the fence.
func Adopt(ctx context.Context, folder string, fence uint64) (*Handle, Status, error) {
	folder, err := realFolder(folder)
	if err != nil {
		return nil, Status{}, fmt.Errorf("adopt: %w", err)
	}
	conn, st, err := attach(ctx, folder, fence)
	if err != nil {
		return nil, Status{}, fmt.Errorf("adopt the session in %s: %w", folder, err)
	}
	return newHandle(folder, fence, conn, *st), *st, nil
}

// attach connects to a living shim, or returns the state according to the folder.
func attach(ctx context.Context, folder string, fence uint64) (*os.File, *Status, error) {
	again := retry.Pauses{First: attachPause, Most: attachPauseMax}
	deadline := time.Now().Add(attachPatience)
	for {
		conn, st, err := attachOnce(ctx, folder, fence)
		if err == nil || !errors.Is(err, errBusy) {
			return conn, st, err
		}
		if time.Now().After(deadline) {
			return nil, nil, fmt.Errorf("%w for %v: %w", errBusy, attachPatience, err)
		}
		if !again.Rest(ctx) {
			return nil, nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// errBusy: the folder is locked, but its shim does not answer now.
var errBusy = errors.New("the shim is there but does not answer; if this goes on, kill it (its pid is in agent.json) and adopt again")

func attachOnce(ctx context.Context, folder string, fence uint64) (*os.File, *Status, error) {
	if st, err := ended(folder, fence); st != nil || err != nil {
		return nil, st, err
	}
	lock, err := openPlain(filepath.Join(folder, lockFile), os.O_RDWR|os.O_CREATE)
	if errors.Is(err, os.ErrNotExist) { // there is no folder; a previous daemon may be about to create it
		if err := makeFolder(folder); err != nil {
			return nil, nil, err
		}
		lock, err = openPlain(filepath.Join(folder, lockFile), os.O_RDWR|os.O_CREATE)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("look who holds it: %w", err)
	}
	defer lock.Close() // releases the lock
	free, err := tryLock(lock)
	if err != nil {
		return nil, nil, fmt.Errorf("look who holds it: %w", err)
	}
	if !free {
		return knock(ctx, folder, fence)
	}
	if st, err := ended(folder, fence); st != nil || err != nil { // it may have ended between the two checks
		return nil, st, err
	}
	if err := raiseFence(folder, fence); err != nil {
		return nil, nil, err
	}
	st, err := abandoned(ctx, folder, fence)
	return nil, st, err
}

// ended returns the state in the exit record; nil if there is none, or it is of another protocol. The fence of a session that is over does
// not count: there is nothing left that two daemons could give orders to.
func ended(folder string, fence uint64) (*Status, error) {
	r, unread := readAgent(folder)
	if r.other() != nil {
		return nil, nil //nolint:nilerr // its exit record is not read
	}
	e, err := readExit(folder)
	if e == nil || err != nil {
		return nil, err
	}
	st := Status{}
	if unread == nil && r != nil {
		st = r.status()
		_ = sandbox.RemovePoints(filepath.Dir(folder)) // its shim was killed after writing the record; the next end tries again
	}
	_, noAck := os.Stat(filepath.Join(folder, ackedFile))
	st.Phase, st.Exit, st.SpoolBytes, st.Fence, st.Acked = Exited, e, e.SpoolBytes, fence, noAck == nil
	return &st, nil
}

// abandoned decides on a folder without an exit record whose lock this process holds.
func abandoned(ctx context.Context, folder string, fence uint64) (*Status, error) {
	r, err := readAgent(folder)
	switch {
	case errors.As(err, new(*damaged)):
		// It was started: only a shim writes that file. The owner of its tree is unknown; Strays finds the
		// tree.
		return &Status{Phase: Lost, Why: err.Error(), Fence: fence, SpoolBytes: spoolSize(folder)}, nil
	case err != nil:
		return nil, err
	case r == nil:
		return &Status{Phase: NeverStarted, Fence: fence}, nil
	case r.Step == stepCannotStart && r.other() == nil:
		_ = sandbox.RemovePoints(filepath.Dir(folder)) // its shim may have been killed since; the next end tries again
		return &Status{Phase: NeverStarted, Session: r.Session, Why: r.Why, Fence: fence}, nil
	}
	swept, err := endTree(ctx, r)
	if err == nil {
		err = sandbox.RemovePoints(filepath.Dir(folder))
	}
	if err != nil {
		return nil, fmt.Errorf("its shim is gone; end what it left behind: %w", err)
	}
	st := r.status()
	st.Phase, st.Fence, st.Swept, st.SpoolBytes = Lost, fence, swept, spoolSize(folder)
	st.Why = r.lostWhy()
	if r.BootID != bootID() {
		st.Why = "the machine was started anew meanwhile"
	} else if r.Step == stepStarting {
		st.Why += ", at the moment of the start: whether the agent ever ran is not known"
	}
	return &st, nil
}

// knock connects to the shim that holds the lock.
func knock(ctx context.Context, folder string, fence uint64) (*os.File, *Status, error) {
	r, err := readAgent(folder)
	if err != nil && !errors.As(err, new(*damaged)) {
		return nil, nil, err
	}
	if other := r.other(); other != nil {
		if alive(r.ShimPID, r.ShimStart) {
			return nil, nil, other
		}
		return nil, nil, errBusy // it ends
	}
	recorded := ""
	if r != nil {
		recorded = r.Socket
	}
	var errs []error
	for _, path := range socketPaths(folder, recorded) {
		conn, st, err := dial(ctx, path, fence)
		if err == nil {
			return conn, st, nil
		}
		if errors.As(err, new(*Fenced)) || errors.As(err, new(*NotTheDaemon)) || errors.As(err, new(*OtherProtocol)) {
			return nil, nil, err
		}
		errs = append(errs, err)
	}
	if r != nil && r.BootID == bootID() && r.Step == stepStarted {
		// Its socket may have been removed with the runtime folder: ask it to create it again.
		signalProcess(r.ShimPID, r.ShimStart, syscall.SIGUSR1)
	}
	return nil, nil, fmt.Errorf("%w (%w)", errBusy, errors.Join(errs...))
}

// spoolSize returns the length of the output after syncing it; the spool has no writer any more.
func spoolSize(folder string) int64 {
	f, err := openSpool(folder, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	size, err := syncedBytes(f)
	if err != nil {
		return 0
	}
	return size
}
