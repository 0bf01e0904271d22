package server

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
)

// ordersOfAgents are the routes by which an agent may change something; for each, tests of its own say what.
var ordersOfAgents = map[string]string{
	"hold-team":         "everyone may hold the team",
	"pause-run":         "everyone may pause",
	"join-turns":        "in its own name",
	"send-heartbeat":    "in its own name",
	"leave-turns":       "in its own name",
	"confirm-action":    "in its own name",
	"say-turn":          "in its own name",
	"pass-turn":         "in its own name",
	"ask-wait":          "in its own name",
	"resume-turn":       "in its own name",
	"check-policy":      "it changes nothing",
	"rank-input":        "it changes nothing",
	"start-agent":       "for other agents",
	"stop-agent":        "for other agents",
	"run-agent-once":    "for other agents",
	"run-agent-cleanup": "for other agents",
}

// refusedToAgents sends each order of people as the agent that the order is for, as a step of a run, as an agent of
// another repository, and as a process that has ended. Each is refused by X10. A new route is in this table by being in the table of
// routes. It returns how many orders it has tried.
func refusedToAgents(t *testing.T, s *served) (try func(askedOnce), tried func() int) {
	t.Helper()
	s.hosts = append(s.hosts, "example.com:80")
	listeners := map[string]http.Handler{"socket": s.SocketHandler(), "port": s.Handler()}
	n := 0
	return func(c askedOnce) {
		if c.method == http.MethodGet {
			return
		}
		for how, who := range map[string]caller.Caller{
			"its own agent": {Session: "coder-17"}, "a step of a run": {Session: "build@r1-2"},
			"an agent of another repository": {Foreign: "ada-1"}, "a process that has ended": {Unseen: true},
		} {
			if _, may := ordersOfAgents[c.id]; may && who.Foreign == "" {
				continue
			}
			for listener, h := range listeners {
				r := httptest.NewRequestWithContext(caller.With(t.Context(), who), c.method, api.Base+c.path, strings.NewReader(c.body))
				r.Host = "example.com:80"
				r.Header.Set("Authorization", "Bearer "+testToken)
				if c.body != "" {
					r.Header.Set("Content-Type", "application/json")
				}
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `"row":"X10"`) {
					t.Errorf("%s as %s over the %s: %d %.200s", c.id, how, listener, w.Code, w.Body)
				}
			}
		}
		n++
	}, func() int { return n }
}

func TestOrdersOfAgents(t *testing.T) {
	for id, why := range ordersOfAgents {
		if !slices.ContainsFunc(routeTable(), func(rt route) bool { return rt.ID == id }) {
			t.Errorf("there is no order %s (%s); remove it from the list", id, why)
		}
	}
}
