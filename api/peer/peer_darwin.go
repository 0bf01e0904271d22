package peer

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerUID is whose process is at the other end, by LOCAL_PEERCRED, which is what getpeereid asks.
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
		return 0, fmt.Errorf("ask whose the other end of the socket is: %w", fault)
	}
	return int(cred.Uid), nil
}

// PID is not known here.
func PID(*net.UnixConn) (int, error) { return 0, nil }
