package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/hosts/ca"
)

const (
	pingAfter   = 3 * time.Second // of silence; after as long without an answer the connection is gone
	closeWithin = 250 * time.Millisecond

	requestsMax   = 1024 // at one time on a connection: each session has two that wait
	requestsLeast = 100  // that net/http takes before the other end has said how many

	headerMax  = 64 << 10       // bytes of the headers of a request or an answer
	windowMax  = 256 << 10      // bytes of one request or answer that are on the way; 5 MB/s at 50 ms
	windowsMax = 15 * windowMax // of all requests on a connection; below the 4 MiB of net/http
	frameMax   = 64 << 10       // bytes; each request has a buffer of so many
)

// pipe is a connection with a finished handshake. It hides the TLS from net/http, which would look for its own ALPN.
type pipe struct {
	net.Conn // *tls.Conn
	peer     string
	kind     string
	done     chan struct{} // closed when the connection is
	once     sync.Once
	last     *pipe // the one of its kind that it replaces; only the goroutine that serves it uses this
}

// newPipe is a connection with what its handshake says. With another protocol it has no kind.
func newPipe(conn *tls.Conn) *pipe {
	state := conn.ConnectionState()
	p := &pipe{Conn: conn, peer: ca.PeerName(state), done: make(chan struct{})}
	p.kind, _, _ = offered(state.NegotiatedProtocol)
	return p
}

// Close is end, for net/http.
func (p *pipe) Close() error { p.end(); return nil }

// end closes the connection. It does not wait for a peer that does not read.
func (p *pipe) end() {
	p.once.Do(func() {
		late := time.AfterFunc(closeWithin, func() { p.Conn.(*tls.Conn).NetConn().Close() })
		defer late.Stop()
		_ = p.Conn.Close() // the peer may be gone
		close(p.done)
	})
}

// settings are the same on both ends.
func settings(ping time.Duration) (*http.Protocols, *http.HTTP2Config) {
	if ping == 0 {
		ping = pingAfter
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true) // within TLS: see pipe
	return protocols, &http.HTTP2Config{
		MaxConcurrentStreams: requestsMax, MaxReceiveBufferPerStream: windowMax, MaxReadFrameSize: frameMax,
		SendPingTimeout: ping, PingTimeout: ping,
	}
}

// sender sends requests on one connection.
type sender struct {
	*http.ClientConn
	pipe *pipe
}

func newSender(p *pipe, ping time.Duration) (*sender, error) {
	protocols, h2 := settings(ping)
	t := &http.Transport{
		Protocols: protocols, HTTP2: h2, DisableCompression: true, MaxResponseHeaderBytes: headerMax,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return p, nil },
	}
	conn, err := t.NewClientConn(context.Background(), "http", p.peer+":80")
	if err != nil {
		p.end()
		return nil, fmt.Errorf("begin to send requests to %s: %w", p.peer, err)
	}
	return &sender{conn, p}, nil
}

// RoundTrip sends a request. It does not wait for others to end, as they may wait for this one.
func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := s.Reserve(); err == nil {
		return s.ClientConn.RoundTrip(r)
	}
	if n := s.InFlight(); n >= requestsLeast && s.Err() == nil {
		return nil, fmt.Errorf("%d requests to %s are running, which is the limit; try again when some have ended", n, s.pipe.peer)
	}
	s.pipe.end() // the other end refuses further requests on it, so a new connection is needed
	return nil, &Away{s.pipe.peer}
}

func (s *sender) client() (*http.Client, string) {
	asItIs := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: s, CheckRedirect: asItIs}, "http://" + s.pipe.peer
}

// receiver answers requests on the connections that it is given.
type receiver struct {
	http.Server
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

type peerKey struct{}

// HostOf is the name of the host that sent a request, by its certificate.
func HostOf(ctx context.Context) string {
	name, _ := ctx.Value(peerKey{}).(string)
	return name
}

func newReceiver(handler http.Handler, ping time.Duration, log *slog.Logger) *receiver {
	protocols, h2 := settings(ping)
	h2.MaxReceiveBufferPerConnection = windowsMax
	r := &receiver{conns: make(chan net.Conn), done: make(chan struct{})}
	r.Server = http.Server{
		Handler: handler, Protocols: protocols, HTTP2: h2, MaxHeaderBytes: headerMax, ReadHeaderTimeout: greetWithin,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, c.(*pipe).peer)
		},
	}
	return r
}

// serve answers requests until Close.
func (r *receiver) serve() { _ = r.Serve(listener{r}) }

// take begins to answer the requests of a connection.
func (r *receiver) take(p *pipe) {
	select {
	case r.conns <- p:
	case <-r.done:
		p.end()
	}
}

// Close ends all connections. Requests that run are cancelled.
func (r *receiver) Close() error {
	r.once.Do(func() { close(r.done) })
	return r.Server.Close()
}

// listener hands a receiver's connections to its http.Server.
type listener struct{ r *receiver }

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.r.conns:
		return c, nil
	case <-l.r.done:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error   { return nil }
func (l listener) Addr() net.Addr { return &net.TCPAddr{} }

// Away says that a host has no connection.
type Away struct{ Name string }

func (a *Away) Error() string {
	return "host " + a.Name + " is not connected; check that Fairlead runs there, and its log"
}

var errClosed = errors.New("the connections to other hosts were closed")
