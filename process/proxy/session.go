package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

const (
	// connectionsMax is how many connections one session has at once. A browser opens 256, npm 50, and 1,000 are a fault or an attack; each
	// has up to 40 KB here and 6 descriptors.
	connectionsMax = 512

	nameBytesMax = 200 // of a session or an agent
	portsMax     = 100 // of `ports`
	keysMax      = 20  // more than there are providers
)

// session is one session's way out.
type session struct {
	server      *server
	name, agent string
	conn        *wire.Conn
	ctx         context.Context // ends with the session
	cancel      context.CancelFunc
	upstream    *upstream
	names       *names
	keys        map[string]*keyed // by the provider's name
	inside      *inside           // nil: no sockets can be made in the session
	outward     *http.Transport   // plain HTTP
	web         *http.Server      // requests of plain HTTP, and CONNECT

	mu       sync.Mutex
	first    network.Rules // with which it was started
	rules    network.Rules
	streams  map[*stream]struct{}
	closers  map[io.Closer]struct{}
	openings map[int]*opening
	clients  int
	closed   bool
}

// stream is a connection that leaves the session, or comes into it.
type stream struct {
	allowed func(network.Rules) bool
	close   func()
}

// newSession takes the sockets over, and serves them. notes say what could not be done.
func (s *server) newSession(c *wire.Conn, r *wire.Register, files []*os.File) (one *session, notes []string, err error) {
	defer closeAll(files) // what is used is a copy
	switch {
	case r.Session == "" || len(r.Session) > nameBytesMax || len(r.Agent) > nameBytesMax:
		return nil, nil, fmt.Errorf("a session has a name of at most %d bytes", nameBytesMax)
	case len(r.Ports) > portsMax || len(r.Keys) > keysMax:
		return nil, nil, fmt.Errorf("%d ports and %d keys; at most %d and %d", len(r.Ports), len(r.Keys), portsMax, keysMax)
	}
	one = &session{
		server: s, name: r.Session, agent: r.Agent, first: r.Rules, rules: r.Rules, names: newNames(), keys: map[string]*keyed{},
		streams: map[*stream]struct{}{}, closers: map[io.Closer]struct{}{}, openings: map[int]*opening{},
	}
	if r.Set != nil {
		one.rules = *r.Set
	}
	one.ctx, one.cancel = context.WithCancel(context.Background())
	defer func(made *session) {
		if err != nil {
			made.close()
		}
	}(one)
	if one.upstream, err = newUpstream(r.Upstream); err != nil {
		return nil, nil, err
	}
	one.outward = one.transport(nil)
	one.web = one.webServer()
	for _, k := range r.Keys {
		if err := one.addKey(k); err != nil {
			return nil, nil, err
		}
	}
	for i, socket := range r.Sockets {
		if err := one.serve(socket, files[i]); err != nil {
			return nil, nil, fmt.Errorf("socket %d (%s): %w", i, shown(string(socket.Kind)), err)
		}
	}
	for _, port := range r.Ports {
		if err := one.publish(port); err != nil {
			notes = append(notes, err.Error())
		}
	}
	one.conn = c
	return one, notes, nil
}

// serve begins to serve one socket of the session.
func (s *session) serve(socket wire.Socket, file *os.File) error {
	switch socket.Kind {
	case wire.KindSockets:
		in, err := newInside(file)
		if err != nil {
			return err
		}
		s.inside = in
		s.keep(in)
		return nil
	case wire.KindDNS:
		p, err := net.FilePacketConn(file)
		if err != nil {
			return err
		}
		s.keep(p)
		go s.answerPackets(p)
		return nil
	}
	accepting, err := net.FileListener(file)
	if err != nil {
		return err
	}
	l, ok := accepting.(*net.TCPListener)
	if !ok {
		accepting.Close()
		return errors.New("is no TCP socket")
	}
	s.keep(l)
	switch socket.Kind {
	case wire.KindProxy, wire.KindHTTP:
		go func() {
			_ = s.web.Serve(&admitting{session: s, listener: l, full: []byte(fullAnswer), transparent: socket.Kind == wire.KindHTTP})
		}()
	case wire.KindTLS:
		go s.each(l, alertOf(alertAccessDenied), s.transparentTLS)
	case wire.KindDNSTCP:
		go s.each(l, nil, s.answerStream)
	case wire.KindNamed:
		s.mu.Lock()
		hosts := s.rules.Hosts
		s.mu.Unlock()
		if socket.Host < 0 || socket.Host >= len(hosts) {
			return fmt.Errorf("is for host %d of %d", socket.Host, len(hosts))
		}
		host := hosts[socket.Host]
		s.names.fix(host.Name, addrOf(l.Addr()))
		go s.each(l, nil, func(c *client) { s.tunnel(c, host.Name, socket.Port) })
	case wire.KindLocal:
		go s.each(l, nil, func(c *client) { s.local(c, socket.Port) })
	default:
		return errors.New("there is no such kind")
	}
	return nil
}

// each serves the connections of a listener. full is what a connection gets that is one too many.
func (s *session) each(l *net.TCPListener, full []byte, serve func(*client)) {
	accepting := &admitting{session: s, listener: l, full: full, transparent: true}
	for {
		c, err := accepting.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			serve(c.(*client)) //nolint:errorlint,forcetypeassert // Accept returns nothing else
		}()
	}
}

