package server

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// A host is believed about the sessions that are placed on it, and about no other one.
func TestCallerOnAnotherHost(t *testing.T) {
	s := serveTeam(t, memory.New(), newWorkspace(t), `version: 1
agents:
  coder: {description: Writes code, driver: exec, command: ["true"]}
  reviewer: {description: Reads code, driver: exec, command: ["true"]}
`)
	placedOn := func(session string) string { return map[string]string{"coder-17": "b", "reviewer-2": "c"}[session] }
	b := s.HostHandler("b", placedOn)
	ask := func(method, path string, callers ...string) (int, string) {
		r := httptest.NewRequest(method, "http://leader"+path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		for _, is := range callers {
			r.Header.Add(wire.CallerField, is)
		}
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const status, start = api.Base + "/status", api.Base + "/agents/coder/start"
	for _, is := range []struct {
		name, caller string
		reads        int
		orders       int
		says         string
	}{
		{"a person", `{"seen":true}`, 200, 200, ""},
		{"the session itself", `{"session":"coder-17","seen":true}`, 200, 409, "coder-17"},
		{"a session of another host", `{"session":"reviewer-2"}`, 200, 409, "the caller is gone"},
		{"a session that is placed nowhere", `{"session":"reviewer-9"}`, 200, 409, "the caller is gone"},
		{"a process that has ended", `{"unknown":true}`, 200, 409, "the caller is gone"},
		{"a session of another repository", `{"foreign":"coder-1"}`, 200, 409, "another repository"},
		{"words that are no object", `null`, 400, 400, "host b does not say"},
		{"an unknown field", `{"session":"coder-17","as":"ann"}`, 400, 400, "host b does not say"},
		{"two objects", `{}{}`, 400, 400, "host b does not say"},
		{"too long a name", `{"session":"` + strings.Repeat("a", 4<<10) + `"}`, 400, 400, "host b does not say"},
		{"nothing", "", 400, 400, "host b does not say"},
	} {
		if code, text := ask(http.MethodGet, status, is.caller); code != is.reads {
			t.Errorf("%s reads: %d %s", is.name, code, text)
		}
		if code, text := ask(http.MethodPost, start, is.caller); code != is.orders || !strings.Contains(text, is.says) {
			t.Errorf("%s orders: %d %s", is.name, code, text)
		}
	}
	if code, text := ask(http.MethodGet, status); code != http.StatusBadRequest {
		t.Errorf("without a header: %d %s", code, text)
	}
	if code, text := ask(http.MethodGet, status, `{"session":"coder-17"}`, `{}`); code != http.StatusBadRequest {
		t.Errorf("with two headers: %d %s", code, text)
	}
	if got := strings.Join(s.sup.changes(t), "|"); !strings.Contains(got, "human sam (host b)") {
		t.Errorf("a person on host b is not named so in the journal: %s", got)
	}
}

// The listeners of this machine ignore the header: only a connection of a host has it.
func TestCallerFieldOfThisMachine(t *testing.T) {
	s := serveTeam(t, memory.New(), newWorkspace(t),
		"version: 1\nagents: {coder: {description: Writes code, driver: exec, command: [\"true\"]}}\n")
	r := httptest.NewRequest(http.MethodPost, "http://x"+api.Base+"/agents/coder/start", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(wire.CallerField, `{"unknown":true}`)
	w := httptest.NewRecorder()
	s.SocketHandler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The tools for agents are not refused because the connection of a host is TCP, whose names are for browsers.
func TestToolsOnAnotherHost(t *testing.T) {
	s := serveTeam(t, memory.New(), newWorkspace(t),
		"version: 1\nagents: {coder: {description: Writes code, driver: exec, command: [\"true\"]}}\n")
	server := httptest.NewServer(s.HostHandler("b", func(string) string { return "b" }))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "leader"
	r.Header.Set(wire.CallerField, `{"session":"coder-1","seen":true}`)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, tcp := server.Listener.Addr().(*net.TCPAddr); !tcp || answer.StatusCode == http.StatusMisdirectedRequest {
		t.Error(answer.Status)
	}
}
