package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/notice"
)

// token is in every address of these tests, and nowhere else.
const token = "hunter2"

// request is one request as received.
type request struct {
	method, path, kind, body, user string
}

// host answers as the test says and records requests.
func host(t *testing.T, answer http.HandlerFunc) (base string, got chan request) {
	t.Helper()
	got = make(chan request, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		user, _, _ := r.BasicAuth()
		got <- request{r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(body), user}
		answer(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, got
}

func hook(t *testing.T, address string) *webhook {
	t.Helper()
	w, err := Open(address)
	if err != nil {
		t.Fatal(err)
	}
	return w.(*webhook)
}

// Other programs rely on these fields: some may be added, none renamed.
func TestPost(t *testing.T) {
	base, got := host(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	m := asked(1)
	m.Listed[0].Why = "it \x1b[2J waits"
	if failed := hook(t, strings.Replace(base, "http://", "http://ann:pw@", 1)+"/"+token).Send(t.Context(), m); failed != nil {
		t.Error(failed)
	}
	p := <-got
	if p.method != http.MethodPost || p.path != "/"+token || p.kind != "application/json" || p.user != "ann" {
		t.Errorf("%+v", p)
	}
	want := `{"kind":"step","run_id":"r1","step_id":"s1","workflow_name":"release","why":"it �[2J waits","since":"2026-11-21T12:00:01Z","manual_input_path":"/repo/.agents/runs/r1/manual_inputs/r1__s.json","event":"needs_you","link":"http://127.0.0.1:7466/#/runs/r1/s1"}`
	if p.body != want || !json.Valid([]byte(p.body)) {
		t.Errorf("posted %s", p.body)
	}
	m = Message{
		Listed: []notice.Notice{{Event: notice.GaveUp, Agent: "coder", Since: noon, Why: "coder failed too often"}},
		Base:   "http://h/",
	}
	if failed := hook(t, base+"/x").Send(t.Context(), m); failed != nil {
		t.Error(failed)
	}
	if p := <-got; !strings.HasPrefix(p.body, `{"kind":"gave_up","run_id":"",`) || !strings.Contains(p.body, `"event":"gave_up"`) {
		t.Errorf("posted %s", p.body)
	}
}

// What a status code means.
func TestVerdicts(t *testing.T) {
	for code, again := range map[int]bool{
		301: false, 304: false, 400: false, 404: false, 408: true, 410: false, 429: true, 500: true,
		503: true,
	} {
		base, _ := host(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); fmt.Fprint(w, "no, "+token) })
		why := hook(t, base+"/"+token).Send(t.Context(), asked(1))
		if why == nil || why.Again != again || !strings.Contains(why.Cause, fmt.Sprint(code)) || strings.Contains(why.Error(), token) {
			t.Errorf("%d: %+v", code, why)
		}
	}
}

// A webhook may redirect within its own host, if the request is posted again, and a limited number of times.
func TestRedirects(t *testing.T) {
	elsewhere, stolen := host(t, func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		name string
		code int
		to   func(path string) string
		want string // of the trouble; empty: delivered
	}{
		{"within, posting again", 307, func(string) string { return "/end" }, ""},
		{"for good", 308, func(string) string { return "/end" }, ""},
		{"as a GET", 303, func(string) string { return "/end" }, "it answers 303, and redirects are not followed"},
		{"to another host", 307, func(string) string { return elsewhere + "/end" }, "it answers 307, and redirects are not followed"},
		{"to another scheme", 307, func(string) string { return "ftp://127.0.0.1/end" }, "it answers 307, and redirects are not followed"},
		{"in a circle", 308, func(path string) string { return path + "x" }, "it answers 308, and redirects are not followed"},
		{"to nowhere", 307, func(string) string { return "http://%zz" + token }, "the connection failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base, got := host(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/end" {
					w.Header().Set("Location", c.to(r.URL.Path))
					w.WriteHeader(c.code)
				}
			})
			err := hook(t, base+"/"+token).Send(t.Context(), asked(1))
			if c.want == "" && err != nil ||
				c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), token)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			n := len(got)
			if n > hopsMax+1 {
				t.Errorf("followed %d times", n)
			}
			for range n {
				if p := <-got; p.method != http.MethodPost || !strings.Contains(p.body, `"run_id":"r1"`) {
					t.Errorf("%+v", p)
				}
			}
		})
	}
	if n := len(stolen); n != 0 {
		t.Errorf("%d notices went to a host that nobody named", n)
	}
}

