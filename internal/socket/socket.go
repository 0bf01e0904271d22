// Package socket makes stream sockets without package net: they are files that the runtime polls, with deadlines.
//
// It is the front door for processes that must be up at once. A shim begins as soon as the packages that it imports are initialized, and
// package net waits for almost all other packages of the program.
//
// The one promise: no process that is started meanwhile inherits a socket that was made, accepted or connected here.
package socket

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// backlog is how many connections may wait for Accept: more than a shim has at a time.
const backlog = 64

// Polled gives a socket to the runtime's poller, and owns it. The name is for errors.
func Polled(fd int, name string) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// stream makes a stream socket.
func stream(family int, name string) (*os.File, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	return Polled(fd, name)
}

// Control calls do with the descriptor of a socket, and returns what it returns.
func Control(s syscall.Conn, do func(fd int) error) error {
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

// ListenUnix makes a unix socket that accepts connections. Closing it leaves its path.
func ListenUnix(path string) (*os.File, error) {
	return Listen(unix.AF_UNIX, &unix.SockaddrUnix{Name: path}, path)
}

// Listen makes a socket of a family that accepts connections at an address. The name is for errors.
func Listen(family int, at unix.Sockaddr, name string) (*os.File, error) {
	s, err := stream(family, name)
	if err != nil {
		return nil, err
	}
	err = Control(s, func(fd int) error {
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

// Accept waits for a connection. The error is os.ErrClosed after the socket was closed.
func Accept(l *os.File) (*os.File, error) {
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
	return Polled(fd, l.Name())
}

// ConnectUnix connects to a unix socket, or returns at once: a full queue of connections is an error that passes.
func ConnectUnix(path string) (*os.File, error) {
	s, err := stream(unix.AF_UNIX, path)
	if err != nil {
		return nil, err
	}
	if err := Control(s, func(fd int) error { return unix.Connect(fd, &unix.SockaddrUnix{Name: path}) }); err != nil {
		s.Close()
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	return s, nil
}
