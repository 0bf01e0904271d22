package server

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
)

// Threats of SECURITY.md.
const (
	noSecret   = "A program without a secret uses the port"
	codeMisuse = "A login code or a login is guessed, used twice or used after its end"
	notHTTP    = "Bytes that are no proper request, or two requests in one"
	badBody    = "A body that is malformed, ambiguous or of another type"
	badName    = "A name or number in a request that leaves its place"
	badMoment  = "A request for a moment or a place in the feed that does not exist"
	tellsMore  = "An answer tells a secret, a path, or another meaning"
)

// TestAPIAttempts makes attempts of programs on the API, over the port.
func TestAPIAttempts(t *testing.T) {
	runAttempts(t, 70, attemptsWithoutSecret(), attemptsOnLogins(), attemptsOnHTTP(), attemptsWithMethods(), attemptsWithBodies(),
		attemptsWithNames(), attemptsInTime(), attemptsToLearn())
}

var (
	readsTeam = allowed(program("GET", "/agents", ""))
	holdsTeam = allowed(program("POST", "/hold", `{"note":"lunch"}`))
)

func attemptsWithoutSecret() []attempt {
	agents := api.Base + "/agents"
	hash := sha256.Sum256([]byte(testToken))
	with := func(line string) func(*testing.T, *served) { return refused(ask("GET", agents, "", line), 401) }
	return []attempt{
		{"no header at all", noSecret, refused(ask("GET", agents, ""), 401), readsTeam},
		{"an order without a secret", noSecret, refused(ask("POST", api.Base+"/hold", `{}`), 401), holdsTeam},
		{"the token in the query", noSecret, refused(ask("GET", agents+"?token={TOKEN}&access_token={TOKEN}", ""), 401), readsTeam},
		{
			"the token as a password of Basic", noSecret,
			with("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("x:"+testToken))), readsTeam,
		},
		{"the token in a header of another name", noSecret, with("X-Api-Key: {TOKEN}"), readsTeam},
		{"the token in the header for proxies", noSecret, with("Proxy-Authorization: Bearer {TOKEN}"), readsTeam},
		{
			"the token in a second Authorization header", noSecret,
			refused(ask("GET", agents, "", "Authorization: Bearer x", bearerLine), 401), readsTeam,
		},
		{
			"the token in a trailer", noSecret,
			refused(ask("POST", api.Base+"/hold", "2\r\n{}\r\n0\r\n"+bearerLine+"\r\n\r\n", "Transfer-Encoding: chunked",
				"Trailer: Authorization"), 401), holdsTeam,
		},
		{
			"the token in the body", noSecret, refused(ask("POST", api.Base+"/hold", `{"token":"{TOKEN}"}`, "Content-Length: 30"), 401),
			holdsTeam,
		},
		{"the beginning of the token", noSecret, with("Authorization: Bearer " + testToken[:len(testToken)-1]), readsTeam},
		{"the token and one byte more", noSecret, with("Authorization: Bearer {TOKEN}0"), readsTeam},
		{"the token in capitals", noSecret, with("Authorization: Bearer " + strings.ToUpper(testToken)), readsTeam},
		{"the hash of the token", noSecret, with("Authorization: Bearer " + hex.EncodeToString(hash[:])), readsTeam},
		{"a list of tokens", noSecret, with("Authorization: Bearer x,{TOKEN}"), readsTeam},
		{"the scheme twice", noSecret, with("Authorization: Bearer Bearer {TOKEN}"), readsTeam},
		{
			"a code in place of a secret", noSecret, with("Authorization: Bearer {CODE}"),
			allowed(ask("POST", api.Base+"/logins", `{"code":"{CODE}"}`)),
		},
		{
			"the token for the tools of agents", noSecret,
			refused(ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, bearerLine), 401, 404), readsTeam,
		},
		{"a slash of the path in another form", noSecret, refused(ask("GET", "/api%2fv1%2fagents", ""), 401, 404), readsTeam},
		{"the path in capitals", noSecret, harmlessly(ask("GET", "/API/v1/agents", ""), 200, hasData), readsTeam},
		{
			"a header that rewrites the path", noSecret,
			harmlessly(ask("GET", "/", "", "X-Original-URL: "+agents, "X-Rewrite-URL: "+agents), 200, hasData), readsTeam,
		},
	}
}

// hasData says that an answer has data of the team, which only callers with a secret get.
func hasData(got heard) string {
	if strings.Contains(got.body, "coder") {
		return "data without a secret"
	}
	return ""
}