// keep closes c with the session.
func (s *session) keep(c io.Closer) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.closers[c] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		c.Close()
	}
}

// close ends all of the session.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	closers, streams := s.closers, s.streams
	s.closers, s.streams = map[io.Closer]struct{}{}, map[*stream]struct{}{}
	s.mu.Unlock()
	s.cancel()
	for c := range closers {
		c.Close()
	}
	for st := range streams {
		st.close()
	}
	if s.web != nil {
		_ = s.web.Close()
	}
	if s.conn != nil {
		_ = s.conn.Close()
	}
}

// setRules replaces the rules, and the shim gets them for the next proxy. Connections that they do not allow are closed, unless keep says
// that they go on.
func (s *session) setRules(r network.Rules, keep bool) {
	s.mu.Lock()
	s.rules = r
	var over []*stream
	for st := range s.streams {
		if !keep && !st.allowed(r) {
			over = append(over, st)
			delete(s.streams, st)
		}
	}
	s.mu.Unlock()
	for _, st := range over {
		st.close()
	}
	if err := s.conn.Send(wire.Message{Rules: &wire.Rules{Session: s.name, Rules: r}}); err != nil {
		_ = s.conn.Close() // the shim hangs, or has gone: attend ends the session
	}
}

func (s *session) currentRules() network.Rules {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rules
}

// track closes a stream with the session, and when the rules no longer allow it. False: it is not allowed by now.
func (s *session) track(st *stream) (untrack func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !st.allowed(s.rules) {
		return nil, false
	}
	s.streams[st] = struct{}{}
	return func() {
		s.mu.Lock()
		delete(s.streams, st)
		s.mu.Unlock()
	}, true
}

// refusal is a connection that is not made. Its text is for the program and for people.
type refusal struct {
	verdict wire.Verdict
	text    string
}

func (r *refusal) Error() string { return r.text }

// ownLoopback reports whether a host is the session's own loopback. Some programs ask the proxy for each address, whatever NO_PROXY says,
// also for the proxy's own, where the provider's paths are. They get what they would reach directly.
func (s *session) ownLoopback(host string) bool {
	return s.inside != nil && (host == "127.0.0.1" || host == "::1" || strings.EqualFold(host, "localhost"))
}

// decide asks the rules.
func (s *session) decide(host string, port int) (network.Host, error) {
	if s.ownLoopback(host) {
		return network.Host{Name: host, Port: port}, nil
	}
	v := s.currentRules().Decide(host, port)
	switch v.Answer {
	case network.Allowed:
		return v.Host, nil
	case network.Ask:
		return network.Host{}, &refusal{wire.VerdictAsk, fmt.Sprintf("fairlead: %s may not reach %s; a person can allow it: `fairlead inbox`", s.who(), at(host, port))}
	}
	return network.Host{}, &refusal{wire.VerdictRefused, fmt.Sprintf("fairlead: %s may not reach %s: it %s", s.who(), at(host, port), v.Reason.Sentence())}
}

func (s *session) who() string {
	if s.agent != "" {
		return shown(s.agent)
	}
	return shown(s.name)
}

// report makes an event of an attempt that failed, and returns the status and the sentence for the program.
func (s *session) report(host string, port int, err error) (status int, text string) {
	status, verdict := http.StatusBadGateway, wire.VerdictFailed
	var refused *refusal
	if errors.As(err, &refused) {
		status, verdict = http.StatusForbidden, refused.verdict
	}
	text = err.Error()
	if refused == nil {
		text = fmt.Sprintf("fairlead: %s cannot be reached: %v", at(host, port), err)
	}
	s.server.events.add(wire.Event{Session: s.name, Agent: s.agent, Host: shown(host), Port: port, Verdict: verdict, Why: text, Count: 1})
	return status, text
}

// reached makes an event of a connection, and one of its bytes when it has ended.
func (s *session) reached(host string, port int, count int, in, out int64) {
	if s.ownLoopback(host) {
		return // it is no host of the network
	}
	s.server.events.add(wire.Event{
		Session: s.name, Agent: s.agent, Host: shown(host), Port: port, Verdict: wire.VerdictAllowed, Count: count, In: in, Out: out,
	})
}

// at is a host and a port as text.
func at(host string, port int) string { return net.JoinHostPort(shown(host), strconv.Itoa(port)) }

// shown is a text of a session, fit to be shown: printable, in ASCII, and bounded.
func shown(text string) string {
	const bytesMax = 253 // of a host's name
	out := []byte(text[:min(len(text), bytesMax)])
	for i, b := range out {
		if b <= ' ' || b > '~' {
			out[i] = '?'
		}
	}
	return string(out)
}

// splitTarget splits host:port. Odd spellings are left in the host, and the rules refuse them.
func splitTarget(target string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(target)
	n, convErr := strconv.ParseUint(text, 10, 16)
	if err != nil || convErr != nil || n == 0 || strconv.FormatUint(n, 10) != text {
		return "", 0, fmt.Errorf("fairlead: %s is no host with a port, such as example.org:443", shown(target))
	}
	return host, int(n), nil
}

func addrOf(a net.Addr) netip.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return t.AddrPort().Addr().Unmap()
}

// localPorts reports whether the rules lead to a port of this machine.
func localPorts(port int) func(network.Rules) bool {
	return func(r network.Rules) bool { return slices.Contains(r.Local, port) }
}
