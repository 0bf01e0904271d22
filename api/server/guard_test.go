package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
)

// request is one that may be sent to the TCP side.
func (s *served) request(t testing.TB, method, path string, header map[string]string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	return req
}

func TestWhoIsLetIn(t *testing.T) {
	s := serve(t)
	secret := signIn(t, s)
	for _, c := range []struct {
		name, header, value string
		status              int
	}{
		{"nothing", "", "", 401},
		{"the token", "Authorization", "Bearer " + testToken, 200},
		{"the scheme in small letters", "Authorization", "bearer " + testToken, 200},
		{"another token", "Authorization", "Bearer " + testToken + "x", 401},
		{"a part of the token", "Authorization", "Bearer " + testToken[:8], 401},
		{"an empty token", "Authorization", "Bearer ", 401},
		{"another scheme", "Authorization", "Basic " + testToken, 401},
		{"the token alone", "Authorization", testToken, 401},
		{"a browser's secret", "Authorization", "Bearer " + secret, 200},
		{"another secret", "Authorization", "Bearer " + secret[1:], 401},
		{"a cookie with the token", "Cookie", "fairlead_token=" + testToken + "; fairlead=" + secret, 401},
		{"the secret alone", "Authorization", secret, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := map[string]string{}
			if c.header != "" {
				header[c.header] = c.value
			}
			for _, path := range []string{
				api.Base + "/agents", api.Base + "/events?after=0", api.Base + "/openapi.json", "/api/",
				"/api/v1/logins",
			} {
				if c.status == 200 && (strings.Contains(path, "/events") || path == "/api/") {
					continue // it has no end, and no such route
				}
				text, h := send(t, s.request(t, "GET", path, header), c.status)
				if c.status == 401 && (h.Get("WWW-Authenticate") != `Bearer realm="fairlead"` || h.Get("Content-Type") != api.ProblemType) {
					t.Errorf("%s: a 401 with headers %v\n%s", path, h, text)
				}
				if strings.Contains(text, testToken) {
					t.Errorf("%s: the token is in the answer", path)
				}
			}
		})
	}
}

func TestNoTokenMeansNobody(t *testing.T) {
	s := New(Options{Engine: supervise(t, memory.New(), t.TempDir(), pair).App})
	defer s.Close()
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	for _, given := range []string{"", "%20", "x"} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", web.URL+api.Base+"/agents", nil)
		req.Header.Set("Authorization", "Bearer "+given)
		req.Header.Set("Cookie", "fairlead_token="+given)
		send(t, req, 401)
	}
}

// The page needs no secret, in whatever address it is opened; the data does, and no query counts as one.
func TestPageIsOpenAndDataIsNot(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"/", "/app.js", "/?token=" + testToken, "/?code=x"} {
		text, h := send(t, s.request(t, "GET", path, nil), 200)
		if text != "the page" || h.Get("Set-Cookie") != "" {
			t.Errorf("%s: %q, %v", path, text, h)
		}
	}
	send(t, s.request(t, "GET", api.Base+"/agents?token="+testToken, nil), 401)
	send(t, s.request(t, "POST", "/?token="+testToken, nil), 401)
	send(t, s.request(t, "GET", "//api/v1/agents", nil), 404)
	send(t, s.request(t, "GET", "/x/../api/v1/agents", nil), 404)
	send(t, s.request(t, "GET", "/%61pi/v1/agents", nil), 401)
}

// A host name that an attacker points to this machine (DNS rebinding) is refused.
func TestHosts(t *testing.T) {
	s := serve(t)
	s.hosts = []string{"devbox", "box.example:9000"}
	port := s.url[strings.LastIndexByte(s.url, ':'):]
	for host, status := range map[string]int{
		"127.0.0.1" + port: 200, "localhost" + port: 200, "LocalHost" + port: 200, "[::1]" + port: 200, "127.9.9.9" + port: 200,
		"devbox" + port: 200, "box.example:9000": 200,
		"evil.example" + port: 421, "localhost.evil.example" + port: 421, "127.0.0.1.evil.example" + port: 421, "localhost." + port: 421,
		"127.0.0.1": 421, "127.0.0.1:1": 421, "localhost:0x50": 421, "[::1%25lo]" + port: 421, "0.0.0.0" + port: 421, "[::]" + port: 421,
		"box.example" + port: 421, "devbox": 421, "[::ffff:127.0.0.1]" + port: 200, "[::ffff:10.0.0.1]" + port: 421,
		"2130706433" + port: 421,
	} {
		resp := raw(t, s,
			fmt.Sprintf("GET /api/v1/agents HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", host,
				testToken))
		if resp.StatusCode != status {
			t.Errorf("Host %q: status %d, want %d", host, resp.StatusCode, status)
		}
	}
	if resp := raw(t, s, "GET /api/v1/agents HTTP/1.0\r\nAuthorization: Bearer "+testToken+"\r\n\r\n"); resp.StatusCode != 421 {
		t.Errorf("no Host: status %d, want 421", resp.StatusCode)
	}
}

