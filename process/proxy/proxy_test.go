package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

// CONNECT reaches what the rules allow, and what they refuse gets a sentence at once.
func TestConnect(t *testing.T) {
	r := newRig(t, public("example.org"), nil)
	r.world.name("example.org", publicAddr)
	r.serveTLS("example.org", publicAddr+":443")
	_, seen := r.watch()
	c, status, words := r.connect("example.org:443")
	if status != http.StatusOK {
		t.Fatal(status, words)
	}
	if line, err := r.greetTLS(c, "example.org", "example.org"); err != nil || line != "hello from example.org\n" {
		t.Fatal(line, err)
	}
	c.Close()
	for _, tc := range []struct {
		target string
		status int
		words  string
	}{
		{"example.com:443", 403, "fairlead: coder may not reach example.com:443; a person can allow it: `fairlead inbox`"},
		{"example.org:8443", 403, "fairlead: coder may not reach example.org:8443: it is reached at 443 and 80 only"},
		{"93.184.216.34:443", 403, "fairlead: coder may not reach 93.184.216.34:443: it is an address"},
		{"[2606:2800:220:1::1]:443", 403, "is an address"},
		{"127.0.0.1:22", 403, "is an address"},
		{"0x7f.1:443", 403, "is not the name of a host"},
		{"2130706433:443", 403, "is not the name of a host"},
		{"example.org.:443", 403, "is not the name of a host"},
		{"localhost:443", 403, "is a name of a private network"},
		{"metadata.google.internal:80", 403, "is a name of a private network"},
		{"example.org", 400, "is no host with a port"},
		{"example.org:0443", 400, "is no host with a port"},
		{"example.org:99999", 400, "is no host with a port"},
	} {
		if _, status, words := r.connect(tc.target); status != tc.status || !strings.Contains(words, tc.words) {
			t.Errorf("%s: %d %s", tc.target, status, words)
		}
	}
	if dialed := r.world.dials(); len(dialed) != 1 {
		t.Errorf("connections were made to %v", dialed)
	}
	wait.Until(t, "the events", func() bool {
		ask, got := seen.event("example.com", 443, wire.VerdictAsk), seen.event("example.org", 443, wire.VerdictAllowed)
		return ask.Count == 1 && ask.Agent == "coder" && ask.Session == "coder-1" && strings.Contains(ask.Why, "fairlead inbox") &&
			got.Count == 1 && got.In > 500 && got.Out > 200 && seen.event("localhost", 443, wire.VerdictRefused).Count == 1
	})
}

// A name is looked up once, and only those of its addresses are connected to that the rules accept.
func TestAddresses(t *testing.T) {
	for _, tc := range []struct {
		name    string
		rules   network.Rules
		addrs   []string
		reached string // empty: none
		words   string
	}{
		{"public", public("a.example.org"), []string{publicAddr}, publicAddr, ""},
		{"IPv6", public("a.example.org"), []string{publicSix}, publicSix, ""},
		{"loopback", public("a.example.org"), []string{"127.0.0.1", "::1"}, "", "this machine"},
		{"private", public("a.example.org"), []string{"10.1.2.3"}, "", "a private network"},
		{"metadata", public("a.example.org"), []string{"169.254.169.254"}, "", "metadata"},
		{"IPv4 in IPv6", public("a.example.org"), []string{"::ffff:169.254.169.254"}, "", "metadata"},
		{"NAT64", public("a.example.org"), []string{"64:ff9b::a01:203"}, "", "a private network"},
		{"unique local", public("a.example.org"), []string{"fd00:ec2::254"}, "", "metadata"},
		{"shared", public("a.example.org"), []string{"100.64.0.1"}, "", "network"},
		{"some are private", public("a.example.org"), []string{"10.1.2.3", publicAddr, "127.0.0.1"}, publicAddr, ""},
		{"all", network.Rules{All: true}, []string{"192.168.1.1"}, "", "a private network"},
		{"pattern", hosts("*.example.org"), []string{"192.168.1.1"}, "", "a private network"},
		{"named and private", hosts("a.example.org"), []string{"192.168.1.1"}, "192.168.1.1", ""},
		{"named and loopback", hosts("a.example.org"), []string{"127.0.0.1"}, "127.0.0.1", ""},
		{"named and metadata", hosts("a.example.org"), []string{"169.254.169.254"}, "", "metadata"},
		{"named address", hosts("192.168.1.1"), nil, "192.168.1.1", ""},
		{"no such name", public("a.example.org"), nil, "", "its name is not known"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tc.rules, nil)
			target := "a.example.org"
			if tc.name == "named address" {
				target = "192.168.1.1"
			}
			if tc.addrs != nil {
				r.world.name(target, tc.addrs...)
			}
			r.serveTLS("a.example.org", publicAddr+":443", "["+publicSix+"]:443", "192.168.1.1:443", "127.0.0.1:443")
			_, status, words := r.connect(target + ":443")
			if tc.reached == "" {
				if len(r.world.dials()) > 0 || status == http.StatusOK || !strings.Contains(words, tc.words) {
					t.Fatalf("%d %s; %v", status, words, r.world.dials())
				}
				return
			}
			want := []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(tc.reached), 443)}
			if status != http.StatusOK || !slices.Equal(r.world.dials(), want) {
				t.Fatalf("%d %s; %v", status, words, r.world.dials())
			}
			if tc.addrs != nil && len(r.world.looked) != 1 {
				t.Errorf("looked up: %v", r.world.looked)
			}
		})
	}
}

