package livetest

import (
	"bufio"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Way is a proxy that refuses all connections to other machines and records them.
type Way struct {
	URL string // its address for programs: http://127.0.0.1:PORT

	mu    sync.Mutex
	tried []string
	over  chan struct{} // the test has ended
}

const (
	triesMax   = 100              // recorded attempts; more are not needed
	tryTimeout = 10 * time.Second // for the first line of a client
)

// Tried returns the first lines of the recorded attempts: CONNECT example.org:443 HTTP/1.1.
func (w *Way) Tried() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.tried)
}

// Watch starts a proxy that refuses connections to other machines; the test's cleanup stops it.
func Watch(t testing.TB) *Way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Way{URL: "http://" + l.Addr().String(), over: make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed: the test has ended
			}
			all.Go(func() { w.meet(c) })
		}
	})
	t.Cleanup(func() {
		close(w.over)
		l.Close()
		all.Wait()
	})
	return w
}

// meet reads a client's destination. Some programs use the proxy also for addresses on this
// machine, regardless of NO_PROXY: those connections are forwarded, all others are recorded and
// refused.
func (w *Way) meet(c net.Conn) {
	defer c.Close()
	if c.SetReadDeadline(time.Now().Add(tryTimeout)) != nil {
		return
	}
	from := bufio.NewReaderSize(c, 4<<10)
	line, _ := from.ReadString('\n') // part of a line is enough
	if line == "" {
		return // it closed the connection without a request
	}
	if to, ok := strings.CutPrefix(line, "CONNECT "); ok {
		to, _, _ = strings.Cut(to, " ")
		if host, _, err := net.SplitHostPort(to); err == nil && net.ParseIP(host).IsLoopback() {
			w.through(c, from, to)
			return
		}
	}
	w.mu.Lock()
	if len(w.tried) < triesMax {
		w.tried = append(w.tried, strings.TrimSpace(line))
	}
	w.mu.Unlock()
	// the client may have closed the connection
	_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

// through copies bytes in both directions until one side or the test ends.
func (w *Way) through(c net.Conn, from *bufio.Reader, to string) {
	for { // the rest of the request, up to its empty line
		line, err := from.ReadString('\n')
		if err != nil {
			return
		}
		if strings.TrimSpace(line) == "" {
			break
		}
	}
	there, err := net.DialTimeout("tcp", to, tryTimeout)
	if err != nil || c.SetReadDeadline(time.Time{}) != nil {
		return
	}
	defer there.Close()
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	ended := make(chan struct{}, 2)
	carry := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // an error is an end, too
		ended <- struct{}{}
	}
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { carry(there, from) })
	both.Go(func() { carry(c, there) })
	select {
	case <-ended:
	case <-w.over:
	}
	c.Close()
	there.Close()
}
