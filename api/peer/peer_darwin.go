package peer

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerUID returns the user at the other end, by LOCAL_PEERCRED, as getpeereid does.
func peerUID(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Xucred
	var fault error
	if err := raw.Control(func(fd uintptr) {
		cred, fault = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if fault != nil {
		return 0, fmt.Errorf("read the user at the other end of the socket: %w", fault)
	}
	return int(cred.Uid), nil
}