// A name that leads elsewhere later is judged again: with the next connection, and what is open stays where it was.
func TestRebinding(t *testing.T) {
	r := newRig(t, public("example.org"), nil)
	r.serveTLS("example.org", publicAddr+":443", "127.0.0.1:443", "169.254.169.254:443")
	r.world.name("example.org", publicAddr)
	c, status, words := r.connect("example.org:443")
	if status != http.StatusOK {
		t.Fatal(status, words)
	}
	for _, a := range []string{"127.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1"} {
		r.world.name("example.org", a)
		if _, status, words := r.connect("example.org:443"); status != http.StatusForbidden || !strings.Contains(words, "leads to") {
			t.Errorf("%s: %d %s", a, status, words)
		}
	}
	if line, err := r.greetTLS(c, "example.org", "example.org"); err != nil {
		t.Error(line, err)
	}
	if n := len(r.world.dials()); n != 1 {
		t.Errorf("%d connections were made", n)
	}
}

// A silent address does not keep from the next one.
func TestSilentAddress(t *testing.T) {
	r := newRig(t, public("example.org"), nil)
	r.world.name("example.org", publicSix, "2606:2800:220:1::2", publicAddr)
	r.world.put("["+publicSix+"]:443", "silent")
	r.serveTLS("example.org", publicAddr+":443")
	c, status, words := r.connect("example.org:443")
	if status != http.StatusOK {
		t.Fatal(status, words)
	}
	if line, err := r.greetTLS(c, "example.org", "example.org"); err != nil {
		t.Fatal(line, err)
	}
}

