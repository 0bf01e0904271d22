package wire

import "golang.org/x/sys/unix"

func recvmsg(fd int, b, oob []byte) (n, oobn, flags int, err error) {
	n, oobn, flags, _, err = unix.Recvmsg(fd, b, oob, unix.MSG_CMSG_CLOEXEC)
	return n, oobn, flags, err
}
