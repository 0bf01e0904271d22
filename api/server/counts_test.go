package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/internal/test/counts"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/journal"
)

// An event is encoded once for all watchers; what one more watcher costs, and a request over the socket.
func TestCountsOfServer(t *testing.T) { //nolint:paralleltest // other tests would allocate meanwhile
	if testsize.Race {
		t.Skip("the race detector changes what is allocated")
	}
	s := serve(t)
	head := s.sup.add(t, "coder", 1)
	var change journal.Change
	for c, err := range s.sup.j.Read(t.Context(), journal.Query{After: head - 1}) {
		if err != nil {
			t.Fatal(err)
		}
		change = c
	}
	counts.Check(t, "an event to all watchers, encoded: allocations", counts.Allocations(50, func() { frameOf(change) }))

	frames := []frame{frameOf(change)}
	w := &watcher{s: s.Server, out: &sse{s: s.Server, rc: http.NewResponseController(discard{}), w: discard{}}}
	counts.Check(t, "an event to one more watcher: allocations", counts.Allocations(50, func() {
		if err := w.tell(frames); err != nil {
			t.Fatal(err)
		}
	}))
	handler := s.SocketHandler()
	counts.Check(t, "an order over the socket that an agent may not give: allocations", counts.Allocations(50, func() {
		r := httptest.NewRequestWithContext(asSession(t.Context(), "coder-1"), http.MethodPost, api.Base+"/agents/coder/start", strings.NewReader(`{"note":"x"}`))
		r.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		if handler.ServeHTTP(answer, r); answer.Code != http.StatusConflict {
			t.Fatal(answer.Code, answer.Body)
		}
	}))
}

// discard is a connection that takes everything.
type discard struct{ http.ResponseWriter }

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) FlushError() error           { return nil }

func (discard) SetWriteDeadline(time.Time) error { return nil }