// The name in the ClientHello is the name of the connection.
func TestServerName(t *testing.T) {
	r := newRig(t, network.Rules{Hosts: append(public("example.org", "other.org").Hosts, hosts("named.org").Hosts...)}, nil)
	for _, name := range []string{"example.org", "other.org", "named.org"} {
		r.world.name(name, publicAddr)
	}
	r.serveTLS("example.org", publicAddr+":443")
	_, seen := r.watch()
	for _, tc := range []struct{ target, sni, words string }{
		{"example.org", "example.org", ""},
		{"EXAMPLE.org", "example.org", ""},
		{"example.org", "other.org", "unrecognized name"}, // allowed, and another host
		{"example.org", "evil.org", "unrecognized name"},
		{"example.org", "", "unrecognized name"},
		{"named.org", "named.org", ""},
		{"named.org", "evil.org", "unrecognized name"},
	} {
		c, status, words := r.connect(tc.target + ":443")
		if status != http.StatusOK {
			t.Fatal(status, words)
		}
		certified := "example.org"
		line, err := r.greetTLS(c, tc.sni, certified)
		if tc.words == "" && (err != nil || line != "hello from example.org\n") || tc.words != "" && (err == nil || !strings.Contains(err.Error(), tc.words)) {
			t.Errorf("%s with the name %q: %q, %v", tc.target, tc.sni, line, err)
		}
		c.Close()
	}
	wait.Until(t, "the events", func() bool {
		e := seen.event("example.org", 443, wire.VerdictRefused)
		return e.Count == 3 && seen.event("named.org", 443, wire.VerdictRefused).Count == 1
	})

	// What is no TLS goes nowhere, unless a person named the host.
	for _, target := range []string{"example.org", "named.org"} {
		r.serveTCP(func(c net.Conn) {
			_, _ = io.WriteString(c, "220 the host speaks first\r\n")
			_, _ = io.Copy(c, c)
		}, publicAddr+":443")
		c, _, _ := r.connect(target + ":443")
		if target == "named.org" { // the host may speak first
			buf := make([]byte, 27)
			if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "220 the host speaks first\r\n" {
				t.Errorf("%s says %q, %v", target, buf, err)
			}
		}
		if _, err := io.WriteString(c, "EHLO there\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = c.CloseWrite()
		answer, err := io.ReadAll(c)
		switch {
		case target == "named.org" && string(answer) != "EHLO there\r\n":
			t.Errorf("a host that a person named answers %q, %v", answer, err)
		case target == "example.org" && string(answer) != string(alertOf(alertDecodeError)):
			t.Errorf("another host answers %q, %v", answer, err)
		}
	}
}

// Requests of plain HTTP go to the host that they name.
func TestPlainHTTP(t *testing.T) {
	r := newRig(t, public("example.org"), nil)
	r.world.name("example.org", publicAddr)
	r.serveHTTP(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(w, "%s %s %s %s|", req.Method, req.Host, req.RequestURI, body)
		for _, name := range []string{"Proxy-Authorization", "Proxy-Connection", "Connection", "Keep-Alive", "X-Named", "Upgrade", "X-Kept", "X-Forwarded-For", "Te"} {
			if v := req.Header.Get(name); v != "" {
				fmt.Fprintf(w, "%s=%s|", name, v)
			}
		}
	}, publicAddr+":80")
	for _, tc := range []struct {
		name, request string
		status        int
		words         string
	}{
		{"plain", "GET http://example.org/a;b?x=1;2 HTTP/1.1\r\nHost: example.org\r\n\r\n", 200, "GET example.org /a;b?x=1;2 |"},
		{"its port", "GET http://example.org:80/ HTTP/1.1\r\nHost: example.org:80\r\n\r\n", 200, "GET example.org / |"},
		{"HTTP/1.0", "GET http://example.org/ HTTP/1.0\r\n\r\n", 200, "GET example.org / |"},
		{"a body", "POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\nContent-Length: 4\r\n\r\nbody", 200, "POST example.org / body|"},
		{
			"hop-by-hop headers", "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nProxy-Authorization: x\r\nProxy-Connection: keep-alive\r\n" +
				"Connection: x-named\r\nX-Named: x\r\nKeep-Alive: x\r\nTe: gzip\r\nX-Kept: yes\r\n\r\n", 200, "GET example.org / |X-Kept=yes|",
		},
		{
			"another protocol", "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 200,
			"GET example.org / |",
		},
		{"another Host", "GET http://example.org/ HTTP/1.1\r\nHost: evil.org\r\n\r\n", 403, "its Host is evil.org"},
		{"two Hosts", "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nHost: evil.org\r\n\r\n", 400, ""},
		{"folded Host", "GET http://example.org/ HTTP/1.1\r\nHost:\r\n evil.org\r\n\r\n", 403, "its Host is "},
		{"not allowed", "GET http://evil.org/ HTTP/1.1\r\nHost: evil.org\r\n\r\n", 403, "a person can allow it"},
		{"another port", "GET http://example.org:8080/ HTTP/1.1\r\nHost: example.org:8080\r\n\r\n", 403, "443 and 80 only"},
		{"an address", "GET http://93.184.216.34/ HTTP/1.1\r\nHost: 93.184.216.34\r\n\r\n", 403, "is an address"},
		{"a user", "GET http://example.org@evil.org/ HTTP/1.1\r\nHost: evil.org\r\n\r\n", 403, "evil.org:80; a person"},
		{"https", "GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n", 400, "use CONNECT"},
		{"no proxy request", "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", 403, "no other name leads to it"},
		{"its own address", "GET /none/v1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404, "it has no key for none"},
		{"a long head", "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", 431, ""},
		{"two lengths", "POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody", 400, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer, body := r.ask(tc.request)
			said := strings.HasPrefix(body, tc.words) || tc.status != 200 && strings.Contains(body, tc.words)
			if answer.StatusCode != tc.status || !said {
				t.Errorf("%d %s", answer.StatusCode, body)
			}
		})
	}
	// Only the first request of a connection is served: its head was compared.
	c := r.dial("proxy", "127.0.0.1")
	one := "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n"
	if _, err := io.WriteString(c, one+strings.Replace(one, "Host: example", "Host: evil", 1)); err != nil {
		t.Fatal(err)
	}
	if all, _ := io.ReadAll(c); strings.Count(string(all), "HTTP/1.1 ") != 1 {
		t.Errorf("two requests get %s", all)
	}
}

