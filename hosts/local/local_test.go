package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	_ "github.com/fairlead-dev/fairlead/process/proxy" // runs in a process of this binary
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

func TestMain(m *testing.M) {
	shim.Intercept()
	os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every shim would wait a second at its end
	os.Exit(leaktest.Main(m))
}

// leader is what the guard of a host knows of its leader.
type leader struct {
	epoch   uint64
	refuses error
	home    map[string]bool
}

func (l *leader) MayStart(context.Context, host.Token) (by, end host.BootTime, waits bool, err error) {
	return math.MaxInt64, math.MaxInt64, true, l.refuses
}

func (l *leader) Home(session string) (host.Lease, bool) {
	return host.Lease{Token: host.Token{Session: session, Host: "b", Incarnation: 1, N: 9}, OnLost: host.Wait, Home: true}, l.home[session]
}

func (l *leader) Epoch(epoch uint64) error {
	if epoch < l.epoch {
		return &sessionhost.Fenced{Why: "it has ended"}
	}
	return nil
}

func newSessions(t testing.TB) (*Sessions, http.Handler) {
	t.Helper()
	dir := t.TempDir()
	s := &Sessions{
		Shims: &sessions.Shims{Folder: filepath.Join(dir, "sessions"), Workspace: dir}, Guard: &leader{epoch: 1},
		Log: slog.New(slog.DiscardHandler),
	}
	mux := http.NewServeMux()
	s.Routes(mux)
	t.Cleanup(s.Close)
	return s, mux
}

// ask sends a request of a leader of epoch 1.
func ask(h http.Handler, method, path, body string) *http.Response {
	return askAs(h, "1", method, path, body)
}

