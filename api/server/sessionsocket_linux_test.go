package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/mcp"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// claims are what a program may send to pass for another caller.
var claims = map[string]func(*http.Request){
	"nothing":           func(*http.Request) {},
	"the team's token":  func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken) },
	"another's token":   func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+mcpToken("reviewer", "reviewer-2")) },
	"a host's header":   func(r *http.Request) { r.Header.Set(wire.CallerField, `{"session":"reviewer-2","own":true}`) },
	"a person's header": func(r *http.Request) { r.Header.Set(wire.CallerField, `{"seen":true}`) },
	"headers of a proxy": func(r *http.Request) {
		r.Header.Set("X-Forwarded-For", "127.0.0.1")
		r.Header.Set("X-Forwarded-User", "ann")
		r.Header.Set("Cookie", "fairlead="+testToken)
		r.Host = "reviewer-2"
	},
}

// readsOfPeople are the routes that read and are refused to agents.
var readsOfPeople = map[string]string{
	"list-repositories": "only people sign in to other repositories", "fetch-actions": "in its own name",
	"list-config-agents": "only people change the team", "read-config-agent": "only people change the team",
}

// throughSockets serves a handler at the sockets of sessions, as the daemon does, and returns how each asks.
func throughSockets(t *testing.T, s *Server, h http.Handler,
	sessions ...string,
) map[string]func(method, path, body string, claim func(*http.Request)) (int, string) {
	t.Helper()
	sockets := caller.NewSessionSockets()
	srv := s.server(h)
	over := make(chan error, 1)
	go func() { over <- srv.Serve(&bounded{Listener: sockets, max: 64}) }()
	t.Cleanup(func() { _ = srv.Close(); <-over })
	asks := map[string]func(string, string, string, func(*http.Request)) (int, string){}
	for _, id := range sessions {
		folder := filepath.Join(t.TempDir(), "fairlead")
		if err := sockets.Open(id, folder); err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(folder, "socket"))
		}}
		t.Cleanup(transport.CloseIdleConnections)
		c := &http.Client{Transport: transport}
		asks[id] = func(method, path, body string, claim func(*http.Request)) (int, string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, "http://fairlead"+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body != "" {
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
			}
			claim(r)
			answer, err := c.Do(r)
			if err != nil {
				t.Fatalf("%s %s as %s: %v", method, path, id, err)
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			return answer.StatusCode, string(text)
		}
	}
	return asks
}

// TestEveryRouteThroughASessionsSocket asks every route through the socket of a session, with everything that a program can send to pass
// for another caller: it may read, and each order of people is refused as that session's. The person's own request then succeeds.
func TestEveryRouteThroughASessionsSocket(t *testing.T) {
	t.Parallel()
	s, names := lived(t)
	asks := throughSockets(t, s.Server, s.SocketHandler(), "coder-17", "build@r1-2")
	reads, orders := 0, 0
	askAll(t, s, names, func(c askedOnce) (string, func(string, http.Header)) {
		for session, ask := range asks {
			for how, claim := range claims {
				if _, may := ordersOfAgents[c.id]; may {
					continue // the next test
				}
				code, text := ask(c.method, api.Base+c.path, c.body, claim)
				_, ofPeople := readsOfPeople[c.id]
				switch refused := code == http.StatusConflict && strings.Contains(text, `"row":"X10"`); {
				case c.method == http.MethodGet && !ofPeople:
					reads++
					if refused || code == http.StatusUnauthorized || code == http.StatusForbidden ||
						code >= http.StatusInternalServerError {
						t.Errorf("%s as %s with %s: %d %.200s", c.id, session, how, code, text)
					}
				case !refused || strings.Contains(text, "reviewer"):
					t.Errorf("%s as %s with %s: %d %.200s", c.id, session, how, code, text)
				default:
					orders++
				}
			}
		}
		return c.path, func(string, http.Header) {}
	})
	if reads < 300 || orders < 400 {
		t.Errorf("%d reads and %d orders were tried", reads, orders)
	}
}