// Inside CONNECT to port 80, and at a name's address, the Host has to be the name.
func TestHostOfPlainHTTP(t *testing.T) {
	r := newRig(t, public("example.org", "other.org"), nil)
	r.world.name("example.org", publicAddr)
	r.world.name("other.org", publicAddr)
	r.serveHTTP(func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, "for ", req.Host) }, publicAddr+":80")
	for _, tc := range []struct {
		host   string
		status int
		words  string
	}{
		{"example.org", 200, "for example.org"}, {"other.org", 403, "its Host is other.org"}, {"evil.org", 403, "its Host is evil.org"},
	} {
		request := "GET / HTTP/1.1\r\nHost: " + tc.host + "\r\n\r\n"
		c, status, words := r.connect("example.org:80")
		if status != http.StatusOK {
			t.Fatal(status, words)
		}
		if answer, body := r.answerOn(c, request); answer.StatusCode != tc.status || !strings.Contains(body, tc.words) {
			t.Errorf("inside CONNECT, %s: %d %s", tc.host, answer.StatusCode, body)
		}
		if answer, body := r.answerOn(r.dial("http", r.address("example.org")), request); answer.StatusCode != tc.status || !strings.Contains(body, tc.words) {
			t.Errorf("at the name's address, %s: %d %s", tc.host, answer.StatusCode, body)
		}
	}
	for _, request := range []string{"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n", "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n"} {
		if answer, body := r.answerOn(r.dial("http", r.address("example.org")), request); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("a name's address as a proxy: %d %s", answer.StatusCode, body)
		}
	}
}

// Programs that know no proxy reach an allowed host at the address of its name.
func TestTransparentTLS(t *testing.T) {
	r := newRig(t, public("example.org", "other.org"), nil)
	r.world.name("example.org", publicAddr)
	r.world.name("other.org", publicAddr)
	r.serveTLS("example.org", publicAddr+":443")
	for _, tc := range []struct{ at, sni, words string }{
		{"example.org", "example.org", ""},
		{"example.org", "other.org", "unrecognized name"},
		{"example.org", "", "unrecognized name"},
		{"evil.org", "evil.org", "access denied"},
		{"evil.org", "example.org", "unrecognized name"},
		{"127.0.0.1", "example.org", ""}, // no address of a name: the ClientHello decides
		{"127.0.0.1", "evil.org", "access denied"},
		{"127.0.0.1", "", "unrecognized name"},
	} {
		addr := tc.at
		if !strings.HasPrefix(addr, "127") {
			addr = r.address(addr)
		}
		line, err := r.greetTLS(r.dial("tls", addr), tc.sni, "example.org")
		if tc.words == "" && (err != nil || line != "hello from example.org\n") || tc.words != "" && (err == nil || !strings.Contains(err.Error(), tc.words)) {
			t.Errorf("%s with the name %q: %q, %v", tc.at, tc.sni, line, err)
		}
	}
	if n := len(r.world.dials()); n != 2 {
		t.Errorf("%d connections were made", n)
	}
}

