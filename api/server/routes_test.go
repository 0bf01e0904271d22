package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/engine/loop"
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
	case "sign-in-to-repository", "invite-host", "drain-host", "remove-host", "lead-host", "leave-cluster", "open-shell", "open-port",
		"sync-task", "undo-task", "push-task":
		return 409
	}
	return 200
}

// everyRouteAsked is one call of each route except stream-events, in an order in which all succeed.
func everyRouteAsked() []askedOnce {
	return append([]askedOnce{
		{"get-digest", "GET", "/digest?since=2026-11-25T00:00:00Z", "", `"since":"2026-11-25T00:00:00Z" "lines":[{"kind" "cost_usd"`},
		{"mark-seen", "POST", "/seen", `{}`, `"until":"`},
		{
			"list-agents", "GET", "/agents", "",
			`"hold" "stopping" "head" "team" "agents" "name" "description" "driver" "loop" "desired_state" "current_state" "badge" "presence" "turn" "set_by" "note" "session" "evidence_age_ms" "doubt" "failures" "retry_at" "waiting_behind" "usage_today" "input_tokens" "output_tokens" "cost_usd" "limits" "tokens_per_day" "cost_per_day_usd" "removed"`,
		},
		{"explain-agent", "GET", "/agents/coder", "", `"agent" "evidence":[{"what" "verdict" "sessions":[{"id":"coder-1"`},
		{
			"read-journal", "GET", "/journal?tail=1&entity=control/coder", "",
			`"changes" "head" "seq" "time" "machine":"control" "entity":"control/coder" "row":"C8" "from":"run_once" "to":"resting" "trigger" "actor":{"kind":"engine" "data":{`,
		},
		{"read-output", "GET", "/sessions/coder-1/output", "", "hello"},
		{"stream-output", "GET", "/sessions/coder-1/output/stream", "", "event: end"},
		{"read-facts", "GET", "/sessions/coder-1/facts", "", `"facts" "type":"said" "offset":6 "text":"hello"`},
		{"list-machines", "GET", "/machines", "", `"machines" "name":"control" "mermaid" "rows" "id":"C1" "from" "event" "to" "do"`},
		{
			"get-status", "GET", "/status", "",
			`"version":"1.2.3" "pid" "started_at" "uptime_ms" "dir" "journal":{"head": "backend":"memory"} "subscribers":0`,
		},
		{"reload-config", "POST", "/reload", `{}`, `"changes":["agent coder changed"] "head"`},
		{"list-workflows", "GET", "/workflows", "", `"workflows" "path":"nightly.yaml" "name":"nightly" "steps":1`},
		{
			"list-runs", "GET", "/runs", "",
			`"runs" "run_id":"RUN1" "workflow_name":"gate" "status":"waiting" "stage" "repo_dir" "run_state" "created_at" "updated_at" "waits":["review: "cost_usd" "counts" "waiting_on_human":1`,
		},
		{
			"list-inbox", "GET", "/inbox", "",
			`"items" "kind":"step" "run_id":"RUN1" "step_id":"review" "since" "why" "manual_input_path" "artifacts":[] "blocks":[]`,
		},
		{"list-working", "GET", "/working", "", `"working" "agent":"asker" "session_id":"asker-1" "status" "since"`},
		{
			"get-run", "GET", "/runs/RUN1", "",
			`"run_id":"RUN1" "steps" "metrics":{} "logs":[] "artifacts":[] "needs":["build"] "human_in_the_loop":true "attempts":1 "iteration_count" "started_at":"`,
		},
		{"pause-run", "POST", "/runs/RUN1/pause", "", `"seq":`},
		{"release-run", "POST", "/runs/RUN1/release", `{}`, `"seq":`},
		{"approve-step", "POST", "/runs/RUN1/steps/review/approve", `{"input":"{}"}`, `"seq":`},
		{"reject-step", "POST", "/runs/RUN2/steps/review/reject", "", `"seq":`},
		{"get-run", "GET", "/runs/RUN2", "", `"status":"failed"`},
		{"resume-run", "POST", "/runs/RUN2/resume", `{"start_at_step":"build"}`, `"run_id":"RUN2"`},
		{"cancel-run", "POST", "/runs/RUN3/cancel", `{"note":"x"}`, `"seq":`},
		{"start-run", "POST", "/runs", `{"workflow":"gate.yaml"}`, `"run_id" "workflow_name":"gate" "steps" "id":"build"`},
		{"prune-runs", "POST", "/prune", `{"keep":3,"dry_run":true}`, `"runs" "run_id":"RUN1" "did":"kept" "why"`},
	}, slices.Concat(tasksAsked, loginsAsked, repositoriesAsked, channelsAsked, crewAsked, questionsAsked, noticesAsked, hostsAsked,
		sessionsAsked, configAsked, agentsAsked)...)
}

