package server

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/api"
)

const (
	// connsMax bounds the connections of one door. All streams that are served at once fit in
	// it twice; ten thousand silent strangers do not, and each of them would cost a goroutine
	// and some 10 KiB.
	connsMax = 2 * streamsMax

	// connsShare is the part of the files this process may open that one door may use. What is
	// left is for the other door, the journal, the shims and what agents write.
	connsShare = 4

	// fewFiles is a limit on open files below which a thousand watchers do not fit.
	fewFiles = 4096

	refuseWait = 100 * time.Millisecond // for the word to a connection too many; it fits into any socket's buffer
)

// crowded is what a connection too many is told, before it is closed.
var crowded = func() string {
	body := api.Encode(api.NewProblem(http.StatusServiceUnavailable, "too many connections are open; close some, or ask again later; the command line has a door of its own"))
	return "HTTP/1.1 503 Service Unavailable\r\nContent-Type: " + api.ProblemType +
		"\r\nRetry-After: " + api.RetrySeconds + "\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + string(body)
}()

// roomFor is how many connections one door may have, by the limit on open files.
func roomFor(files uint64) int {
	return int(min(connsMax, max(1, files/connsShare)))
}

// room looks the limit on open files up, and says in the log where it is too low.
func room(log *slog.Logger) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return connsMax
	}
	n := roomFor(uint64(limit.Cur))
	if limit.Cur < fewFiles {
		log.Warn(fmt.Sprintf("this process may open %d files, which is room for %d connections; raise it with `ulimit -n %d` before `fairlead up`", limit.Cur, n, fewFiles))
	}
	return n
}

// bounded is a listener that serves so many connections at once and no more.
type bounded struct {
	net.Listener
	max  int64
	open atomic.Int64
}

// Accept gives the next connection that there is room for. The others are told, and closed.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= b.max {
			return &counted{Conn: c, left: func() { b.open.Add(-1) }}, nil
		}
		b.open.Add(-1)
		if c.SetWriteDeadline(time.Now().Add(refuseWait)) == nil {
			_, _ = io.WriteString(c, crowded) // who does not take it sees that the line is cut
		}
		c.Close()
	}
}

// counted is a connection that gives its place back when it is closed.
type counted struct {
	net.Conn
	once sync.Once
	left func()
}

func (c *counted) Close() error {
	c.once.Do(c.left)
	return c.Conn.Close()
}
