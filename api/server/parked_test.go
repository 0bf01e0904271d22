package server

import (
	"bufio"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/journal/memory"
)

// The feed writes for a watcher that waits. A client that takes only a part of that gets the rest, and each change once.
func TestParked(t *testing.T) { // alone: a stream that is kept waiting for too long is closed
	dir := newWorkspace(t)
	sup := supervise(t, memory.New(), dir, pair)
	s := serveAt(t, sup, dir, waitsUsual, tight{listenAny(t)})
	first := s.sup.first
	conn := s.connect(t)
	if _, err := io.WriteString(conn, s.head("GET", "/events")+"\r\n"); err != nil {
		t.Fatal(err)
	}
	parked := func() (n int) {
		s.mu.Lock()
		f := s.feed
		s.mu.Unlock()
		if f == nil {
			return 0
		}
		f.parking.Lock()
		defer f.parking.Unlock()
		return len(f.parked)
	}
	wait.Until(t, "the watcher is parked", func() bool { return parked() == 1 })
	s.sup.add(t, "coder", 1)
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, nil) //nolint:bodyclose // Close would read to an end that does not come
	if err != nil {
		t.Fatal(err)
	}
	const changes = 3000 // more bytes than the kernel holds for such a connection
	heard := uint64(0)
	last := make(chan struct{})
	read := make(chan error, 1)
	go func() {
		defer close(last)
		read <- api.ReadEvents(resp.Body, func() {}, func(e api.Event) bool {
			if e.Name == "change" {
				if heard++; e.ID != strconv.FormatUint(first+heard, 10) {
					t.Errorf("%s, want %d", e.ID, first+heard)
					return false
				}
			}
			if heard == 1 { // it reads nothing until the feed no longer writes for it
				for n := 0; n < changes; n += 1000 {
					s.sup.add(t, "coder", 1000)
				}
				wait.Until(t, "the feed gave up", func() bool { return parked() == 0 })
			}
			return heard < changes+1
		})
	}()
	<-last
	if err := <-read; err != nil || heard != changes+1 {
		t.Errorf("%d changes, %v", heard, err)
	}
	wait.Until(t, "the watcher is parked again", func() bool { return parked() == 1 })
}
