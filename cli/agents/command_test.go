package agents

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/api/server"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/version"
	"github.com/fairlead-dev/fairlead/read/view"
)

// An order asks for the whole team only if the team is held, so that it costs the same with one agent and with ten thousand.
func TestAnOrderAsksForItsAgentOnly(t *testing.T) {
	dir := t.TempDir()
	space, err := workspace.OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	announce := func(socket string) error {
		return space.Announce(workspace.Daemon{PID: os.Getpid(), Socket: socket, Version: version.String()})
	}
	socket, err := server.KeepSocket(dir, slog.New(slog.DiscardHandler), announce)
	if err != nil {
		t.Fatal(err)
	}
	if err := announce(socket.Addr().String()); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []string
	held := false
	daemon := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method+" "+r.URL.Path)
		var answer any = view.TeamView{Hold: held, Note: "lunch"}
		if r.Method == http.MethodPost {
			answer = api.Commanded{Seq: 7, Agent: view.AgentView{Name: "a7", Held: held}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})}
	go func() { _ = daemon.Serve(socket) }()
	defer daemon.Close()
	client, err := apiclient.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, held = range []bool{false, true} {
		asked = nil
		var said strings.Builder
		if err := Command(t.Context(), &cli.App{Out: io.Discard, Err: &said}, client, "start", []string{"a7"}, Ordered{}); err != nil {
			t.Fatal(err)
		}
		want, text := []string{"POST /api/v1/agents/a7/start"}, ""
		if held {
			want, text = append(want, "GET /api/v1/agents"), "the team is held (lunch): nothing starts until `fairlead unhold`\n"
		}
		if diff := cmp.Diff(want, asked); diff != "" || said.String() != text {
			t.Errorf("held %v: %s; said %q", held, diff, said.String())
		}
	}
}
