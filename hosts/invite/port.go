package invite

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// joining is the protocol (ALPN) that a host names which wants to join.
const joining = "fairlead-join"

const (
	helloWithin = 10 * time.Second // in which a caller says what it wants
	hellosMax   = 64               // callers at one time that have not said it; more are closed at once
)

// Port is a port that the server for joining shares with the connections of the team's hosts. It is the listener of these, and
// JoinListener returns that of the server for joining. A caller names what it wants in the first message of TLS.
type Port struct {
	net.Listener

	conns chan net.Conn
	ended chan struct{} // closed when err is set
	err   error

	mu   sync.Mutex
	join *joinListener // nil: it is closed
}

// Share begins to accept connections of a listener. Close ends it.
func Share(listener net.Listener) *Port {
	p := &Port{Listener: listener, conns: make(chan net.Conn), ended: make(chan struct{})}
	go p.serve()
	return p
}

func (p *Port) serve() {
	places := make(chan struct{}, hellosMax)
	for {
		conn, err := p.Listener.Accept()
		if err != nil {
			p.err = err
			close(p.ended)
			return
		}
		select {
		case places <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		go func() {
			said, joins, err := hello(conn)
			<-places
			if to := p.to(joins); err != nil || to == nil {
				conn.Close()
			} else {
				to.pass(said)
			}
		}()
	}
}

// to is where a connection goes; nil: the server for joining is closed.
func (p *Port) to(joins bool) passer {
	if !joins {
		return p
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.join == nil {
		return nil
	}
	return p.join
}

type passer interface{ pass(conn net.Conn) }

func (p *Port) pass(conn net.Conn) {
	select {
	case p.conns <- conn:
	case <-p.ended:
		conn.Close()
	}
}

// Accept returns the next connection that is not for the server for joining.
func (p *Port) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.ended:
		return nil, p.err
	}
}

// JoinListener begins to serve joins; one that was open before gets no more. Until the listener is closed it gets
// the connections of hosts that want to join. Without it they are closed.
func (p *Port) JoinListener() net.Listener {
	d := &joinListener{port: p, conns: make(chan net.Conn), closed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.join = d
	return d
}

type joinListener struct {
	port   *Port
	conns  chan net.Conn
	closed chan struct{}
}

func (d *joinListener) pass(conn net.Conn) {
	select {
	case d.conns <- conn:
	case <-d.closed:
		conn.Close()
	}
}

// Accept implements net.Listener.
func (d *joinListener) Accept() (net.Conn, error) {
	select {
	case conn := <-d.conns:
		return conn, nil
	case <-d.closed:
		return nil, net.ErrClosed
	case <-d.port.ended:
		return nil, d.port.err
	}
}

// Close implements net.Listener.
func (d *joinListener) Close() error {
	d.port.mu.Lock()
	defer d.port.mu.Unlock()
	if d.port.join == d {
		d.port.join = nil
	}
	select {
	case <-d.closed:
	default:
		close(d.closed)
	}
	return nil
}

// Addr implements net.Listener.
func (d *joinListener) Addr() net.Addr { return d.port.Addr() }

var errHeard = errors.New("the first message was read")

// hello reads the first message of a connection. It returns one that has all bytes again.
func hello(conn net.Conn) (_ net.Conn, joins bool, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(helloWithin)); err != nil {
		return nil, false, err
	}
	r := &replayed{Conn: conn}
	err = tls.Server(&listening{r, io.TeeReader(conn, &r.begin)},
		&tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(said *tls.ClientHelloInfo) (*tls.Config, error) {
			joins = slices.Contains(said.SupportedProtos, joining)
			return nil, errHeard
		}}).Handshake() //nolint:noctx // it has a deadline
	if !errors.Is(err, errHeard) {
		return nil, false, err
	}
	return r, joins, conn.SetReadDeadline(time.Time{})
}

// listening is a connection that keeps what is read, and says nothing.
type listening struct {
	net.Conn
	from io.Reader
}

func (l *listening) Read(b []byte) (int, error)  { return l.from.Read(b) }
func (l *listening) Write(b []byte) (int, error) { return len(b), nil }

// replayed is a connection whose first bytes were read already.
type replayed struct {
	net.Conn
	begin bytes.Buffer
}

func (r *replayed) Read(b []byte) (int, error) {
	if r.begin.Len() > 0 {
		return r.begin.Read(b)
	}
	return r.Conn.Read(b)
}

// CloseWrite ends what this side says. The other one may go on.
func (r *replayed) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
