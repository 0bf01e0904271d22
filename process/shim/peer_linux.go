package shim

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
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

// readFiles reads from a unix socket or a pipe, with the descriptors that come with what is read.
func readFiles(from *os.File, b []byte) (n int, files []*os.File, err error) {
	raw, err := from.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	oob := make([]byte, unix.CmsgSpace(4*descriptorsMax))
	var size int
	var inner error
	err = raw.Read(func(fd uintptr) bool {
		inner = unix.EINTR
		for errors.Is(inner, unix.EINTR) {
			n, size, _, _, inner = unix.Recvmsg(int(fd), b, oob, unix.MSG_CMSG_CLOEXEC)
		}
		return !errors.Is(inner, unix.EAGAIN)
	})
	switch {
	case err != nil:
		return 0, nil, err
	case errors.Is(inner, unix.ENOTSOCK):
		n, err = from.Read(b)
		return n, nil, err
	case inner != nil:
		return 0, nil, inner
	case n == 0 && len(b) > 0:
		return 0, nil, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(oob[:size])
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i]) // none: it is another message
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "socket"))
		}
	}
	return n, files, err
}

// descriptorsMax is how many descriptors one message of the kernel carries (SCM_MAX_FD).
const descriptorsMax = 253

// processAt returns the process at the other end of a unix socket: with SO_PEERPIDFD (Linux 6.5) bound to it, without by its PID.
func processAt(c syscall.Conn) (peerProcess, error) {
	_, pid, err := peerOf(c)
	if err != nil || pid <= 0 {
		return peerProcess{}, err
	}
	p := peerProcess{pid: pid, ended: func() bool { return false }, close: func() {}}
	var fd int
	err = control(c, func(socket int) (err error) {
		fd, err = unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
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
