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
	// connsMax bounds the connections of one listener. It has room for twice the maximum number of
	// streams, and keeps idle connections from exhausting memory: each costs a goroutine and about 10
	// KiB.
	connsMax = 2 * streamsMax

	// connsShare is the fraction (1/connsShare) of this process's file limit that one listener may use.
	// The rest is for the other listener, the journal, the shims and agents' files.
	connsShare = 4

	// fewFiles is the file limit below which a thousand watchers do not fit.
	fewFiles = 4096

	refuseWait = 100 * time.Millisecond // for the answer to a refused connection; it fits into any socket's buffer
)

// crowded returns the answer to a connection above the limit, which is then closed.
var crowded = func() string {
	body := api.Encode(api.NewProblem(http.StatusServiceUnavailable,
		"too many connections are open; close some or retry later; the command line uses a separate socket"))
	return "HTTP/1.1 503 Service Unavailable\r\nContent-Type: " + api.ProblemType +
		"\r\nRetry-After: " + api.RetrySeconds + "\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" +
		string(body)
}()

// roomFor returns the number of connections for one listener at a limit of open files.
func roomFor(files uint64) int {
	return int(min(connsMax, max(1, files/connsShare)))
}

// room reads the limit of open files, and logs a warning if it is too low.
func room(log *slog.Logger) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return connsMax
	}
	n := roomFor(uint64(limit.Cur))
	if limit.Cur < fewFiles {
		log.Warn(fmt.Sprintf("this process may open only %d files, so it accepts %d connections; raise the limit with `ulimit -n %d` before `fairlead up`", limit.Cur, n, fewFiles))
	}
	return n
}

// bounded is a listener with a maximum number of open connections.
type bounded struct {
	net.Listener
	max  int64
	open atomic.Int64
}

// Bounded limits the open connections of a listener as the daemon's own are. The limit follows from that of open files.
func Bounded(l net.Listener, log *slog.Logger) net.Listener {
	return &bounded{Listener: l, max: int64(room(log))}
}

// Accept returns the next connection within the limit. Connections above it get an answer and are
// closed.
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
			_, _ = io.WriteString(c, crowded) // a client that does not read it sees a closed connection
		}
		c.Close()
	}
}

// counted is a connection that frees its place when it is closed.
type counted struct {
	net.Conn
	once sync.Once
	left func()
}

// NetConn returns the connection that is counted.
func (c *counted) NetConn() net.Conn { return c.Conn }

func (c *counted) Close() error {
	c.once.Do(c.left)
	return c.Conn.Close()
}
