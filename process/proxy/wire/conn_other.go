//go:build !linux

package wire

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// recvmsg lets no process start between the receipt of a descriptor and its mark that it closes with an execve.
func recvmsg(fd int, b, oob []byte) (n, oobn, flags int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	n, oobn, flags, _, err = unix.Recvmsg(fd, b, oob, 0)
	if fds, _ := rightsIn(oob[:max(oobn, 0)]); err == nil {
		for _, came := range fds {
			unix.CloseOnExec(came)
		}
	}
	return n, oobn, flags, err
}
