package api

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// Who watches and takes nothing is cut off when our patience ends. Nobody else waits for
// him meanwhile: the journal grows, others hear of it at once, orders are taken.
func TestSlowReaders(t *testing.T) {
	s := serve(t)
	s.patience = 300 * time.Millisecond
	s.fake.say("coder-1", strings.Repeat("a line that nobody reads\n", 1<<20)) // more than the kernel holds for a connection
	for range 40 {
		s.fake.add(t, "control/coder", 1000)
	}
	host := strings.TrimPrefix(s.url, "http://")
	for _, path := range []string{"/events?after=0", "/sessions/coder-1/output/stream?from=0"} {
		t.Run(path, func(t *testing.T) {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(conn, "GET %s%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", Base, path, host, testToken); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the stream is open", func() bool { return s.streams.Load() == 1 })

			last := s.fake.add(t, "control/reviewer", 1)
			if got := seqs(t, dial(t, s), EventsQuery{After: int64(last) - 1}, 1); got[0] != last {
				t.Errorf("another watcher hears %d, want %d", got[0], last)
			}
			s.want(t, 200, "GET", Base+"/agents", "")

			eventually(t, "the slow one is let go", func() bool { return s.streams.Load() == 0 })
		})
	}
}
