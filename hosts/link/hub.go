package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

const (
	hostsMax    = 256 // at one time, as in core/host
	greetingMax = 64  // connections at one time that have not proven who they are; more are closed at once
	acceptAgain = 100 * time.Millisecond
)

// Options say how the leader listens.
type Options struct {
	Identity *ca.Identity
	Members  cluster.Members
	Handler  http.Handler               // requests of hosts; HostOf names the host
	Changed  func(name string, up bool) // a host's connection began or ended; nil: not needed. It may use the Hub, but not close it
	Log      *slog.Logger

	// Confirmed reports whether no other host can lead now; nil: none ever can. A leader that does not know it refuses no host for
	// good: another one may have admitted it.
	Confirmed func() bool

	ping   time.Duration // 0: pingAfter
	speaks wire.Protocol // 0: that of this program
}

// Hub is the leader's end of the connections. Use Listen.
type Hub struct {
	o        Options
	listener net.Listener
	config   *tls.Config
	receiver *receiver
	ctx      context.Context //nolint:containedctx // it ends with the Hub
	end      context.CancelFunc
	tasks    sync.WaitGroup
	telling  sync.Mutex // one call of Changed at a time

	mu      sync.Mutex
	all     map[*pipe]cluster.Member // as they were when they connected
	newest  map[pipeOf]*pipe
	senders map[string]*sender // by host
	foreign map[string]string  // by host: why its program and this one cannot talk
	changed chan struct{}      // closed, and made anew, when senders has changed
}

type pipeOf struct{ name, kind string }

// Listen opens the port at which hosts connect.
func Listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address) //nolint:noctx // it opens at once or never
	if errors.Is(err, syscall.EACCES) {
		return nil, fmt.Errorf("listen for hosts at %s: this user may not use that port; choose one above 1023: %w", address, err)
	}
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nil, fmt.Errorf("listen for hosts at %s: this machine does not have that address; choose one of its own: %w", address, err)
	}
	if err != nil {
		return nil, ca.Explain(fmt.Errorf("listen for hosts at %s: %w", address, err), "", time.Time{})
	}
	return listener, nil
}

// Serve begins to take connections of hosts from a listener, which the Hub closes.
func Serve(listener net.Listener, o Options) *Hub {
	h := &Hub{
		o: o, listener: listener, config: o.Identity.TLS(nil), receiver: newReceiver(o.Handler, o.ping, o.Log),
		all: map[*pipe]cluster.Member{}, newest: map[pipeOf]*pipe{}, senders: map[string]*sender{}, foreign: map[string]string{},
		changed: make(chan struct{}),
	}
	h.config.NextProtos = []string{offer(toLeader, o.speaks), offer(toHost, o.speaks)}
	h.ctx, h.end = context.WithCancel(context.Background())
	h.tasks.Go(h.receiver.serve)
	h.tasks.Go(h.accept)
	return h
}

func (h *Hub) accept() {
	places := make(chan struct{}, greetingMax)
	var full time.Time // when it was last logged
	for {
		raw, err := h.listener.Accept()
		if h.ctx.Err() != nil {
			return
		}
		if err != nil { // too many open files, for example
			h.o.Log.Error("accept a connection of a host", "error", err)
			select {
			case <-time.After(acceptAgain):
			case <-h.ctx.Done():
			}
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			raw.Close()
			if now := time.Now(); now.Sub(full) > time.Minute {
				full = now
				h.o.Log.Warn("connections are closed at once, because too many have not proven yet which host they are of", "limit",
					greetingMax, "from", raw.RemoteAddr().String())
			}
			continue
		}
		h.tasks.Go(func() {
			p, err := h.greet(raw)
			<-places
			if err != nil {
				raw.Close()
				h.o.Log.Debug("a connection was refused", "from", raw.RemoteAddr().String(), "error", err)
				return
			}
			h.serve(p)
		})
	}
}

