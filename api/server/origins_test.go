package server

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/mcp"
	"github.com/fairlead-dev/fairlead/internal/origin"
)

// At an origin of fairlead.yaml the page works as at the server's own address, with a browser's secret and nothing else.
// Every other host and origin is refused as before, whatever a header says about forwarding.
func TestOutsideOrigins(t *testing.T) {
	s := serve(t)
	for _, text := range []string{"https://fairlead.example.org", "https://box.example:8443", "http://127.0.0.1:8000"} {
		o, err := origin.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s.opts.Origins = append(s.opts.Origins, o)
	}
	secret := signIn(t, s)
	const name, page = "fairlead.example.org", "https://fairlead.example.org"
	for _, c := range []struct {
		host, origin      string
		more              string // another header
		page, read, order int
	}{
		{name, "", "", 200, 200, 200},
		{name, page, "", 200, 200, 200},
		{name, page, "Sec-Fetch-Site: same-origin", 200, 200, 200},
		{"FAIRLEAD.example.org", page, "Sec-Fetch-Site: same-origin", 200, 200, 200},
		{name + ":443", page, "Sec-Fetch-Site: same-origin", 200, 200, 200},
		{"box.example:8443", "https://box.example:8443", "", 200, 200, 200},
		{"127.0.0.1:8000", "http://127.0.0.1:8000", "", 200, 200, 200},

		{name, "null", "", 403, 403, 403},
		{name, "http://fairlead.example.org", "", 403, 403, 403},
		{name, "https://fairlead.example.org.evil.example", "", 403, 403, 403},
		{name, "https://evil.example", "", 403, 403, 403},
		{name, "https://box.example:8443", "", 403, 403, 403}, // another of our own is another origin
		{name, page + "/", "", 403, 403, 403},
		{name, page + " https://evil.example", "", 403, 403, 403},
		{name, s.url, "", 403, 403, 403},
		{name, "", "Sec-Fetch-Site: cross-site", 403, 403, 403},
		{name, "", "Sec-Fetch-Site: same-site", 403, 403, 403},
		{"", page, "", 403, 403, 403}, // a proxy that puts the server's own name in place of the browser's
		{"box.example", "", "", 421, 421, 421},
		{"box.example:443", "", "", 421, 421, 421},
		{"fairlead.example.org.", "", "", 421, 421, 421},
		{"x.fairlead.example.org", "", "", 421, 421, 421},
		{"example.org", "", "", 421, 421, 421},
		{"evil.example", "https://evil.example", "", 421, 421, 421},
		{"evil.example", "", "X-Forwarded-Host: fairlead.example.org", 421, 421, 421},
		{"evil.example", "", "Forwarded: host=fairlead.example.org;proto=https", 421, 421, 421},
		{"evil.example", "", "X-Original-Host: 127.0.0.1", 421, 421, 421},
		{name, "https://evil.example", "X-Forwarded-Host: evil.example", 403, 403, 403},
		{"127.0.0.1:8001", "", "", 421, 421, 421},
	} {
		t.Run(strings.Join([]string{c.host, c.origin, c.more}, " "), func(t *testing.T) {
			header := map[string]string{"Authorization": "Bearer " + secret}
			if c.host != "" {
				header["Host"] = c.host
			}
			if c.origin != "" {
				header["Origin"] = c.origin
			}
			if k, v, ok := strings.Cut(c.more, ": "); ok {
				header[k] = v
			}
			for path, status := range map[string]int{"/": c.page, api.Base + "/agents": c.read} {
				if _, h := send(t, s.request(t, "GET", path, header), status); h.Get("Set-Cookie") != "" ||
					h.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s sets %v", path, h)
				}
			}
			send(t, s.request(t, "POST", api.Base+"/hold", header), c.order)
		})
	}
}

// The token for programs lies where agents can read it. Behind a proxy the caller's process is the proxy, so an agent
// would look like a person: there the token counts for nothing, nor do the tools' tokens.
func TestTokenCountsOnlyAtHome(t *testing.T) {
	s := serve(t)
	o, err := origin.Parse("https://fairlead.example.org")
	if err != nil {
		t.Fatal(err)
	}
	s.opts.Origins = []origin.Origin{o}
	at := func(more string) map[string]string {
		return map[string]string{
			"Host": "fairlead.example.org", "Authorization": "Bearer " + testToken, "X-Forwarded-For": more,
			"X-Real-IP": more,
		}
	}
	for _, more := range []string{"", "127.0.0.1", "::1"} {
		for method, path := range map[string]string{"GET": "/agents", "POST": "/login-codes", "DELETE": "/logins/l1"} {
			if text, _ := send(t, s.request(t, method, api.Base+path, at(more)), 401); strings.Contains(text, testToken) {
				t.Error(text)
			}
		}
		send(t, s.request(t, "POST", mcp.Path, at(more)), 421)
	}
	s.want(t, 200, "GET", api.Base+"/agents", "")

	// A browser signs in there with a code.
	issued, err := dial(t, s).Logins.NewCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	outside := map[string]string{"Host": "fairlead.example.org", "Origin": "https://fairlead.example.org", "Sec-Fetch-Site": "same-origin"}
	redeem(t, s, issued.Code, 403, map[string]string{"Host": "fairlead.example.org", "Origin": "https://evil.example"})
	outside["Authorization"] = "Bearer " + redeem(t, s, issued.Code, 200, outside).Secret
	send(t, s.request(t, "GET", api.Base+"/agents", outside), 200)
	send(t, s.request(t, "POST", api.Base+"/login-codes", outside), 409)
}
