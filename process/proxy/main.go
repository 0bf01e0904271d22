package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/internal/boundedlog"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

const (
	idleMax     = 10 * time.Second // without a session and a daemon: a daemon that restarts is back by then
	socketLook  = time.Second      // how soon a socket that vanished is made again
	logBytesMax = 256 << 10        // of one process; a line is written where something is wrong, and for each session
)

// Intercept runs the proxy, and does not return, if this process was started as one.
func Intercept() {
	if len(os.Args) == 3 && os.Args[1] == wire.Word {
		wire.Serving.Store(true)
		os.Exit(Main(os.Args[2]))
	}
}

// A proxy needs little of this program: this runs before the packages that import this one are initialized, and before most of the others.
func init() { Intercept() } //nolint:gochecknoinits // main is too late, as for the shim

// Main runs the proxy of a folder until no session needs it. The result is the exit code.
func Main(folder string) int {
	log := boundedlog.New(os.Stderr, logBytesMax)
	if err := run(folder, log); err != nil {
		log.Print("%v", err)
		return 1
	}
	return 0
}

func run(folder string, log *boundedlog.Log) error {
	lock, err := hasLock(folder)
	if err != nil {
		return err
	}
	defer lock.Close()
	hide()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s := newServer(machine(), log)
	s.endIdle(idleMax, stop)
	log.Print("proxy %d of %s", os.Getpid(), folder)
	for ctx.Err() == nil { // again when the socket's folder has vanished, as with a logout
		if err := s.serveAt(ctx, folder); err != nil {
			return err
		}
	}
	return nil // the kernel closes what is open
}

// serveAt listens in the runtime folder until ctx ends or the socket has vanished from it.
func (s *server) serveAt(ctx context.Context, folder string) error {
	path, err := wire.SocketPath(folder)
	if err != nil {
		return err
	}
	_ = os.Remove(path) // of a proxy that was killed: this one has the lock
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen for shims and daemons: %w", err)
	}
	defer l.Close() // and its path is removed
	bound, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("listen for shims and daemons: %w", err)
	}
	served := make(chan error, 1)
	go func() { served <- s.serve(l) }()
	look := time.NewTicker(socketLook)
	defer look.Stop()
	for {
		select {
		case err := <-served:
			return err
		case <-ctx.Done():
			return nil
		case <-look.C:
			if now, err := os.Lstat(path); err != nil || !os.SameFile(now, bound) {
				l.SetUnlinkOnClose(false)
				return nil
			}
		}
	}
}

// hasLock returns the file of the lock if it is the folder's. The lock ends with this process.
func hasLock(folder string) (*os.File, error) {
	lock := os.NewFile(wire.LockFD, "lock")
	inherited, err := lock.Stat()
	if err == nil {
		syscall.CloseOnExec(wire.LockFD)
		var there os.FileInfo
		if there, err = os.Stat(filepath.Join(folder, "lock")); err == nil && !os.SameFile(inherited, there) {
			err = errors.New("descriptor 3 is another file")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the proxy is started by Fairlead, not by hand: %w", err)
	}
	return lock, nil
}
