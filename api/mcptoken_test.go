package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The key is made once, is nobody else's, and one that others could read is none.
func TestMCPKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.key")
	first, err := ReadMCPKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info.Mode(), err)
	}
	if again, err := ReadMCPKey(path); err != nil || again != first {
		t.Errorf("read again it is another one: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	open, err := ReadMCPKey(path)
	if err != nil || open == first {
		t.Errorf("one that others could read was taken: %v", err)
	}
	if err := os.WriteFile(path, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if short, err := ReadMCPKey(path); err != nil || short == open || short == (MCPKey{}) {
		t.Errorf("one that is none was taken: %v", err)
	}
	target := filepath.Join(t.TempDir(), "elsewhere")
	if err := errors.Join(os.Remove(path), os.WriteFile(target, []byte("x"), 0o600), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadMCPKey(path); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(target); string(text) != "x" {
		t.Error("the key was written through a link")
	}
}

// No two callers have one token, and whatever is no token is refused without harm.
func FuzzToken(f *testing.F) {
	f.Add("coder", "coder-1", "coder.coder-1.x")
	f.Add("a.b", "c", testKey.Token("a", "b.c"))
	f.Add("%2E", "%", "%.%.%")
	f.Add("", "", "..")
	f.Fuzz(func(t *testing.T, agent, session, forged string) {
		token := testKey.Token(agent, session)
		if len(token) <= mcpTokenMax {
			who, err := testKey.Who(token)
			if err != nil || who.Agent != agent || who.Session != session {
				t.Fatalf("%q is of %+v, %v", token, who, err)
			}
		}
		who, err := testKey.Who(forged)
		if err == nil && testKey.Token(who.Agent, who.Session) != forged {
			t.Fatalf("%q was taken for %+v", forged, who)
		}
	})
}

// Whatever comes as arguments is answered, and none of it ends the server.
func FuzzToolInput(f *testing.F) {
	f.Add("say", `{"text":"hi"}`)
	f.Add("wait", `{"seconds":1e99}`)
	f.Add("report_step", `{"status":"COMPLETED","metrics":{"a":{}}}`)
	f.Add("ask_human", `{"question":"\ud800","options":[]}`)
	f.Add("turn_complete", `null`)
	f.Add("pass", `[`)
	a := &actor{open: map[string]string{"coder-1": "coder"}, begun: make(chan struct{}, 1<<20), gaveUp: make(chan error, 1<<20)}
	tools := NewMCP(MCPOptions{Engine: a, Key: testKey})
	f.Fuzz(func(t *testing.T, tool, args string) {
		tools.mu.Lock()
		clear(tools.calls)
		tools.mu.Unlock()
		if !json.Valid([]byte(args)) {
			args = string(encode(args))
		}
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` + string(encode(tool)) + `,"arguments":` + args + `}}`
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+MCPPath, strings.NewReader(body))
		r.Header = bearer(testKey.Token("coder", "coder-1"))
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
	tools := NewMCP(MCPOptions{Engine: a, Key: testKey})
	for from, want := range map[string]int{"": http.StatusOK, "coder-1": http.StatusOK, "coder-2": http.StatusForbidden, "rev.iewer-2": http.StatusForbidden} {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), callerKey{}, &caller{session: from}), http.MethodPost, "http://127.0.0.1"+MCPPath, strings.NewReader(listTools))
		r.Header = bearer(testKey.Token("coder", "coder-1"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		tools.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("from within %q: %d %s, want %d", from, w.Code, w.Body, want)
		}
		if want == http.StatusForbidden && !strings.Contains(w.Body.String(), "X10") {
			t.Errorf("it does not say why: %s", w.Body)
		}
	}
}
