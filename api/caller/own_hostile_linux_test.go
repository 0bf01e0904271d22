package caller

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNoOtherSession sends what a program in a view may send to its socket. Each request that is served, of one connection or of
// several in a row, is its session's; and the daemon keeps no descriptor that it hands over.
func TestNoOtherSession(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "own")
	s := NewSessionSockets()
	var served atomic.Int32
	server := &http.Server{
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return Once(WithConn(ctx, c, "/")) }, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			served.Add(1)
			if is := IdentityIn(r.Context()); is.Session != "coder-17" || !is.Own || is.Seen || is.Unknown || is.Foreign != "" {
				t.Errorf("%s %s is of %+v", r.Method, r.URL, is)
			}
			w.Header().Set("Fairlead-Session", IdentityIn(r.Context()).Session)
		}),
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(s) }()
	defer func() {
		_ = server.Close()
		<-done
	}()
	if err := s.Open("coder-17", folder); err != nil {
		t.Fatal(err)
	}
	const get = "GET / HTTP/1.1\r\nHost: fairlead\r\n"
	for name, c := range map[string]struct {
		send string
		want int32 // requests that are served
	}{
		"an ordinary request": {get + "\r\n", 1},
		"three in a row":      {strings.Repeat(get+"\r\n", 3), 3},
		"another host":        {"GET / HTTP/1.1\r\nHost: person.example\r\n\r\n", 1},
		"a whole address":     {"GET http://person.example/ HTTP/1.1\r\nHost: fairlead\r\n\r\n", 1},
		"a proxy's words": {get +
			"X-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\nX-Real-Ip: ::1\r\nVia: 1.1 person\r\n\r\n", 1},
		"a session's words": {get +
			"Fairlead-Session: build@r1-2\r\nX-Fairlead-Session: build@r1-2\r\nAuthorization: Bearer x\r\nCookie: session=build@r1-2\r\n\r\n", 1},
		"a tunnel": {"CONNECT other:1 HTTP/1.1\r\nHost: other:1\r\n\r\n", 1},
		"another protocol": {get +
			"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", 1},
		"HTTP/2 without asking": {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1},
		"two lengths": {
			"POST / HTTP/1.1\r\nHost: f\r\nContent-Length: 0\r\nContent-Length: 30\r\n\r\n" + get + "\r\n",
			0,
		},
		"a length and pieces": {
			"POST / HTTP/1.1\r\nHost: f\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			1,
		},
		"pieces of pieces":              {"POST / HTTP/1.1\r\nHost: f\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 0},
		"a length that is no number":    {"POST / HTTP/1.1\r\nHost: f\r\nContent-Length: +5\r\n\r\nhello", 0},
		"a request in the body":         {"POST / HTTP/1.1\r\nHost: f\r\nContent-Length: 33\r\n\r\nGET /other HTTP/1.1\r\nHost: f\r\n\r\n  ", 1},
		"a piece that is longer":        {"POST / HTTP/1.1\r\nHost: f\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 1},
		"a line break in a name":        {"GET / HTTP/1.1\r\nHost: f\r\nX\n-Y: z\r\n\r\n", 0},
		"no host":                       {"GET / HTTP/1.1\r\n\r\n", 0},
		"two hosts":                     {get + "Host: other\r\n\r\n", 0},
		"words without end":             {get + "X: " + strings.Repeat("x", 128<<10) + "\r\n\r\n", 0},
		"a protocol before the request": {"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + get + "\r\n", 0},
		"secured":                       {"\x16\x03\x01\x00\xf4\x01\x00\x00\xf0\x03\x03", 0},
	} {
		t.Run(name, func(t *testing.T) {
			served.Store(0)
			conn, err := reach(t, folder)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, c.send) // the server may have closed
			_ = conn.(*net.UnixConn).CloseWrite()
			answers, _ := io.ReadAll(conn)
			if got := served.Load(); got != c.want {
				t.Errorf("%d requests were served, want %d:\n%.300s", got, c.want, answers)
			}
			for line := range strings.Lines(string(answers)) {
				if is, ok := strings.CutPrefix(line, "Fairlead-Session: "); ok && strings.TrimSpace(is) != "coder-17" {
					t.Errorf("an answer is for %s", is)
				}
			}
		})
	}
	t.Run("descriptors", func(t *testing.T) {
		conn, err := reach(t, folder)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte(get+"\r\n"), unix.UnixRights(fds[1]), nil); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.Header.Get("Fairlead-Session") != "coder-17" {
			t.Fatalf("%v, %v", answer, err)
		}
		_ = answer.Body.Close()
		_ = unix.Close(fds[1])
		end := os.NewFile(uintptr(fds[0]), "pipe")
		defer end.Close()
		_ = end.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := end.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("a descriptor that was handed over is open: %d, %v", n, err)
		}
		runtime.KeepAlive(conn)
	})
}
