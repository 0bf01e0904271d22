package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/socket"
)

// Start starts an agent in a session's folder, which is created if necessary. It returns when the
// agent runs and this is recorded on disk.
//
// The error is *spawn.AlreadyStarted if an agent was ever started there, *spawn.CannotStart if the command
// cannot be executed (which is recorded, too), and *Fenced if a higher epoch was seen. After any
// other error, including the end of ctx, Adopt says whether an agent runs.
func Start(ctx context.Context, folder string, spec Spec) (*Handle, error) {
	if err := spec.check(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Session, err)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Session, context.Cause(ctx))
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Session, noFolder(err))
	}
	folder, err := realFolder(folder)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Session, err)
	}
	conn, err := startShim(folder, &spec)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Session, err)
	}
	// The shim's program is loaded during this sync. Without a launch, it only waits.
	if err := syncFolder(filepath.Dir(folder)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("start %s: %w", spec.Session, err)
	}
	st, err := launch(ctx, conn, &spec)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("start %s: %w", spec.Session, err)
	}
	return newHandle(folder, spec.Fence, conn, *st), nil
}

// makeFolder creates a session's folder durably: a power failure must not erase a start, or a fence
// against one.
func makeFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return noFolder(err)
	}
	return syncFolder(filepath.Dir(folder))
}

func noFolder(err error) error {
	return fmt.Errorf("make the session's folder: %w; it must be ours to write", err)
}

// startShim starts the shim's process for a session and returns the daemon's end of the socket.
func startShim(folder string, spec *Spec) (*os.File, error) {
	// The shim's error output, including a panic, goes to a file of its own and never to the daemon's
	// standard error.
	log, err := openPlain(filepath.Join(folder, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, fmt.Errorf("the session's folder cannot be written: %w; it must be ours", err)
	}
	defer log.Close()
	exe := spec.Exe
	if exe == "" {
		if exe, err = selfExe(); err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p, err := os.StartProcess(exe, []string{"fairlead", shimWord, spec.Session, folder}, &os.ProcAttr{
		Env:   shimEnv(markOf(spec.Workspace, spec.Session)),
		Files: []*os.File{null, null, log, theirs},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("start the shim: %w", err)
	}
	go func() { _, _ = p.Wait() }() // so that it leaves no zombie
	return ours, nil
}

func socketPair() (ours *os.File, theirs *os.File, err error) {
	syscall.ForkLock.RLock() // no fork may happen between creation and close-on-exec
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err == nil {
		theirs = os.NewFile(uintptr(fds[1]), "shim")
		if ours, err = socket.Polled(fds[0], "daemon"); err != nil {
			theirs.Close()
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	return ours, theirs, nil
}

// launch sends the spec and waits for the answer.
func launch(ctx context.Context, conn *os.File, l *Spec) (*Status, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var a answer
	err := writeFrame(conn, order{ID: 1, Op: "launch", Version: ownProtocol(), Fence: l.Fence, Launch: l})
	if err == nil || errors.Is(err, syscall.EPIPE) { // it may have refused before it read everything
		err = readFrame(conn, frameBytesMax, &a)
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("waited for its shim: %w; adopt it to learn whether it runs", context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("its shim went without an answer: %w; see %s in the session's folder", err, logFile)
	case a.Fault != nil:
		return nil, a.Fault.err()
	case a.Status == nil:
		return nil, fmt.Errorf("its shim answered nonsense; see %s in the session's folder", logFile)
	}
	return a.Status, nil
}
