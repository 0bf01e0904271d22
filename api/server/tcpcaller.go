package server

import (
	"net"
	"net/netip"
)

// viaTCP is a connection over the port. The token says that its owner's files can be read, and an
// agent can read them, too; so before an order that an agent may not give (X10), the process at the
// other end is looked for. That costs milliseconds, and is done for orders alone.
type viaTCP struct {
	client, server netip.AddrPort
	dir            string // the repository, whose agents are told apart from people
}

// portCaller is who connects over the port; nil: not from this machine, or not by an address that we know.
func portCaller(c net.Conn, dir string) *viaTCP {
	client, ok := c.RemoteAddr().(*net.TCPAddr)
	server, also := c.LocalAddr().(*net.TCPAddr)
	if !ok || !also {
		return nil
	}
	return &viaTCP{client: plainAddr(client), server: plainAddr(server), dir: dir}
}

func plainAddr(a *net.TCPAddr) netip.AddrPort {
	at := a.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}