// greet checks both proofs of a connection, and the membership.
func (h *Hub) greet(raw net.Conn) (*pipe, error) {
	stop := context.AfterFunc(h.ctx, func() { raw.Close() })
	defer stop()
	_ = raw.SetDeadline(time.Now().Add(greetWithin)) // it fails only on a closed connection
	config, its := h.configFor()
	conn := tls.Server(raw, config)
	if err := conn.HandshakeContext(h.ctx); err != nil {
		drain(raw)
		return nil, err
	}
	signature := make([]byte, signatureLen)
	if _, err := io.ReadFull(conn, signature); err != nil {
		return nil, err
	}
	p := newPipe(conn)
	if refused := h.admit(p, signature, *its); refused != nil {
		if refused.Code == wire.Refused && h.o.Confirmed != nil && !h.o.Confirmed() {
			refused = wire.Unconfirmed()
		}
		h.o.Log.Warn("a host was refused", "host", p.peer, "from", raw.RemoteAddr().String(), "error", refused)
		return nil, errors.Join(refused, writeAnswer(conn, refused), conn.Close())
	}
	err := writeAnswer(conn, nil)
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err != nil {
		h.forget(p)
		p.replace()
	}
	return p, err
}

// configFor is the configuration for one connection. its is the protocol that the host offers. If it is another one than
// here, the handshake goes on without, so that the answer to the greeting can say why the host is refused.
func (h *Hub) configFor() (config *tls.Config, its *string) {
	config, its = h.config.Clone(), new(string)
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		for _, name := range hello.SupportedProtos {
			if slices.Contains(h.config.NextProtos, name) {
				return nil, nil // config
			}
			if _, protocol, ok := offered(name); ok {
				*its = protocol
			}
		}
		if *its == "" {
			return nil, nil
		}
		none := h.config.Clone()
		none.NextProtos = nil
		return none, nil
	}
	return config, its
}

// drain lets the peer read the alert of TLS before the connection is reset because of what it had sent.
func drain(raw net.Conn) {
	_ = raw.SetDeadline(time.Now().Add(time.Second))
	if half, ok := raw.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, raw, headerMax)
	}
}

// admit notes a connection of a member as its newest. Looking at the membership and noting it are one step for Recheck. This comes before
// the answer: a host that has read the answer dials its other connection, and that one ends both of its earlier connections.
func (h *Hub) admit(p *pipe, signature []byte, its string) *wire.Problem {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, ok := h.o.Members.Member(p.peer)
	switch {
	case p.peer == h.o.Identity.Name:
		return &wire.Problem{
			Code: wire.Refused,
			Why:  "the leader itself is host " + p.peer + "; start Fairlead on one machine for each host",
		}
	case !ok || m.Name != p.peer:
		return &wire.Problem{Code: wire.Refused, Why: "it was removed, or has left" + comeBack}
	case !proven(p.Conn.(*tls.Conn), m.Key, signature):
		return &wire.Problem{
			Code: wire.Refused,
			Why:  "its keys are not those of host " + p.peer + " in the team: they are older than its last invitation" + comeBack,
		}
	case p.kind == "": // not for good: a person may install another version here as well as there
		h.foreign[p.peer] = wire.ProtocolsApart(p.peer, its, cmp.Or(h.o.speaks, wire.Own()))
		return &wire.Problem{Code: wire.BadRequest, Why: h.foreign[p.peer]}
	}
	delete(h.foreign, p.peer)
	names := map[string]bool{p.peer: true}
	for other := range h.all {
		names[other.peer] = true
	}
	if len(names) > hostsMax {
		return &wire.Problem{
			Code: wire.Failed,
			Why:  fmt.Sprintf("%d hosts are connected to the leader, which is the limit; stop Fairlead on one of them", hostsMax),
		}
	}
	h.all[p] = m
	of := pipeOf{p.peer, p.kind}
	p.last, h.newest[of] = h.newest[of], p
	return nil
}

