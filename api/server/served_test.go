package server

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const testToken = "tok-0123456789abcdef"

// served is a server at work on real listeners.
type served struct {
	*Server
	sup  *supervisor
	url  string // of the TCP side
	dir  string // a workspace for clients to dial
	stop func()
	logs *lockedText
}

type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// want asks over TCP with the token, and wants a status.
func (s *served) want(t testing.TB, status int, method, path, body string) (string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return send(t, req, status)
}

var plain = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func send(t testing.TB, req *http.Request, status int) (string, http.Header) {
	t.Helper()
	resp, err := plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d\n%s", req.Method, req.URL, resp.StatusCode, status, text)
	}
	return string(text), resp.Header
}

func listenAny(t testing.TB) net.Listener {
	t.Helper()
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// patience is a bound for the hopeless case, on machines with much other work.
const patience = 2 * time.Minute
