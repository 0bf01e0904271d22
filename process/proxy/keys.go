package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

// keyHeaders are headers in which programs send keys. All are removed from a request before the real key is put in.
var keyHeaders = []string{
	"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Goog-User-Project", "X-Dashscope-Api-Key", "Cookie",
}

// keyQueries are the same in the query.
var keyQueries = []string{"key", "api_key", "api-key", "apikey", "access_token", "token"}

// keyed is a provider that is reached with a key.
type keyed struct {
	provider network.Provider
	value    string // what the header gets
	origin   *url.URL
	host     string
	port     int
	proxy    *httputil.ReverseProxy
}

// addKey makes the way to a provider.
func (s *session) addKey(k wire.Key) error {
	p, known := network.ProviderNamed(k.Provider)
	if !known || strings.ContainsFunc(k.Value, func(r rune) bool { return r < ' ' || r > '~' }) || k.Value == "" {
		return fmt.Errorf("the key of %s is none, or has a byte that no header has", shown(k.Provider))
	}
	base := k.Base
	if base == "" {
		base = p.Origin
	}
	origin, err := url.Parse(strings.TrimSuffix(base, "/"))
	if err != nil {
		return fmt.Errorf("the base URL of %s is none", p.Name)
	}
	host, err := network.BaseHost(base)
	if err != nil {
		return fmt.Errorf("the base URL of %s %w", p.Name, err)
	}
	way := &keyed{provider: p, value: strings.TrimSpace(p.Scheme + " " + k.Value), origin: origin, host: host.Name, port: host.Port}
	transport := s.transport(func(ctx context.Context) (net.Conn, error) { return s.dial(ctx, way.host, way.port) })
	way.proxy = &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // each event of a stream at once
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite:       way.rewrite,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			status, text := s.report(way.host, way.port, err)
			sayJSON(w, status, text)
		},
	}
	s.keys[p.Name] = way
	return nil
}

// provider serves /PROVIDER/PATH at the proxy's own address.
func (s *session) provider(w http.ResponseWriter, r *http.Request) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	way := s.keys[name]
	switch host := hostOf(r.Host); {
	case host != "127.0.0.1" && host != "localhost":
		say(w, http.StatusForbidden, "fairlead: this is the session's proxy, and no other name leads to it")
		return
	case r.Method == http.MethodTrace: // its answer has the request in it, with the key
		say(w, http.StatusMethodNotAllowed, "fairlead: a provider is not asked to repeat a request")
		return
	case way == nil:
		say(w, http.StatusNotFound, fmt.Sprintf("fairlead: this is the proxy of %s; it has no key for %s", s.who(), shown(name)))
		return
	}
	if err := way.accepts("/"+rest, r.URL); err != nil {
		s.report(way.host, way.port, &refusal{wire.VerdictRefused, err.Error()})
		sayJSON(w, http.StatusForbidden, err.Error())
		return
	}
	if _, err := s.decide(way.host, way.port); err != nil { // also where a connection is open
		status, text := s.report(way.host, way.port, err)
		sayJSON(w, status, text)
		return
	}
	way.proxy.ServeHTTP(w, r)
}

// accepts reports whether a path is one of the provider's. It has no escapes, so that the provider reads the same one.
func (k *keyed) accepts(rest string, u *url.URL) error {
	if u.RawPath == "" && u.EscapedPath() == "/"+k.provider.Name+rest && k.provider.Allows(rest) {
		return nil
	}
	return fmt.Errorf("fairlead: the key for %s is sent to paths of its API only, and %s is none of them", k.provider.Name, shown(rest))
}

// rewrite turns a request of the session into one to the provider.
func (k *keyed) rewrite(p *httputil.ProxyRequest) {
	rest := strings.TrimPrefix(p.In.URL.Path, "/"+k.provider.Name)
	out := *k.origin
	out.Path = k.origin.Path + rest
	query := p.In.URL.Query() // what cannot be read is dropped: it could be a key for a provider that reads it
	for name := range query {
		for _, word := range keyQueries {
			if strings.EqualFold(name, word) {
				query.Del(name)
			}
		}
	}
	out.RawQuery = query.Encode()
	p.Out.URL, p.Out.Host = &out, out.Host
	for _, name := range append(keyHeaders, k.provider.Header) {
		p.Out.Header.Del(name)
	}
	p.Out.Header.Set(k.provider.Header, k.value)
	onlyWebSocket(p.Out.Header)
}

// sayJSON answers in the form in which providers answer errors, so that programs show the sentence.
func sayJSON(w http.ResponseWriter, status int, text string) {
	var answer struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	answer.Type, answer.Error.Type, answer.Error.Code, answer.Error.Message = "error", "permission_error", status, text
	if status != http.StatusForbidden {
		answer.Error.Type = "api_error"
	}
	b, err := json.Marshal(answer)
	if err != nil {
		panic(errors.Join(errors.New("bug: an answer is no JSON"), err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
