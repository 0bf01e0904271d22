package hosts

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/read/view"
)

// A host that was asked to lead is asked again: another one has claimed the lead, because it did not answer for a moment.
func TestLeadAsksAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(t.TempDir(), runtimedir.SocketName("d", dir))
	listener, err := net.Listen("unix", socket) //nolint:noctx // it opens at once or never
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, what any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(what)
	}
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		leader := "c"
		if asked.Load() > 1 {
			leader = "b"
		}
		answer(w, view.Hosts{Leader: leader})
	})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		answer(w, map[string]string{"leader": "b"})
	})
	daemon := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = daemon.Serve(listener) }()
	t.Cleanup(func() { _ = daemon.Close() })
	space, err := workspace.OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	if err := space.Announce(workspace.Daemon{Socket: socket}); err != nil {
		t.Fatal(err)
	}
	if err := lead(t.Context(), &cli.App{Dir: dir, Out: io.Discard, Err: io.Discard}, "b", time.Millisecond); err != nil || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}
