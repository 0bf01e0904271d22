package server

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// everyPath is every route there is, with names that stand for something; a new route is in
// it by being in the table.
func everyPath(agent, session string) iter.Seq2[string, string] {
	names := strings.NewReplacer("{name}", agent, "{step}", agent, "{channel}", agent, "{agent}", agent, "{id}", session, "{n}", "1",
		"{file}", agent)
	return func(yield func(path, method string) bool) {
		for _, rt := range routeTable() {
			if !yield(api.Base+names.Replace(rt.Path), rt.Method) {
				return
			}
		}
		yield(api.Base+"/openapi.json", http.MethodGet)
	}
}

// No route takes anything from who has no token, comes from another site, or calls us by a
// name that is not ours (DNS rebinding); and none of them keeps the connection.
func TestEveryRouteIsGuarded(t *testing.T) {
	s := serve(t)
	s.sup.begin(t, "coder", 1).say("secret")
	before := len(s.sup.changes(t))
	token := "Bearer " + testToken
	for path, method := range everyPath("coder", "coder-1") {
		for _, c := range []struct {
			status int
			header map[string]string
		}{
			{401, nil},
			{401, map[string]string{"Authorization": "Bearer x"}},
			{403, map[string]string{"Authorization": token, "Origin": "http://evil.example"}},
			{403, map[string]string{"Authorization": token, "Origin": "null"}},
			{403, map[string]string{"Authorization": token, "Sec-Fetch-Site": "cross-site"}},
			{403, map[string]string{"Authorization": token, "Sec-Fetch-Site": "same-site"}},
			{421, map[string]string{"Authorization": token, "Host": "evil.example"}},
			{421, map[string]string{"Authorization": token, "Host": "127.0.0.1.evil.example" + s.url[strings.LastIndexByte(s.url, ':'):]}},
			{421, map[string]string{"Authorization": token, "Host": "127.0.0.1:1"}},
		} {
			if method == http.MethodPost && path == api.Base+loginsPath && c.status == 401 {
				c.status = 400 // it needs a code instead
			}
			req := s.request(t, method, path, c.header)
			text, _ := send(t, req, c.status)
			if strings.Contains(text, "secret") || strings.Contains(text, testToken) {
				t.Errorf("%s %s tells a stranger: %s", method, path, text)
			}
		}
	}
	if all := s.sup.changes(t); len(all) > before {
		t.Errorf("strangers gave orders: %v", all[before:])
	}
}

func TestStrangersKeepNoConnection(t *testing.T) {
	s := serve(t)
	host := strings.TrimPrefix(s.url, "http://")
	for _, head := range []string{"Host: " + host, "Host: evil.example", "Host: " + host + "\r\nOrigin: http://evil.example"} {
		if resp := raw(t, s, "GET "+api.Base+"/agents HTTP/1.1\r\n"+head+"\r\n\r\n"); !resp.Close {
			t.Errorf("%q is answered with %d and keeps its place", head, resp.StatusCode)
		}
	}
}

// A name that is none is refused by every route that takes one, in words and without a redirect.
func TestEvilNamesEverywhere(t *testing.T) {
	s := serve(t)
	handler := s.Handler()
	asked := 0
	for _, evil := range []string{
		"..", ".", "%2e%2e", "%2E", "..%2f..%2fetc%2fpasswd", "a%2fb", "a%5cb", "%00", "coder%00", "coder%0a", "%0d%0aX-Evil:%201",
		"%1b%5b31mred", "%c2%9b31m", "%ff%fe", "%e2%80%ae", "-", "-coder", "%20coder", "coder%3b", "%25%32%65", strings.Repeat("a", 5000),
	} {
		for _, session := range []string{evil + "-1/../" + evil, evil + "-1"} {
			for path, method := range everyPath(evil, session) {
				if !strings.Contains(path, "/"+evil) || strings.HasSuffix(path, "/openapi.json") {
					continue
				}
				asked++
				status, text := s.answered(t, handler, method, path)
				if status < 400 || status > 499 || strings.ContainsAny(text, "\x00\x1b") {
					t.Errorf("%s %.80s: %d %.300q", method, path, status, text)
				}
			}
		}
	}
	if asked < 1000 {
		t.Errorf("only %d requests", asked)
	}
}

// answered is the answer to a path, which is read as a server reads it from a connection.
func (s *served) answered(t *testing.T, handler http.Handler, method, path string) (status int, text string) {
	t.Helper()
	if strings.HasSuffix(path, "/events") || strings.HasSuffix(path, "/down") {
		return 400, "" // they take no name
	}
	host := strings.TrimPrefix(s.url, "http://")
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + path + " HTTP/1.1\r\nHost: " + host +
		"\r\nAuthorization: Bearer " + testToken + "\r\nContent-Length: 0\r\n\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	req.RemoteAddr = host
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, req.WithContext(t.Context()))
	return w.Code, w.Body.String()
}

