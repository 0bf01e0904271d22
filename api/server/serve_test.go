package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/files/workspace"
)

// serve starts a server on both listeners, with a controller of its own. Everything it started is gone after the test.
func serve(t testing.TB) *served { return serveTeam(t, memory.New(), newWorkspace(t), pair) }

func serveTeam(t testing.TB, j journal.Journal, dir, yaml string) *served {
	t.Helper()
	sup := supervise(t, j, dir, yaml)
	return serveAt(t, sup, dir, waitsUsual, listenAny(t))
}

// hasty holds short time limits of a server, for tests that wait for them. They are still longer than a
// busy machine needs, because the same tests expect that fast clients are served.
var hasty = waits{
	headers: time.Second, request: 2 * time.Second, body: time.Second, answer: 2 * time.Second, piece: 3 * time.Second,
	poll: time.Second,
}

// serveHasty is serve with short time limits, and with a listener whose connections have small buffers, so
// that a client that does not read is noticed soon.
func serveHasty(t testing.TB) *served {
	dir := newWorkspace(t)
	sup := supervise(t, memory.New(), dir, guests)
	return serveAt(t, sup, dir, hasty, tight{listenAny(t)})
}

// tight is a listener whose connections have small kernel buffers for unread data.
type tight struct{ net.Listener }

func (l tight) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return c, c.(*net.TCPConn).SetWriteBuffer(4096)
}

func serveAt(t testing.TB, sup *supervisor, dir string, patience waits, tcp net.Listener) *served {
	t.Helper()
	s := &served{sup: sup, dir: dir, logs: &lockedText{}}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("the page")) })
	s.Server = New(Options{
		Engine: sup.App, UI: page, Token: testToken, Logins: newLogins(t), Version: "1.2.3", Dir: s.dir, Store: "memory",
		User: "sam", Editor: paper{},
		Reload: func(context.Context, change.Actor, api.ReloadBody) ([]string, error) {
			return []string{"agent coder changed"}, nil
		},
		Log: slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	s.waits = patience
	socket, err := ListenSocket(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + tcp.Addr().String()
	announce(t, s.dir, workspace.Daemon{PID: os.Getpid(), Address: s.url, Socket: socket.Addr().String(), Version: "1.2.3"})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, tcp, socket) }()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
	t.Cleanup(func() {
		s.stop()
		if strings.Contains(s.logs.String(), testToken) {
			t.Error("the token is in the log")
		}
	})
	return s
}

// newWorkspace is a folder that a daemon can be announced in.
func newWorkspace(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".fairlead"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func announce(t testing.TB, dir string, d workspace.Daemon) {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".fairlead", "daemon.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func dial(t testing.TB, s *served) *client.Client {
	t.Helper()
	c, err := client.Dial(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