func attemptsOnLogins() []attempt {
	redeem := func(code string) said { return ask("POST", api.Base+"/logins", `{"code":"`+code+`"}`) }
	signsIn := allowed(redeem("{CODE}"))
	return []attempt{
		{"a code that was never issued", codeMisuse, refused(redeem("K7QM-2XDP"), 401), signsIn},
		{"a code for the second time", codeMisuse, func(t *testing.T, s *served) {
			code, _ := s.opts.Logins.NewCode()
			allowed(redeem(code))(t, s)
			refused(redeem(code), 401)(t, s)
		}, signsIn},
		{"a code of another daemon", codeMisuse, func(t *testing.T, s *served) {
			code, _ := newLogins(t).NewCode()
			refused(redeem(code), 401)(t, s)
		}, signsIn},
		{"eleven guesses, then the right code", codeMisuse, func(t *testing.T, s *served) {
			for i := range 10 {
				refused(redeem(fmt.Sprintf("%08d", i)), 401)(t, s)
			}
			code, _ := s.opts.Logins.NewCode()
			refused(redeem(code), 429)(t, s)
		}, readsTeam},
		{"guesses on many connections at once", codeMisuse, func(t *testing.T, s *served) {
			done := make(chan int)
			for i := range 40 {
				go func() { done <- redeem(fmt.Sprintf("%08d", i))(t, s).status }()
			}
			wrong := 0
			for range 40 {
				if status := <-done; status == 401 {
					wrong++
				} else if status != 429 {
					t.Errorf("a guess has status %d", status)
				}
			}
			if wrong > 10 {
				t.Errorf("%d guesses were looked at, and 10 may be", wrong)
			}
		}, readsTeam},
		{"a code that matches everything", codeMisuse, refused(redeem("%"), 401), signsIn},
		{"an empty code", codeMisuse, refused(redeem(""), 422), signsIn},
		{"a list of codes", codeMisuse, refused(ask("POST", api.Base+"/logins", `{"code":["K7QM-2XDP","{CODE}"]}`), 400, 422), signsIn},
		{"a secret after it was revoked", codeMisuse, func(t *testing.T, s *served) {
			secret := signIn(t, s)
			list := s.opts.Logins.List()
			allowed(ask("GET", api.Base+"/agents", "", "Authorization: Bearer "+secret))(t, s)
			if _, err := s.opts.Logins.Revoke(list[len(list)-1].ID); err != nil {
				t.Fatal(err)
			}
			refused(ask("GET", api.Base+"/agents", "", "Authorization: Bearer "+secret), 401)(t, s)
		}, allowed(ask("GET", api.Base+"/agents", "", "Authorization: Bearer {SECRET}"))},
		{
			"a browser signs another one in", codeMisuse,
			refused(ask("POST", api.Base+"/login-codes", "{}", "Authorization: Bearer {SECRET}"), 409),
			allowed(program("POST", "/login-codes", "{}")),
		},
		{"a login by a pattern", codeMisuse, refused(program("DELETE", "/logins/l%2A", ""), 422), readsTeam},
		{"the name of a browser has escape codes", codeMisuse, func(t *testing.T, s *served) {
			allowed(ask("POST", api.Base+"/logins", `{"code":"{CODE}","name":"<script>\u001b[31m\u202e\u0000"}`))(t, s)
			allowed(program("GET", "/logins", ""))(t, s)
		}, signsIn},
	}
}

