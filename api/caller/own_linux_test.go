package caller

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// reach connects as a view does: the folder has a short path there.
func reach(t *testing.T, folder string) (net.Conn, error) {
	t.Helper()
	dir, err := unix.Open(folder, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	return net.Dial("unix", "/proc/self/fd/"+strconv.Itoa(dir)+"/socket")
}

// A request is that of the session whose socket it came through, in a folder of any depth, also after a restart of the daemon; a
// session that is over, or has too many connections, gets no answer.
func TestSessionSockets(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	folders := map[string]string{"coder-17": filepath.Join(deep, "a"), "build@r1-2": filepath.Join(deep, "b")}
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 { // daemons
		s := NewSessionSockets()
		server := &http.Server{
			ConnContext: func(ctx context.Context, c net.Conn) context.Context { return WithConn(ctx, c, "/") },
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				is := IdentityIn(r.Context())
				if !is.Own || is.Unknown || is.Foreign != "" {
					t.Errorf("%+v", is)
				}
				_, _ = io.WriteString(w, is.Session)
			}),
		}
		served := make(chan error, 1)
		go func() { served <- server.Serve(s) }()
		for session, folder := range folders {
			for range 2 { // it is harmless to open it again
				if err := s.Open(session, folder); err != nil {
					t.Fatal(err)
				}
			}
			if info, err := os.Lstat(filepath.Join(folder, "socket")); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info, err)
			}
			one := asks(t, folder)
			two := asks(t, folder)
			if said := two() + " " + one(); said != session+" "+session {
				t.Errorf("%q, want %s", said, session)
			}
		}
		var open []net.Conn
		for range ownConnsMax + 3 {
			c, err := reach(t, folders["coder-17"])
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		if _, err := open[len(open)-1].Read(make([]byte, 1)); err == nil {
			t.Error("a connection above the limit is open")
		}
		if said := asks(t, folders["build@r1-2"])(); said != "build@r1-2" { // the other session is not concerned
			t.Errorf("%q", said)
		}
		s.End("coder-17")
		if _, err := open[0].Read(make([]byte, 1)); err == nil {
			t.Error("a connection of a session that is over is open")
		}
		if _, err := reach(t, folders["coder-17"]); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("the socket of a session that is over: %v", err)
		}
		for _, c := range open {
			c.Close()
		}
		_ = server.Close()
		<-served
		if _, err := reach(t, folders["build@r1-2"]); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("the socket of a daemon that has ended: %v", err)
		}
		if err := s.Open("late-1", filepath.Join(deep, "late")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed listener opens a socket: %v", err)
		}
	}
}

// asks connects now and asks later.
func asks(t *testing.T, folder string) func() string {
	t.Helper()
	c, err := reach(t, folder)
	if err != nil {
		t.Fatal(err)
	}
	return func() string {
		defer c.Close()
		_, _ = io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
		all, _ := io.ReadAll(c)
		_, body, _ := strings.Cut(string(all), "\r\n\r\n")
		return body
	}
}
