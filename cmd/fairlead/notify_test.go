package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/rogpeppe/go-internal/testscript"
)

// mailbox is what a webhook of a story got, request by request.
type mailbox struct {
	mu   sync.Mutex
	came []string
}

func (m *mailbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // half a notice is not what the story wants to see
	m.mu.Lock()
	defer m.mu.Unlock()
	m.came = append(m.came, string(body))
}

func (m *mailbox) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.came[:len(m.came):len(m.came)]
}

// mailboxKey is where a story keeps its own.
type mailboxKey struct{}

// hears opens a webhook for a story: `hears VARIABLE` puts its address, with a token, there.
func hears(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) != 1 {
		ts.Fatalf("usage: hears VARIABLE")
	}
	m := ts.Value(mailboxKey{}).(*mailbox)
	srv := httptest.NewServer(m)
	ts.Defer(srv.Close)
	ts.Setenv(words[0], srv.URL+"/hunter2")
}

// posted waits until the webhook has got so many notices, and wants that there are no more
// and that the last is as said: `posted COUNT PATTERN`.
func posted(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) != 2 {
		ts.Fatalf("usage: posted COUNT PATTERN")
	}
	want, err := strconv.Atoi(words[0])
	ts.Check(err)
	m := ts.Value(mailboxKey{}).(*mailbox)
	if !wait.Poll(func() bool { return len(m.all()) >= want }) {
		ts.Fatalf("waited for %d notices; there are %q", want, m.all())
	}
	came := m.all()
	if len(came) != want || !regexp.MustCompile(words[1]).MatchString(came[want-1]) {
		ts.Fatalf("%d notices, want %d, the last like %s: %q", len(came), want, words[1], came)
	}
}
