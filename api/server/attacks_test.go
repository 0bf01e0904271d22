package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/internal/origin"
	"github.com/fairlead-dev/fairlead/internal/test/attacks"
)

// The parts that the tables of attempts on the API and of a hostile web page have in common.

// attempt is an attacks.Attempt whose fields have no names in a table.
type attempt struct {
	name, threat string
	try, allowed func(*testing.T, *served)
}

// runAttempts makes every attempt of the tables on a server of its own.
func runAttempts(t *testing.T, least int, tables ...[]attempt) {
	t.Helper()
	var all []attacks.Attempt[*served]
	for _, a := range slices.Concat(tables...) {
		all = append(all, attacks.Attempt[*served]{Name: a.name, Threat: a.threat, Try: a.try, Allowed: a.allowed})
	}
	attacks.Run(t, least, attacked, all)
}

// outsideOrigin is the one further address of the server that is attacked.
const outsideOrigin = "https://fairlead.example.org"

// attacked is a server with an agent that has said something, and with one further origin.
func attacked(t *testing.T) *served {
	s := serve(t)
	o, err := origin.Parse(outsideOrigin)
	if err != nil {
		t.Fatal(err)
	}
	s.opts.Origins = []origin.Origin{o}
	s.sup.begin(t, "coder", 1).say("spoken by an agent")
	return s
}

// heard is the answer to the bytes of an attempt.
type heard struct {
	status int
	head   http.Header
	body   string
	closed bool   // the server ends the connection after it
	more   string // what came on the connection after the first answer
}

// said sends the bytes of a request and returns the answer.
type said func(t *testing.T, s *served) heard

// bytesOf sends bytes. {HOST}, {PORT}, {TOKEN}, {SECRET} and {CODE} stand for those of the server; {SECRET} and {CODE} are
// of a new login each.
func bytesOf(text string) said {
	return func(t *testing.T, s *served) heard {
		t.Helper()
		host := strings.TrimPrefix(s.url, "http://")
		_, port, _ := net.SplitHostPort(host)
		text := strings.NewReplacer("{HOST}", host, "{PORT}", port, "{TOKEN}", testToken).Replace(text)
		if strings.Contains(text, "{SECRET}") {
			text = strings.ReplaceAll(text, "{SECRET}", signIn(t, s))
		}
		if strings.Contains(text, "{CODE}") {
			code, _ := s.opts.Logins.NewCode()
			text = strings.ReplaceAll(text, "{CODE}", code)
		}
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		go func() { _, _ = io.WriteString(conn, text) }() // a server that refuses the beginning does not read the rest
		r := bufio.NewReader(conn)
		method, _, _ := strings.Cut(text, " ")
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		for err == nil && resp.StatusCode == http.StatusContinue {
			resp, err = http.ReadResponse(r, &http.Request{Method: method})
		}
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		body, _ := io.ReadAll(resp.Body) // a stream that was cut has said enough
		more := ""
		if resp.Close {
			rest, _ := io.ReadAll(r) // a reset after the answer is a close
			more = string(rest)
		}
		return heard{resp.StatusCode, resp.Header, string(body), resp.Close, more}
	}
}

// bearerLine is the header line of a program with the token.
const bearerLine = "Authorization: Bearer {TOKEN}"

// ask is a request with a body of JSON, if it has one, and with these header lines. A line for Host replaces the usual one.
func ask(method, path, body string, lines ...string) said {
	var b strings.Builder
	b.WriteString(method + " " + path + " HTTP/1.1\r\n")
	has := func(name string) bool {
		return slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, name+":") })
	}
	if !has("Host") {
		b.WriteString("Host: {HOST}\r\n")
	}
	for _, line := range lines {
		b.WriteString(line + "\r\n")
	}
	if body != "" && !has("Content-Type") {
		b.WriteString("Content-Type: application/json\r\n")
	}
	if body != "" && !has("Transfer-Encoding") && !has("Content-Length") {
		sent := strings.NewReplacer("{CODE}", "ABCD-EFGH").Replace(body)
		b.WriteString("Content-Length: " + strconv.Itoa(len(sent)) + "\r\n")
	}
	if !has("Connection") {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n" + body)
	return bytesOf(b.String())
}

