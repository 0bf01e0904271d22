package shim

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/socket"
)

// PeerCaller is Caller for the process that made a connection over a unix socket. A peer without a PID is in no
// namespace of this process, so it is no child of Fairlead.
func PeerCaller(workspace string, c syscall.Conn) Origin {
	p, err := processAt(c)
	if err != nil || p.pid <= 0 {
		return Origin{}
	}
	defer p.close()
	return p.origin(func(pid int) Origin { return Caller(workspace, pid) })
}

// processAt returns the process at the other end of a unix socket: with SO_PEERPIDFD (Linux 6.5) bound to it, without by its PID.
func processAt(c syscall.Conn) (peerProcess, error) {
	_, pid, err := peerOf(c)
	if err != nil || pid <= 0 {
		return peerProcess{}, err
	}
	p := peerProcess{pid: pid, ended: func() bool { return false }, close: func() {}}
	var fd int
	err = socket.Control(c, func(its int) (err error) {
		fd, err = unix.GetsockoptInt(its, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		return err
	})
	switch {
	case errors.Is(err, unix.ENOPROTOOPT), errors.Is(err, unix.EOPNOTSUPP): // an older kernel
	case err != nil: // the process is gone, and so is what the kernel knew of it
		p.ended = func() bool { return true }
	default:
		p.ended = func() bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
		}
		p.close = func() { _ = unix.Close(fd) }
	}
	return p, nil
}
