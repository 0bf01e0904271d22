package proxy

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

const realKey = "sk-ant-the-real-key"

// providerRig serves a session with a key; the provider is a server of the test.
func providerRig(t *testing.T, base string, serve http.HandlerFunc) *rig {
	t.Helper()
	r := newServerRig(t)
	r.world.name("api.anthropic.com", publicAddr)
	r.world.name("gateway.lan", "10.0.0.7")
	config := &tls.Config{Certificates: []tls.Certificate{r.certificate("api.anthropic.com", "gateway.lan")}}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: serve}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	r.world.put(publicAddr+":443", l.Addr().String())
	r.world.put("10.0.0.7:8443", l.Addr().String())
	rules := network.Setting{Model: true}.Rules("anthropic", base)
	var m wire.Message
	r.shim, m = r.register("coder-1", rules, func(reg *wire.Register, _ *[]*os.File) {
		reg.Keys = []wire.Key{{Provider: "anthropic", Value: realKey, Base: base}}
		reg.Upstream.Authorities = r.caPEM
	})
	if m.Registered == nil {
		t.Fatal(m.Refused)
	}
	return r
}

// The key goes into one header of a request to the provider's paths. Whatever the program sent in its place is removed.
func TestKey(t *testing.T) {
	r := providerRig(t, "", func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(w, "%s %s %s %s|", req.Method, req.Host, req.RequestURI, body)
		for name, values := range req.Header {
			if name != "User-Agent" && name != "Accept-Encoding" && name != "Content-Length" {
				fmt.Fprintf(w, "%s=%s|", name, strings.Join(values, ","))
			}
		}
	})
	const kept = "X-Api-Key=" + realKey + "|"
	for _, tc := range []struct {
		name, request string
		status        int
		words         string // the whole answer where it is 200
	}{
		{"plain", "POST /anthropic/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:61080\r\nContent-Length: 2\r\n\r\n{}", 200, "POST api.anthropic.com /v1/messages {}|" + kept},
		{
			"its placeholders", "GET /anthropic/v1/models?key=x&limit=5&API_KEY=y HTTP/1.1\r\nHost: 127.0.0.1:61080\r\nX-Api-Key: sk-ant-placeholder\r\n" +
				"x-api-key: two\r\nAuthorization: Bearer x\r\nX-Goog-Api-Key: x\r\nCookie: a=b\r\nProxy-Authorization: x\r\n\r\n", 200,
			"GET api.anthropic.com /v1/models?limit=5 |" + kept,
		},
		{
			"a key that is named in Connection", "GET /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1:61080\r\nConnection: x-api-key\r\n\r\n", 200,
			"GET api.anthropic.com /v1/models |" + kept,
		},
		{"deeper", "GET /anthropic/v1/messages/count_tokens HTTP/1.1\r\nHost: localhost:61080\r\n\r\n", 200, "GET api.anthropic.com /v1/messages/count_tokens |" + kept},
		{"another path", "GET /anthropic/v1/files HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n", 403, "paths of its API only"},
		{"the root", "GET /anthropic HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n", 403, "paths of its API only"},
		{"a path that begins like one", "GET /anthropic/v1/messagesX HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n", 403, "paths of its API only"},
		{"upward", "GET /anthropic/v1/messages/../files HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n", 403, "paths of its API only"},
		{"upward, escaped", "GET /anthropic/v1/messages/%2e%2e/files HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n", 403, "paths of its API only"},
		{"an escaped slash", "GET /anthropic/v1/messages%2f..%2ffiles HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n", 403, "paths of its API only"},
		{"an escaped name", "GET /%61nthropic/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n", 403, "paths of its API only"},
		{"another provider", "GET /openai/v1/models HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n", 404, "no key for openai"},
		{"repeat", "TRACE /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n", 405, "not asked to repeat"},
		{"another Host", "GET /anthropic/v1/models HTTP/1.1\r\nHost: evil.org\r\n\r\n", 403, "no other name"},
		{"as a proxy", "GET http://api.anthropic.com/v1/models HTTP/1.1\r\nHost: api.anthropic.com\r\n\r\n", 502, "cannot be reached"}, // plain HTTP: without a key
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer, body := r.ask(tc.request)
			if answer.StatusCode != tc.status || tc.status == 200 && body != tc.words || !strings.Contains(body, tc.words) {
				t.Errorf("%d %s", answer.StatusCode, body)
			}
			if tc.status == 403 && strings.Contains(tc.words, "API only") {
				var fault struct {
					Error struct{ Type, Message string }
				}
				if err := json.Unmarshal([]byte(body), &fault); err != nil || fault.Error.Message == "" {
					t.Errorf("the program gets %s", body)
				}
			}
		})
	}
}

