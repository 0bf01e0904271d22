package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// client is a connection that a program in the session made.
type client struct {
	net.Conn              // counted by its session until it is closed
	tcp      *net.TCPConn // the same
	first    []byte       // what was read already
	target   string       // the only host that it may ask for; empty: any
	through  bool         // it was made to an address or by CONNECT, not to the proxy
	head     []byte       // the beginning of what was read, to its first empty line
	headDone bool
	once     sync.Once
	release  func()
}

// Read reads what was read already, and then the connection.
func (c *client) Read(b []byte) (n int, err error) {
	if len(c.first) > 0 {
		n = copy(b, c.first)
		c.first = c.first[n:]
	} else {
		n, err = c.Conn.Read(b)
	}
	c.record(b[:n])
	return n, err
}

// record keeps the head of the first request, in which package http does not show everything.
func (c *client) record(b []byte) {
	if c.headDone {
		return
	}
	c.head = append(c.head, b...)
	if i := bytes.Index(c.head, []byte("\r\n\r\n")); i >= 0 {
		c.head, c.headDone = c.head[:i], true
	}
	c.headDone = c.headDone || len(c.head) > headBytesMax
}

// hosts are the values of Host in the head of the first request.
func (c *client) hosts() (found []string) {
	for line := range bytes.SplitSeq(c.head, []byte("\n")) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && bytes.EqualFold(name, []byte("host")) {
			found = append(found, string(bytes.TrimSpace(value)))
		}
	}
	return found
}

// Close ends the connection and makes room for another one.
func (c *client) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}

// CloseWrite ends this side: package http lets the program read an answer before the connection is closed.
func (c *client) CloseWrite() error { return c.tcp.CloseWrite() }

// reset ends the connection so that the program sees that something went wrong.
func (c *client) reset() {
	_ = c.tcp.SetLinger(0)
	_ = c.Close()
}

// admitting accepts as many connections as the session, and the proxy, may have.
type admitting struct {
	session     *session
	listener    *net.TCPListener
	full        []byte // the answer to one too many
	transparent bool   // programs connect to it by a name's address
}

// Accept returns a *client.
func (a *admitting) Accept() (net.Conn, error) {
	for {
		tcp, err := a.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil: // one connection was aborted, or there are too many open files
			time.Sleep(acceptPause)
			continue
		}
		c := a.session.admit(tcp)
		if c == nil {
			if len(a.full) > 0 {
				_ = tcp.SetWriteDeadline(time.Now().Add(time.Second)) // it fits into the socket
				_, _ = tcp.Write(a.full)
			}
			tcp.Close()
			continue
		}
		if a.transparent {
			c.through = true
			c.target, _ = a.session.names.at(addrOf(tcp.LocalAddr()))
		}
		return c, nil
	}
}

// Close closes the listener.
func (a *admitting) Close() error { return a.listener.Close() }

// Addr is the listener's.
func (a *admitting) Addr() net.Addr { return a.listener.Addr() }

// admit counts a connection; nil if there are too many.
func (s *session) admit(tcp *net.TCPConn) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.clients >= connectionsMax {
		return nil
	}
	select {
	case s.server.room <- struct{}{}:
	default:
		return nil
	}
	s.clients++
	c := &client{Conn: tcp, tcp: tcp}
	s.closers[c] = struct{}{}
	c.release = func() {
		<-s.server.room
		s.mu.Lock()
		s.clients--
		delete(s.closers, c)
		s.mu.Unlock()
	}
	return c
}

// handed is a listener for connections that were accepted elsewhere.
type handed struct{ one chan net.Conn }

func hand(c net.Conn) *handed {
	l := &handed{one: make(chan net.Conn, 1)}
	l.one <- c
	close(l.one)
	return l
}

// Accept returns the connection once.
func (h *handed) Accept() (net.Conn, error) {
	if c, ok := <-h.one; ok {
		return c, nil
	}
	return nil, io.EOF
}

// Close does nothing: the connection is closed by those that serve it.
func (*handed) Close() error { return nil }

// Addr is of no network.
func (*handed) Addr() net.Addr { return &net.TCPAddr{} }

// half is a connection whose directions end one by one.
type half interface {
	net.Conn
	CloseWrite() error
}

// carry moves bytes both ways until both directions have ended, each by itself. before reads what the program has to say first, and
// returns it; its error ends both. If answers wait for it, nothing is carried to the program until then.
func carry(c *client, out half, before func() ([]byte, error), answersWait bool) (in, sent int64) {
	checked := make(chan bool, 1)
	var both sync.WaitGroup
	both.Go(func() {
		var first []byte
		var err error
		if before != nil {
			first, err = before()
		}
		checked <- err == nil
		if err == nil {
			first, c.first = append(first, c.first...), nil
			_, err = out.Write(first)
		}
		if err != nil {
			out.Close()
			c.tcp.Close()
			return
		}
		sent = int64(len(first)) + move(out, c.tcp)
	})
	if !answersWait || <-checked {
		in = move(c.tcp, out)
	}
	both.Wait()
	return in, sent
}

// move copies one direction and ends it at its end. The kernel moves the bytes between two TCP sockets.
func move(to, from half) int64 {
	n, err := io.Copy(to, from)
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		to.Close()
		from.Close()
	}
	return n
}
