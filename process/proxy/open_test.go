package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

// inner is a server inside the session, which here has the network of the test.
func inner(t *testing.T, at string) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") == "websocket" {
			c, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			_, _ = io.Copy(c, buffered)
			return
		}
		fmt.Fprintf(w, "%s %s cookies: %s", req.Method, req.RequestURI, req.Header.Get("Cookie"))
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// withMaker adds the socket that makes sockets.
func withMaker(t *testing.T) func(*wire.Register, *[]*os.File) {
	return func(reg *wire.Register, files *[]*os.File) {
		reg.Sockets, *files = append(reg.Sockets, wire.Socket{Kind: wire.KindSockets}), append(*files, socketMaker(t))
	}
}

// fetch gets a page. header are names and values.
func fetch(t *testing.T, c *http.Client, url string, header ...string) (int, string, *http.Response) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	answer, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), answer
}

// opened asks for a port as a daemon does.
func opened(t *testing.T, daemon *wire.Conn, w *watched, id, port int) wire.Message {
	t.Helper()
	if err := daemon.Send(wire.Message{Open: &wire.Open{ID: id, Session: "coder-1", Port: port}}); err != nil {
		t.Fatal(err)
	}
	var found wire.Message
	wait.Until(t, "the answer to open", func() bool {
		for _, m := range w.messages() {
			if m.Opened != nil && m.Opened.ID == id || m.Refused != nil && m.Refused.ID == id {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// A browser reaches a port of the session with the secret, which counts once, and then with its cookie.
func TestOpen(t *testing.T) {
	port := inner(t, "127.0.0.1:0")
	r := newRig(t, network.Rules{}, withMaker(t))
	daemon, seen := r.watch()
	m := opened(t, daemon, seen, 1, port)
	if m.Opened == nil {
		t.Fatal(m.Refused)
	}
	address := "http://" + m.Opened.Address
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser, another := &http.Client{Transport: transport, Jar: jar}, &http.Client{Transport: transport}
	get := func(c *http.Client, url string, header ...string) (int, string, *http.Response) {
		t.Helper()
		return fetch(t, c, url, header...)
	}
	for _, url := range []string{address, address + "/?fairlead=guess", address + "/?fairlead="} {
		if status, body, _ := get(another, url); status != http.StatusForbidden || !strings.Contains(body, fmt.Sprintf("fairlead open coder:%d", port)) {
			t.Errorf("without the secret: %d %s", status, body)
		}
	}
	visit := address + "/page?a=b&fairlead=" + m.Opened.Secret
	status, body, answer := get(browser, visit, "Cookie", "mine=1")
	if status != http.StatusOK || body != "GET /page?a=b cookies: mine=1" || answer.Request.URL.String() != address+"/page?a=b" {
		t.Fatalf("with the secret: %d %s at %s", status, body, answer.Request.URL)
	}
	if first := answer.Request.Response; first.StatusCode != http.StatusSeeOther || !strings.Contains(first.Header.Get("Set-Cookie"), "HttpOnly; SameSite=Strict") {
		t.Errorf("the first answer: %v", first.Header)
	}
	if status, _, _ := get(another, visit); status != http.StatusForbidden {
		t.Errorf("the secret a second time: %d", status)
	}
	if status, body, _ := get(browser, visit); status != http.StatusOK {
		t.Errorf("the link a second time in the same browser: %d %s", status, body)
	}
	for _, tc := range []struct {
		status int
		header []string
	}{
		{200, []string{"Sec-Fetch-Site", "same-origin", "Origin", address}},
		{200, []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{200, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{403, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}},
		{403, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}},
		{403, []string{"Sec-Fetch-Site", "cross-site"}},
		{403, []string{"Origin", "http://127.0.0.1:1"}},
		{403, []string{"Host", "evil.org"}},
	} {
		if status, body, _ := get(browser, address+"/", tc.header...); status != tc.status {
			t.Errorf("%v: %d %s", tc.header, status, body)
		}
	}

	// A second link to the same port has the same address and another secret.
	again := opened(t, daemon, seen, 2, port)
	if again.Opened == nil || again.Opened.Address != m.Opened.Address || again.Opened.Secret == m.Opened.Secret {
		t.Fatalf("%+v", again)
	}
	if status, _, _ := get(another, address+"/?fairlead="+again.Opened.Secret); status != http.StatusForbidden { // it keeps no cookie
		t.Errorf("a browser without cookies: %d", status)
	}
	for id, tc := range []struct {
		port  int
		words string
	}{{0, "no port"}, {70_000, "no port"}} {
		if m := opened(t, daemon, seen, 10+id, tc.port); m.Refused == nil || !strings.Contains(m.Refused.Text, tc.words) {
			t.Errorf("port %d: %+v", tc.port, m)
		}
	}

	// WebSockets are carried.
	c, err := net.Dial("tcp", m.Opened.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	cookies := ""
	for _, cookie := range jar.Cookies(answer.Request.URL) {
		cookies += cookie.String() + ";"
	}
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nCookie: %s\r\n\r\n", m.Opened.Address, cookies)
	in := bufio.NewReader(c)
	if answer, err := http.ReadResponse(in, nil); err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	if _, err := io.WriteString(c, "ping"); err != nil {
		t.Fatal(err)
	}
	pong := make([]byte, 4)
	if _, err := io.ReadFull(in, pong); err != nil || string(pong) != "ping" {
		t.Errorf("%q, %v", pong, err)
	}

	// With the session, its addresses end.
	r.shim.Close()
	wait.Until(t, "the end of the address", func() bool {
		c, err := net.Dial("tcp", m.Opened.Address)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// A server that listens at ::1 alone is reached, too, and a port at which nothing answers is said.
func TestOpenServers(t *testing.T) {
	r := newRig(t, network.Rules{}, withMaker(t))
	daemon, seen := r.watch()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Transport: transport, Jar: jar}
	get := func(id, port int) (int, string) {
		t.Helper()
		m := opened(t, daemon, seen, id, port)
		status, body, _ := fetch(t, browser, "http://"+m.Opened.Address+"/?fairlead="+m.Opened.Secret)
		return status, body
	}
	if probe, err := net.Listen("tcp", "[::1]:0"); err == nil {
		probe.Close()
		if status, body := get(1, inner(t, "[::1]:0")); status != http.StatusOK {
			t.Errorf("at ::1: %d %s", status, body)
		}
	}
	if status, body := get(2, 1); status != http.StatusBadGateway || !strings.Contains(body, "nothing answers at port 1 of coder") {
		t.Errorf("%d %s", status, body)
	}
}

// The ports of a session are carried to the same numbers outside. One that is taken is said.
func TestPorts(t *testing.T) {
	taken := inner(t, "127.0.0.1:0") // inside and outside are one network here, so that every port of a server inside is taken outside
	free, err := net.Listen("tcp4", "127.0.0.2:0")
	if err != nil {
		t.Skip("127.0.0.2 is no address of this machine")
	}
	port := free.Addr().(*net.TCPAddr).Port
	defer free.Close()
	r := newServerRig(t)
	_, m := r.register("coder-1", network.Rules{}, func(reg *wire.Register, files *[]*os.File) {
		withMaker(t)(reg, files)
		reg.Ports = []int{port, taken}
	})
	if m.Registered == nil || len(m.Registered.Notes) != 1 || !strings.Contains(m.Registered.Notes[0], "port "+strconv.Itoa(taken)) {
		t.Fatalf("%+v", m.Registered)
	}
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	c.Close() // it leads to itself here; process/sandbox tries it with a network of a session's own
}

// Events of a moment are folded, and wait for a daemon.
func TestEvents(t *testing.T) {
	r := newRig(t, public("example.org"), nil)
	for range 5 {
		r.connect("evil.org:443")
	}
	for i := range sessionEventsMax + 5 {
		r.server.events.add(wire.Event{Session: "other", Host: fmt.Sprintf("n%d.org", i), Port: 443, Verdict: wire.VerdictAsk, Count: 1})
	}
	_, seen := r.watch()
	wait.Until(t, "the events", func() bool { return seen.event("", 0, wire.VerdictAsk).Count == 5 })
	messages := seen.messages()
	if messages[0].Registered == nil || messages[0].Registered.Session != "coder-1" {
		t.Errorf("a daemon is not told of the session first: %+v", messages[0])
	}
	n := 0
	for _, m := range messages {
		if m.Event != nil && m.Event.Host == "evil.org" {
			n++
			if m.Event.Count != 5 || m.Event.First.After(m.Event.Last) || m.Event.Verdict != wire.VerdictAsk {
				t.Errorf("%+v", m.Event)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d events of one host", n)
	}
	if got := seen.event("n3.org", 443, wire.VerdictAsk).Count; got != 1 {
		t.Errorf("%d", got)
	}
	r.connect("evil.org:443")
	wait.Until(t, "the next event", func() bool { return seen.event("evil.org", 443, wire.VerdictAsk).Count == 6 })
}

// What a session calls a host is shown as plain text of a bounded length.
func TestShown(t *testing.T) {
	for in, want := range map[string]string{
		"example.org": "example.org", "a\x1b[2Jb\r\nc": "a?[2Jb??c", "ü": "??", strings.Repeat("x", 300): strings.Repeat("x", 253),
	} {
		if got := shown(in); got != want {
			t.Errorf("%q is shown as %q", in, got)
		}
	}
}

// A program that asks the proxy for the session's own loopback gets what it would reach directly. Another address of this machine is
// refused, and so is loopback where the session makes no sockets.
func TestOwnLoopback(t *testing.T) {
	port := inner(t, "127.0.0.1:0")
	r := newRig(t, public("example.org"), withMaker(t))
	for _, host := range []string{"127.0.0.1", "localhost"} {
		where := fmt.Sprintf("%s:%d", host, port)
		answer, body := r.ask("GET http://" + where + "/page HTTP/1.1\r\nHost: " + where + "\r\nConnection: close\r\n\r\n")
		if answer.StatusCode != http.StatusOK || !strings.HasPrefix(body, "GET /page") {
			t.Errorf("%s: %d %s", where, answer.StatusCode, body)
		}
		c, status, words := r.connect(where)
		if status != http.StatusOK {
			t.Fatalf("CONNECT %s: %d %s", where, status, words)
		}
		if answer := exchange(t, c, "GET /tunnel HTTP/1.0\r\n\r\n"); !strings.Contains(answer, "GET /tunnel") {
			t.Errorf("CONNECT %s: %q", where, answer)
		}
	}
	if _, status, _ := r.connect(fmt.Sprintf("127.0.0.2:%d", port)); status != http.StatusForbidden {
		t.Errorf("another address of this machine: %d", status)
	}
	without := newRig(t, public("example.org"), nil)
	if _, status, _ := without.connect(fmt.Sprintf("127.0.0.1:%d", port)); status != http.StatusForbidden {
		t.Errorf("without sockets: %d", status)
	}
}