// A host that a person named with a port is reached at an address of its own, and a port of this machine at its own number.
func TestNamedAndLocal(t *testing.T) {
	rules := hosts("db.lan:5432", "example.org")
	r := newServerRig(t)
	local, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	go func() {
		for {
			c, err := local.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.WriteString(c, "local\n"); _, _ = io.Copy(c, c) }()
		}
	}()
	port := local.Addr().(*net.TCPAddr).Port
	r.world.put(fmt.Sprintf("127.0.0.1:%d", port), local.Addr().String())
	rules.Local = []int{port}
	_, m := r.register("coder-1", rules, func(reg *wire.Register, files *[]*os.File) {
		reg.Sockets = append(reg.Sockets, wire.Socket{Kind: wire.KindNamed, Port: 5432})
		reg.Sockets = append(reg.Sockets, wire.Socket{Kind: wire.KindLocal, Port: port}, wire.Socket{Kind: wire.KindLocal, Port: 22})
		*files = append(*files, r.listen("named", "127.96.0.1:0"), r.listen("local", "127.0.0.1:0"), r.listen("local22", "127.0.0.1:0"))
	})
	if m.Registered == nil {
		t.Fatal(m.Refused)
	}
	r.world.name("db.lan", "10.0.0.5")
	r.serveTCP(func(c net.Conn) { _, _ = io.WriteString(c, "the database\n"); _, _ = io.Copy(c, c) }, "10.0.0.5:5432")
	if a := r.address("db.lan"); a != "127.96.0.1" {
		t.Fatalf("db.lan is %s", a)
	}
	if answer := exchange(t, r.dial("named", "127.96.0.1"), "select"); answer != "the database\nselect" {
		t.Errorf("the database answers %q", answer)
	}
	if answer := exchange(t, r.dial("local", "127.0.0.1"), "ping"); answer != "local\nping" {
		t.Errorf("the port of this machine answers %q", answer)
	}
	if c, err := net.Dial("tcp", r.sockets["local22"].String()); err == nil { // it may be reset at once
		if answer := exchange(t, c.(*net.TCPConn), "ping"); answer != "" {
			t.Errorf("a port that the rules do not have answers %q", answer)
		}
		c.Close()
	}
	c, status, _ := r.connect("db.lan:5432")
	if status != http.StatusOK || exchange(t, c, "select") != "the database\nselect" {
		t.Errorf("CONNECT to the database: %d", status)
	}
}

// exchange writes, ends its side, and reads everything.
func exchange(t *testing.T, c *net.TCPConn, say string) string {
	t.Helper()
	if _, err := io.WriteString(c, say); err != nil {
		return ""
	}
	_ = c.CloseWrite()
	all, _ := io.ReadAll(c)
	return string(all)
}

// A stream that ended in one direction goes on in the other one, and bytes that came with CONNECT are kept.
func TestHalfClosed(t *testing.T) {
	r := newRig(t, hosts("example.org:9000"), nil)
	r.world.name("example.org", publicAddr)
	ended := make(chan string, 1)
	more := make(chan struct{})
	r.serveTCP(func(c net.Conn) {
		all, _ := io.ReadAll(c) // to the end of what the program says
		ended <- string(all)
		<-more
		_, _ = io.WriteString(c, "after the end")
	}, publicAddr+":9000")
	c := r.dial("proxy", "127.0.0.1")
	if _, err := io.WriteString(c, "CONNECT example.org:9000 HTTP/1.1\r\nHost: example.org:9000\r\n\r\nat once"); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got != "at once" {
		t.Errorf("the host got %q", got)
	}
	close(more)
	all, err := io.ReadAll(c)
	if err != nil || !strings.HasSuffix(string(all), "\r\n\r\nafter the end") {
		t.Errorf("the program got %q, %v", all, err)
	}
}

// New rules count at once: what they allow is reached, and what they no longer allow is closed.
func TestNewRules(t *testing.T) {
	r := newRig(t, public("example.org", "other.org"), nil)
	for _, name := range []string{"example.org", "other.org", "new.org"} {
		r.world.name(name, publicAddr)
	}
	r.serveTLS("example.org", publicAddr+":443")
	daemon, _ := r.watch()
	goes, _, _ := r.connect("example.org:443")
	if _, err := r.greetTLS(goes, "example.org", "example.org"); err != nil {
		t.Fatal(err)
	}
	stays, _, _ := r.connect("other.org:443")
	if _, err := r.greetTLS(stays, "other.org", "example.org"); err != nil {
		t.Fatal(err)
	}
	next := public("other.org", "new.org")
	if err := daemon.Send(wire.Message{Rules: &wire.Rules{Session: "coder-1", Rules: next}}); err != nil {
		t.Fatal(err)
	}
	if got := <-r.rules; len(got.Hosts) != 2 || got.Hosts[1].Name != "new.org" {
		t.Errorf("the shim is sent %+v", got)
	}
	if _, err := io.ReadAll(goes); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a connection to a host that is no longer allowed stays open")
	}
	if _, status, _ := r.connect("example.org:443"); status != http.StatusForbidden {
		t.Errorf("the host that is no longer allowed: %d", status)
	}
	if c, status, words := r.connect("new.org:443"); status != http.StatusOK {
		t.Errorf("the host that is allowed now: %d %s", status, words)
	} else if _, err := r.greetTLS(c, "new.org", "example.org"); err != nil {
		t.Error(err)
	}
	one := r.server.session("coder-1")
	one.mu.Lock()
	open := len(one.streams)
	one.mu.Unlock()
	if open < 2 {
		t.Errorf("%d connections are open", open)
	}
	if _, err := io.WriteString(stays, "x"); err != nil {
		t.Error(err)
	}

	// With Keep the connection that is open goes on, and the next one is refused. A watcher that comes hears with which rules the session
	// was started.
	if err := daemon.Send(wire.Message{Rules: &wire.Rules{Session: "coder-1", Rules: public("new.org"), Keep: true}}); err != nil {
		t.Fatal(err)
	}
	<-r.rules
	if _, status, _ := r.connect("other.org:443"); status != http.StatusForbidden {
		t.Errorf("the host that is no longer allowed: %d", status)
	}
	one.mu.Lock()
	kept := len(one.streams)
	one.mu.Unlock()
	if kept != open {
		t.Errorf("of %d connections %d are open", open, kept)
	}
	again := r.call(wire.RoleWatcher)
	if m, _, err := again.Receive(); err != nil || m.Registered == nil || len(m.Registered.Rules.Hosts) != 2 ||
		m.Registered.Rules.Hosts[0].Name != "example.org" {
		t.Errorf("a new watcher hears %+v, %v", m.Registered, err)
	}
}