func TestOrigins(t *testing.T) {
	s := serve(t)
	local := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	for _, c := range []struct {
		origin, site, mode, dest string
		page, read, order        int
	}{
		{"", "", "", "", 200, 200, 200}, // a program
		{s.url, "same-origin", "cors", "empty", 200, 200, 200},
		{s.url, "", "", "", 200, 200, 200}, // an old browser
		{"", "none", "navigate", "document", 200, 200, 200},
		{"", "cross-site", "navigate", "document", 200, 403, 403}, // a link in a mail
		{"", "same-site", "navigate", "document", 200, 403, 403},  // a link on another program's page
		{"", "cross-site", "navigate", "iframe", 403, 403, 403},
		{"", "cross-site", "no-cors", "script", 403, 403, 403},
		{"", "same-site", "no-cors", "image", 403, 403, 403},
		{"http://localhost:3000", "same-site", "cors", "empty", 403, 403, 403},
		{"http://localhost:3000", "", "", "", 403, 403, 403},
		{local, "", "", "", 403, 403, 403}, // the same machine by another name is another origin
		{"https" + strings.TrimPrefix(s.url, "http"), "", "", "", 403, 403, 403},
		{"http://evil.example", "cross-site", "cors", "empty", 403, 403, 403},
		{"http://evil.example", "same-origin", "cors", "empty", 403, 403, 403},
		{"null", "", "", "", 403, 403, 403},
		{"::", "", "", "", 403, 403, 403},
		{"", "weird", "", "", 403, 403, 403},
	} {
		header := map[string]string{"Authorization": "Bearer " + testToken}
		for name, value := range map[string]string{
			"Origin": c.origin, "Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode,
			"Sec-Fetch-Dest": c.dest,
		} {
			if value != "" {
				header[name] = value
			}
		}
		t.Run(strings.Join([]string{c.origin, c.site, c.mode, c.dest}, " "), func(t *testing.T) {
			send(t, s.request(t, "GET", "/", header), c.page)
			send(t, s.request(t, "GET", api.Base+"/agents", header), c.read)
			send(t, s.request(t, "POST", api.Base+"/hold", header), c.order)
			if c.read == 403 {
				_, h := send(t, s.request(t, "GET", api.Base+"/events?after=0", header), 403)
				for name := range h {
					if strings.HasPrefix(name, "Access-Control-") {
						t.Errorf("%s is sent; nobody else may read this", name)
					}
				}
			}
		})
	}
}

func TestHeadersEverywhere(t *testing.T) {
	s := serve(t)
	auth := map[string]string{"Authorization": "Bearer " + testToken}
	for _, c := range []struct {
		req    *http.Request
		status int
	}{
		{s.request(t, "GET", "/", auth), 200},
		{s.request(t, "GET", "/", nil), 200},
		{s.request(t, "GET", api.Base+"/agents", nil), 401},
		{s.request(t, "GET", api.Base+"/agents", auth), 200},
		{s.request(t, "GET", api.Base+"/nowhere", auth), 404},
		{s.request(t, "PUT", api.Base+"/agents", auth), 405},
		{s.request(t, "GET", api.Base+"/agents", map[string]string{"Host": "evil.example"}), 421},
		{s.request(t, "GET", api.Base+"/agents", map[string]string{"Origin": "http://evil.example"}), 403},
	} {
		_, h := send(t, c.req, c.status)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Content-Security-Policy": apiPolicy,
		} {
			if h.Get(name) != want {
				t.Errorf("%s %s: %s is %q, want %q", c.req.Method, c.req.URL.Path, name, h.Get(name), want)
			}
		}
	}
}

// Who acts is in the journal: the person, and the way in.
func TestActors(t *testing.T) {
	s := serve(t)
	send(t, s.request(t, "POST", api.Base+"/hold", map[string]string{"Authorization": "Bearer " + testToken}), 200)
	send(t, s.request(t, "POST", api.Base+"/unhold", map[string]string{"Authorization": "Bearer " + signIn(t, s)}), 200)
	if _, err := dial(t, s).Hold(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	want := `human sam (token): team/team X8 held|human sam (Mission Control): team/team X8 open|human sam: team/team X8 held`
	if got := strings.Join(s.sup.changes(t), "|"); got != want {
		t.Errorf("orders: %s", got)
	}
}

func TestBugIsAnsweredAndLogged(t *testing.T) {
	s := serve(t)
	s.opts.Past = func(context.Context, Moment) (*app.App, func() error, error) {
		panic("a bug, on purpose")
	}
	s.want(t, 500, "GET", api.Base+"/agents?at=1", "")
	if logs := s.logs.String(); !strings.Contains(logs, "a bug, on purpose") || !strings.Contains(logs, "guard_test.go") {
		t.Errorf("the log: %s", logs)
	}
	s.want(t, 200, "GET", api.Base+"/agents", "")
}

// raw sends bytes that no well-behaved client would.
func raw(t testing.TB, s *served, text string) *http.Response {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(context.WithoutCancel(t.Context()), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return answerOn(t, conn)
}
