package worker

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/hosts/local"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// served answers what comes through the sockets of sessions with the session's name.
func served(t *testing.T) *caller.SessionSockets {
	t.Helper()
	sockets := caller.NewSessionSockets()
	server := &http.Server{
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return caller.WithConn(ctx, c, "/") },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, caller.IdentityIn(r.Context()).Session)
		}),
	}
	over := make(chan error, 1)
	go func() { over <- server.Serve(sockets) }()
	t.Cleanup(func() { _ = server.Close(); <-over })
	return sockets
}

// says asks the socket in a session's folder who it is.
func says(t *testing.T, own string) string {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(own, "fairlead", "socket"))
	}}
	answer, err := (&http.Client{Transport: transport}).Get("http://session/")
	if err != nil {
		return "no answer"
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// anyStart lets every session start.
type anyStart struct{}

func (anyStart) MayStart(context.Context, host.Token) (by, end host.BootTime, waits bool, err error) {
	return math.MaxInt64, math.MaxInt64, true, nil
}
func (anyStart) Home(string) (host.Lease, bool) { return host.Lease{}, false }
func (anyStart) Epoch(uint64) error             { return nil }

// A session in a view has a socket of its own also on a host that does not lead. It is there again with the next daemon of the host, and
// gone when the leader has the session's end.
func TestSocketInAView(t *testing.T) {
	t.Parallel()
	if a := sandbox.Abilities(); a.By != sandbox.ByNamespaces {
		t.Skipf("there is no view here: %v", a.Why)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(root, ".fairlead", "tmp", "coder-1")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(root, "coder")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	shims := &sessions.Shims{Folder: filepath.Join(root, ".fairlead", "sessions"), Workspace: root}
	daemon := func() (*local.Sessions, func(order, body string)) {
		s := &local.Sessions{Shims: shims, Guard: anyStart{}, Sockets: served(t), Root: root, Exe: exe, Log: slog.New(slog.DiscardHandler)}
		t.Cleanup(s.Close)
		mux := http.NewServeMux()
		s.Routes(mux)
		return s, func(order, body string) {
			t.Helper()
			method, path, _ := strings.Cut(order, " ")
			r := httptest.NewRequest(method, "/v1/sessions/coder-1"+path, strings.NewReader(body))
			r.Header.Set(wire.EpochField, "1")
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if err := wire.Check(w.Result()); err != nil {
				t.Fatalf("%s: %v", order, err)
			}
		}
	}
	s, ask := daemon()
	script := `stat -c %F /run/fairlead/socket > seen; env | grep FAIRLEAD_MCP | sort >> seen; ls .. >> seen; mv seen done; read end`
	body, err := json.Marshal(wire.StartIn{
		Token: host.Token{Session: "coder-1", Host: "b", Incarnation: 1, N: 1}, Epoch: 1, OnLost: host.Wait,
		Launch: spawn.Launch{Argv: []string{"/bin/sh", "-c", script}, Dir: work, KeepStdin: true, Env: []string{
			"PATH=" + os.Getenv("PATH"), "FAIRLEAD_MCP_URL=http://127.0.0.1:1/mcp", "FAIRLEAD_MCP_TOKEN=secret",
			`FAIRLEAD_MCP_STDIO=["leaders"]`,
		}},
		Confine: &sessionhost.Confinement{Agent: "coder", Driver: "exec", Mode: config.SandboxWorkspace},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask("POST", string(body))
	var seen []byte
	wait.Until(t, "the session has looked", func() bool {
		seen, err = os.ReadFile(filepath.Join(work, "done"))
		return err == nil
	})
	if want := "socket\nFAIRLEAD_MCP_STDIO=[\"" + exe + "\",\"mcp\"]\n"; !strings.HasPrefix(string(seen), want) {
		t.Errorf("inside is %q, want %q", seen, want)
	}
	if got := says(t, own); got != "coder-1" {
		t.Errorf("its socket says %q", got)
	}

	s.Sockets.End("coder-1") // the daemon ends
	if got := says(t, own); got != "no answer" {
		t.Errorf("without a daemon, its socket says %q", got)
	}
	next, ask := daemon()
	if err := next.Resume(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := says(t, own); got != "coder-1" {
		t.Errorf("after a restart, its socket says %q", got)
	}
	for _, order := range []string{"POST /close-input", "GET /ended", "POST /ack"} {
		ask(order, "")
	}
	if _, err := os.Lstat(own); err == nil {
		t.Error("the session's own folder is left")
	}
	if got := says(t, own); got != "no answer" {
		t.Errorf("after its end, its socket says %q", got)
	}
}
