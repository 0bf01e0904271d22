package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

const (
	lookupPatience  = 10 * time.Second       // a resolver tries its servers twice in it
	connectPatience = 15 * time.Second       // for all addresses of a name
	nextAddress     = 250 * time.Millisecond // RFC 8305: then the next address is tried beside the first
	addressesMax    = 16                     // of one name; large services have 8
)

// outside is the network of this machine.
type outside struct {
	lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	dial   func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

func machine() outside {
	var d net.Dialer
	return outside{
		lookup: func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		},
		dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", to.String())
		},
	}
}

// leaving is a connection to a host that the rules allow.
type leaving struct {
	half
	host    network.Host // what allows it
	session *session
	name    string
	port    int
	in, out atomic.Int64
	once    sync.Once
	untrack func()
}

// Read counts what comes. A tunnel does not read here, but from the connection itself.
func (l *leaving) Read(b []byte) (int, error) {
	n, err := l.half.Read(b)
	l.in.Add(int64(n))
	return n, err
}

// Write counts what goes.
func (l *leaving) Write(b []byte) (int, error) {
	n, err := l.half.Write(b)
	l.out.Add(int64(n))
	return n, err
}

// Close ends it, and makes an event of its bytes.
func (l *leaving) Close() error {
	err := l.half.Close()
	l.once.Do(func() {
		l.untrack()
		l.session.reached(l.name, l.port, 0, l.in.Load(), l.out.Load())
	})
	return err
}

// dial connects to a host if the rules allow it. A *refusal says that they do not.
func (s *session) dial(ctx context.Context, name string, port int) (*leaving, error) {
	host, err := s.decide(name, port)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupPatience+connectPatience)
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel)
	defer stop()
	out, err := s.connect(ctx, host, strings.ToLower(name), port)
	if err != nil {
		return nil, err
	}
	l := &leaving{half: out, host: host, session: s, name: name, port: port}
	st := &stream{
		allowed: func(r network.Rules) bool {
			return s.ownLoopback(name) || r.Decide(name, port).Answer == network.Allowed
		},
		close: func() { out.Close() },
	}
	untrack, ok := s.track(st)
	if !ok {
		out.Close()
		if _, err := s.decide(name, port); err != nil {
			return nil, err
		}
		return nil, errors.New("the session has ended")
	}
	l.untrack = untrack
	s.reached(name, port, 1, 0, 0)
	return l, nil
}

// connect connects to an address of a host that the rules accept, or lets the upstream proxy do so.
func (s *session) connect(ctx context.Context, host network.Host, name string, port int) (half, error) {
	if s.ownLoopback(name) {
		return s.inward(ctx, port)
	}
	literal, noName := netip.ParseAddr(name)
	if s.upstream.serves(name, literal, port) {
		return s.upstream.connect(ctx, s.server.outside, name, port)
	}
	addrs := []netip.Addr{literal}
	if noName != nil {
		var err error
		if addrs, err = s.server.outside.look(ctx, host, name); err != nil {
			return nil, err
		}
	}
	var good []netip.AddrPort
	var bad error
	rules := s.currentRules()
	for _, a := range addrs {
		a = a.Unmap()
		if err := rules.Address(host, a); err != nil {
			bad = err
			continue
		}
		good = append(good, netip.AddrPortFrom(a, uint16(port)))
	}
	if len(good) == 0 && bad != nil {
		return nil, &refusal{wire.VerdictRefused, fmt.Sprintf("fairlead: %s may not reach %s: %v", s.who(), at(name, port), bad)}
	}
	return s.server.outside.race(ctx, good)
}

// look looks a name up, once. A name that no person named is complete: no search domain is put behind it.
func (o outside) look(ctx context.Context, host network.Host, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	if !host.Named {
		name += "."
	}
	addrs, err := o.lookup(ctx, name)
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound, err == nil && len(addrs) == 0:
		return nil, errors.New("its name is not known")
	case err != nil:
		return nil, fmt.Errorf("its name was not looked up: %w", err)
	}
	return addrs[:min(len(addrs), addressesMax)], nil
}

// race connects to the first address that answers (RFC 8305): one after the other, the next one also when the last has not answered
// for a moment, families in turns.
func (o outside) race(ctx context.Context, addrs []netip.AddrPort) (half, error) {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	var faults []error
	running := 0
	waiting := inTurns(addrs)
	next := time.NewTimer(0)
	defer next.Stop()
	for running > 0 || len(waiting) > 0 {
		select {
		case <-next.C:
			if len(waiting) == 0 {
				continue
			}
			to := waiting[0]
			waiting = waiting[1:]
			running++
			go func() {
				c, err := o.dial(ctx, to)
				select {
				case results <- result{c, err}:
				case <-ctx.Done():
					if err == nil {
						c.Close()
					}
				}
			}()
			next.Reset(nextAddress)
		case r := <-results:
			running--
			if r.err == nil {
				if out, ok := r.conn.(half); ok {
					return out, nil
				}
				r.conn.Close()
				r.err = errors.New("is no TCP connection")
			}
			faults = append(faults, r.err)
			next.Reset(0)
		case <-ctx.Done():
			return nil, oneLine(append(faults, fmt.Errorf("no address of it answered: %w", ctx.Err())))
		}
	}
	return nil, oneLine(faults)
}

// oneLine is all errors on one line.
func oneLine(faults []error) error {
	texts := make([]string, len(faults))
	for i, err := range faults {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}

// inTurns orders addresses so that families alternate, beginning with the first one's.
func inTurns(addrs []netip.AddrPort) (out []netip.AddrPort) {
	var first, second []netip.AddrPort
	for _, a := range addrs {
		if a.Addr().Is4() == addrs[0].Addr().Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	for i := range max(len(first), len(second)) {
		if i < len(first) {
			out = append(out, first[i])
		}
		if i < len(second) {
			out = append(out, second[i])
		}
	}
	return out
}

// transport makes requests to hosts that the rules allow. on is the host for all of them; nil: that of the request.
func (s *session) transport(on func(ctx context.Context) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, to string) (net.Conn, error) {
			if on != nil {
				return on(ctx)
			}
			host, text, err := net.SplitHostPort(to)
			if err != nil {
				return nil, err
			}
			port, err := strconv.Atoi(text)
			if err != nil {
				return nil, err
			}
			return s.dial(ctx, host, port)
		},
		TLSClientConfig:        s.upstream.tls(),
		TLSHandshakeTimeout:    handshakePatience,
		DisableCompression:     true, // the program gets what the host sent
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleConnections,
		MaxResponseHeaderBytes: headBytesMax,
		ExpectContinueTimeout:  time.Second,
	}
}

const (
	handshakePatience = 10 * time.Second // a host that is alive needs two round trips
	idlePerHost       = 8                // what one program uses at once
	idleConnections   = 60 * time.Second // hosts close them then, too
)
