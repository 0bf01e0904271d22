package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A shim begins as soon as the packages that it imports are initialized. Package net waits for almost all other
// packages of the program, so this one does without: the sockets here are files that the runtime polls, with deadlines.

// backlog is how many connections may wait for accept: more than peersMax.
const backlog = 64

// polled gives a socket to the runtime's poller.
func polled(fd int, name string) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// socket makes a stream socket, which no process inherits that is started meanwhile.
func socket(family int, name string) (*os.File, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	return polled(fd, name)
}

// control calls do with the descriptor of a socket.
func control(s syscall.Conn, do func(fd int) error) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// listenAt makes a unix socket that accepts connections. Closing it leaves its path.
func listenAt(path string) (*os.File, error) {
	return listening(unix.AF_UNIX, &unix.SockaddrUnix{Name: path}, path)
}

func listening(family int, at unix.Sockaddr, name string) (*os.File, error) {
	s, err := socket(family, name)
	if err != nil {
		return nil, err
	}
	err = control(s, func(fd int) error {
		if family != unix.AF_UNIX { // a port that was just used is free
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
				return err
			}
		}
		if err := unix.Bind(fd, at); err != nil {
			return err
		}
		return unix.Listen(fd, backlog)
	})
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("listen at %s: %w", name, err)
	}
	return s, nil
}

// accept waits for a connection. The error is os.ErrClosed after the socket was closed.
func accept(l *os.File) (*os.File, error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, inner := -1, error(nil)
	err = raw.Read(func(s uintptr) bool {
		syscall.ForkLock.RLock()
		fd, _, inner = unix.Accept(int(s))
		if inner == nil {
			unix.CloseOnExec(fd)
		}
		syscall.ForkLock.RUnlock()
		return !errors.Is(inner, unix.EAGAIN)
	})
	switch {
	case err != nil:
		return nil, os.ErrClosed
	case inner != nil:
		return nil, inner
	}
	return polled(fd, l.Name())
}

// connect connects to a unix socket, or returns at once: a full queue of connections is an error that passes.
func connect(ctx context.Context, path string) (*os.File, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s, err := socket(unix.AF_UNIX, path)
	if err != nil {
		return nil, err
	}
	if err := control(s, func(fd int) error { return unix.Connect(fd, &unix.SockaddrUnix{Name: path}) }); err != nil {
		s.Close()
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	return s, nil
}