// A host that sends without end, sends endless headers, or is not the expected one costs a limited time, and
// nothing that it sends reaches the log.
func TestHostileHosts(t *testing.T) {
	endless := make(chan struct{})
	for _, c := range []struct {
		name, scheme, want string
		serve              func(net.Conn)
	}{
		{"a body without end", "http", "", func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
			flood(c)
			endless <- struct{}{} // it was cut off
		}},
		{"a header without end", "http", "the connection failed", func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\nX: "); flood(c) }},
		{"no HTTP", "http", "the connection failed", func(c net.Conn) { fmt.Fprint(c, token+"\r\n\r\n") }},
		{"hangs up", "http", "the connection failed", func(net.Conn) {}},
		{"no TLS", "https", "it does not speak TLS there", func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 400 "+token+"\r\n\r\n") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := hook(t, c.scheme+"://"+listen(t, c.serve)+"/"+token).Send(t.Context(), asked(1))
			if c.want == "" && err != nil ||
				c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), token)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if c.want == "" {
				<-endless
			}
		})
	}
}

func flood(c net.Conn) {
	junk := []byte(strings.Repeat(token, 1000))
	for {
		if _, err := c.Write(junk); err != nil {
			return
		}
	}
}

// listen serves connections until the test ends, and returns the address.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 64<<10)) // whatever the request is
			serve(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-over })
	return l.Addr().String()
}

// The reasons of failures hold neither the address nor what a server sent.
func TestUnreached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, c := range []struct {
		ctx           context.Context
		address, want string
		again         bool
	}{
		{t.Context(), "http://" + closed + "/" + token, "connection refused", true},
		{t.Context(), tls.URL + "/" + token, "its certificate is not one", false},
		{late, "http://" + closed + "/" + token, "it did not answer within 10s", true},
	} {
		why := hook(t, c.address).Send(c.ctx, asked(1))
		if why == nil || !strings.Contains(why.Cause, c.want) || why.Again != c.again || strings.Contains(why.Error(), token) {
			t.Errorf("%v, want %s", why, c.want)
		}
	}
	unknown := unreached(&net.DNSError{Err: "no such host", Name: "x." + token, IsNotFound: true})
	if unknown.Cause != "its name leads nowhere" || strings.Contains(unknown.Error(), token) {
		t.Errorf("%v", unknown)
	}
}

// The one promise: nothing of an address but its host or scheme is ever shown.
func TestTheAddressIsSecret(t *testing.T) {
	for _, address := range []string{
		"", "http:///" + token, "host/" + token, "http://host:x/" + token, "http://[::1/" + token, "http://a b/" + token,
		"http://host/" + token + "\x00", "https://" + token + ":" + token + "@/", "http://host/" + strings.Repeat(token, addressMax),
		token, "nothing://" + token, "slack://" + token, "discord://" + token, "telegram://" + token, "ntfy://host", "logger://" + token,
		"smtp://" + token + ":x/",
	} {
		_, err := Open(address)
		if err == nil || strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "is not an address") {
			t.Errorf("%.40q: %v", address, err)
		}
	}
	for address, kind := range map[string]string{
		"http://ann:" + token + "@127.0.0.1:1/" + token + "?k=" + token + "#" + token: "127.0.0.1",
		"ntfy://ann:" + token + "@ntfy.sh/" + token:                                   "ntfy",
		Desktop: "desktop",
	} {
		way, err := Open(address)
		if err != nil || way.Kind() != kind {
			t.Fatalf("%v, %v", way, err)
		}
	}
}
