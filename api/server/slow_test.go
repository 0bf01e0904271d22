package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// connect gives a connection to the TCP listener, whose own end holds little.
func (s *served) connect(t *testing.T) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	tcp := conn.(*net.TCPConn)
	if err := tcp.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	return tcp
}

// head returns the beginning of a request with the token; the caller writes the empty line that ends the
// headers.
func (s *served) head(method, path string) string {
	return method + " " + api.Base + path + " HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.url, "http://") + "\r\nAuthorization: Bearer " +
		testToken + "\r\n"
}

// Who sends half a body is told so when its time is over; it does not help him to send a
// little now and then. Half a body is no order.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]string{
		"of a length": "Content-Length: 100000\r\n\r\n", "in chunks": "Transfer-Encoding: chunked\r\n\r\n186a0\r\n",
	} {
		for _, trickles := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s trickles=%v", name, trickles), func(t *testing.T) {
				t.Parallel()
				s := serveHasty(t)
				conn := s.connect(t)
				if _, err := io.WriteString(conn,
					s.head("POST", "/hold")+"Content-Type: application/json\r\n"+begin+`{"note":"`); err != nil {
					t.Fatal(err)
				}
				answered := make(chan *http.Response, 1)
				go func() {
					resp, _ := http.ReadResponse(bufio.NewReader(conn), nil)
					answered <- resp
				}()
				resp := trickle(t, conn, trickles, answered)
				if resp == nil {
					t.Fatal("cut off without a word")
				}
				defer resp.Body.Close()
				text, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != 408 || !resp.Close || !strings.Contains(problemText(t, string(text)).Detail, hasty.body.String()) {
					t.Errorf("status %d: %s", resp.StatusCode, text)
				}
				s.want(t, 200, "GET", api.Base+"/agents", "")
				s.sup.unchanged(t)
			})
		}
	}
}

// trickle sends a letter now and then, if at all, until something happens.
func trickle[T any](t *testing.T, conn io.Writer, at bool, until <-chan T) T {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case it := <-until:
			return it
		case <-wait.After(10 * time.Millisecond):
			if at {
				_, _ = io.WriteString(conn, "x") // the reader notices if the server does not accept it
			}
		case <-late:
			t.Fatal("who sends a letter now and then keeps his place")
		}
	}
}

// Headers that come a letter at a time are waited for as long as headers are, and no longer.
func TestHeadersThatTrickle(t *testing.T) {
	t.Parallel()
	s := serveHasty(t)
	conn := s.connect(t)
	if _, err := io.WriteString(conn, s.head("GET", "/agents")+"X-Slow: "); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, conn)
		ended <- err
	}()
	began := time.Now()
	trickle(t, conn, true, ended)
	if took := time.Since(began); took < hasty.headers/2 {
		t.Errorf("cut after %s", took)
	}
	s.want(t, 200, "GET", api.Base+"/agents", "")
}

// A client that watches but does not read is disconnected at the time limit, and the log says so. It delays
// no other client meanwhile: the journal grows, others get events at once, and orders are accepted.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	s := serveHasty(t)
	s.sup.begin(t, "coder", 1).say(strings.Repeat("a line that is not read\n", 200_000)) // more than the kernel holds for a connection
	for range 10 {
		s.sup.add(t, "reviewer", 1000)
	}
	for i, path := range []string{"/events?after=0", "/sessions/coder-1/output/stream?from=0"} {
		if _, err := io.WriteString(s.connect(t), s.head("GET", path)+"\r\n"); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the stream is open", func() bool { return s.streams.Load() == int64(i)+1 })
	}
	last := s.sup.add(t, "reviewer", 1)
	if got := seqs(t, dial(t, s), client.EventsQuery{After: int64(last) - 1}, 1); got[0] != last {
		t.Errorf("another watcher hears %d, want %d", got[0], last)
	}
	s.want(t, 200, "POST", api.Base+"/agents/coder/once", `{"note":"while they sleep"}`)
	if strings.Contains(s.logs.String(), "a stream was closed because") {
		t.Skipf("within %s this machine did not get to the others", hasty.piece)
	}
	wait.Until(t, "the slow ones are let go", func() bool { return s.streams.Load() == 0 })
	if log := s.logs.String(); strings.Count(log, "a stream was closed because the client read nothing for "+hasty.piece.String()) != 2 {
		t.Errorf("the log does not report both streams exactly once: %s", log)
	}
}

// deadlines is an answer that remembers the last limit for reading its request.
type deadlines struct {
	*httptest.ResponseRecorder
	last time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.last = at
	return nil
}

// While a request is answered, its connection has no limit for reading. One that ran out would cancel the request, and each
// later one on the same connection.
func TestNoReadLimitWhileAnswering(t *testing.T) {
	s := New(Options{Engine: supervise(t, memory.New(), t.TempDir(), pair).App, Dir: newWorkspace(t)})
	defer s.Close()
	for _, rt := range routeTable() {
		if rt.Method != http.MethodPost {
			continue
		}
		path := strings.NewReplacer("{id}", "r1", "{step}", "s1", "{name}", "coder").Replace(rt.Path)
		r := httptest.NewRequest(rt.Method, "http://fairlead"+api.Base+path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		s.SocketHandler().ServeHTTP(w, r)
		if !w.last.IsZero() {
			t.Errorf("%s %s: status %d, and reading the connection ends at %v", rt.Method, path, w.Code, w.last)
		}
	}
}