func askAs(h http.Handler, epoch, method, path, body string) *http.Response {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set(wire.EpochField, epoch)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func startBody(session, script string) string {
	text, _ := json.Marshal(wire.StartIn{
		Token: host.Token{Session: session, Host: "b", Incarnation: 1, N: 1}, Epoch: 1, OnLost: host.Restart,
		Launch: spawn.Launch{Argv: []string{"/bin/sh", "-c", script}, Dir: "/"},
	})
	return string(text)
}

func codeOf(err error) wire.Code {
	if p, is := errors.AsType[*wire.Problem](err); is {
		return p.Code
	}
	return ""
}

// The id of a session names a folder, so nothing else than the name of a session is taken, and nothing is created.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s, h := newSessions(t)
	for _, id := range []string{
		"..", ".", ".hidden", "%2e%2e", "..%2fsessions", "a%2fb", "a%00", "a%20b", "%c3%a4",
		strings.Repeat("a", 161), "a%0ab", `a%5cb`,
	} {
		for _, route := range []string{
			wire.SessionRoute, wire.AdoptRoute, wire.InputRoute, wire.CloseInputRoute, wire.EndRoute,
			wire.AckRoute, wire.EvidenceRoute, wire.EndedRoute, wire.LeaseRoute, wire.OutputRoute,
		} {
			for _, method := range []string{"GET", "POST"} {
				answer := ask(h, method, strings.Replace(route, "{id}", id, 1)+"?offset=0", startBody(id, "exit 0"))
				if answer.StatusCode < 300 {
					t.Errorf("%s %s of %q: %s", method, route, id, answer.Status)
				}
			}
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(s.Shims.Folder)); len(left) > 0 || len(s.all) > 0 {
		t.Error(left, s.all)
	}
}

func TestHostileBodies(t *testing.T) {
	t.Parallel()
	_, h := newSessions(t)
	for _, c := range []struct{ path, body string }{
		{"/v1/sessions/coder-1", startBody("coder-2", "exit 0")},
		{"/v1/sessions/coder-1", ""},
		{"/v1/sessions/coder-1", `{"token":{"session":"coder-1"},"unknown":1}`},
		{"/v1/sessions/coder-1", strings.Repeat(" ", wire.BodyMax+1)},
		{"/v1/sessions/coder-1/adopt", `{"epoch":-1}`},
		{"/v1/sessions/coder-1/input", `[]`},
		{"/v1/sessions/coder-1/end", `{}{}`},
	} {
		if err := wire.Check(ask(h, "POST", c.path, c.body)); codeOf(err) != wire.BadRequest {
			t.Errorf("%s %.60q: %v", c.path, c.body, err)
		}
	}
	for _, offset := range []string{"", "-1", "x", "9223372036854775808"} {
		if err := wire.Check(ask(h, "GET", "/v1/sessions/coder-1/output?offset="+offset, "")); codeOf(err) != wire.BadRequest {
			t.Errorf("%q: %v", offset, err)
		}
	}
	r := httptest.NewRequest("POST", "/v1/sessions/coder-1/close-input", http.NoBody)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); codeOf(wire.Check(w.Result())) != wire.BadRequest {
		t.Error("a request without an epoch was answered:", w.Code)
	}
	for _, path := range []string{"close-input", "ack", "input", "end"} {
		body := map[string]string{"input": `{"offset":0,"bytes":""}`, "end": `{"grace_ms":0}`}[path]
		if err := wire.Check(ask(h, "POST", "/v1/sessions/coder-1/"+path, body)); codeOf(err) != wire.NotHere {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A leader of an earlier epoch is refused, also where no session is that could refuse it.
func TestEarlierLeader(t *testing.T) {
	t.Parallel()
	s, h := newSessions(t)
	s.Guard = &leader{epoch: 2}
	for path, body := range map[string]string{
		"": startBody("coder-1", "exit 0"), "/adopt": `{"epoch":1}`, "/close-input": "", "/ack": "",
		"/end": `{"grace_ms":0}`,
	} {
		if err := wire.Check(ask(h, "POST", "/v1/sessions/coder-1"+path, body)); !isFenced(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"/ended", "/evidence", "/output?offset=0"} {
		if err := wire.Check(ask(h, "GET", "/v1/sessions/coder-1"+path, "")); !isFenced(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Many requests for one start come at once. The process begins once.
func TestStartsAtOnce(t *testing.T) {
	t.Parallel()
	_, h := newSessions(t)
	file := filepath.Join(t.TempDir(), "began")
	var all sync.WaitGroup
	began := make(chan wire.Code, 12)
	for range cap(began) {
		all.Go(func() {
			err := wire.Check(ask(h, "POST", "/v1/sessions/coder-1", startBody("coder-1", "echo began >> "+file)))
			if _, before := errors.AsType[*spawn.AlreadyStarted](err); before {
				began <- wire.AlreadyStarted
			} else if err != nil {
				t.Error(err)
			} else {
				began <- ""
			}
		})
	}
	all.Wait()
	close(began)
	times := map[wire.Code]int{}
	for code := range began {
		times[code]++
	}
	if err := wire.Check(ask(h, "GET", "/v1/sessions/coder-1/ended", "")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if times[""] != 1 || times[wire.AlreadyStarted] != cap(began)-1 || err != nil || string(text) != "began\n" {
		t.Errorf("%v %q %v", times, text, err)
	}
}

// Input is written from where it was not written yet, also by another daemon of the host, and after the end of what read it.
func TestRepeatedInput(t *testing.T) {
	t.Parallel()
	s, h := newSessions(t)
	if err := wire.Check(ask(h, "POST", "/v1/sessions/coder-1",
		strings.Replace(startBody("coder-1", "read line; echo $line"), `"launch":{`, `"launch":{"keep_stdin":true,`, 1))); err != nil {
		t.Fatal(err)
	}
	input := func(offset int64, label, text string) error {
		body, _ := json.Marshal(wire.InputIn{Offset: offset, Label: label, Bytes: []byte(text)})
		return wire.Check(ask(h, "POST", "/v1/sessions/coder-1/input", string(body)))
	}
	if err := input(0, "", "ab"); err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(t.Context(), 2); err != nil { // the shim refuses epoch 1 from now on
		t.Fatal(err)
	}
	if err := input(0, "", "ab"); codeOf(err) != "" || !isFenced(err) {
		t.Error(err)
	}
	ask := func(method, path, body string) *http.Response { return askAs(h, "2", method, path, body) }
	input = func(offset int64, label, text string) error {
		body, _ := json.Marshal(wire.InputIn{Offset: offset, Label: label, Bytes: []byte(text)})
		return wire.Check(ask("POST", "/v1/sessions/coder-1/input", string(body)))
	}
	for _, c := range []struct {
		offset int64
		text   string
	}{{3, "x"}, {-1, "x"}, {0, "a"}} {
		if err := input(c.offset, "", c.text); codeOf(err) != wire.BadRequest {
			t.Error(c, err)
		}
	}
	for range 2 {
		if err := input(0, "one", "abcd\n"); err != nil {
			t.Fatal(err)
		}
		if err := wire.Check(ask("GET", "/v1/sessions/coder-1/ended", "")); err != nil {
			t.Fatal(err)
		}
	}
	if err := input(0, "two", "efgh\n"); codeOf(err) != wire.BadRequest {
		t.Error(err)
	}
	if err := input(5, "two", "efgh\n"); codeOf(err) != wire.NoInput {
		t.Error(err)
	}
	if text, err := io.ReadAll(ask("GET", "/v1/sessions/coder-1/output?offset=0", "").Body); err != nil || string(text) != "abcd\n" {
		t.Errorf("%q %v", text, err)
	}
}

func isFenced(err error) bool {
	_, is := errors.AsType[*sessionhost.Fenced](err)
	return is
}

// A session whose lease cannot be read is not one that never began: its process may run.
func TestLeaseIsDamaged(t *testing.T) {
	t.Parallel()
	s, h := newSessions(t)
	if err := wire.Check(ask(h, "POST", "/v1/sessions/coder-1", startBody("coder-1", "exit 0"))); err != nil {
		t.Fatal(err)
	}
	if err := wire.Check(ask(h, "GET", "/v1/sessions/coder-1/ended", "")); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.all = nil // as after a new start of the daemon
	s.mu.Unlock()
	path := filepath.Join(s.folder("coder-1"), leaseFile)
	for name, damage := range map[string]func() error{
		"not JSON":                   func() error { return os.WriteFile(path, []byte("{"), 0o600) },
		"belongs to another session": func() error { return os.WriteFile(path, []byte(`{"token":{"session":"coder-2"}}`), 0o600) },
		"a link":                     func() error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
		"long":                       func() error { return errors.Join(os.Remove(path), os.WriteFile(path, make([]byte, 1<<20), 0o600)) },
		"a folder":                   func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		if err := damage(); err != nil {
			t.Fatal(name, err)
		}
		for _, c := range []struct{ path, body string }{
			{"/adopt", `{"epoch":1}`},
			{"", startBody("coder-1", "exit 0")},
			{"/close-input", ""},
		} {
			if err := wire.Check(ask(h, "POST", "/v1/sessions/coder-1"+c.path, c.body)); codeOf(err) != wire.Failed {
				t.Errorf("%s, %q: %v", name, c.path, err)
			}
		}
		if err := s.Resume(t.Context(), 1); err != nil || len(s.Known()) > 0 {
			t.Error(name, err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A session of the same name is of another lease, or of none: the host ran Fairlead by itself, or was of another team.
func TestEarlierSessionOfTheName(t *testing.T) {
	t.Parallel()
	s, h := newSessions(t)
	start := func(lease uint64, script string) error {
		body := strings.Replace(startBody("coder-1", script), `"lease":1`, fmt.Sprintf(`"lease":%d`, lease), 1)
		return wire.Check(ask(h, "POST", "/v1/sessions/coder-1", body))
	}
	own, err := s.Shims.Start(t.Context(), "coder-1", 1,
		spawn.Launch{Argv: []string{"/bin/sh", "-c", "echo own; read line"}, Dir: "/", KeepStdin: true}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, err := range []error{start(1, "exit 0"), wire.Check(ask(h, "POST", "/v1/sessions/coder-1/adopt", `{"epoch":1}`))} {
		if codeOf(err) != wire.Failed || !strings.Contains(err.Error(), "without a lease") {
			t.Error(err)
		}
	}
	if err := own.CloseInput(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-own.Done()
	var out wire.AdoptOut
	if err := wire.Read(ask(h, "POST", "/v1/sessions/coder-1/adopt", `{"epoch":1}`).Body, &out); err != nil ||
		out.Found != sessionhost.NeverStarted {
		t.Error(out, err)
	}
	if err := start(1, "echo first; exec sleep 600"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "its first output", func() bool {
		n, err := s.Shims.OutputBytes("coder-1")
		return err == nil && n > 0
	})
	err = start(2, "echo second")
	if no, is := errors.AsType[*spawn.CannotStart](err); !is || !strings.Contains(no.Why, "under an earlier lease") {
		t.Error(err)
	}
	if err := s.End(t.Context(), "coder-1"); err != nil {
		t.Fatal(err)
	}
	if err := wire.Check(ask(h, "GET", "/v1/sessions/coder-1/ended", "")); err != nil {
		t.Fatal(err)
	}
	s.Guard.(*leader).refuses = errors.New("the leader does not place it here")
	if err := start(2, "echo second"); err == nil || !strings.Contains(err.Error(), "does not place it") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(s.Shims.Folder + "-aside"); len(left) != 1 {
		t.Error("a refused start moves nothing:", left)
	}
	s.Guard.(*leader).refuses = nil
	if err := start(2, "echo second"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"-aside/coder-1.1": "own", "-aside/coder-1.2": "first", "/coder-1": "second"} {
		if path == "/coder-1" {
			if err := wire.Check(ask(h, "GET", "/v1/sessions/coder-1/ended", "")); err != nil {
				t.Error(err)
			}
		}
		if out, err := os.ReadFile(s.Shims.Folder + path + "/spool"); err != nil || string(out) != want+"\n" {
			t.Errorf("%s: %q %v", path, out, err)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	s, h := newSessions(t)
	busy := func(what string, answer *http.Response) {
		t.Helper()
		if err := wire.Check(answer); codeOf(err) != wire.Busy || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.bodies.Store(bodiesMax)
	busy("bodies", ask(h, "POST", "/v1/sessions/coder-1/adopt", `{"epoch":1}`))
	s.bodies.Store(0)
	s.streams.Store(streamsMax)
	busy("outputs", ask(h, "GET", "/v1/sessions/coder-1/output?offset=0", ""))
	s.streams.Store(0)
	s.all = map[string]*session{}
	for i := range sessionsMax {
		s.all[fmt.Sprint("other-", i)] = &session{}
	}
	busy("sessions", ask(h, "POST", "/v1/sessions/coder-1/adopt", `{"epoch":1}`))
	over := &ended{}
	held := &process{Process: over, found: sessionhost.Exited, replaced: make(chan struct{})}
	s.all["other-7"].proc.Store(held)
	if err := wire.Check(ask(h, "POST", "/v1/sessions/coder-1/adopt", `{"epoch":1}`)); err != nil {
		t.Error("the one that has ended makes room:", err)
	}
	select {
	case <-held.replaced:
	default:
		t.Error("requests that wait for the session that made room are not told")
	}
	if over.closed != 1 {
		t.Errorf("the session that made room was closed %d times, want once", over.closed)
	}
	s.all = nil
	s.Close()
	if err := wire.Check(ask(h, "POST", "/v1/sessions/coder-1/adopt", `{"epoch":1}`)); codeOf(err) != wire.Busy {
		t.Error(err)
	}
	if s.bodies.Load() != 0 || s.streams.Load() != 0 {
		t.Error(s.bodies.Load(), s.streams.Load())
	}
}

// ended is a process that has ended. It counts how often its connection is closed.
type ended struct {
	sessionhost.Process
	closed int
}

func (*ended) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (e *ended) Close() error {
	e.closed++
	return nil
}

// Whatever a leader sends, it gets an answer, and nothing begins that the guard refuses.
func FuzzRequests(f *testing.F) {
	f.Add("POST", "/v1/sessions/coder-1", "1", startBody("coder-1", "exit 0"))
	f.Add("POST", "/v1/sessions/coder-1/adopt", "", `{"epoch":2}`)
	f.Add("POST", "/v1/sessions/coder-1/input", "1", `{"offset":-1,"label":"x","bytes":"YQ=="}`)
	f.Add("GET", "/v1/sessions/../output?offset=1", "0", "")
	f.Add("GET", "/v1/sessions/%2e%2e/ended", "18446744073709551616", "")
	f.Add("POST", "/v1/sessions/a@b-1/end", "1", `{"grace_ms":-1}`)
	s, h := newSessions(f)
	s.Guard = &leader{epoch: 1, refuses: errors.New("the leader does not place it here")}
	f.Fuzz(func(t *testing.T, method, path, epoch, body string) {
		if !strings.HasPrefix(path, "/v1/sessions/") || method != "GET" && method != "POST" {
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://b"+path, strings.NewReader(body))
		if err != nil {
			return
		}
		r.Header.Set(wire.EpochField, epoch)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		answer := w.Result()
		if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode == http.StatusOK && !json.Valid(text) {
			t.Errorf("%s %s: %s %s", method, path, answer.Status, text)
		}
		if left, _ := os.ReadDir(filepath.Dir(s.Shims.Folder)); len(left) > 0 || len(s.all) > 0 {
			t.Fatal("something was left:", left, s.all)
		}
	})
}

// Folders of sessions that ended are removed, unless the leader may still ask for them or they ended later.
func TestForget(t *testing.T) {
	t.Parallel()
	s, h := newSessions(t)
	for _, id := range []string{"coder-1", "coder-2"} {
		if err := wire.Check(ask(h, "POST", "/v1/sessions/"+id, startBody(id, "echo done"))); err != nil {
			t.Fatal(err)
		}
		if err := wire.Check(ask(h, "GET", "/v1/sessions/"+id+"/ended", "")); err != nil {
			t.Fatal(err)
		}
		if err := wire.Check(ask(h, "POST", "/v1/sessions/"+id+"/ack", "")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.Shims.Folder, "own-1"), 0o700); err != nil { // without a lease
		t.Fatal(err)
	}
	left := func() (names string) {
		entries, err := os.ReadDir(s.Shims.Folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			names += entry.Name() + " "
		}
		return names
	}
	for _, step := range []struct {
		before time.Time
		keeps  string
		want   string
	}{
		{time.Now().Add(-time.Hour), "", "coder-1 coder-2 own-1 "},
		{time.Now().Add(time.Hour), "coder-2", "coder-2 own-1 "},
		{time.Now().Add(time.Hour), "", "own-1 "},
	} {
		wait.Until(t, step.want+"are left", func() bool { // a shim ends a moment after its answer
			if err := s.Forget(t.Context(), step.before, func(id string) bool { return id == step.keeps }); err != nil {
				t.Fatal(err)
			}
			return left() == step.want
		})
	}
}
