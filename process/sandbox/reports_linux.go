package sandbox

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// descriptorsMax is how many descriptors one message of the kernel carries (SCM_MAX_FD).
const descriptorsMax = 253

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
