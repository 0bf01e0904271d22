package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/mcp"
)

// Whatever comes as arguments is answered, and none of it ends the server.
func FuzzToolInput(f *testing.F) {
	f.Add("say", `{"text":"hi"}`)
	f.Add("wait", `{"seconds":1e99}`)
	f.Add("report_step", `{"status":"COMPLETED","metrics":{"a":{}}}`)
	f.Add("ask_human", `{"question":"\ud800","options":[]}`)
	f.Add("turn_complete", `null`)
	f.Add("pass", `[`)
	a := &actor{open: map[string]string{"coder-1": "coder"}, begun: make(chan struct{}, 1<<20), gaveUp: make(chan error, 1<<20)}
	f.Fuzz(func(t *testing.T, tool, args string) {
		tools := mcp.New(mcp.Options{Engine: a}) // its own count of calls
		if !json.Valid([]byte(args)) {
			args = string(api.Encode(args))
		}
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` + string(api.Encode(tool)) + `,"arguments":` + args + `}}`
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+mcp.Path, strings.NewReader(body))
		r.Header = bearer(mcpToken("coder", "coder-1"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		tools.ServeHTTP(w, r)
		if w.Code == 0 || w.Body.Len() == 0 && w.Code == http.StatusOK {
			t.Fatalf("no answer to %s", body)
		}
	})
}

// X10: a token is good in its own session, and outside of all; from within another one it is not.
func TestTokenOfAnotherSession(t *testing.T) {
	a := newActor(t)
	s := New(Options{})
	t.Cleanup(func() { _ = s.Close() })
	tools := s.mcp(mcp.New(mcp.Options{Engine: a}), http.NotFoundHandler())
	for from, want := range map[caller.Caller]int{
		{}: http.StatusOK, {Session: "coder-1"}: http.StatusOK, {Session: "coder-2"}: http.StatusForbidden,
		{Session: "rev.iewer-2"}: http.StatusForbidden,
		{Foreign: "coder-1"}:     http.StatusForbidden,
		{Unseen: true}:           http.StatusForbidden, // it was gone before it could be inspected
	} {
		r := httptest.NewRequestWithContext(caller.With(t.Context(), from), http.MethodPost, "http://127.0.0.1"+mcp.Path,
			strings.NewReader(listTools))
		r.Header = bearer(mcpToken("coder", "coder-1"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		tools.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("from within %q: %d %s, want %d", from.Session, w.Code, w.Body, want)
		}
		if want == http.StatusForbidden && !strings.Contains(w.Body.String(), "X10") {
			t.Errorf("it does not say why: %s", w.Body)
		}
	}
}
