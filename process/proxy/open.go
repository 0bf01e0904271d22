package proxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

const (
	openingsMax = 16 // ports of one session that are open at once: each is a listener of this machine
	secretsMax  = 16 // of one port that was not used yet
	secretName  = "fairlead"

	insidePatience = 5 * time.Second // process 1 of the session answers at once
)

// inside makes sockets in the session's network.
type inside struct {
	mu   sync.Mutex
	asks *os.File
}

// newInside copies the socket at which process 1 answers each byte with a socket.
func newInside(file *os.File) (*inside, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, inner := -1, error(nil)
	if err := raw.Control(func(from uintptr) { fd, inner = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0) }); err != nil || inner != nil {
		return nil, errors.Join(err, inner)
	}
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_STREAM {
		unix.Close(fd)
		return nil, errors.New("is no stream socket")
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &inside{asks: os.NewFile(uintptr(fd), "sockets")}, nil
}

// Close closes the copy.
func (i *inside) Close() error { return i.asks.Close() }

// socket is a fresh TCP socket of the session.
func (i *inside) socket(ask byte) (*os.File, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, err := i.asks.Write([]byte{ask}); err != nil {
		return nil, err
	}
	return wire.ReceiveSocket(i.asks, time.Now().Add(insidePatience))
}

// inward connects to a port of the session. Some servers listen at ::1 alone.
func (s *session) inward(ctx context.Context, port int) (half, error) {
	if s.inside == nil {
		return nil, errors.New("the session makes no sockets for it")
	}
	out, err := s.inwardTo(ctx, wire.AskIPv4, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if errors.Is(err, unix.ECONNREFUSED) {
		if six, fault := s.inwardTo(ctx, wire.AskIPv6, &unix.SockaddrInet6{Port: port, Addr: netip.IPv6Loopback().As16()}); fault == nil {
			return six, nil
		}
	}
	return out, err
}

func (s *session) inwardTo(ctx context.Context, ask byte, to unix.Sockaddr) (half, error) {
	f, err := s.inside.socket(ask)
	if err != nil {
		return nil, fmt.Errorf("get a socket of the session: %w", err)
	}
	defer f.Close()
	stop := context.AfterFunc(ctx, func() { _ = f.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	begun, fault := false, error(nil)
	err = raw.Write(func(fd uintptr) bool {
		if !begun {
			begun = true
			fault = unix.Connect(int(fd), to)
			return !errors.Is(fault, unix.EINPROGRESS)
		}
		var code int
		if code, fault = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); fault == nil && code != 0 {
			fault = syscall.Errno(code)
		}
		if fault != nil {
			return true
		}
		_, err := unix.Getpeername(int(fd)) // a socket that was never connected counts as ready
		return err == nil
	})
	if err := errors.Join(err, fault); err != nil {
		return nil, err
	}
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	out, ok := c.(half)
	if !ok {
		c.Close()
		return nil, errors.New("the session made no TCP socket")
	}
	return out, nil
}

// publish carries a port of the session to the same number on loopback outside.
func (s *session) publish(port int) error {
	if port < 1 || port > 65535 {
		return fmt.Errorf("%d is no port", port)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("port %d of the session is not carried to this machine: %w", port, err)
	}
	s.keep(l)
	go s.each(l.(*net.TCPListener), nil, func(c *client) { //nolint:errorlint,forcetypeassert // of the network tcp
		out, err := s.inward(s.ctx, port)
		if err != nil {
			c.reset()
			return
		}
		defer out.Close()
		carry(c, out, nil, false)
	})
	return nil
}

// opening is a port of the session that browsers reach at an address of loopback.
type opening struct {
	session *session
	port    int
	address string
	cookie  http.Cookie

	mu      sync.Mutex
	secrets []string // that were not used yet, oldest first
}

// open makes an address for a port, or another secret for the address that it has.
func (s *session) open(o wire.Open) (*wire.Opened, error) {
	if o.Port < 1 || o.Port > 65535 {
		return nil, fmt.Errorf("%d is no port; give one from 1 to 65535", o.Port)
	}
	s.mu.Lock()
	op, count := s.openings[o.Port], len(s.openings)
	s.mu.Unlock()
	switch {
	case op != nil:
	case s.inside == nil:
		return nil, fmt.Errorf("session %s has no way for connections into it", s.name)
	case count >= openingsMax:
		return nil, fmt.Errorf("session %s has %d ports open, the most; they close with the session", s.name, count)
	default:
		var err error
		if op, err = s.newOpening(o.Port); err != nil {
			return nil, err
		}
	}
	return &wire.Opened{ID: o.ID, Address: op.address, Secret: op.secret()}, nil
}

func (s *session) newOpening(port int) (*opening, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for browsers: %w", err)
	}
	op := &opening{session: s, port: port, address: l.Addr().String()}
	// Browsers send the cookies of an address to all its ports, so each port has a name of its own.
	op.cookie = http.Cookie{
		Name: secretName + "_" + rand.Text()[:8], Value: rand.Text(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
	forward := &httputil.ReverseProxy{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				out, err := s.inward(ctx, port)
				if err != nil {
					return nil, err
				}
				untrack, ok := s.track(&stream{allowed: func(network.Rules) bool { return true }, close: func() { out.Close() }})
				if !ok {
					out.Close()
					return nil, errors.New("the session has ended")
				}
				return &entering{half: out, untrack: untrack}, nil
			},
			DisableCompression: true, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleConnections,
			MaxResponseHeaderBytes: headBytesMax,
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			p.Out.Host = p.In.Host
			hideCookies(p.Out.Header)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			say(w, http.StatusBadGateway, fmt.Sprintf("fairlead: nothing answers at port %d of %s: %v", port, s.who(), err))
		},
	}
	server := &http.Server{
		Handler: op.guard(forward), ReadHeaderTimeout: headPatience, MaxHeaderBytes: headBytesMax, IdleTimeout: idleConnections,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	s.mu.Lock()
	s.openings[port] = op
	s.mu.Unlock()
	s.keep(server)
	go func() {
		_ = server.Serve(&admitting{session: s, listener: l.(*net.TCPListener), full: []byte(fullAnswer)}) //nolint:errorlint,forcetypeassert // tcp
	}()
	return op, nil
}

// entering is a connection into the session.
type entering struct {
	half
	untrack func()
	once    sync.Once
}

// Close ends it.
func (e *entering) Close() error {
	e.once.Do(e.untrack)
	return e.half.Close()
}

// secret makes a secret for one visit.
func (o *opening) secret() string {
	one := rand.Text()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.secrets = append(o.secrets, one)
	o.secrets = o.secrets[max(0, len(o.secrets)-secretsMax):]
	return one
}

// use reports whether a secret is one that was not used yet. It is used then.
func (o *opening) use(given string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, one := range o.secrets {
		if subtle.ConstantTimeCompare([]byte(one), []byte(given)) == 1 {
			o.secrets = slices.Delete(o.secrets, i, i+1)
			return true
		}
	}
	return false
}

// guard lets requests with the cookie through. A secret is answered with the cookie, once.
func (o *opening) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := slices.ContainsFunc(r.CookiesNamed(o.cookie.Name), func(c *http.Cookie) bool {
			return subtle.ConstantTimeCompare([]byte(c.Value), []byte(o.cookie.Value)) == 1
		})
		query := r.URL.Query()
		given := query.Get(secretName)
		switch {
		case r.Host != o.address:
			say(w, http.StatusForbidden, fmt.Sprintf("fairlead: this address is http://%s, and no other name leads to it", o.address))
		case given != "" && r.Method == http.MethodGet && (known || o.use(given)):
			query.Del(secretName)
			to := *r.URL
			to.RawQuery = query.Encode()
			http.SetCookie(w, &o.cookie)
			w.Header().Set("Referrer-Policy", "no-referrer")
			w.Header().Set("Location", "http://"+o.address+"/"+strings.TrimLeft(to.RequestURI(), "/"))
			w.WriteHeader(http.StatusSeeOther)
		case !known:
			say(w, http.StatusForbidden, fmt.Sprintf("fairlead: this is port %d of %s; open it with `fairlead open %s:%d`", o.port,
				o.session.who(), o.session.who(), o.port))
		case fromElsewhere(r):
			say(w, http.StatusForbidden, "fairlead: a page of another address asked for this; open the address itself")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// fromElsewhere reports whether a page of another address makes the request. Pages of this machine's other ports send our cookie, too. A
// link that a person follows is no such request.
func fromElsewhere(r *http.Request) bool {
	follows := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	return !follows && (site == "cross-site" || site == "same-site" || origin != "" && origin != "http://"+r.Host)
}

// hideCookies removes the proxy's cookies, of this port and of others, from a request.
func hideCookies(h http.Header) {
	var kept []string
	for _, line := range h.Values("Cookie") {
		for part := range strings.SplitSeq(line, ";") {
			if part = strings.TrimSpace(part); part != "" && !strings.HasPrefix(part, secretName+"_") {
				kept = append(kept, part)
			}
		}
	}
	h.Del("Cookie")
	if len(kept) > 0 {
		h.Set("Cookie", strings.Join(kept, "; "))
	}
}
