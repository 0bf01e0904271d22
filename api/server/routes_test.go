package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/google/go-cmp/cmp"
)

func answerOn(t testing.TB, conn net.Conn) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func problemText(t testing.TB, text string) api.Problem {
	t.Helper()
	var p api.Problem
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("no problem document: %v\n%s", err, text)
	}
	return p
}

// askedOnce is one call of a route, and what has to stand in the answer.
type askedOnce struct{ id, method, path, body, want string }

// status is that of the answer.
func (c askedOnce) status() int {
	switch c.id {
	case "start-run", "say-message", "import-document", "start-dispatch":
		return 201
	case "sign-in":
		return 401
	case "revoke-login":
		return 404
	case "sign-in-to-repository":
		return 409
	}
	return 200
}

// everyRouteAsked is one call of each route except stream-events, in an order in which all succeed.
func everyRouteAsked() []askedOnce {
	return append([]askedOnce{
		{"get-digest", "GET", "/digest?since=2026-11-25T00:00:00Z", "", `"since":"2026-11-25T00:00:00Z" "lines":[] "cost_usd":0.5`},
		{"mark-seen", "POST", "/seen", `{}`, `"until":"`},
		{"list-agents", "GET", "/agents", "", `"hold" "stopping" "head" "team" "agents" "name" "description" "driver" "loop" "desired_state" "current_state" "badge" "presence" "turn" "set_by" "note" "session" "evidence_age_ms" "doubt" "failures" "retry_at" "waiting_behind" "usage_today" "input_tokens" "output_tokens" "cost_usd" "limits" "tokens_per_day" "cost_per_day_usd" "removed"`},
		{"explain-agent", "GET", "/agents/coder", "", `"agent" "evidence":[] "verdict" "sessions":[]`},
		{"start-agent", "POST", "/agents/coder/start", `{"note":"x"}`, `"seq":7 "agent" "desired_state":"continuous"`},
		{"stop-agent", "POST", "/agents/coder/stop", "", `"seq":7 "desired_state":"pause"`},
		{"run-agent-once", "POST", "/agents/coder/once", `{}`, `"desired_state":"run_once"`},
		{"run-agent-cleanup", "POST", "/agents/coder/cleanup", `{"note":""}`, `"desired_state":"run_cleanup"`},
		{"hold-team", "POST", "/hold", `{"note":"lunch"}`, `"seq":8 "hold":true`},
		{"unhold-team", "POST", "/unhold", "", `"seq":8 "hold":false`},
		{"read-journal", "GET", "/journal?tail=1", "", `"changes" "head":2 "seq":2 "time":"2026-11-21T09:30:00.123456789Z" "machine":"control" "entity":"control/coder" "row":"C2" "from" "to" "trigger" "actor":{"kind":"human","id":"sam"} "data":{"n":1,"big":12345678901234567890,"html":"<b>&</b>"}`},
		{"read-output", "GET", "/sessions/coder-1/output", "", "hello"},
		{"stream-output", "GET", "/sessions/coder-1/output/stream", "", "event: end"},
		{"read-facts", "GET", "/sessions/coder-1/facts", "", `"facts" "kind":"said" "offset":6 "text":"hello" "tool":"" "usage":null "usage":{"input_tokens":3`},
		{"list-machines", "GET", "/machines", "", `"machines" "name":"control" "mermaid" "rows" "id":"C1" "from" "event" "to" "do"`},
		{"get-status", "GET", "/status", "", `"version":"1.2.3" "pid" "started_at" "uptime_ms" "dir" "journal":{"head":2,"backend":"memory"} "subscribers":0`},
		{"reload-config", "POST", "/reload", `{}`, `"changes":["agent coder changed"] "head":2`},
		{"stop-team", "POST", "/down", `{"now":true}`, `"stopping":true`},
		{"list-workflows", "GET", "/workflows", "", `"workflows" "path":"nightly.yaml" "name":"nightly" "steps":1`},
		{"list-runs", "GET", "/runs", "", `"runs" "run_id":"r1" "workflow_name" "status":"waiting" "stage" "repo_dir" "run_state" "created_at" "updated_at" "waits":[] "cost_usd" "counts" "waiting_on_human":1`},
		{"start-run", "POST", "/runs", `{"workflow":"w.yaml"}`, `"run_id":"r1" "steps" "id":"build" "attempts":1 "iteration_count" "needs":["build"] "human_in_the_loop":true`},
		{"get-run", "GET", "/runs/r1", "", `"run_id":"r1" "steps" "metrics":{} "logs":[] "artifacts":[] "started_at":null`},
		{"cancel-run", "POST", "/runs/r1/cancel", `{"step":"build","note":"x"}`, `"seq":9`},
		{"pause-run", "POST", "/runs/r1/pause", "", `"seq":9`},
		{"release-run", "POST", "/runs/r1/release", `{}`, `"seq":9`},
		{"resume-run", "POST", "/runs/r1/resume", `{"start_at_step":"build"}`, `"run_id":"r1"`},
		{"approve-step", "POST", "/runs/r1/steps/review/approve", `{"input":"{}"}`, `"seq":9`},
		{"reject-step", "POST", "/runs/r1/steps/review/reject", "", `"seq":9`},
		{"prune-runs", "POST", "/prune", `{"keep":3,"dry_run":true}`, `"runs" "run_id":"r1" "did":"kept" "why"`},
		{"list-inbox", "GET", "/inbox", "", `"items" "kind":"step" "run_id":"r1" "step_id":"review" "since" "why" "manual_input_path" "artifacts":[] "blocks":[]`},
		{"list-working", "GET", "/working", "", `"working" "agent":"coder" "session_id":"coder-1" "status":"running" "last":"go test ./..." "since"`},
	}, slices.Concat(tasksAsked, loginsAsked, repositoriesAsked, channelsAsked, crewAsked, questionsAsked, noticesAsked, sessionsAsked, configAsked)...)
}

