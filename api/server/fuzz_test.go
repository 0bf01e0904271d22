package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/api"
)

// FuzzRequest checks that every request gets a route's answer, a problem or a redirect to the clean
// path: no request causes a bug, and none without the token is accepted.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][4]string{
		{"GET", "/api/v1/agents", "", ""},
		{"GET", "/api/v1/events?after=0&entity=control/coder", "", "12"},
		{"HEAD", "/api/v1/events?tail=3", "", "x"},
		{"GET", "/api/v1/sessions/coder-1/output?from=1&limit=2", "", ""},
		{"GET", "/api/v1/sessions/coder-1/output/stream?tail=9", "", "5"},
		{"POST", "/api/v1/agents/coder/once", `{"note":"refuse"}`, ""},
		{"POST", "/api/v1/agents/%2e%2e/stop", `{"note":1}`, "-1"},
		{"GET", "/api/v1/journal?after=18446744073709551615&limit=-0", "", ""},
		{"PUT", "/api//v1/../v1/agents?%zz", "[[[", "99999999999999999999"},
		{"POST", "/api/v1/down", `{"now":true}`, ""},
		{"GET", "/?token=x", "", ""},
		{"POST", "/api/v1/logins", `{"code":"K7QM-2XDP"}`, ""},
		{"DELETE", "/api/v1/logins/l1", "", ""},
		{"POST", "/api/v1/login-codes", "{}", ""},
		{"GET", "/api/v1/runs/r1", "", ""},
		{"POST", "/api/v1/runs", `{"workflow":"broken.yaml"}`, ""},
		{"POST", "/api/v1/runs/r1/steps/%2e%2e/approve", `{"input":"null"}`, ""},
		{"GET", "/api/v1/sessions/build@r1-2/output?from=1", "", ""},
		{"GET", "/api/v1/journal?entity=run/r1/build", "", ""},
		{"GET", "/api/v1/channels/reviews/entries?before=3&after=-1&limit=501&moves=maybe", "", ""},
		{"POST", "/api/v1/channels/reviews/said", `{"agent":"coder","turn":3,"text":"done","complete":true}`, ""},
		{"DELETE", "/api/v1/channels/reviews/members/%2e%2e", "", ""},
		{"GET", "/api/v1/agents/coder/actions?wait=99999ms", "", ""},
		{"GET", "/api/v1/crew?all=maybe", "", ""},
		{"POST", "/api/v1/crew/wake", `{"agents":["Lyra","agent-7"]}`, ""},
		{"POST", "/api/v1/crew/import", `{"type":"agent-identity","name":null}`, ""},
		{"GET", "/api/v1/crew/agents/%e2%80%ae%00/soul", "", ""},
		{"GET", "/api/v1/crew/transcript?speaker=%ff&session=..&text=%00&before=1&after=2", "", ""},
		{"OPTIONS", "/api/v1/hold", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	sup := supervise(f, memory.New(), f.TempDir(), guests)
	p := sup.begin(f, "coder", 1)
	p.say("hello\n")
	sup.over(f, p)
	s := New(Options{Engine: sup.App, Token: testToken, UI: http.NotFoundHandler()})
	s.hosts = []string{"example:80"}
	f.Fuzz(func(t *testing.T, method, target, body, id string) {
		req, err := http.NewRequest(method, "http://example", strings.NewReader(body))
		if err != nil {
			return // no client can send it
		}
		if req.URL.Path, req.URL.RawQuery, _ = strings.Cut(target, "?"); !strings.HasPrefix(target, "/") {
			return
		}
		req.RequestURI = target
		if id != "" {
			req.Header.Set("Last-Event-ID", id)
		}
		stranger := httptest.NewRecorder()
		s.Handler().ServeHTTP(stranger, req)
		if code := stranger.Code; code != 401 && code != 403 && !open(req) {
			t.Fatalf("%s %q: a stranger is answered with %d", method, target, code)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // streams send the present content, and end
		w := httptest.NewRecorder()
		req.Body = io.NopCloser(strings.NewReader(body))
		s.SocketHandler().ServeHTTP(w, req.WithContext(ctx))
		kind := w.Header().Get("Content-Type")
		if w.Code == 500 && !strings.Contains(w.Body.String(), "cancel") {
			t.Fatalf("%s %q %q: %s", method, target, body, w.Body)
		}
		if w.Code >= 400 && strings.HasPrefix(target, api.Base+"/") && kind == api.ProblemType {
			var p api.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || p.Detail == "" {
				t.Fatalf("%s %q: %d %s: %v", method, target, w.Code, w.Body, err)
			}
		}
	})
}

// FuzzReadEvents: whatever comes as a stream, reading it ends, and holds what is allowed.
func FuzzReadEvents(f *testing.F) {
	f.Add("retry: 500\n\nid: 3\n\n: ping\n\nid: 4\nevent: change\ndata: {\"seq\":4}\n\n")
	f.Add("data: a\r\ndata:b\r\n\r\nevent\n\nid\n\n:\n\ndata")
	f.Fuzz(func(t *testing.T, text string) {
		err := api.ReadEvents(strings.NewReader(text), func() {}, func(e api.Event) bool {
			if len(e.Data) > len(text) || strings.ContainsAny(e.ID+e.Name, "\n") {
				t.Fatalf("%q became %+v", text, e)
			}
			return true
		})
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

// What message writes, ReadEvents reads.
func FuzzMessage(f *testing.F) {
	f.Add("change", "<b>\r\n\u2028\x00\xff")
	f.Fuzz(func(t *testing.T, name, text string) {
		if name == "" || strings.ContainsAny(name, "\r\n") || strings.HasPrefix(name, " ") {
			return // names are ours
		}
		n := 0
		_ = api.ReadEvents(strings.NewReader(string(message(name, "7", map[string]string{"text": text}))), func() {},
			func(e api.Event) bool {
				n++
				var got map[string]string
				if err := json.Unmarshal(e.Data, &got); err != nil || got["text"] != strings.ToValidUTF8(text, "\uFFFD") && len(text) < 2 ||
					e.Name != name || e.ID != "7" {
					t.Fatalf("%q became %+v: %v", text, e, err)
				}
				return true
			})
		if n != 1 {
			t.Fatalf("%q became %d events", text, n)
		}
	})
}

// posts are the routes whose bodies have Fairlead's own format; FuzzBodies covers them. FuzzDocument
// covers documents, which have another program's format, and FuzzSessionBodies dispatch folders. TestTaskRoutes
// covers what a person says about a task.
func posts() (paths []string) {
	for _, rt := range routeTable() {
		if rt.Method == http.MethodPost && rt.Path != importPath && rt.Path != "/seen" && !ofSessions(rt) && !ofReview(rt) {
			paths = append(paths,
				strings.NewReplacer("/questions/{id}", "/questions/q1", "{name}", "coder", "{id}", "r1", "{step}", "review", "{channel}",
					"reviews").Replace(rt.Path))
		}
	}
	return paths
}

// FuzzBodies: a body is an order or a fault of the request, never both and never a guess. What is done is what the standard
// library reads in it, strictly; a request with a fault leaves the journal as it is.
func FuzzBodies(f *testing.F) {
	paths := posts()
	for i := range paths {
		for _, body := range []string{
			"", "{}", "null", `{"note":"why"}`, `{"now":true}`, `{"note":"a","note":"b"}`, `{"NOTE":"x"}`, `{"note":null}`, `{"note":7}`,
			`{"now":"true"}`,
			`{"note":"x"} {"note":"y"}`, `{"note":"x"`, `[]`, `"x"`, "\xff", `{"note":"\ud800"}`, "{\"note\":\"a\x00b\"}",
			`{"note":"x","by":"root"}`, " \n", `{"":""}`, `true`, `1e999`,
			`{"step":"build","note":"x"}`, `{"step":"../x"}`, `{"input":"{\"a\":1}","note":"y"}`, `{"rejected":true}`,
			`{"workflow":"w.yaml","max_attempts":2,"env":["A=b"]}`,
			`{"workflow":"broken.yaml"}`, `{"start_at_step":"build","daily_cost_limit":1.5}`, `{"max_attempts":1e2}`,
			`{"max_iterations":-1}`, `{"env":null}`, `{"git_worktree":1}`,
			`{"keep":3,"all":true}`, `{"older_than_ms":1000,"dry_run":true}`, `{"keep":-1}`, `{"keep":null}`, `{"all":true}`,
			`{"text":"hello\u0000","mode":"queue"}`, `{"text":"refuse"}`, `{"text":"","mode":"shout"}`, `{"agent":"coder"}`,
			`{"agent":"coder","now":true}`, `{"agent":"../x"}`,
			`{"turn":3}`, `{"turn":-1}`, `{"turn":1e400}`, `{"turn":18446744073709551616}`, `{"agent":"coder","turn":3}`,
			`{"agent":"coder","turn":3,"why":"tests"}`, `{"go_on":true}`, `{"go_on":null}`,
			`{"agent":"coder","turn":0,"text":"x","re":7}`, `{"agent":"coder","turn":3,"text":"","complete":true,"ended":true}`,
			`{"agent":"coder","turn":3,"text":""}`, `{"key":"tell_turn/reviews/coder/3"}`, `{"key":""}`,
			`{"agents":["Lyra"]}`, `{"agents":["agent-7","Lyra"]}`, `{"agents":[]}`, `{"agents":null}`, `{"agents":["Twin"]}`,
			`{"agents":["a\u0000b"]}`, `{"agents":"Lyra"}`,
			`{"allow":true}`, `{"allow":true,"scope":"always"}`, `{"allow":1}`, `{"option":"y","text":"z","scope":"once"}`,
			`{"scope":"ever"}`, `{"Allow":true}`,
		} {
			f.Add(uint8(i), body)
		}
	}
	dir := f.TempDir()
	for name, text := range houseFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	sup := supervise(f, memory.New(), dir, guests)
	handler := New(Options{
		Engine: sup.App, User: "sam",
		Reload: func(context.Context, change.Actor, api.ReloadBody) ([]string, error) { return nil, nil },
	}).SocketHandler()
	f.Fuzz(func(t *testing.T, route uint8, body string) {
		path := paths[int(route)%len(paths)]
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://fairlead"+api.Base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		before := len(sup.changes(t))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		var want struct {
			Note   string `json:"note"`
			Now    bool   `json:"now"`
			Step   string `json:"step"`
			Input  string `json:"input"`
			Target string `json:"target"`
			pruned
			view.RunFlags
			inChannel
		}
		dec := json.NewDecoder(strings.NewReader(body))
		dec.DisallowUnknownFields()
		fault := dec.Decode(&want)
		switch {
		case w.Code < 300:
			if fault == nil {
				_, fault = dec.Token()
			}
			if body != "" && !errors.Is(fault, io.EOF) || utf8.RuneCountInString(want.Note) > 1000 {
				t.Fatalf("%s %q is answered with %d; it is read as %+v, %v", path, body, w.Code, want, fault)
			}
		case w.Code < 400 || w.Code > 499:
			t.Fatalf("%s %q: %d %s", path, body, w.Code, w.Body)
		case w.Code != http.StatusConflict && len(sup.changes(t)) != before:
			t.Fatalf("%s %q is answered with %d, and is an order: %q", path, body, w.Code, sup.changes(t)[before:])
		}
	})
}

// pruned is what a body about finished runs may say.
type pruned struct {
	Keep        int   `json:"keep"`
	OlderThanMS int64 `json:"older_than_ms"`
	All         bool  `json:"all"`
	DryRun      bool  `json:"dry_run"`
}

// inChannel is what a body about a channel, the crew or a question may say.
type inChannel struct {
	Text     string   `json:"text"`
	Mode     string   `json:"mode"`
	Agent    string   `json:"agent"`
	Turn     uint64   `json:"turn"`
	Re       uint64   `json:"re"`
	Complete bool     `json:"complete"`
	Ended    bool     `json:"ended"`
	Why      string   `json:"why"`
	Key      string   `json:"key"`
	GoOn     bool     `json:"go_on"`
	Agents   []string `json:"agents"`
	Allow    bool     `json:"allow"`
	Option   string   `json:"option"`
	Scope    string   `json:"scope"`
}

// FuzzDocument checks that a document is either passed on unchanged, once, or is a fault of the request
// that the engine never receives. A document that is passed on is one JSON object.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		`{"type":"agent-identity","status":"alive","name":"Lyra","gridPosition":0}`, "\n {\"type\":1} \t", `{"type":"a"}{}`, `{"type":"a"`,
		`[{"type":1}]`, `null`, `""`, "", "{}",
		"{\"type\":\"\xff\\ud800\"}", `{"type":1e999,"type":2}`, `{"type":` + strings.Repeat("[", 20_000),
		string(documentOf("Mira", 0, "x")), "\xef\xbb\xbf{}", `{"type":"\u0000"}`,
	} {
		f.Add(seed)
	}
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "julian.script.yaml"), []byte(julianScript), 0o600); err != nil {
		f.Fatal(err)
	}
	sup := supervise(f, memory.New(), dir,
		"version: 1\nagents:\n  julian: {description: Leads the team, driver: script, script: julian.script.yaml}\nteam: {lead: julian, size: 8}\n")
	handler := New(Options{Engine: sup.App, User: "sam"}).SocketHandler()
	f.Fuzz(func(t *testing.T, body string) {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.Base+importPath, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		before := sup.orders(t)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		switch {
		case w.Code == 201:
			if !json.Valid([]byte(body)) || !strings.HasPrefix(strings.Trim(body, " \t\r\n"), "{") || sup.orders(t) == before {
				t.Fatalf("%q is taken: %s", body, w.Body)
			}
		case sup.orders(t) != before || w.Code < 400 || w.Code > 499:
			t.Fatalf("%q: %d %s", body, w.Code, w.Body)
		default:
			problemText(t, w.Body.String())
		}
	})
}