// The rules that a daemon has set come back with the session after the end of a proxy.
func TestRulesSetBefore(t *testing.T) {
	set := public("new.org")
	r := newRig(t, public("example.org"), func(reg *wire.Register, _ *[]*os.File) { reg.Set = &set })
	r.world.name("new.org", publicAddr)
	r.world.name("example.org", publicAddr)
	r.serveTLS("example.org", publicAddr+":443")
	if _, status, words := r.connect("new.org:443"); status != http.StatusOK {
		t.Errorf("the host that was allowed meanwhile: %d %s", status, words)
	}
	if _, status, _ := r.connect("example.org:443"); status != http.StatusForbidden {
		t.Errorf("the host that was allowed at the start: %d", status)
	}
}

// When the shim's connection ends, so do all connections of the session, and nothing is accepted any more.
func TestSessionEnds(t *testing.T) {
	r := newRig(t, public("example.org"), nil)
	r.world.name("example.org", publicAddr)
	r.serveTLS("example.org", publicAddr+":443")
	c, _, _ := r.connect("example.org:443")
	if _, err := r.greetTLS(c, "example.org", "example.org"); err != nil {
		t.Fatal(err)
	}
	r.shim.Close()
	if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays open")
	}
	wait.Until(t, "the end of the session", func() bool { return r.server.session("coder-1") == nil })
	wait.Until(t, "no connection is counted", func() bool { return len(r.server.room) == 0 })
	// The shim connects again, as after the end of a proxy: the session has its way out again.
	if _, m := r.register("coder-1", public("example.org"), nil); m.Registered == nil {
		t.Fatal(m.Refused)
	}
	c, status, _ := r.connect("example.org:443")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	if _, err := r.greetTLS(c, "example.org", "example.org"); err != nil {
		t.Fatal(err)
	}
}

// One connection more than a session may have gets an answer, and room is made when one ends.
func TestTooManyConnections(t *testing.T) {
	r := newRig(t, public("example.org"), nil)
	all := make([]*net.TCPConn, connectionsMax)
	for i := range all {
		all[i] = r.dial("proxy", "127.0.0.1")
	}
	one := r.server.session("coder-1")
	wait.Until(t, "all connections", func() bool {
		one.mu.Lock()
		defer one.mu.Unlock()
		return one.clients == connectionsMax
	})
	answer, body := r.answerOn(r.dial("proxy", "127.0.0.1"), "")
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "connections open") {
		t.Errorf("one too many gets %d %s", answer.StatusCode, body)
	}
	if b, _ := io.ReadAll(r.dial("tls", "127.0.0.1")); string(b) != string(alertOf(alertAccessDenied)) {
		t.Errorf("one too many with TLS gets %q", b)
	}
	all[0].Close()
	wait.Until(t, "room", func() bool {
		one.mu.Lock()
		defer one.mu.Unlock()
		return one.clients < connectionsMax
	})
	if answer, _ := r.ask("GET /none HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("after one has ended: %d", answer.StatusCode)
	}
}