// Every route answers over TCP, with every field that the contract names.
func TestEveryRoute(t *testing.T) {
	s := serve(t)
	s.fake.add(t, "control/coder", 2)
	s.fake.say("coder-1", "hello\n")
	s.fake.endSession("coder-1", "ok")
	describeAgents(t, s.dir)
	giveIndex(t, s)
	taken := map[string]bool{}
	for _, c := range everyRouteAsked() {
		taken[c.id] = true
		if c.id == "read-output-file" {
			writeOutput(t, s.dir, "quay", "hello.py", "print('hello')\n")
		}
		if c.id == "list-workflows" {
			text := "name: nightly\nsteps:\n  - {id: build, command: [\"true\"]}\n"
			if err := os.WriteFile(filepath.Join(s.dir, "nightly.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		text, _ := s.want(t, c.status(), c.method, api.Base+c.path, c.body)
		for _, want := range strings.Fields(c.want) {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s is not in\n%s", c.id, want, text)
			}
		}
	}
	taken["stream-events"] = true // it has no end, and tests of its own
	for _, rt := range table() {
		if !taken[rt.ID] {
			t.Errorf("no test takes the route %s", rt.ID)
		}
	}
}

// SPEC X4: a refusal says what was asked, what the state is, which row forbids it and what
// would be allowed.
func TestRefusal(t *testing.T) {
	s := serve(t)
	text, h := s.want(t, 409, "POST", api.Base+"/agents/coder/once", `{"note":"refuse"}`)
	want := `{"title":"Refused","status":409,"detail":"coder: cannot take run_once while held: the team is held [X8] (takes pause)",` +
		`"refusal":{"subject":"coder","event":"run_once","state":"held","row":"X8","reason":"the team is held","takes":["pause"]}}`
	if strings.TrimSpace(text) != want || h.Get("Content-Type") != api.ProblemType {
		t.Errorf("%v\n%s", h, text)
	}
}

func TestProblems(t *testing.T) {
	s := serve(t)
	s.fake.say("coder-1", "x")
	for _, c := range []struct {
		method, path, body string
		status             int
		words              string // in the detail, or in a location
	}{
		{"GET", "/agents/unknown", "", 404, `no agent is called "unknown"; there are: coder, reviewer`},
		{"POST", "/agents/unknown/start", "", 404, "there are: coder, reviewer"},
		{"GET", "/sessions/coder-9/output", "", 404, "coder-9"},
		{"GET", "/sessions/coder-9/output/stream", "", 404, "coder-9"},
		{"GET", "/sessions/coder-9/facts", "", 404, "coder-9"},
		{"GET", "/nowhere", "", 404, "openapi.json"},
		{"GET", "/agents/coder/dance", "", 404, "openapi.json"},
		{"GET", "", "", 404, "openapi.json"},
		{"PUT", "/agents", "", 405, "it supports GET, HEAD, OPTIONS"},
		{"GET", "/agents/coder/start", "", 405, "it supports POST, OPTIONS"},
		{"DELETE", "/agents/coder", "", 405, "it supports GET, HEAD, OPTIONS"},
		{"POST", "/openapi.json", "", 405, "it supports GET"},
		{"GET", "/agents/COD%45R", "", 422, "path.name"},
		{"GET", "/agents/a%2Fb", "", 422, "path.name"},
		{"GET", "/agents/%2e%2e", "", 422, "path.name"},
		{"GET", "/agents/" + strings.Repeat("a", 65), "", 422, "path.name"},
		{"GET", "/agents/%00", "", 422, "path.name"},
		{"GET", "/agents/%E2%80%AEcoder", "", 422, "path.name"},
		{"GET", "/sessions/coder/output", "", 422, "path.id"},
		{"GET", "/sessions/coder-1%0d%0aX-Evil:1/output", "", 422, "path.id"},
		{"GET", "/sessions/..%2f..%2fpasswd-1/output", "", 422, "path.id"},
		{"GET", "/events?after=x", "", 422, "query.after"},
		{"GET", "/events?after=-2", "", 422, "query.after"},
		{"GET", "/events?after=99999999999999999999", "", 422, "query.after"},
		{"GET", "/events?after=0&tail=5", "", 422, "query.tail"},
		{"GET", "/events?tail=10001", "", 422, "query.tail"},
		{"GET", "/events?entity=../x", "", 422, "query.entity"},
		{"GET", "/events?aftre=3", "", 422, "query.aftre"},
		{"GET", "/events?after=1", "", 410, "the journal ends at 0"},
		{"GET", "/journal?limit=1001", "", 422, "query.limit"},
		{"GET", "/journal?limit=0", "", 422, "query.limit"},
		{"GET", "/journal?after=3&tail=1", "", 422, "query.tail"},
		{"GET", "/sessions/coder-1/output?from=-1", "", 422, "query.from"},
		{"GET", "/sessions/coder-1/output?limit=999999999", "", 422, "query.limit"},
		{"GET", "/sessions/coder-1/output/stream?from=1e3", "", 422, "query.from"},
		{"GET", "/sessions/coder-1/facts?tail=3000", "", 422, "query.tail"},
		{"POST", "/agents/coder/start", "{", 400, "body"},
		{"POST", "/agents/coder/start", `{"note":1}`, 422, "body.note"},
		{"POST", "/agents/coder/start", `{"note":"x","desired":"continuous"}`, 422, "body.desired"},
		{"POST", "/agents/coder/start", `[]`, 422, "body"},
		{"POST", "/agents/coder/start", `{"note":"` + strings.Repeat("n", 1001) + `"}`, 422, "body.note"},
		{"POST", "/agents/coder/start", `{"note":"x"} {}`, 400, "body"},
		{"POST", "/down", `{"now":"yes"}`, 422, "body.now"},
		{"POST", "/hold", strings.Repeat("[", 20_000), 400, "body"},
		{"POST", "/hold", `{"note":"` + strings.Repeat("n", 1<<20) + `"}`, 413, "too large"},
	} {
		text, h := s.want(t, c.status, c.method, api.Base+c.path, c.body)
		p := problemText(t, text)
		found := strings.Contains(p.Detail, c.words)
		for _, f := range p.Errors {
			found = found || f.Location == c.words
		}
		if !found || p.Status != c.status || p.Title == "" || h.Get("Content-Type") != api.ProblemType || len(text) > 8<<10 {
			t.Errorf("%s %.80s %.40s: wants %q\n%.1000s", c.method, c.path, c.body, c.words, text)
		}
		if c.status == 405 && h.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
	text, _ := s.want(t, 422, "GET", api.Base+"/events?after=x&tail=y&entity=..&what=ever", "")
	if p := problemText(t, text); len(p.Errors) < 1 {
		t.Errorf("not every fault is told: %s", text)
	}
	text, _ = s.want(t, 422, "GET", api.Base+"/events?after=x&tail=y&entity=..", "")
	if p := problemText(t, text); len(p.Errors) != 3 {
		t.Errorf("not every fault is told: %s", text)
	}
}

func TestClosedAndBroken(t *testing.T) {
	s := serve(t)
	s.fake.do(func() { s.fake.fail = fmt.Errorf("read the team: the disk is gone; repair it") })
	text, _ := s.want(t, 500, "GET", api.Base+"/agents", "")
	if p := problemText(t, text); p.Detail != "read the team: the disk is gone; repair it" {
		t.Errorf("%s", text)
	}
	s.fake.do(func() { s.fake.closed = true })
	for _, path := range []string{"/agents", "/agents/coder", "/status", "/sessions/coder-1/output", "/sessions/coder-1/output/stream"} {
		text, h := s.want(t, 503, "GET", api.Base+path, "")
		if p := problemText(t, text); h.Get("Retry-After") != "1" || p.Detail != loop.ErrClosed.Error() {
			t.Errorf("%s: %s", path, text)
		}
	}
}

func TestHeadAndOptions(t *testing.T) {
	s := serve(t)
	s.fake.say("coder-1", "x")
	for _, path := range []string{"/agents", "/events", "/events?after=0", "/sessions/coder-1/output/stream", "/journal", "/openapi.json"} {
		if text, _ := s.want(t, 200, "HEAD", api.Base+path, ""); text != "" {
			t.Errorf("HEAD %s has a body", path)
		}
		if _, h := s.want(t, 204, "OPTIONS", api.Base+strings.Split(path, "?")[0], ""); h.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("OPTIONS %s: %v", path, h)
		}
	}
	wait.Until(t, "no stream is left open", func() bool { return s.streams.Load() == 0 && s.watchers.Load() == 0 })
	resp := raw(t, s, "OPTIONS * HTTP/1.1\r\nHost: "+strings.TrimPrefix(s.url, "http://")+"\r\n\r\n")
	if resp.StatusCode != 401 {
		t.Errorf("OPTIONS *: status %d", resp.StatusCode)
	}
}

// A request whose announced body does not arrive does not block other requests for long.
func TestBigHeaders(t *testing.T) {
	s := serve(t)
	host := strings.TrimPrefix(s.url, "http://")
	resp := raw(t, s, "GET /api/v1/agents HTTP/1.1\r\nHost: "+host+"\r\nX-Long: "+strings.Repeat("x", 2*headerBytes)+"\r\n\r\n")
	if resp.StatusCode != 431 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestOtherContentTypes(t *testing.T) {
	s := serve(t)
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ";+"} {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", s.url+api.Base+"/hold", strings.NewReader(`{"note":"x"}`))
		req.Header.Set("Authorization", "Bearer "+testToken)
		req.Header.Set("Content-Type", kind)
		resp, err := plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 415 {
			t.Errorf("%s: status %d", kind, resp.StatusCode)
		}
	}
	if len(s.fake.orders) != 0 {
		t.Errorf("orders: %v", s.fake.orders)
	}
}

// What agents say is passed on as text, whatever it is.
func TestHostileStrings(t *testing.T) {
	s := serve(t)
	evil := "</script><img src=x onerror=alert(1)>\x00\x1b[31m\u202e\u2028\r\nevent: change\r\ndata: {}\r\n\r\n"
	s.fake.do(func() { s.fake.agents["coder"].Note, s.fake.agents["coder"].Doubt = evil, evil+"\xff\xfe" })
	text, h := s.want(t, 200, "GET", api.Base+"/agents", "")
	var view view.TeamView
	if err := json.Unmarshal([]byte(text), &view); err != nil {
		t.Fatal(err)
	}
	if view.Agents[0].Note != evil || h.Get("Content-Type") != "application/json" {
		t.Error(cmp.Diff(evil, view.Agents[0].Note), h)
	}
	s.fake.say("coder-1", evil+"\xff\xfe")
	s.fake.endSession("coder-1", evil)
	var heard string
	for h, err := range dial(t, s).Output(t.Context(), "coder-1", client.OutputQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		heard += h.Text
		if h.End != nil && h.End.Outcome != evil {
			t.Errorf("the outcome is %q", h.End.Outcome)
		}
	}
	if heard != evil+"\uFFFD" {
		t.Error(cmp.Diff(evil+"\uFFFD", heard))
	}
}