// serve uses a connection until it ends.
func (h *Hub) serve(p *pipe) {
	var s *sender
	if p.kind == toHost {
		var err error
		if s, err = newSender(p, h.o.ping); err != nil {
			h.o.Log.Error("a connection to a host did not begin", "error", err)
			h.forget(p)
			p.replace()
			return
		}
		h.use(p, s)
	}
	if p.replace() {
		h.o.Log.Info("a new connection of a host replaces its last one", "host", p.peer)
	}
	if s == nil {
		h.receiver.take(p)
	} else {
		h.tell(p.peer)
	}
	select {
	case <-p.done:
	case <-h.ctx.Done():
		p.end()
	}
	h.forget(p)
	if s != nil {
		h.tell(p.peer)
	}
}

// use sends requests to a host over a connection from now on, if it is still the newest.
func (h *Hub) use(p *pipe, s *sender) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.newest[pipeOf{p.peer, p.kind}] == p {
		h.senders[p.peer] = s
		h.signal()
	}
}

// replace ends the connection in whose place this one is.
func (p *pipe) replace() bool {
	last := p.last
	if p.last = nil; last == nil {
		return false
	}
	last.end()
	return true
}

func (h *Hub) forget(p *pipe) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(p)
}

// drop forgets a connection. The caller holds the lock.
func (h *Hub) drop(p *pipe) {
	delete(h.all, p)
	of := pipeOf{p.peer, p.kind}
	if h.newest[of] != p {
		return
	}
	delete(h.newest, of)
	if p.kind == toHost {
		delete(h.senders, p.peer)
		h.signal()
	}
}

// signal wakes those that Await a host. The caller holds the lock.
func (h *Hub) signal() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// tell reports what is true at the moment of the call, so the last call is never out of date.
func (h *Hub) tell(name string) {
	if h.o.Changed == nil {
		return
	}
	h.telling.Lock()
	defer h.telling.Unlock()
	s, _ := h.sender(name)
	h.o.Changed(name, s != nil)
}

// sender returns nil if the host has no connection, and a channel that is closed when that may have changed.
func (h *Hub) sender(name string) (*sender, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.senders[name], h.changed
}

// Client sends requests to a host, on the newest connection that it has dialled. base is how their URLs begin. The error
// is an Away if there is none. Do not keep the client: a later connection has another one.
func (h *Hub) Client(name string) (client *http.Client, base string, err error) {
	s, _ := h.sender(name)
	if s == nil {
		return nil, "", &Away{name}
	}
	client, base = s.client()
	return client, base, nil
}

// Await waits until a host has a connection.
func (h *Hub) Await(ctx context.Context, name string) error {
	for {
		s, changed := h.sender(name)
		if s != nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", &Away{name}, ctx.Err())
		case <-h.ctx.Done():
			return errClosed
		}
	}
}

// From is the address from which a host is connected; empty: it is not.
func (h *Hub) From(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.senders[name] == nil {
		return ""
	}
	return h.newest[pipeOf{name, toHost}].RemoteAddr().String()
}

// Foreign is why the program of a host and this one cannot talk, by their versions; empty: they can, or it has not tried.
func (h *Hub) Foreign(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.foreign[name]
}

// Recheck closes the connections of hosts that are not members any longer, or have other keys. Call it after each change
// of the membership.
func (h *Hub) Recheck() {
	for _, p := range h.leaving() {
		h.o.Log.Info("a host no longer belongs to the team", "host", p.peer)
		p.end()
	}
}

func (h *Hub) leaving() (list []*pipe) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p, was := range h.all {
		if m, ok := h.o.Members.Member(p.peer); !ok || m.Key != was.Key || m.Role != was.Role {
			list = append(list, p)
			h.drop(p)
		}
	}
	return list
}

// Close ends all connections, and returns when they have ended. Requests that run are cancelled.
func (h *Hub) Close() error {
	h.end()
	err := errors.Join(h.listener.Close(), h.receiver.Close())
	h.tasks.Wait()
	return err
}
