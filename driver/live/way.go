package live

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Way is a proxy that lets nobody through.
type Way struct {
	URL string // what programs are told: http://127.0.0.1:PORT

	mu    sync.Mutex
	tried []string
}

const (
	triesMax   = 100              // noted; a program that goes on is noted enough
	tryTimeout = 10 * time.Second // for the first line of somebody who wants to get out
)

// Tried are the first lines of those who wanted to get out: CONNECT example.org:443 HTTP/1.1.
func (w *Way) Tried() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.tried)
}

func watch(t testing.TB) *Way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Way{URL: "http://" + l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed: the test has ended
			}
			all.Go(func() { w.refuse(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return w
}

func (w *Way) refuse(c net.Conn) {
	defer c.Close()
	if c.SetDeadline(time.Now().Add(tryTimeout)) != nil {
		return
	}
	line, _ := bufio.NewReaderSize(c, 4<<10).ReadSlice('\n') // half a line says enough
	w.mu.Lock()
	if len(w.tried) < triesMax {
		w.tried = append(w.tried, strings.TrimSpace(string(line)))
	}
	w.mu.Unlock()
	_, _ = c.Write([]byte("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")) // who has hung up needs no answer
}