// TestOrdersThroughASessionsSocket: what an agent may order is recorded as that agent's order, whatever the request says about its sender.
func TestOrdersThroughASessionsSocket(t *testing.T) {
	t.Parallel()
	for how, claim := range claims {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := serveTeam(t, memory.New(), newWorkspace(t), `version: 1
agents:
  coder: {description: Writes code, driver: exec, command: ["true"]}
  reviewer: {description: Reads code, driver: exec, command: ["true"]}
`)
			asks := throughSockets(t, s.Server, s.SocketHandler(), "coder-17", "build@r1-2")
			for _, c := range []struct {
				session, path string
				code          int
				by            string // in the journal
			}{
				{"coder-17", "/hold", http.StatusOK, "agent coder"},
				{"coder-17", "/unhold", http.StatusConflict, ""},
				{"coder-17", "/agents/coder/start", http.StatusConflict, ""},
				{"coder-17", "/agents/reviewer/start", http.StatusOK, "agent coder"},
				{"build@r1-2", "/agents/reviewer/stop", http.StatusConflict, ""},
				{"coder-17", "/down", http.StatusConflict, ""},
			} {
				before := len(s.sup.changes(t))
				code, text := asks[c.session](http.MethodPost, api.Base+c.path, "{}", claim)
				if code != c.code {
					t.Errorf("%s as %s: %d %s, want %d", c.path, c.session, code, text, c.code)
				}
				if made := strings.Join(s.sup.changes(t)[before:], "|"); c.by != "" && !strings.Contains(made, c.by) ||
					strings.Contains(made, "human") {
					t.Errorf("%s as %s is recorded as %s, want by %s", c.path, c.session, made, c.by)
				}
			}
		})
	}
}

// TestToolsThroughASessionsSocket: the tools act for the session of the socket, whatever token comes with the call; at the socket of a
// session that is over they act for none. On another host that is so for the sessions that are placed there.
func TestToolsThroughASessionsSocket(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.open["reviewer-2"] = "reviewer"
	s := New(Options{})
	t.Cleanup(func() { _ = s.Close() })
	tools := mcp.New(mcp.Options{Engine: a})
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"hello"}}}`
	asks := throughSockets(t, s, s.mcp(tools, http.NotFoundHandler()), "coder-1", "coder-9")
	for how, claim := range claims {
		if code, text := asks["coder-1"](http.MethodPost, mcp.Path, call, claim); code != http.StatusOK ||
			!strings.HasPrefix(a.last(), "coder in coder-1:") {
			t.Errorf("with %s: %d %s, and %q was done", how, code, text, a.last())
		}
		if code, text := asks["coder-9"](http.MethodPost, mcp.Path, call, claim); code != http.StatusUnauthorized ||
			!strings.Contains(text, "over") {
			t.Errorf("with %s, after the session's end: %d %s", how, code, text)
		}
	}

	leader := New(Options{MCP: tools})
	t.Cleanup(func() { _ = leader.Close() })
	b := leader.HostHandler("b", func(session string) string { return map[string]string{"coder-1": "b", "reviewer-2": "c"}[session] })
	for said, want := range map[string]int{
		`{"session":"coder-1","own":true}`:    http.StatusOK,
		`{"session":"coder-1","seen":true}`:   http.StatusUnauthorized, // it needs the token
		`{"session":"reviewer-2","own":true}`: http.StatusUnauthorized, // of another host
		`{"session":"coder-9","own":true}`:    http.StatusUnauthorized,
		`{"own":true}`:                        http.StatusUnauthorized,
	} {
		r := httptest.NewRequest(http.MethodPost, "http://leader"+mcp.Path, strings.NewReader(call))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set(wire.CallerField, said)
		w := httptest.NewRecorder()
		if b.ServeHTTP(w, r); w.Code != want {
			t.Errorf("host b says %s: %d %s, want %d", said, w.Code, w.Body, want)
		}
	}
}
