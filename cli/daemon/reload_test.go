package daemon

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
)

// A daemon that closes answers "stopped" to a stream that begins in this moment. `fairlead reload` waits on.
func TestReloadWaitsThroughTheClose(t *testing.T) {
	var asked atomic.Int32
	daemon := func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write(api.Encode(api.NewProblem(http.StatusServiceUnavailable, "fairlead has stopped; start it again with `fairlead up`")))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: change\nid: 8\ndata: {\"seq\":8,\"trigger\":\"daemon_started\"}\n\n"))
	}
	client := apiclient.ReadFrom(t.TempDir(), http.HandlerFunc(daemon))
	defer client.Close()
	if err := untilStarted(t.Context(), client, 7); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
}
