package peer

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerUID is whose process is at the other end, by SO_PEERCRED.
func peerUID(c *net.UnixConn) (int, error) {
	cred, err := peerCred(c)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}

// PID is the process that connected; 0 where it is in no namespace of ours.
func PID(c *net.UnixConn) (int, error) {
	cred, err := peerCred(c)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
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
		return nil, fmt.Errorf("ask whose the other end of the socket is: %w", fault)
	}
	return cred, nil
}
