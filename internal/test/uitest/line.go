package uitest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Line is a connection between the browser and a server that a test can cut. It copies bytes and
// does not interpret them. The browser uses it as its proxy, so the page has the server's own
// address.
type Line struct {
	target string
	ln     net.Listener
	mu     sync.Mutex
	cut    bool
	open   map[net.Conn]bool
}

// NewLine opens a line to the server at the address. It is closed with the test.
func NewLine(t testing.TB, address string) *Line {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("lay a wire to %s: %v", address, err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("lay a wire to %s: %v", address, err)
	}
	l := &Line{target: u.Host, ln: ln, open: map[net.Conn]bool{}}
	go l.serve()
	t.Cleanup(func() {
		_ = ln.Close() // the test is over either way
		l.Cut()
	})
	return l
}

// Cut closes all connections and refuses new ones.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.open {
		_ = c.Close() // it is cut: an error says the same
	}
}

// Restore accepts connections again.
func (l *Line) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

func (l *Line) serve() {
	for {
		near, err := l.ln.Accept()
		if err != nil {
			return
		}
		go l.join(near)
	}
}

func (l *Line) join(near net.Conn) {
	defer func() { _ = near.Close() }()
	if !l.keep(near) {
		return
	}
	defer l.drop(near)
	far, err := net.Dial("tcp", l.target)
	if err != nil {
		return // the browser sees what it would see without the wire
	}
	defer func() { _ = far.Close() }()
	if !l.keep(far) {
		return
	}
	defer l.drop(far)
	done := make(chan struct{}, 2)
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // ends when either side does
		done <- struct{}{}
	}
	go pipe(far, near)
	go pipe(near, far)
	<-done
}

func (l *Line) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.open[c] = true
	return true
}

func (l *Line) drop(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}