// What is no HTTP is answered with a 4xx or a cut line, and the next caller is served.
func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	s := serve(t)
	host := strings.TrimPrefix(s.url, "http://")
	head := " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + testToken + "\r\n"
	for _, text := range []string{
		"\x00\x01\x02\r\n\r\n", "GET\r\n\r\n", "GET " + api.Base + "/agents HTTP/9.9\r\n\r\n",
		"GET " + api.Base + "/agents HTTP/1.1\r\n\r\n",
		"GET " + api.Base + "/agents HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET " + api.Base + "/%zz" + head + "\r\n",
		"GET " + api.Base + "/agents" + head + "Bad Header\r\n\r\n",
		"GET " + api.Base + "/agents" + head + "X: a\x00b\r\n\r\n",
		"GET /" + strings.Repeat("a", 3*headerBytes) + head + "\r\n",
		"POST " + api.Base + "/hold" + head + "Content-Type: application/json\r\nContent-Length: -1\r\n\r\n",
		"POST " + api.Base + "/hold" + head + "Content-Type: application/json\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
		"POST " + api.Base + "/hold" + head + "Content-Type: application/json\r\nTransfer-Encoding: rot13\r\n\r\n",
	} {
		if resp := raw(t, s, text); resp.StatusCode < 400 || resp.StatusCode > 505 || resp.StatusCode == 500 {
			t.Errorf("%.60q: %d", text, resp.StatusCode)
		}
	}
	for _, body := range []string{
		`{"note":1e999}`, `{"note":` + strings.Repeat(`{"a":`, 20_000), `{"now":1e400}`, "\xff\xfe",
		`{"note":"\ud800`,
	} {
		if status := s.postStatus(t, "/hold", body); status < 400 || status > 499 {
			t.Errorf("%.40q: %d", body, status)
		}
	}
	s.sup.unchanged(t)
	s.want(t, 200, "GET", api.Base+"/agents", "")
}

func (s *served) postStatus(t *testing.T, path, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+api.Base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// A truncated body is a fault of the request, not of the server, and is no order.
func TestBrokenBodies(t *testing.T) {
	s := serve(t)
	host := strings.TrimPrefix(s.url, "http://")
	head := "POST " + api.Base + "/hold HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + testToken +
		"\r\nContent-Type: application/json\r\n"
	for name, text := range map[string]string{
		"size is no number":  "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"size is too long":   "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n",
		"chunk without end":  "Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx\r\n0\r\n\r\n",
		"cut in the middle":  "Transfer-Encoding: chunked\r\n\r\n9\r\n{\"note\"",
		"shorter than said":  "Content-Length: 100\r\n\r\n{\"note\":\"x\"}",
		"a trailer of noise": "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\x00\x01\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, head+text); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != 400 || problemText(t, string(body)).Detail == "" {
				t.Errorf("status %d: %s", resp.StatusCode, body)
			}
		})
	}
	s.sup.unchanged(t)
}

// Ten thousand who connect and say nothing: those too many are told so, the owner is served
// over the socket meanwhile, who never sends a header is cut off, and then all is as before.
func TestTenThousandConnections(t *testing.T) {
	const crowd = 10_000
	if testing.Short() {
		t.Skip("waits 5 s for headers that do not come")
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) < crowd+connsMax+500 {
		t.Skipf("needs `ulimit -n %d`: both ends are in this process, which may open %d files", crowd+connsMax+500, limit.Cur)
	}
	waits := waitsUsual
	waits.headers = 5 * time.Second // as long as the crowd needs to come on a usual machine
	dir := newWorkspace(t)
	s := serveAt(t, supervise(t, memory.New(), dir, pair), dir, waits, listenAny(t))
	owner := dial(t, s)
	before := runtime.NumGoroutine()
	conns := make([]net.Conn, 0, crowd)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	began := time.Now()
	for range crowd {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatalf("connection %d: %v", len(conns), err)
		}
		conns = append(conns, c)
	}
	if _, err := owner.Agents(t.Context()); err != nil {
		t.Errorf("the owner is not served: %v", err)
	}
	if n := runtime.NumGoroutine() - before; n > connsMax+100 {
		t.Errorf("%d goroutines for %d connections", n, crowd)
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	if used := (mem.HeapInuse + mem.StackInuse) >> 20; used > 150 {
		t.Errorf("%d MiB are in use", used)
	}
	// Who is cut off while the last of them still come makes room for others: on a busy machine more
	// than once.
	open := connsMax * (1 + int((time.Since(began)+waits.headers/2)/waits.headers))
	told, cut := readAll(conns)
	if told < crowd-open-500 || told+cut != crowd {
		t.Errorf("of %d connections %d were told that they are too many, and %d cut off; %d should be open at most", crowd, told, cut, open)
	}
	wait.Until(t, "their goroutines go", func() bool { return runtime.NumGoroutine() <= before+8 })
	s.want(t, 200, "GET", api.Base+"/agents", "")
}

// readAll reads every connection to its end: those that are told 503, and those that are cut off.
func readAll(conns []net.Conn) (told, cut int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	late := time.Now().Add(patience)
	for part := range 8 {
		all.Go(func() {
			for i := part; i < len(conns); i += 8 {
				_ = conns[i].SetReadDeadline(late)
				text, err := io.ReadAll(conns[i])
				mu.Lock()
				switch {
				case strings.HasPrefix(string(text), "HTTP/1.1 503") && strings.Contains(string(text), "Retry-After"):
					told++
				case err == nil || !isTimeout(err):
					cut++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return told, cut
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

func TestRoom(t *testing.T) {
	for files, want := range map[uint64]int{0: 1, 256: 64, 1024: 256, 16_000: connsMax, 1 << 62: connsMax} {
		if got := roomFor(files); got != want {
			t.Errorf("with %d files: %d connections, want %d", files, got, want)
		}
	}
}