func attemptsOnHTTP() []attempt {
	head := " HTTP/1.1\r\nHost: {HOST}\r\n" + bearerLine + "\r\n"
	order := "POST " + api.Base + "/hold" + head + "Content-Type: application/json\r\n"
	second := "POST " + api.Base + "/hold" + head + "Content-Length: 0\r\nConnection: close\r\n\r\n"
	refuse := func(text string, statuses ...int) func(*testing.T, *served) {
		return refused(bytesOf(text), statuses...)
	}
	return []attempt{
		{"two lengths", notHTTP, refuse(order+"Content-Length: 2\r\nContent-Length: 0\r\n\r\n{}"+second, 400), holdsTeam},
		{"a list of lengths", notHTTP, refuse(order+"Content-Length: 2, 0\r\n\r\n{}", 400), holdsTeam},
		{"a length with a sign", notHTTP, refuse(order+"Content-Length: +2\r\n\r\n{}", 400), holdsTeam},
		{"a length in hexadecimal", notHTTP, refuse(order+"Content-Length: 0x2\r\n\r\n{}", 400), holdsTeam},
		{"a length below zero", notHTTP, refuse(order+"Content-Length: -2\r\n\r\n{}", 400), holdsTeam},
		{"an unknown transfer encoding", notHTTP, refuse(order+"Transfer-Encoding: xchunked\r\n\r\n"+chunked("{}"), 501), holdsTeam},
		{
			"two transfer encodings", notHTTP,
			refuse(order+"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"+chunked("{}"), 400, 501), holdsTeam,
		},
		{"a compressed transfer", notHTTP, refuse(order+"Transfer-Encoding: gzip, chunked\r\n\r\n"+chunked("{}"), 501), holdsTeam},
		{"a space before the colon", notHTTP, refuse(order+"Transfer-Encoding : chunked\r\n\r\n"+chunked("{}"), 400), holdsTeam},
		{
			"a chunk size with a prefix", notHTTP,
			refuse(order+"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n", 400), holdsTeam,
		},
		{
			"a chunk without its end", notHTTP,
			refuse(order+"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}0\r\n\r\n", 400),
			holdsTeam,
		},
		{"a length and a transfer encoding", notHTTP, func(t *testing.T, s *served) {
			before := len(s.sup.changes(t))
			got := bytesOf(order+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n"+second)(t, s)
			if harmless(t, s, got); len(s.sup.changes(t)) > before+1 {
				t.Errorf("one request gave two orders: %v", s.sup.changes(t)[before:])
			}
		}, holdsTeam},
		{
			"a folded header", notHTTP,
			refuse("GET "+api.Base+"/agents HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer\r\n x\r\nConnection: close\r\n\r\n", 400,
				401), readsTeam,
		},
		{"a header with NUL", notHTTP, refuse("GET "+api.Base+"/agents"+head+"X-A: a\x00b\r\n\r\n", 400), readsTeam},
		{"a header without a name", notHTTP, refuse("GET "+api.Base+"/agents"+head+": x\r\n\r\n", 400), readsTeam},
		{"two hosts", notHTTP, refuse("GET "+api.Base+"/agents"+head+"Host: evil.example\r\n\r\n", 400), readsTeam},
		{"no host", notHTTP, refuse("GET "+api.Base+"/agents HTTP/1.1\r\n"+bearerLine+"\r\n\r\n", 400), readsTeam},
		{"no host in HTTP 1.0", notHTTP, refuse("GET "+api.Base+"/agents HTTP/1.0\r\n"+bearerLine+"\r\n\r\n", 421), readsTeam},
		{
			"an address of another server in the request line", notHTTP,
			refuse("GET http://evil.example"+api.Base+"/agents"+head+"Connection: close\r\n\r\n", 421),
			allowed(bytesOf("GET http://{HOST}" + api.Base + "/agents" + head + "Connection: close\r\n\r\n")),
		},
		{
			"an address of a file in the request line", notHTTP,
			harmlessly(bytesOf("GET file:///etc/passwd"+head+"Connection: close\r\n\r\n"), 200, func(got heard) string {
				if got.body != "the page" {
					return "a file"
				}
				return ""
			}), readsTeam,
		},
		{"the preface of HTTP/2", notHTTP, refuse("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, 421, 505), readsTeam},
		{
			"an upgrade to HTTP/2", notHTTP,
			harmlessly(program("GET", "/status", "", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"), 200,
				func(got heard) string {
					if got.head.Get("Upgrade") != "" {
						return "it was upgraded"
					}
					return ""
				}), readsTeam,
		},
		{"a version that does not exist", notHTTP, refuse("GET "+api.Base+"/agents HTTP/9.9\r\nHost: {HOST}\r\n\r\n", 400, 505), readsTeam},
		{"a request without a version", notHTTP, refuse("GET "+api.Base+"/agents\r\n\r\n", 400), readsTeam},
		{
			"the line of a proxy's protocol", notHTTP,
			refuse("PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET "+api.Base+"/agents"+head+"\r\n", 400), readsTeam,
		},
		{"the beginning of TLS", notHTTP, refuse("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400), readsTeam},
		{
			"headers without end", notHTTP, refuse("GET "+api.Base+"/agents"+head+strings.Repeat("X-A: b\r\n", 30_000)+"\r\n", 431),
			readsTeam,
		},
		{"a query of 200 KB", notHTTP, refuse("GET "+api.Base+"/journal?after="+strings.Repeat("0", 200_000)+head+"\r\n", 431), readsTeam},
		{
			"an expectation that nothing can meet", notHTTP,
			refuse(order+"Content-Length: 2\r\nExpect: 200-ok\r\nConnection: close\r\n\r\n{}", 417), holdsTeam,
		},
		{"a stranger's body is not asked for", notHTTP, func(t *testing.T, s *served) {
			got := bytesOf("POST "+api.Base+
				"/hold HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n")(t, s)
			if harmless(t, s, got); got.status != 401 {
				t.Errorf("status %d", got.status)
			}
		}, allowed(program("POST", "/hold", `{}`, "Expect: 100-continue"))},
	}
}

func attemptsWithMethods() []attempt {
	return []attempt{
		{"TRACE, which repeats the secret", badBody, refused(program("TRACE", "/agents", ""), 405), readsTeam},
		{
			"CONNECT, as to a proxy", notHTTP,
			refused(bytesOf("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n"), 400, 404, 421), readsTeam,
		},
		{"a method in small letters", badBody, refused(program("post", "/hold", `{}`), 405), holdsTeam},
		{"PUT in place of POST", badBody, refused(program("PUT", "/hold", `{}`), 405), holdsTeam},
		{"an order by GET", badBody, refused(program("GET", "/hold", ""), 405), holdsTeam},
		{"a method in a header", badBody, func(t *testing.T, s *served) {
			signIn(t, s)
			harmlessly(program("GET", "/logins", "", "X-HTTP-Method-Override: DELETE", "X-Method-Override: DELETE"), 200,
				func(heard) string {
					if len(s.opts.Logins.List()) != 1 {
						return "the login is gone"
					}
					return ""
				})(t, s)
		}, readsTeam},
		{"a method in the query", badBody, refused(program("POST", "/hold?_method=DELETE", `{}`), 422), holdsTeam},
	}
}

func attemptsWithBodies() []attempt {
	body := func(text string, statuses ...int) func(*testing.T, *served) {
		return refused(program("POST", "/down", text), statuses...)
	}
	typed := func(kind, text string, statuses ...int) func(*testing.T, *served) {
		return refused(program("POST", "/hold", text, "Content-Type: "+kind), statuses...)
	}
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"note":"` + strings.Repeat("a", 900) + `"}`)) // a strings.Builder never fails
	_ = z.Close()
	return []attempt{
		{"JSON as plain text", badBody, typed("text/plain", `{"note":"x"}`, 415), holdsTeam},
		{"a form", badBody, typed("application/x-www-form-urlencoded", "note=x", 415), holdsTeam},
		{
			"a form with files", badBody,
			typed("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nx\r\n--b--\r\n", 415),
			holdsTeam,
		},
		{
			"XML with an entity of a file", badBody,
			typed("application/xml", `<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>`, 415), holdsTeam,
		},
		{"YAML", badBody, typed("application/yaml", "note: x\n", 415), holdsTeam},
		{"CBOR", badBody, typed("application/cbor", "\xa1dnoteax", 415), holdsTeam},
		{"UTF-16", badBody, typed("application/json; charset=utf-16", utf16(`{"note":"x"}`), 400, 415), holdsTeam},
		{"a compressed body", badBody, refused(program("POST", "/hold", packed.String(), "Content-Encoding: gzip"), 400, 415), holdsTeam},
		{"a mark of byte order", badBody, body("\ufeff{}", 400), holdsTeam},
		{"one key twice", badBody, body(`{"now":false,"now":true}`, 400, 422), holdsTeam},
		{"one key twice, deep inside", badBody, refused(program("POST", "/runs", `{"task":{"text":"a","text":"b"}}`), 400, 422), holdsTeam},
		{"one key twice, spelt with an escape", badBody, body(`{"now":false,"n\u006fw":true}`, 400, 422), holdsTeam},
		{"a key in other letters", badBody, body(`{"NOW":true}`, 400, 422), holdsTeam},
		{"an unknown key", badBody, body(`{"force":true}`, 422), holdsTeam},
		{"keys of JavaScript's own", badBody, body(`{"__proto__":{"now":true},"constructor":1}`, 422), holdsTeam},
		{
			"a thousand nested lists", badBody, body(`{"now":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}`, 400, 422),
			holdsTeam,
		},
		{"a number in place of a truth", badBody, body(`{"now":1}`, 422), holdsTeam},
		{"a text in place of a truth", badBody, body(`{"now":"true"}`, 422), holdsTeam},
		{"a number that is none", badBody, body(`{"now":NaN}`, 400), holdsTeam},
		{"a number without bounds", badBody, body(`{"now":1e999999999}`, 400, 422), holdsTeam},
		{"a list in place of an object", badBody, body(`[{"now":true}]`, 422), holdsTeam},
		{"two documents", badBody, body(`{"now":false}{"now":true}`, 400), holdsTeam},
		{"comments", badBody, body(`{/* */"now":true}`, 400), holdsTeam},
		{"a body of 2 MB", badBody, refused(program("POST", "/hold", `{"note":"`+strings.Repeat("a", 2<<20)+`"}`), 413), holdsTeam},
		{
			"a body of 2 MB in chunks, without a length", badBody,
			refused(program("POST", "/hold", chunked(`{"note":"`+strings.Repeat("a", 2<<20)+`"}`), "Transfer-Encoding: chunked"), 413),
			holdsTeam,
		},
	}
}

func attemptsWithNames() []attempt {
	get := func(path string, statuses ...int) func(*testing.T, *served) {
		return refused(program("GET", path, ""), statuses...)
	}
	readsOne := allowed(program("GET", "/agents/coder", ""))
	readsOutput := allowed(program("GET", "/sessions/coder-1/output", ""))
	return []attempt{
		{"a name with dots and slashes, encoded", badName, get("/agents/..%2f..%2f..%2fetc%2fpasswd", 422), readsOne},
		{"a name that is encoded twice", badName, get("/agents/%252e%252e%252fcoder", 422), readsOne},
		{"a name with backslashes", badName, get("/agents/..%5c..%5ccoder", 422), readsOne},
		{"dots in the path itself", badName, get("/agents/../logins", 404), readsOne},
		{"an empty name", badName, get("/agents//start", 404), readsOne},
		{"a parameter of a path", badName, get("/agents/coder;v=1", 422), readsOne},
		{"a name with NUL", badName, get("/agents/coder%00.json", 422), readsOne},
		{"a name that turns the direction of text", badName, get("/agents/%E2%80%AEcoder", 422), readsOne},
		{"a name in Cyrillic letters", badName, get("/agents/%D1%81oder", 422), readsOne},
		{"a name in wide letters", badName, get("/agents/%EF%BD%83oder", 422), readsOne},
		{"a name with a combining mark", badName, get("/agents/coder%CC%81", 422), readsOne},
		{"a name in an overlong encoding", badName, get("/agents/%c0%ae%c0%ae", 422), readsOne},
		{"a name of 5,000 letters", badName, get("/agents/"+strings.Repeat("a", 5000), 422), readsOne},
		{"a session with a negative number", badName, get("/sessions/coder--1/output", 404, 422), readsOutput},
		{"a session with a number of 30 digits", badName, get("/sessions/coder-"+strings.Repeat("9", 30)+"/output", 404, 422), readsOutput},
		{"a session in another folder", badName, get("/sessions/..%2fcoder-1/output", 422), readsOutput},
		{"output from before its start", badName, get("/sessions/coder-1/output?from=-1", 422), readsOutput},
		{
			"output from the largest number on", badName,
			harmlessly(program("GET", "/sessions/coder-1/output?from=9223372036854775807", ""), 200, hasData), readsOutput,
		},
		{"output at a place with an exponent", badName, get("/sessions/coder-1/output?from=1e3", 422), readsOutput},
		{"a limit that is larger than any memory", badName, get("/sessions/coder-1/output?limit=99999999999", 422), readsOutput},
		{
			"a workflow outside of the repository, by dots", badName,
			refused(program("POST", "/runs", `{"workflow":"../../../../etc/passwd"}`), 404, 409, 422), readsTeam,
		},
		{"a workflow that is a device", badName, refused(program("POST", "/runs", `{"workflow":"/dev/zero"}`), 409), readsTeam},
		{"a parameter in an encoding that is none", badName, get("/sessions/coder-1/output?from=%zz", 422), readsOutput},
		{"a parameter behind a semicolon", badName, get("/sessions/coder-1/output?from=0;limit=3", 422), readsOutput},
		{"a parameter that is given twice", badName, get("/sessions/coder-1/output?from=0&from=3", 422), readsOutput},
	}
}

func attemptsInTime() []attempt {
	get := func(path string, status int, lines ...string) func(*testing.T, *served) {
		return refused(program("GET", path, "", lines...), status)
	}
	journal := allowed(program("GET", "/journal?after=0", ""))
	return []attempt{
		{"an order in the past", badMoment, refused(program("POST", "/hold?at=1", `{}`), 422), holdsTeam},
		{"an order in the past, by a name that is encoded", badMoment, refused(program("POST", "/hold?%61t=1", `{}`), 422), holdsTeam},
		{"two moments", badMoment, get("/agents?at=1&at=2", 422), readsTeam},
		{"the feed from after its end", badMoment, get("/events?after=1000000", 410), journal},
		{"the feed from after its end, by the header", badMoment, get("/events", 410, "Last-Event-ID: 1000000"), journal},
		{"the feed from a place that is text", badMoment, get("/events", 422, "Last-Event-ID: 1 OR 1=1"), journal},
		{"the feed from before its start", badMoment, get("/events?after=-5", 422), journal},
		{"the feed of a path", badMoment, get("/events?entity=..%2f..%2fx", 422), journal},
		{"a page of the journal without end", badMoment, get("/journal?limit=100000000", 422), journal},
		{"a number that does not fit", badMoment, get("/journal?after=18446744073709551616", 422), journal},
	}
}

func attemptsToLearn() []attempt {
	same := func(got heard) string { return "" }
	return []attempt{
		{
			"a line break in a name becomes a header", tellsMore,
			refused(program("GET", "/sessions/coder-1%0d%0aX-Evil:%201/output", ""), 422), readsTeam,
		},
		{
			"a line break in the query becomes a header", tellsMore, refused(program("GET", "/agents?x=%0d%0aX-Evil:%201", ""), 422),
			readsTeam,
		},
		{
			"markup in a path is repeated as a page", tellsMore,
			harmlessly(program("GET", "/%3Cscript%3Ealert(1)%3C%2Fscript%3E", ""), 404, func(got heard) string {
				if got.head.Get("Content-Type") != api.ProblemType {
					return "markup"
				}
				return ""
			}), readsTeam,
		},
		{"the client asks for HTML", tellsMore, refused(program("GET", "/nowhere", "", "Accept: text/html"), 404), readsTeam},
		{
			"a compressed answer, whose size tells of its content", tellsMore,
			harmlessly(program("GET", "/status", "", "Accept-Encoding: gzip, br, deflate"), 200, same), readsTeam,
		},
		{
			"a condition that tells whether data changed", tellsMore,
			harmlessly(program("GET", "/status", "", "If-None-Match: *", "If-Modified-Since: Sat, 01 Jan 2050 00:00:00 GMT"), 200,
				func(got heard) string {
					if got.head.Get("ETag") != "" || got.head.Get("Last-Modified") != "" {
						return "it can be compared"
					}
					return ""
				}), readsTeam,
		},
		{
			"a hundred ranges of one answer", tellsMore,
			harmlessly(program("GET", "/status", "", "Range: bytes="+strings.TrimSuffix(strings.Repeat("0-,", 100), ",")), 200,
				func(got heard) string {
					if len(got.body) > 16<<10 {
						return fmt.Sprintf("%d bytes", len(got.body))
					}
					return ""
				}), readsTeam,
		},
		{
			"the error about a workflow tells a file", tellsMore,
			harmlessly(program("POST", "/runs", `{"workflow":"/etc/passwd"}`), http.StatusUnprocessableEntity, func(got heard) string {
				if strings.Contains(got.body, "root:") {
					return "the file's text"
				}
				return ""
			}), readsTeam,
		},
		{"an error tells the Go version or a stack", tellsMore, harmlessly(program("POST", "/hold", "{"), 400, func(got heard) string {
			if strings.Contains(got.body, ".go:") || got.head.Get("Server") != "" || got.head.Get("X-Powered-By") != "" {
				return "insides"
			}
			return ""
		}), holdsTeam},
		{"the status of a stranger tells whether an agent exists", tellsMore, func(t *testing.T, s *served) {
			one, other := ask("GET", api.Base+"/agents/coder", "")(t, s), ask("GET", api.Base+"/agents/unknown", "")(t, s)
			if one.status != other.status || one.body != other.body {
				t.Errorf("%d %s and %d %s", one.status, one.body, other.status, other.body)
			}
		}, readsTeam},
		{"what an agent prints is served as a page", tellsMore, func(t *testing.T, s *served) {
			s.sup.host.acts(t, "coder-1").say("<script>alert(1)</script>")
			got := program("GET", "/sessions/coder-1/output", "", "Accept: text/html")(t, s)
			if kind := got.head.Get("Content-Type"); got.status != 200 ||
				kind != "application/octet-stream" && kind != "text/plain; charset=utf-8" ||
				got.head.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%d %s %v", got.status, kind, got.head)
			}
		}, readsTeam},
	}
}