// A redirect goes to the program as it came, and the key goes nowhere.
func TestKeyRedirect(t *testing.T) {
	asked := make(chan string, 10)
	r := providerRig(t, "", func(w http.ResponseWriter, req *http.Request) {
		asked <- req.RequestURI
		http.Redirect(w, req, "https://evil.org/v1/messages", http.StatusTemporaryRedirect)
	})
	answer, _ := r.ask("GET /anthropic/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n")
	if answer.StatusCode != http.StatusTemporaryRedirect || answer.Header.Get("Location") != "https://evil.org/v1/messages" || len(asked) != 1 {
		t.Errorf("%d, %v, %d requests", answer.StatusCode, answer.Header, len(asked))
	}
	if _, status, _ := r.connect("evil.org:443"); status != http.StatusForbidden {
		t.Errorf("the program follows with %d", status)
	}
}

// A configured base URL takes the place of the provider's own, also where it is private.
func TestKeyBase(t *testing.T) {
	r := providerRig(t, "https://gateway.lan:8443/team", func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, req.Host, req.RequestURI, " ", req.Header.Get("X-Api-Key"))
	})
	if answer, body := r.ask("GET /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n"); body != "gateway.lan:8443/team/v1/models "+realKey {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	r.server.session("coder-1").setRules(public("example.org"), false)
	if answer, body := r.ask("GET /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("without the host in the rules: %d %s", answer.StatusCode, body)
	}
}

// The provider has to have a certificate for its name.
func TestKeyCertificate(t *testing.T) {
	r := newServerRig(t)
	r.world.name("api.anthropic.com", publicAddr)
	r.serveTLS("evil.org", publicAddr+":443")
	r.register("coder-1", network.Setting{Model: true}.Rules("anthropic", ""), func(reg *wire.Register, _ *[]*os.File) {
		reg.Keys = []wire.Key{{Provider: "anthropic", Value: realKey}}
		reg.Upstream.Authorities = r.caPEM
	})
	if answer, body := r.ask("GET /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n"); answer.StatusCode != http.StatusBadGateway ||
		!strings.Contains(body, "certificate") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// Each event of a stream arrives before the next one is made, and a program that goes away ends the request.
func TestKeyStream(t *testing.T) {
	next, gone := make(chan struct{}), make(chan struct{})
	r := providerRig(t, "", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; ; i++ {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-req.Context().Done():
				close(gone)
				return
			}
		}
	})
	c := r.dial("proxy", "127.0.0.1")
	if _, err := io.WriteString(c, "POST /anthropic/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:61080\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body := bufio.NewReader(answer.Body)
	for i := range 3 {
		line, err := body.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatal(line, err)
		}
		if _, err := body.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		next <- struct{}{}
	}
	c.Close()
	<-gone
}

// A provider that answers badly gets nowhere.
func TestHostileProvider(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		status       int
	}{
		{"good", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200},
		{"endless headers", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Long: "+strings.Repeat("x", 1000)+"\r\n", 200) + "\r\n", 502},
		{"no HTTP", "SSH-2.0-OpenSSH_9.9\r\n\r\n", 502},
		{"another protocol", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 502},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", 502},
		{"nothing", "", 502},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newServerRig(t)
			r.world.name("model.lan", "10.0.0.9")
			r.serveTCP(func(c net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, tc.answer)
				}
			}, "10.0.0.9:8000")
			r.register("coder-1", network.Setting{Model: true}.Rules("anthropic", "http://model.lan:8000"), func(reg *wire.Register, _ *[]*os.File) {
				reg.Keys = []wire.Key{{Provider: "anthropic", Value: realKey, Base: "http://model.lan:8000"}}
			})
			answer, body := r.ask("GET /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1:61080\r\n\r\n")
			if answer.StatusCode != tc.status || strings.Contains(body, realKey) {
				t.Errorf("%d %s", answer.StatusCode, body)
			}
		})
	}
}

// WebSockets are carried to the provider, with the key.
func TestKeyWebSocket(t *testing.T) {
	r := providerRig(t, "", func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") != "websocket" || req.Header.Get("X-Api-Key") != realKey {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		c, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(c, buffered)
	})
	c := r.dial("proxy", "127.0.0.1")
	if _, err := io.WriteString(c, "GET /anthropic/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:61080\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	if _, err := io.WriteString(c, "ping"); err != nil {
		t.Fatal(err)
	}
	pong := make([]byte, 4)
	if _, err := io.ReadFull(in, pong); err != nil || string(pong) != "ping" {
		t.Errorf("%q, %v", pong, err)
	}
	c.Close()
	one := r.server.session("coder-1")
	wait.Until(t, "the end of the connection", func() bool {
		one.mu.Lock()
		defer one.mu.Unlock()
		return one.clients == 0
	})
}