// program is a request of a program with the token.
func program(method, path, body string, lines ...string) said {
	return ask(method, api.Base+path, body, append([]string{bearerLine}, lines...)...)
}

// refused is the first half of an attempt: the answer has one of these statuses, nothing is ordered, and neither a secret
// nor the path of the repository is in the answer.
func refused(act said, statuses ...int) func(*testing.T, *served) {
	return func(t *testing.T, s *served) {
		t.Helper()
		before := s.sup.changes(t)
		got := act(t, s)
		harmless(t, s, got)
		if !slices.Contains(statuses, got.status) {
			t.Errorf("status %d, want one of %v: %.300q", got.status, statuses, got.body)
		}
		if strings.Contains(got.body, "spoken by an agent") || strings.Contains(got.body, `"agents":[`) {
			t.Errorf("it was answered with data: %.300q", got.body)
		}
		if after := s.sup.changes(t); len(after) != len(before) {
			t.Errorf("it has ordered %v", after[len(before):])
		}
	}
}

// harmlessly is the first half of an attempt that is answered, but not as the attacker wants: missing is what must not be there.
func harmlessly(act said, status int, missing func(heard) string) func(*testing.T, *served) {
	return func(t *testing.T, s *served) {
		t.Helper()
		before := s.sup.changes(t)
		got := act(t, s)
		harmless(t, s, got)
		if got.status != status {
			t.Errorf("status %d, want %d: %.300q", got.status, status, got.body)
		}
		if why := missing(got); why != "" {
			t.Errorf("%s: %v %.300q", why, got.head, got.body)
		}
		if after := s.sup.changes(t); len(after) != len(before) {
			t.Errorf("it has ordered %v", after[len(before):])
		}
	}
}

// allowed is the second half: the act is answered with success.
func allowed(act said) func(*testing.T, *served) {
	return func(t *testing.T, s *served) {
		t.Helper()
		got := act(t, s)
		harmless(t, s, got)
		if got.status < 200 || got.status > 299 {
			t.Errorf("the permitted act has status %d: %.300q", got.status, got.body)
		}
	}
}

// harmless checks what every answer has to have, and what none may.
func harmless(t *testing.T, s *served, got heard) {
	t.Helper()
	for name, text := range map[string]string{"the token": testToken, "the repository's folder": s.dir} {
		if strings.Contains(got.body, text) && !strings.Contains(got.body, `"dir"`) {
			t.Errorf("%s is in the answer: %.300q", name, got.body)
		}
	}
	for name := range got.head {
		if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" || name == "X-Evil" || name == "Service-Worker-Allowed" ||
			name == "Content-Encoding" {
			t.Errorf("the answer has the header %s: %v", name, got.head[name])
		}
	}
	if strings.Contains(got.more, "HTTP/1.") {
		t.Errorf("one request has two answers; the second is %.200q", got.more)
	}
	if strings.ContainsAny(got.body, "\x00\x1b\u202e\u009b") {
		t.Errorf("control characters are in the answer: %.300q", got.body)
	}
	kind := got.head.Get("Content-Type")
	if kind == "text/plain; charset=utf-8" && got.closed && got.head.Get("Content-Security-Policy") == "" {
		if len(got.body) > 200 { // bytes that are no HTTP: net/http answers with fixed words, before any handler
			t.Errorf("an answer of %d bytes to what is no request", len(got.body))
		}
		return
	}
	if got.status == http.StatusExpectationFailed && got.body == "" {
		return // that is net/http, too
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
		"Cross-Origin-Opener-Policy": "same-origin",
		"Referrer-Policy":            "no-referrer", "Cache-Control": "no-store",
	} {
		if got.head.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.head.Get(name), want)
		}
	}
	if policy := got.head.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") ||
		!strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the policy is %q", policy)
	}
	if strings.Contains(kind, "html") || strings.Contains(kind, "xml") || strings.Contains(kind, "javascript") {
		t.Errorf("the content type is %s", kind)
	}
}

// chunked is a body in one piece.
func chunked(body string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) }

// utf16 is a text in another encoding than JSON has.
func utf16(text string) string {
	var b bytes.Buffer
	b.WriteString("\xff\xfe")
	for _, c := range text {
		b.WriteRune(c)
		b.WriteByte(0)
	}
	return b.String()
}
