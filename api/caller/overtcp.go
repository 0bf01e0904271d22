package caller

import (
	"net"
	"net/netip"
)

// viaTCP is a connection over TCP. The token proves only that the caller can read the owner's files,
// which an agent can, too. Therefore the process at the other end is identified before an order that
// an agent may not give (X10). This takes milliseconds, and is done for such orders only.
type viaTCP struct {
	client, server netip.AddrPort
	dir            string // the repository, whose agents must be identified
}

// overTCP returns the peer of a TCP connection; nil: it is on another machine, or its address is
// of an unknown kind.
func overTCP(c net.Conn, dir string) *viaTCP {
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