// An upstream proxy gets the names of allowed hosts, and hosts of no_proxy are reached without it.
func TestUpstream(t *testing.T) {
	for _, secured := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secured), func(t *testing.T) {
			r := newServerRig(t)
			asked := make(chan string, 10)
			config := &tls.Config{Certificates: []tls.Certificate{r.certificate("proxy.corp")}}
			r.serveTCP(func(c net.Conn) {
				if secured {
					c = tls.Server(c, config)
				}
				in := bufio.NewReader(c)
				req, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				asked <- req.Method + " " + req.Host + " " + req.Header.Get("Proxy-Authorization")
				if strings.HasPrefix(req.Host, "refused") {
					_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
					return
				}
				out, err := net.Dial("tcp", r.world.at[mustAddrPort(publicAddr+":443")])
				if err != nil {
					return
				}
				defer out.Close()
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: y\r\n\r\n")
				go func() { _, _ = io.Copy(out, in); out.Close() }()
				_, _ = io.Copy(c, out)
			}, "10.0.0.3:3128")
			r.world.name("proxy.corp", "10.0.0.3")
			r.world.name("direct.corp.example", publicAddr)
			r.serveTLS("example.org", publicAddr+":443")
			scheme := map[bool]string{false: "http", true: "https"}[secured]
			r.register("coder-1", public("example.org", "direct.corp.example", "refused.org"), func(reg *wire.Register, _ *[]*os.File) {
				reg.Upstream = wire.Upstream{Proxy: scheme + "://me:word@proxy.corp:3128", NoProxy: "localhost, .corp.example", Authorities: r.caPEM}
			})
			c, status, words := r.connect("example.org:443")
			if status != http.StatusOK {
				t.Fatal(status, words)
			}
			if line, err := r.greetTLS(c, "example.org", "example.org"); err != nil || line != "hello from example.org\n" {
				t.Error(line, err)
			}
			if got := <-asked; got != "CONNECT example.org:443 Basic bWU6d29yZA==" {
				t.Errorf("the upstream proxy is asked %q", got)
			}
			if _, status, _ := r.connect("evil.org:443"); status != http.StatusForbidden || len(asked) != 0 {
				t.Errorf("a host that is not allowed: %d, and the upstream proxy is asked %d times", status, len(asked))
			}
			if _, status, words := r.connect("refused.org:443"); status != http.StatusBadGateway || !strings.Contains(words, "407") {
				t.Errorf("a host that the upstream proxy refuses: %d %s", status, words)
			}
			<-asked
			if c, status, words := r.connect("direct.corp.example:443"); status != http.StatusOK || len(asked) != 0 {
				t.Errorf("a host of no_proxy: %d %s", status, words)
			} else if _, err := r.greetTLS(c, "direct.corp.example", "example.org"); err != nil {
				t.Error(err)
			}
			if looked := strings.Join(r.world.looked, " "); strings.Contains(looked, "example.org.") || strings.Contains(looked, "refused.org") {
				t.Errorf("looked up: %s", looked)
			}
		})
	}
}

// no_proxy is read as other programs read it.
func TestNoProxy(t *testing.T) {
	for _, tc := range []struct {
		not, name string
		port      int
		direct    bool
	}{
		{"", "example.org", 443, false},
		{"*", "example.org", 443, true},
		{"example.org", "example.org", 443, true},
		{"example.org", "a.example.org", 443, true},
		{".example.org", "a.example.org", 443, true},
		{"*.example.org", "a.example.org", 443, true},
		{"example.org", "badexample.org", 443, false},
		{"example.org:8443", "example.org", 443, false},
		{"example.org:443", "example.org", 443, true},
		{"10.0.0.0/8", "10.1.2.3", 443, true},
		{"10.1.2.3", "10.1.2.3", 443, true},
		{"10.0.0.0/8", "11.1.2.3", 443, false},
		{"", "localhost", 443, true},
		{"", "127.0.0.1", 443, true},
	} {
		u, err := newUpstream(wire.Upstream{Proxy: "proxy:3128", NoProxy: tc.not})
		if err != nil {
			t.Fatal(err)
		}
		if got := !u.serves(tc.name, addrOrZero(tc.name), tc.port); got != tc.direct {
			t.Errorf("%q: %s:%d is reached directly: %v", tc.not, tc.name, tc.port, got)
		}
	}
	if u, _ := newUpstream(wire.Upstream{}); u.serves("example.org", addrOrZero(""), 443) {
		t.Error("there is no upstream proxy, and it is used")
	}
}