// agentsAsked come last: then the team stops.
var agentsAsked = []askedOnce{
	{"start-agent", "POST", "/agents/coder/start", `{"note":"x"}`, `"seq": "agent" "desired_state":"continuous"`},
	{"stop-agent", "POST", "/agents/coder/stop", "", `"seq": "desired_state":"pause"`},
	{"run-agent-once", "POST", "/agents/coder/once", `{}`, `"desired_state":"run_once"`},
	{"run-agent-cleanup", "POST", "/agents/coder/cleanup", `{"note":""}`, `"desired_state":"run_cleanup"`},
	{"hold-team", "POST", "/hold", `{"note":"lunch"}`, `"seq": "hold":true`},
	{"unhold-team", "POST", "/unhold", "", `"seq": "hold":false`},
	{"stop-team", "POST", "/down", `{"now":true}`, `"stopping":true`},
}

// Every route answers over TCP, with every field that the contract names. An agent is refused each order that is for people. No GET acts.
func TestEveryRoute(t *testing.T) {
	t.Parallel()
	s, names := lived(t)
	asAgents, tried := refusedToAgents(t, s)
	taken := map[string]bool{"stream-events": true} // it has no end, and tests of its own
	askAll(t, s, names, func(c askedOnce) (string, func(string, http.Header)) {
		taken[c.id] = true
		asAgents(c)
		return c.path, func(string, http.Header) {}
	})
	for _, rt := range routeTable() {
		if !taken[rt.ID] {
			t.Errorf("no test takes the route %s", rt.ID)
		}
	}
	if tried() < 40 {
		t.Errorf("only %d orders were tried as agents", tried())
	}
	noGetActs(t, s, names)
}

// SPEC X4: a refusal says what was asked, what the state is, which row forbids it and what
// would be allowed.
func TestRefusal(t *testing.T) {
	s := serveTeam(t, memory.New(), newWorkspace(t), twoScouts)
	text, h := s.want(t, 409, "POST", api.Base+"/agents/coder/ready", "")
	p := problemText(t, text)
	if r := p.Refusal; p.Title != "Refused" || r == nil || r.Subject == "" || r.Event == "" || r.State == "" || r.Row == "" ||
		r.Reason == "" && len(r.Takes) == 0 || !strings.Contains(p.Detail, r.Reason) || h.Get("Content-Type") != api.ProblemType {
		t.Errorf("%v\n%s", h, text)
	}
}

func TestProblems(t *testing.T) {
	s := serve(t)
	s.sup.begin(t, "coder", 1).say("x")
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
		{"GET", "/events?after=1000", "", 410, "the journal ends at "},
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

// faultyJournal is a journal on a disk that may break.
type faultyJournal struct {
	journal.Journal
	broken atomic.Bool
}

func (j *faultyJournal) Head(ctx context.Context) (uint64, journal.Hash, error) {
	if j.broken.Load() {
		return 0, journal.Hash{}, errors.New("read the head: the disk is gone; repair it")
	}
	return j.Journal.Head(ctx)
}

func TestClosedAndBroken(t *testing.T) {
	j := &faultyJournal{Journal: memory.New()}
	s := serveTeam(t, j, newWorkspace(t), pair)
	s.sup.begin(t, "coder", 1)
	j.broken.Store(true)
	text, _ := s.want(t, 500, "GET", api.Base+"/journal", "")
	if p := problemText(t, text); p.Detail != "read the head: the disk is gone; repair it" {
		t.Errorf("%s", text)
	}
	j.broken.Store(false)
	s.sup.end()
	for _, path := range []string{"/agents", "/agents/coder", "/status", "/sessions/coder-1/output", "/sessions/coder-1/output/stream"} {
		text, h := s.want(t, 503, "GET", api.Base+path, "")
		if p := problemText(t, text); h.Get("Retry-After") != "1" || p.Detail != loop.ErrClosed.Error() {
			t.Errorf("%s: %s", path, text)
		}
	}
}

func TestHeadAndOptions(t *testing.T) {
	s := serve(t)
	s.sup.begin(t, "coder", 1).say("x")
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
	t.Parallel()
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
	s.sup.unchanged(t)
}

// What agents say is passed on as text, whatever it is.
func TestHostileStrings(t *testing.T) {
	s := serve(t)
	evil := "</script><img src=x onerror=alert(1)>\x00\x1b[31m\u202e\u2028\r\nevent: change\r\ndata: {}\r\n\r\n"
	if _, err := s.sup.Agents.Command(t.Context(), change.Actor{Kind: "human", ID: "sam"}, "coder", "run_once", evil+"\xff\xfe"); err != nil {
		t.Fatal(err)
	}
	text, h := s.want(t, 200, "GET", api.Base+"/agents", "")
	var view view.TeamView
	if err := json.Unmarshal([]byte(text), &view); err != nil {
		t.Fatal(err)
	}
	if note := view.Agents[0].Note; !strings.HasPrefix(note, evil) || !utf8.ValidString(note) ||
		h.Get("Content-Type") != "application/json" {
		t.Error(cmp.Diff(evil, note), h)
	}
	p := s.sup.host.acts(t, "coder-1")
	p.say(evil + "\xff\xfe")
	p.exit(1)
	var heard string
	for h, err := range dial(t, s).Output(t.Context(), "coder-1", client.OutputQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		heard += h.Text
		if h.End != nil && h.End.Outcome != "failed" {
			t.Errorf("the outcome is %q", h.End.Outcome)
		}
	}
	if heard != evil+"\uFFFD" {
		t.Error(cmp.Diff(evil+"\uFFFD", heard))
	}
}
