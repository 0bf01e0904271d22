package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/test/wait"

	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/api/peer"
)

func TestListen(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "localhost:0", "LOCALHOST:0", "127.3.2.1:0"} {
		l, err := Listen(addr)
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		l.Close()
	}
	var exposed *Exposed
	for _, addr := range []string{":7466", "0.0.0.0:7466", "[::]:0", "192.168.1.5:7466", "[fe80::1]:0"} {
		if _, err := Listen(addr); !errors.As(err, &exposed) || !strings.Contains(err.Error(), "TLS and accounts") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for addr, words := range map[string]string{
		"7466": "HOST:PORT", "": "HOST:PORT",
		"example.com:80": "not a loopback address of this machine", "127.0.0.1:99999": "listen on",
	} {
		if _, err := Listen(addr); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v, want %q", addr, err, words)
		}
	}
}

func TestListenTaken(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	var taken *PortTaken
	_, err := Listen(strings.TrimPrefix(other.URL, "http://"))
	if !errors.As(err, &taken) || taken.Fairlead || !strings.Contains(err.Error(), "--listen 127.0.0.1:0") {
		t.Errorf("another program: %v", err)
	}
	s := serve(t)
	_, err = Listen(strings.TrimPrefix(s.url, "http://"))
	if !errors.As(err, &taken) || !taken.Fairlead || !strings.Contains(err.Error(), "another repository") {
		t.Errorf("another fairlead: %v", err)
	}
	if here, _ := os.Getwd(); runtime.GOOS == "linux" &&
		!strings.Contains(err.Error(), fmt.Sprintf("process %d (server.test) in %s", os.Getpid(), here)) {
		t.Errorf("it does not name the process: %v", err)
	}
	silent := listenAny(t) // it accepts, and never says a word
	defer silent.Close()
	if _, err := Listen(silent.Addr().String()); !errors.As(err, &taken) || taken.Fairlead {
		t.Errorf("a silent one: %v", err)
	}
}

func TestSocket(t *testing.T) {
	dir := newWorkspace(t)
	l, err := ListenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := l.Addr().String()
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o600 || len(path) > socketBytes || !peer.SocketName.MatchString(filepath.Base(path)) {
		t.Errorf("%s: %v, %v", path, info.Mode(), err)
	}
	if info, err := os.Lstat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v, %v", info.Mode(), err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if other, err := SocketPath(link); err != nil || other != path {
		t.Errorf("by another name: %s, %v", other, err)
	}
	var taken *SocketTaken
	if _, err := ListenSocket(dir); !errors.As(err, &taken) {
		t.Errorf("while one answers: %v", err)
	}
	// One that died leaves its socket; the next one takes its place, and the dead one's late
	// Close does not take that away.
	l.(*ownSocket).UnixListener.Close()
	next, err := ListenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the socket is gone: %v", err)
	}
	next.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	if err := os.WriteFile(path, []byte("keep me"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenSocket(dir); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file in its place: %v", err)
	}
}

// A logout takes the runtime folder away, sockets and all. The daemon is found again, and
// where the old place cannot be made again, at the next.
func TestSocketIsMadeAgain(t *testing.T) {
	base := ownRuntimeFolder(t)
	dir := newWorkspace(t)
	var mu sync.Mutex
	var places []string
	l, err := KeepSocket(dir, slog.New(slog.DiscardHandler), func(path string) error {
		mu.Lock()
		defer mu.Unlock()
		places = append(places, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	first := l.Addr().String()
	if err := os.RemoveAll(filepath.Join(base, "fairlead")); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it answers at the same place", func() bool { // a call is answered a little before the place is reported
		mu.Lock()
		defer mu.Unlock()
		return len(places) == 1 && answers(first)
	})
	if info, err := os.Lstat(first); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("made again: %v, %v", info, err)
	}
	if err := os.RemoveAll(base); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it answers at another place", func() bool {
		at := l.Addr().String()
		return at != first && strings.HasPrefix(at, "/tmp/fairlead-") && answers(at)
	})
	second := l.Addr().String()
	l.Close()
	<-served
	if _, err := os.Lstat(second); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(places, []string{first, second}) {
		t.Errorf("told %q, want %q and %q", places, first, second)
	}
}

func TestRuntimeFolder(t *testing.T) {
	base := ownRuntimeFolder(t)
	dir := newWorkspace(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(base, "fairlead")); err != nil {
		t.Fatal(err)
	}
	path, err := SocketPath(dir) // the second folder will do
	if err != nil || !strings.HasPrefix(path, "/tmp/fairlead-") {
		t.Errorf("with a link in the place of the first: %s, %v", path, err)
	}
	t.Setenv(runtimedir.Var, "/tmp/"+strings.Repeat("long/", 30))
	if path, err = SocketPath(dir); err != nil || !strings.HasPrefix(path, "/tmp/fairlead-") {
		t.Errorf("with a long one: %s, %v", path, err)
	}
	if _, err := SocketPath(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a repository that is not there has a socket")
	}
}

func TestPeer(t *testing.T) {
	dir := newWorkspace(t)
	l, err := ListenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	came := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			c.Close()
		}
		came <- err
	}()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := peer.SameUser(c.(*net.UnixConn)); err != nil {
		t.Errorf("the peer is not our own user: %v", err)
	}
	if err := <-came; err != nil {
		t.Errorf("our own user is not let in: %v", err)
	}
}

// A repository may bring a daemon.json with it: it must not make us talk to other sockets.
func TestDialForeignSocket(t *testing.T) {
	base := ownRuntimeFolder(t)
	dir := newWorkspace(t)
	other, err := net.Listen("unix", filepath.Join(base, "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, socket := range []string{other.Addr().String(), "", "d-0123456789abcdef", "/x/d-0123456789abcdeg"} {
		announce(t, dir, workspace.Daemon{PID: 1, Socket: socket})
		var none *client.NoDaemon
		if _, err := client.Dial(dir); err == nil || errors.As(err, &none) || !strings.Contains(err.Error(), "daemon.json") {
			t.Errorf("%q: %v", socket, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".fairlead", "daemon.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Dial(dir); err == nil {
		t.Error("half a file is taken")
	}
}
