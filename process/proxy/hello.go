package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

const (
	// clientHelloBytesMax bounds what is read of a ClientHello. With post-quantum keys and ECH it has 2 to 4 KB.
	clientHelloBytesMax = 32 << 10

	recordHandshake = 0x16 // the first byte of TLS
)

// alert is a code of a TLS alert, RFC 8446 6.
type alert byte

const (
	alertAccessDenied     alert = 49
	alertDecodeError      alert = 50
	alertInternal         alert = 80
	alertUnrecognizedName alert = 112
)

// alertOf is the record of a fatal alert before the handshake.
func alertOf(a alert) []byte { return []byte{0x15, 3, 3, 0, 2, 2, byte(a)} }

// alerted is a connection that ends with an alert.
type alerted struct {
	alert alert
	err   error
}

func (a *alerted) Error() string { return a.err.Error() }
func (a *alerted) Unwrap() error { return a.err }

// clientHello reads the ClientHello of a connection, and returns its bytes, with what came behind it, and its name.
func clientHello(ctx context.Context, c net.Conn) (raw []byte, name string, err error) {
	recording := &recorder{Conn: c}
	found := errors.New("found")
	server := tls.Server(recording, &tls.Config{ //nolint:gosec // no handshake is made: the ClientHello is read, whatever its version
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name = hello.ServerName
			return nil, found
		},
	})
	_ = c.SetReadDeadline(time.Now().Add(handshakePatience))
	err = server.HandshakeContext(ctx)
	_ = c.SetReadDeadline(time.Time{})
	if errors.Is(err, found) {
		return recording.read.Bytes(), strings.ToLower(name), nil
	}
	return recording.read.Bytes(), "", err
}

// recorder keeps what is read of a connection, and writes nothing to it.
type recorder struct {
	net.Conn
	read bytes.Buffer
}

func (r *recorder) Read(b []byte) (int, error) {
	left := clientHelloBytesMax - r.read.Len()
	if left <= 0 {
		return 0, fmt.Errorf("the ClientHello is longer than %d bytes", clientHelloBytesMax)
	}
	n, err := r.Conn.Read(b[:min(len(b), left)])
	r.read.Write(b[:n])
	return n, err
}

func (*recorder) Write(b []byte) (int, error) { return len(b), nil }

func (*recorder) Close() error { return nil }

// sameName checks the name of a ClientHello. host is what the connection is for.
func sameName(host, name string) error {
	_, noLiteral := netip.ParseAddr(host)
	switch {
	case strings.EqualFold(host, name), name == "" && noLiteral == nil: // an address has no name in TLS
		return nil
	case name == "":
		return &alerted{alertUnrecognizedName, &refusal{wire.VerdictRefused, fmt.Sprintf(
			"fairlead: the ClientHello of a connection to %s has no name; use a program that sends it (SNI)", shown(host))}}
	}
	return &alerted{alertUnrecognizedName, &refusal{wire.VerdictRefused, fmt.Sprintf(
		"fairlead: the ClientHello of a connection to %s has the name %s; connect to the host that is meant", shown(host), shown(name))}}
}

func noHello(host string, raw []byte, err error) error {
	if len(raw) == 0 && (errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded)) {
		return io.EOF // it asked whether the port is open, or connected in advance
	}
	return &alerted{alertDecodeError, &refusal{wire.VerdictRefused, fmt.Sprintf(
		"fairlead: what was sent to %s at port 443 is no TLS: %v; a person has to name the host in network for anything else", shown(host), err)}}
}

// firstOf returns what has to be read of a connection before it is carried; nil if nothing has to be.
func (s *session) firstOf(c *client, out *leaving) (before func() ([]byte, error), mandatory bool) {
	if out.port != httpsPort {
		return nil, false
	}
	mandatory = !out.host.Named
	return func() ([]byte, error) {
		if !mandatory { // a host that a person named may speak another protocol there, and the host may speak first
			var one [1]byte
			n, err := c.Read(one[:])
			c.first = append(one[:n:n], c.first...)
			if err != nil || one[0] != recordHandshake {
				return nil, nil //nolint:nilerr // the copy meets it again
			}
		}
		raw, name, err := clientHello(s.ctx, c)
		if err != nil {
			err = noHello(out.name, raw, err)
		} else {
			err = sameName(out.name, name)
		}
		s.warn(c, out.name, out.port, err)
		return raw, err
	}, mandatory
}

// tunnel connects a program to a host, byte by byte.
func (s *session) tunnel(c *client, name string, port int) {
	out, err := s.dial(s.ctx, name, port)
	if err != nil {
		s.report(name, port, err)
		c.reset()
		return
	}
	s.carry(c, out)
}

// carry carries a connection that was made, and closes both ends.
func (s *session) carry(c *client, out *leaving) {
	defer out.Close()
	defer c.Close()
	before, wait := s.firstOf(c, out)
	in, sent := carry(c, out.half, before, wait)
	out.in.Store(in)
	out.out.Store(sent)
}

// warn reports a fault in what the program said, and sends the alert.
func (s *session) warn(c *client, name string, port int, err error) {
	if err == nil || errors.Is(err, io.EOF) {
		return
	}
	s.report(name, port, err)
	code := alertInternal
	var a *alerted
	if errors.As(err, &a) {
		code = a.alert
	} else if errors.As(err, new(*refusal)) {
		code = alertAccessDenied
	}
	_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // it fits into the socket
	_, _ = c.Write(alertOf(code))
}

// transparentTLS serves a connection that a program made to port 443 of a name's address.
func (s *session) transparentTLS(c *client) {
	if c.target != "" {
		if host, err := s.decide(c.target, httpsPort); err == nil && host.Named {
			s.tunnel(c, c.target, httpsPort) // which speaks TLS or not
			return
		}
	}
	raw, name, err := clientHello(s.ctx, c)
	target := c.target
	switch {
	case err != nil:
		err = noHello(target, raw, err)
	case target == "":
		if target = name; name == "" {
			err = sameName("an unknown host", name)
		}
	default:
		err = sameName(target, name)
	}
	var out *leaving
	if err == nil {
		out, err = s.dial(s.ctx, target, httpsPort)
	}
	if err != nil {
		s.warn(c, target, httpsPort, err)
		return
	}
	defer out.Close()
	c.first = nil
	in, sent := carry(c, out.half, func() ([]byte, error) { return raw, nil }, true)
	out.in.Store(in)
	out.out.Store(sent)
}

// local carries a connection to a port of this machine.
func (s *session) local(c *client, port int) {
	allowed := localPorts(port)
	if !allowed(s.currentRules()) {
		c.reset()
		return
	}
	out, err := s.server.outside.loopback(s.ctx, port)
	if err != nil {
		s.report("localhost", port, err)
		c.reset()
		return
	}
	defer out.Close()
	untrack, ok := s.track(&stream{allowed: allowed, close: func() { out.Close() }})
	if !ok {
		c.reset()
		return
	}
	defer untrack()
	in, sent := carry(c, out, nil, false)
	s.reached("localhost", port, 1, in, sent)
}

// loopback connects to a port of this machine.
func (o outside) loopback(ctx context.Context, port int) (half, error) {
	return o.race(ctx, []netip.AddrPort{
		netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), netip.AddrPortFrom(netip.IPv6Loopback(), uint16(port)),
	})
}
