package daemon

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
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
			_, _ = w.Write(api.Encode(api.NewProblem(http.StatusServiceUnavailable,
				"fairlead has stopped; start it again with `fairlead up`")))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: change\nid: 8\ndata: {\"seq\":8,\"trigger\":\"daemon_started\"}\n\n"))
	}
	client := apiclient.ReadFrom(t.TempDir(), http.HandlerFunc(daemon))
	defer client.Close()
	if err := untilStarted(t.Context(), client, api.Reloaded{Head: 7}); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
}

// A reload is done when the same host leads with the changed file. If another host leads, the team does not have the change.
func TestReloadByTheHostThatLeads(t *testing.T) {
	for _, c := range []struct{ asked, leads, lost string }{
		{"", "", ""},
		{"a", "a", ""},
		{"a", "", ""}, // the journal is on one machine again
		{"", "a", ""}, // it was replicated by this start
		{"a", "b", "write the same file on b and run `fairlead reload` there"},
	} {
		client := apiclient.ReadFrom(t.TempDir(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w,
				"event: change\nid: 8\ndata: {\"seq\":8,\"trigger\":\"daemon_started\",\"data\":{\"team\":{\"epoch\":2,\"leader\":%q}}}\n\n", c.leads)
		}))
		err := untilStarted(t.Context(), client, api.Reloaded{Head: 7, Leader: c.asked})
		client.Close()
		if lost, _ := errors.AsType[*leadLost](err); (lost != nil) != (c.lost != "") ||
			lost != nil && !strings.Contains(lost.Error(), c.lost) || lost == nil && err != nil {
			t.Errorf("%q asked, %q leads: %v", c.asked, c.leads, err)
		}
	}
}
