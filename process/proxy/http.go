package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

const (
	httpPort  = 80
	httpsPort = 443

	headBytesMax = 64 << 10 // of a request or an answer: servers refuse more than 8 to 32 KB
	headPatience = 10 * time.Second
)

// fullAnswer is for a connection that is one too many.
var fullAnswer = answerText(http.StatusServiceUnavailable,
	fmt.Sprintf("fairlead: this session has %d connections open, or all sessions have as many as files may be open here; close some, and try again", connectionsMax))

func answerText(status int, text string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, http.StatusText(status), len(text)+1, text)
}

// clientKey is of a request's context.
type clientKey struct{}

// webServer serves requests. A connection has one request: the head of a second one could not be compared with its Host.
func (s *session) webServer() *http.Server {
	server := &http.Server{
		Handler:           http.HandlerFunc(s.request),
		ReadHeaderTimeout: headPatience,
		MaxHeaderBytes:    headBytesMax,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, clientKey{}, c) },
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ErrorLog:          log.New(io.Discard, "", 0), // what a program sends is no news
	}
	server.SetKeepAlivesEnabled(false)
	return server
}

// request serves what a program asks at the proxy's port, at port 80 of a name's address, or inside CONNECT to port 80.
func (s *session) request(w http.ResponseWriter, r *http.Request) {
	c, ok := r.Context().Value(clientKey{}).(*client)
	switch {
	case !ok:
		http.Error(w, "fairlead: this connection is not the session's", http.StatusInternalServerError)
	case c.through:
		s.origin(w, r, c)
	case r.Method == http.MethodConnect:
		s.connectRequest(w, r, c)
	case r.URL.Host != "":
		s.absolute(w, r, c)
	default:
		s.provider(w, r)
	}
}

// connectRequest serves CONNECT.
func (s *session) connectRequest(w http.ResponseWriter, r *http.Request, c *client) {
	host, port, err := splitTarget(strings.ToLower(r.RequestURI))
	if err != nil {
		say(w, http.StatusBadRequest, err.Error())
		return
	}
	if hosts := c.hosts(); len(hosts) > 0 && !sameTarget(hosts[0], host, port, port) {
		s.differs(w, host, port, hosts[0])
		return
	}
	allowing, err := s.decide(host, port)
	plain := err == nil && port == httpPort && allowing.Port == 0 // its request is read here, as those at the name's address
	var out *leaving
	if err == nil && !plain {
		out, err = s.dial(s.ctx, host, port) // the request's context ends when the program has ended its side
	}
	if err != nil {
		status, text := s.report(host, port, err)
		say(w, status, text)
		return
	}
	if !establish(w, c) {
		if out != nil {
			_ = out.Close()
		}
		return
	}
	if plain {
		c.through, c.target, c.head, c.headDone = true, host, nil, false
		_ = s.web.Serve(hand(c)) // which ends when the only connection was accepted
		return
	}
	s.carry(c, out)
}

// establish takes the connection of a CONNECT over, and tells the program.
func establish(w http.ResponseWriter, c *client) bool {
	_, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		say(w, http.StatusHTTPVersionNotSupported, "fairlead: CONNECT needs HTTP/1")
		return false
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = c.Close()
		return false
	}
	c.first = append(waiting(buffered.Reader), c.first...) // a program may not wait for the answer
	return true
}

// waiting is what a reader has read already.
func waiting(r *bufio.Reader) []byte {
	b, _ := r.Peek(r.Buffered())
	return append([]byte(nil), b...)
}

// absolute serves a request of plain HTTP for another host.
func (s *session) absolute(w http.ResponseWriter, r *http.Request, c *client) {
	if r.URL.Scheme != "http" {
		say(w, http.StatusBadRequest, "fairlead: only http:// is asked for in this way; use CONNECT for https://")
		return
	}
	host, port := strings.ToLower(r.URL.Hostname()), httpPort
	if text := r.URL.Port(); text != "" {
		var err error
		if host, port, err = splitTarget(strings.ToLower(r.URL.Host)); err != nil {
			say(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	for _, given := range c.hosts() {
		if !sameTarget(given, host, port, httpPort) {
			s.differs(w, host, port, given)
			return
		}
	}
	s.forward(w, r, host, port)
}

// origin serves a request that came to a name's address: the Host has to be that name.
func (s *session) origin(w http.ResponseWriter, r *http.Request, c *client) {
	host := c.target
	if host == "" { // the address is not known: the Host alone decides
		host = strings.ToLower(hostOf(r.Host))
	}
	switch {
	case r.Method == http.MethodConnect || r.URL.Host != "":
		say(w, http.StatusBadRequest, fmt.Sprintf("fairlead: the proxy is at 127.0.0.1:%d", network.ProxyPort))
		return
	case !sameTarget(r.Host, host, httpPort, httpPort):
		s.differs(w, host, httpPort, r.Host)
		return
	}
	s.forward(w, r, host, httpPort)
}

// hostOf is a Host without its port.
func hostOf(text string) string {
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return strings.Trim(text, "[]")
}

// sameTarget reports whether a Host is that of a target. usual is the port of a Host without one.
func sameTarget(given, host string, port, usual int) bool {
	name, text, err := net.SplitHostPort(given)
	if err != nil {
		name, text = strings.Trim(given, "[]"), strconv.Itoa(usual)
	}
	return strings.EqualFold(name, host) && text == strconv.Itoa(port)
}

func (s *session) differs(w http.ResponseWriter, host string, port int, given string) {
	status, text := s.report(host, port, &refusal{wire.VerdictRefused, fmt.Sprintf(
		"fairlead: the request is for %s and its Host is %s; ask for the host that is meant", at(host, port), shown(given))})
	say(w, status, text)
}

// forward sends a request to a host, and its answer back. Neither is held in memory.
func (s *session) forward(w http.ResponseWriter, r *http.Request, host string, port int) {
	if _, err := s.decide(host, port); err != nil { // also where a connection is open
		status, text := s.report(host, port, err)
		say(w, status, text)
		return
	}
	name := host
	if a, err := netip.ParseAddr(host); err == nil && a.Is6() {
		name = "[" + host + "]"
	}
	proxy := &httputil.ReverseProxy{
		Transport:     s.outward,
		FlushInterval: -1, // at once
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", name+":"+strconv.Itoa(port)
			p.Out.URL.RawQuery = p.In.URL.RawQuery // as it came
			p.Out.Host = name
			if port != httpPort {
				p.Out.Host = p.Out.URL.Host
			}
			onlyWebSocket(p.Out.Header)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			status, text := s.report(host, port, err)
			say(w, status, text)
		},
	}
	proxy.ServeHTTP(w, r)
}

// onlyWebSocket removes the request for another protocol: it would carry requests that are not read here.
func onlyWebSocket(h http.Header) {
	if to := h.Get("Upgrade"); to != "" && !strings.EqualFold(to, "websocket") {
		h.Del("Upgrade")
		h.Del("Connection")
	}
}

// say answers with a sentence.
func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // if the program is still there
}
