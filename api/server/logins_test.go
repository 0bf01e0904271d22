package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/login"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/internal/origin"
)

// loginsAsked has no code and no login that exists; tests of their own have.
var loginsAsked = []askedOnce{
	{"issue-login-code", "POST", "/login-codes", "{}", `"code" "expires_at"`},
	{"sign-in", "POST", "/logins", `{"code":"k7qm 2xdp","name":"x"}`, `"detail" login code`},
	{"list-logins", "GET", "/logins", "", `"logins":[]`},
	{"revoke-login", "DELETE", "/logins/l1", "", `l1`},
}

func newLogins(t testing.TB) *login.Logins {
	t.Helper()
	l, err := login.Open(filepath.Join(t.TempDir(), "logins.json"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// redeem exchanges a code over TCP, as the page does, and wants a status.
func redeem(t testing.TB, s *served, code string, status int, header map[string]string) api.LoginSecret {
	t.Helper()
	body, _ := json.Marshal(api.LoginBody{Code: code, Name: "Firefox on Linux"})
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+api.Base+loginsPath, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	text, h := send(t, req, status)
	var got api.LoginSecret
	if status == 200 {
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Secret == "" || h.Get("Cache-Control") != "no-store" ||
			h.Get("Set-Cookie") != "" {
			t.Fatalf("%v: %s, %v", err, text, h)
		}
	}
	return got
}

// signIn gives the secret of a browser.
func signIn(t testing.TB, s *served) string {
	t.Helper()
	issued, err := dial(t, s).Logins.NewCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return redeem(t, s, issued.Code, 200, nil).Secret
}

// A code is valid once; a page of another site and a foreign host name do not get as far as trying it.
func TestSignIn(t *testing.T) {
	s := serve(t)
	issued, err := dial(t, s).Logins.NewCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	redeem(t, s, issued.Code, 403, map[string]string{"Origin": "http://localhost:3000"})
	redeem(t, s, issued.Code, 403, map[string]string{"Sec-Fetch-Site": "cross-site"})
	redeem(t, s, issued.Code, 421, map[string]string{"Host": "evil.example"})
	in := redeem(t, s, issued.Code, 200, map[string]string{"Origin": s.url, "Sec-Fetch-Site": "same-origin"})
	redeem(t, s, issued.Code, 401, nil)
	redeem(t, s, "K7QM-2XDP", 401, nil)
	auth := map[string]string{"Authorization": "Bearer " + in.Secret}
	send(t, s.request(t, "GET", api.Base+"/agents", auth), 200)
	send(t, s.request(t, "GET", api.Base+"/agents",
		map[string]string{"Authorization": auth["Authorization"], "Origin": "http://localhost:3000"}), 403)
	send(t, s.request(t, "GET", api.Base+"/agents", map[string]string{"Authorization": auth["Authorization"], "Host": "evil.example"}), 421)
	send(t, s.request(t, "POST", api.Base+"/login-codes", auth), 409) // a page signs no other browser in
	if logs := s.logs.String(); strings.Contains(logs, in.Secret) || strings.Contains(logs, issued.Code) {
		t.Errorf("a secret or a code is in the log: %s", logs)
	}
}

func TestManyGuesses(t *testing.T) {
	s := serve(t)
	issued, err := dial(t, s).Logins.NewCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		redeem(t, s, fmt.Sprintf("%08d", i), 401, nil)
	}
	redeem(t, s, "99999999", 429, nil)
	redeem(t, s, issued.Code, 429, nil)
	s.want(t, 200, "GET", api.Base+"/agents", "") // programs with the token are not concerned
}

// A revoked secret opens nothing, and the stream that it opened ends.
func TestRevokedLogin(t *testing.T) {
	s := serve(t)
	client := dial(t, s)
	kept, lost := signIn(t, s), signIn(t, s)
	list, err := client.Logins.List(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "Firefox on Linux" {
		t.Fatalf("%+v, %v", list, err)
	}
	resp, err := plain.Do(s.request(t, "GET", api.Base+"/events?after=0", map[string]string{"Authorization": "Bearer " + lost}))
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	defer resp.Body.Close()
	if _, err := client.Logins.Revoke(t.Context(), list[1].ID); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); { // it ends, or the test times out
	}
	send(t, s.request(t, "GET", api.Base+"/agents", map[string]string{"Authorization": "Bearer " + lost}), 401)
	send(t, s.request(t, "GET", api.Base+"/agents", map[string]string{"Authorization": "Bearer " + kept}), 200)
	if _, err := client.Logins.Revoke(t.Context(), list[1].ID); err == nil ||
		!strings.Contains(err.Error(), "there is no login "+list[1].ID) {
		t.Errorf("revoked twice: %v", err)
	}
}

// X10: an agent signs no browser in or out, over either listener, whatever code or secret it has seen.
func TestAgentsDoNotSignIn(t *testing.T) {
	for _, is := range []caller.Identity{{Session: "coder-17"}, {Session: "build@r1-2"}, {Unknown: true}} {
		for _, event := range []string{"login", "revoke"} {
			if err := is.MayLogin(event); err == nil || !strings.Contains(err.Error(), "X10") {
				t.Errorf("%+v: %v", is, err)
			}
		}
	}
	logins := newLogins(t)
	server := New(Options{
		Engine: supervise(t, memory.New(), t.TempDir(), pair).App, Token: testToken, Logins: logins,
		Hosts: []string{"example.com:80"},
	})
	code, _ := logins.NewCode()
	for name, h := range map[string]http.Handler{"socket": server.SocketHandler(), "port": server.Handler()} {
		for _, order := range [][3]string{
			{"POST", "/login-codes", "{}"},
			{"POST", "/logins", `{"code":"` + code + `"}`},
			{"DELETE", "/logins/l1", ""},
		} {
			r := httptest.NewRequestWithContext(asSession(t.Context(), "coder-17"), order[0], api.Base+order[1],
				strings.NewReader(order[2]))
			r.Header.Set("Authorization", "Bearer "+testToken)
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != 409 || problemText(t, w.Body.String()).Refusal.Row != "X10" {
				t.Errorf("%s: %v: %d %s", name, order, w.Code, w.Body)
			}
		}
	}
	if _, _, err := logins.Redeem(code, ""); err != nil {
		t.Errorf("the code after an agent tried it: %v", err)
	}
}

// A browser signs in at another repository only from this machine: not at an origin of a proxy or tunnel, not as an agent,
// not with the token for programs, and not as a process that was not seen. Then no other daemon is asked.
func TestRepositoryLoginIsRefused(t *testing.T) {
	s := serve(t)
	o, err := origin.Parse("https://fairlead.example.org")
	if err != nil {
		t.Fatal(err)
	}
	s.opts.Origins = []origin.Origin{o}
	secret := signIn(t, s)
	const path = api.Base + "/repositories/d-0123456789abcdef/login"
	for name, header := range map[string]map[string]string{
		"an origin":    {"Authorization": "Bearer " + secret, "Host": "fairlead.example.org", "Origin": "https://fairlead.example.org"},
		"the token":    {"Authorization": "Bearer " + testToken},
		"a wrong name": {"Authorization": "Bearer " + secret},
	} {
		to, status, want := path, 409, "fairlead open"
		if name == "a wrong name" {
			to, status, want = api.Base+"/repositories/..%2Fx/login", 422, "path.id"
		}
		if text, _ := send(t, s.request(t, "POST", to, header), status); !strings.Contains(text, want) {
			t.Errorf("%s: %s", name, text)
		}
	}
	for name, is := range map[string]caller.Identity{"an agent": {Session: "coder-17"}, "a process of another user": {Unknown: true}} {
		if err := is.MayLogin("repository_login"); err == nil || !strings.Contains(err.Error(), "X10") {
			t.Errorf("%s: %v", name, err)
		}
	}
	server := New(Options{
		Engine: supervise(t, memory.New(), t.TempDir(), pair).App, Token: testToken, Logins: newLogins(t),
		Hosts: []string{"example.com:80"},
	})
	for name, h := range map[string]http.Handler{"socket": server.SocketHandler(), "port": server.Handler()} {
		for _, order := range [][2]string{{"POST", path}, {"GET", api.Base + "/repositories"}} {
			r := httptest.NewRequestWithContext(asSession(t.Context(), "coder-17"), order[0], order[1], strings.NewReader("{}"))
			r.Header.Set("Authorization", "Bearer "+testToken)
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != 409 || problemText(t, w.Body.String()).Refusal.Row != "X10" {
				t.Errorf("%s: an agent: %v: %d %s", name, order, w.Code, w.Body)
			}
		}
	}
	if runtime.GOOS != "linux" {
		return // the process of a browser cannot be seen there
	}
	// A browser of this user on this machine may, and is then answered about the repository.
	text, _ := send(t, s.request(t, "POST", path, map[string]string{"Authorization": "Bearer " + secret}), 404)
	if !strings.Contains(text, "fairlead repos") {
		t.Errorf("a repository that is not there: %s", text)
	}
}

// repositoriesAsked is asked with the token, which lists the repositories and opens none.
var repositoriesAsked = []askedOnce{
	{"get-summary", "GET", "/summary", "", `"needs_you" "working" "agents"`},
	{"list-repositories", "GET", "/repositories", "", `"repositories" "outside":false`},
	{"sign-in-to-repository", "POST", "/repositories/d-0123456789abcdef/login", "{}", `"detail" fairlead open`},
}
