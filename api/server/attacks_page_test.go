package server

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
)

// Threats of SECURITY.md.
const (
	otherSite   = "A page of another site reads answers or gives orders"
	rebinding   = "A name of another site leads to this machine (DNS rebinding)"
	embedding   = "A page of another site embeds the page or loads parts of it"
	foreignIn   = "A page of another site signs the browser in, or gets a secret from it"
	otherOrigin = "An address that looks like one of `origins`"
	leadsAway   = "An address of Fairlead leads to another site"
)

// TestPageAttempts sends what a browser sends for the acts of a hostile page, each with a valid secret, which such a page does
// not have. What needs a browser is in the package uitest.
func TestPageAttempts(t *testing.T) {
	runAttempts(t, 50, attemptsOfAPage(), attemptsToLoad(), attemptsByName(), attemptsOnOrigins(), attemptsToSignIn(), attemptsToLeadAway())
}

// Header lines of a browser.
const (
	evilOrigin = "Origin: https://evil.example"
	crossSite  = "Sec-Fetch-Site: cross-site"
)

// own are the header lines of Fairlead's own page.
var own = []string{"Origin: http://{HOST}", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"}

var (
	pageReads  = allowed(program("GET", "/agents", "", own...))
	pageOrders = allowed(program("POST", "/hold", `{"note":"x"}`, own...))
	pageOpens  = allowed(ask("GET", "/", "", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"))
	pageLoads  = allowed(ask("GET", "/app.js", "", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: script"))
)

// fetched are the header lines of Sec-Fetch for a request that another site begins.
func fetched(mode, dest string, more ...string) []string {
	return append([]string{crossSite, "Sec-Fetch-Mode: " + mode, "Sec-Fetch-Dest: " + dest}, more...)
}

func attemptsOfAPage() []attempt {
	order := func(body string, lines ...string) func(*testing.T, *served) {
		return refused(program("POST", "/hold", body, lines...), 403)
	}
	read := func(lines ...string) func(*testing.T, *served) {
		return refused(program("GET", "/agents", "", lines...), 403)
	}
	return []attempt{
		{"fetch reads", otherSite, read(fetched("cors", "empty", evilOrigin)...), pageReads},
		{
			"fetch without CORS orders", otherSite, order("{}", fetched("no-cors", "empty", evilOrigin, "Content-Type: text/plain")...),
			pageOrders,
		},
		{
			"a form is sent", otherSite,
			order("note=x", fetched("navigate", "document", evilOrigin, "Content-Type: application/x-www-form-urlencoded")...), pageOrders,
		},
		{
			"a form with files is sent", otherSite,
			order("--b--", fetched("navigate", "iframe", evilOrigin, "Content-Type: multipart/form-data; boundary=b")...), pageOrders,
		},
		{
			"a form is sent whose text is JSON", otherSite,
			order(`{"note":"="}`, fetched("navigate", "document", evilOrigin, "Content-Type: text/plain")...), pageOrders,
		},
		{
			"a form is sent to the page itself", otherSite,
			refused(ask("POST", "/", "a=b",
				append(fetched("navigate", "document", evilOrigin), bearerLine, "Content-Type: application/x-www-form-urlencoded")...),
				403), pageOpens,
		},
		{"a form of a page without Sec-Fetch", otherSite, order("{}", evilOrigin, "Content-Type: text/plain"), pageOrders},
		{
			"a beacon when the page is left", otherSite,
			order("{}", fetched("no-cors", "empty", evilOrigin, "Content-Type: text/plain;charset=UTF-8", "Purpose: beacon")...),
			pageOrders,
		},
		{
			"the ping of a link", otherSite,
			order("PING", fetched("no-cors", "empty", evilOrigin, "Content-Type: text/ping", "Ping-To: http://{HOST}/")...), pageOrders,
		},
		{
			"a report about a policy", otherSite,
			order("[]", fetched("no-cors", "report", evilOrigin, "Content-Type: application/csp-report")...), pageOrders,
		},
		{
			"a preflight", otherSite,
			refused(ask("OPTIONS", api.Base+"/hold", "",
				fetched("cors", "empty", evilOrigin, "Access-Control-Request-Method: POST",
					"Access-Control-Request-Headers: authorization,content-type")...), 403, 401), pageOrders,
		},
		{
			"a preflight of a private network", otherSite,
			refused(program("OPTIONS", "/hold", "",
				fetched("cors", "empty", evilOrigin, "Access-Control-Request-Method: POST",
					"Access-Control-Request-Private-Network: true")...), 403), pageOrders,
		},
		{"a sandboxed frame", otherSite, order("{}", fetched("cors", "empty", "Origin: null")...), pageOrders},
		{"a page of a file", otherSite, read("Origin: file://"), pageReads},
		{"an extension of the browser", otherSite, read("Origin: chrome-extension://abcdefghijklmnop"), pageReads},
		{
			"a stream of events", otherSite,
			refused(program("GET", "/events?after=0", "", fetched("cors", "empty", evilOrigin, "Accept: text/event-stream")...), 403),
			pageReads,
		},
		{
			"a web socket", otherSite,
			refused(program("GET", "/events?after=0", "", evilOrigin, "Connection: Upgrade", "Upgrade: websocket",
				"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="), 403), pageReads,
		},
		{
			"a stream through a CONNECT of WebTransport", otherSite,
			refused(bytesOf("CONNECT {HOST} HTTP/1.1\r\nHost: {HOST}\r\n"+evilOrigin+"\r\n\r\n"), 400, 401, 403, 404, 405), pageReads,
		},
		{
			"a page of another program on this machine", otherSite, read("Origin: http://127.0.0.1:3000", "Sec-Fetch-Site: same-site"),
			pageReads,
		},
		{
			"a page of another daemon on this machine", otherSite, read("Origin: http://localhost:7466", "Sec-Fetch-Site: same-site"),
			pageReads,
		},
		{"the same port with TLS", otherSite, read("Origin: https://{HOST}"), pageReads},
		{"the same port of another name of this machine", otherSite, read("Origin: http://localhost:{PORT}"), pageReads},
		{"an origin that goes on", otherSite, read("Origin: http://{HOST}.evil.example"), pageReads},
		{"an origin with this address as user", otherSite, read("Origin: http://{HOST}@evil.example"), pageReads},
		{"two origins in one header", otherSite, read("Origin: http://{HOST} https://evil.example"), pageReads},
		{
			"a tool of agents is called", otherSite,
			refused(ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
				fetched("no-cors", "empty", evilOrigin, "Content-Type: text/plain")...), 403), pageOrders,
		},
	}
}

func attemptsToLoad() []attempt {
	load := func(path, mode, dest string, more ...string) func(*testing.T, *served) {
		return refused(ask("GET", path, "", append(fetched(mode, dest, more...), bearerLine)...), 403)
	}
	data := api.Base + "/agents"
	return []attempt{
		{"data as a script", embedding, load(data, "no-cors", "script"), pageReads},
		{"data as a style", embedding, load(data, "no-cors", "style"), pageReads},
		{"data as an image", embedding, load(data, "no-cors", "image"), pageReads},
		{"data as a font", embedding, load(data, "cors", "font", evilOrigin), pageReads},
		{"data as subtitles", embedding, load(data, "no-cors", "track"), pageReads},
		{"data with a callback", embedding, refused(program("GET", "/agents?callback=steal", ""), 422), pageReads},
		{"the page's own script", embedding, load("/app.js", "no-cors", "script"), pageLoads},
		{"the page in a frame", embedding, load("/", "navigate", "iframe"), pageOpens},
		{"the page as an object", embedding, load("/", "navigate", "object"), pageOpens},
		{"the page as a fenced frame", embedding, load("/", "navigate", "fencedframe"), pageOpens},
		{"an answer in a window", embedding, load(data, "navigate", "document"), pageReads},
		{"an answer that is loaded ahead", embedding, load(data, "navigate", "document", "Sec-Purpose: prefetch;prerender"), pageReads},
		{"a service worker", embedding, load("/app.js", "same-origin", "serviceworker", "Service-Worker: script"), pageLoads},
		{
			"a link to the page, which opens it without its opener", embedding,
			harmlessly(ask("GET", "/", "", fetched("navigate", "document")...), 200, func(got heard) string {
				if got.head.Get("Cross-Origin-Opener-Policy") != "same-origin" || got.head.Get("X-Frame-Options") != "DENY" {
					return "the opener keeps a handle"
				}
				return ""
			}), pageOpens,
		},
	}
}

func attemptsByName() []attempt {
	host := func(name string, lines ...string) func(*testing.T, *served) {
		return refused(program("GET", "/agents", "", append([]string{"Host: " + name}, lines...)...), 400, 421)
	}
	local := func(name string) func(*testing.T, *served) {
		return allowed(program("GET", "/agents", "", "Host: "+name))
	}
	return []attempt{
		{
			"a name of the attacker, with its own origin", rebinding,
			host("evil.example:{PORT}", "Origin: http://evil.example:{PORT}", "Sec-Fetch-Site: same-origin"), pageReads,
		},
		{"a name that ends with this one", rebinding, host("evil-localhost:{PORT}"), local("localhost:{PORT}")},
		{"a name below this one", rebinding, host("a.localhost:{PORT}"), local("LOCALHOST:{PORT}")},
		{"a service that gives every address a name", rebinding, host("127.0.0.1.nip.io:{PORT}"), local("127.0.0.1:{PORT}")},
		{"the address of all interfaces", rebinding, host("0.0.0.0:{PORT}"), local("[::1]:{PORT}")},
		{"the address of all interfaces of IPv6", rebinding, host("[::]:{PORT}"), local("127.8.8.8:{PORT}")},
		{"another port of this machine", rebinding, host("127.0.0.1:1"), pageReads},
		{"no port", rebinding, host("127.0.0.1"), pageReads},
		{"this address as a user of another host", rebinding, host("127.0.0.1:{PORT}@evil.example"), pageReads},
		{"an address in one number", rebinding, host("2130706433:{PORT}"), pageReads},
		{"a name with a dot at the end", rebinding, host("localhost.:{PORT}"), local("localhost:{PORT}")},
		{
			"the right name in the header for proxies", rebinding,
			host("evil.example", "X-Forwarded-Host: {HOST}", "Forwarded: host={HOST}", "X-Host: {HOST}"), pageReads,
		},
		{
			"a proxy that hides the origin", rebinding,
			refused(program("GET", "/agents", "", evilOrigin, "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: https",
				"X-Real-IP: 127.0.0.1"), 403), pageReads,
		},
	}
}

func attemptsOnOrigins() []attempt {
	name := strings.TrimPrefix(outsideOrigin, "https://")
	at := func(status int, lines ...string) func(*testing.T, *served) {
		return refused(ask("GET", api.Base+"/agents", "", append([]string{"Authorization: Bearer {SECRET}"}, lines...)...), status)
	}
	there := allowed(ask("GET", api.Base+"/agents", "", "Authorization: Bearer {SECRET}", "Host: "+name, "Origin: "+outsideOrigin,
		"Sec-Fetch-Site: same-origin"))
	return []attempt{
		{"a name that goes on after it", otherOrigin, at(421, "Host: "+name+".evil.example"), there},
		{"a name that begins before it", otherOrigin, at(421, "Host: evil"+name), there},
		{"a name below it", otherOrigin, at(421, "Host: a."+name), there},
		{"another port of it", otherOrigin, at(421, "Host: "+name+":8443"), there},
		{"its name with a dot at the end", otherOrigin, at(421, "Host: "+name+"."), there},
		{"its name without TLS as the origin", otherOrigin, at(403, "Host: "+name, "Origin: http://"+name), there},
		{"another port as the origin", otherOrigin, at(403, "Host: "+name, "Origin: "+outsideOrigin+":8443"), there},
		{"this machine's own page as the origin", otherOrigin, at(403, "Host: "+name, "Origin: http://{HOST}"), there},
		{"its page on this machine's own address", otherOrigin, at(403, "Origin: "+outsideOrigin), there},
		{"the token for programs", otherOrigin, refused(program("GET", "/agents", "", "Host: "+name), 401), there},
		{"a tool of agents", otherOrigin, refused(ask("POST", "/mcp", "{}", "Host: "+name), 421), there},
		{
			"a code for another browser", otherOrigin,
			refused(ask("POST", api.Base+"/login-codes", "{}", "Authorization: Bearer {SECRET}", "Host: "+name), 409), there,
		},
	}
}

func attemptsToSignIn() []attempt {
	in := func(status int, lines ...string) func(*testing.T, *served) {
		return refused(ask("POST", api.Base+"/logins", `{"code":"{CODE}"}`, lines...), status)
	}
	signsIn := allowed(ask("POST", api.Base+"/logins", `{"code":"{CODE}"}`, own...))
	basic := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("fairlead:"+testToken))
	return []attempt{
		{"with a code of the attacker", foreignIn, in(403, fetched("cors", "empty", evilOrigin)...), signsIn},
		{"with a form", foreignIn, in(403, fetched("navigate", "document", evilOrigin, "Content-Type: text/plain")...), signsIn},
		{
			"with a form of this machine's other ports", foreignIn, in(403, "Origin: http://127.0.0.1:3000", "Content-Type: text/plain"),
			signsIn,
		},
		{"with a name that leads here", foreignIn, in(421, "Host: evil.example:{PORT}", "Origin: http://evil.example:{PORT}"), signsIn},
		{"with the code in the query", foreignIn, func(t *testing.T, s *served) {
			harmlessly(ask("GET", "/?code={CODE}", "", fetched("navigate", "document")...), 200, hasData)(t, s)
			if n := len(s.opts.Logins.List()); n != 0 {
				t.Errorf("%d logins", n)
			}
		}, signsIn},
		{
			"a cookie that another port has set", foreignIn,
			refused(ask("GET", api.Base+"/agents", "",
				append(own, "Cookie: fairlead={SECRET}; fairlead_token={TOKEN}; fairlead.secret={SECRET}")...), 401),
			allowed(ask("GET", api.Base+"/agents", "", append(own, "Authorization: Bearer {SECRET}")...)),
		},
		{
			"a name and password in the address", foreignIn,
			refused(ask("GET", api.Base+"/agents", "", fetched("navigate", "document", basic)...), 403), pageReads,
		},
		{
			"the list of logins", foreignIn, refused(program("GET", "/logins", "", fetched("cors", "empty", evilOrigin)...), 403),
			allowed(program("GET", "/logins", "", own...)),
		},
		{
			"a browser is signed out", foreignIn,
			refused(program("DELETE", "/logins/l1", "", fetched("cors", "empty", evilOrigin)...), 403),
			func(t *testing.T, s *served) {
				signIn(t, s)
				allowed(program("DELETE", "/logins/l1", "", own...))(t, s)
			},
		},
	}
}

func attemptsToLeadAway() []attempt {
	stays := func(path string, lines ...string) func(*testing.T, *served) {
		return func(t *testing.T, s *served) {
			t.Helper()
			got := ask("GET", path, "", lines...)(t, s)
			if harmless(t, s, got); got.status >= 300 && got.status < 400 || got.head.Get("Location") != "" ||
				got.head.Get("Refresh") != "" {
				t.Errorf("it leads to %q: %d", got.head.Get("Location"), got.status)
			}
		}
	}
	return []attempt{
		{"two slashes before a name", leadsAway, stays("//evil.example/"), pageOpens},
		{"a slash and a backslash", leadsAway, stays("/%5cevil.example/.."), pageOpens},
		{"a path that would be cleaned", leadsAway, stays("/evil.example/..//"), pageOpens},
		{"a target in the query", leadsAway, stays("/?next=https://evil.example&url=//evil.example&return_to=evil"), pageOpens},
		{"a line break before a name", leadsAway, stays("/%0d%0aLocation:%20https://evil.example"), pageOpens},
		{"a folder without its slash", leadsAway, stays(api.Base), pageOpens},
	}
}
