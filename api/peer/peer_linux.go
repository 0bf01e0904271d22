package peer

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerUID returns the user at the other end, by SO_PEERCRED.
func peerUID(c *net.UnixConn) (int, error) {
	cred, err := peerCred(c)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}

func peerCred(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var fault error
	if err := raw.Control(func(fd uintptr) {
		cred, fault = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	if fault != nil {
		return nil, fmt.Errorf("read the user at the other end of the socket: %w", fault)
	}
	return cred, nil
}
