package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"
)

// What people order about runs is done, and kept under their name.
func TestRunOrders(t *testing.T) {
	s := houseAt(t)
	c := dial(t, s)
	ctx := t.Context()
	attempts := 3
	shown, err := c.Runs.Start(ctx, view.RunFlags{Workflow: "gate.yaml", MaxAttempts: &attempts, Env: []string{"A=b"}})
	if err != nil || len(shown.Steps) != 2 || shown.Steps[1].Needs[0] != "build" || shown.By != "sam" {
		t.Fatalf("started: %+v, %v", shown, err)
	}
	id := shown.ID
	if env := s.sup.host.acts(t, "build@"+id+"-1").launch.Env; valueOf(env, "A") != "b" {
		t.Errorf("the step has the environment %q", env)
	}
	s.untilRun(t, c, id, "waiting")
	if runs, err := c.Runs.List(ctx); err != nil || len(runs) != 1 || runs[0].Steps != nil || len(runs[0].Waits) != 1 ||
		runs[0].Counts.Waiting != 1 {
		t.Errorf("%+v, %v", runs, err)
	}
	if items, err := c.Inbox(ctx); err != nil || len(items) != 1 || items[0].Step != "review" {
		t.Errorf("%+v, %v", items, err)
	}
	_, paused := c.Runs.Pause(ctx, id, "lunch")
	held, shows := c.Runs.Show(ctx, id)
	if !strings.Contains(held.Why, "lunch") {
		t.Errorf("paused: %+v", held)
	}
	_, released := c.Runs.Release(ctx, id, "")
	_, no := c.Runs.Answer(ctx, id, "review", view.StepAnswer{Rejected: true, Note: "too quiet"})
	if err := errors.Join(paused, shows, released, no); err != nil {
		t.Fatal(err)
	}
	s.untilRun(t, c, id, "failed")
	if _, err := c.Runs.Resume(ctx, id, view.RunFlags{StartAtStep: "build"}); err != nil {
		t.Fatal(err)
	}
	s.untilRun(t, c, id, "waiting")
	if _, err := c.Runs.Answer(ctx, id, "review", view.StepAnswer{Input: `{"a":1}`, Note: "good"}); err != nil {
		t.Fatal(err)
	}
	s.untilRun(t, c, id, "completed")
	var refused *client.Refused
	if _, err := c.Runs.Cancel(ctx, id, "", "enough"); !errors.As(err, &refused) || refused.Refusal.Row == "" {
		t.Errorf("cancelled when it is over: %v", err)
	}
	other := s.gate(t, c)
	if _, err := c.Runs.Cancel(ctx, other, "", "enough"); err != nil {
		t.Error(err)
	}
	s.untilRun(t, c, other, "cancelled")
	var p *api.Problem
	if _, err := c.Runs.Show(ctx, "r2"); !errors.As(err, &p) || p.Status != 404 || len(p.Known) != 2 {
		t.Errorf("%v", err)
	}
	for _, line := range s.sup.changes(t) {
		if !strings.HasPrefix(line, "human sam: run/") {
			t.Errorf("in whose name: %s", line)
		}
	}
}

// A workflow with faults is answered with every one of them, each at its place.
func TestWorkflowFaults(t *testing.T) {
	s := serve(t)
	text := "name: broken\nsteps:\n  - {id: build, command: [\"true\"], needs: [buidl]}\n  - {command: [\"true\"]}\n"
	if err := os.WriteFile(filepath.Join(s.dir, "broken.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	text, _ = s.want(t, 422, "POST", api.Base+"/runs", `{"workflow":"broken.yaml"}`)
	p := problemText(t, text)
	if len(p.Errors) != 2 || !strings.HasSuffix(p.Errors[0].Location, "broken.yaml:3:44") ||
		!strings.Contains(p.Errors[0].Message, `"buidl"`) || !strings.HasSuffix(p.Errors[1].Location, "broken.yaml:4:5") {
		t.Errorf("%s", text)
	}
	if !strings.Contains(p.Detail, "broken.yaml:3:44") || !strings.Contains(p.Detail, "1 more") {
		t.Errorf("detail: %s", p.Detail)
	}
	s.sup.unchanged(t)
}

// X10: an agent starts, resumes, cancels, releases and answers nothing, whichever it is. It may
// read, and may pause, as it may hold the team.
func TestAgentsOrderNoRuns(t *testing.T) {
	s := houseAt(t)
	id := s.gate(t, dial(t, s))
	h := New(Options{Engine: s.sup.App, User: "sam"}).SocketHandler()
	for _, session := range []string{"coder-17", "build@r1-2"} {
		ask := func(method, path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w,
				httptest.NewRequestWithContext(asSession(t.Context(), session), method, api.Base+strings.Replace(path, "r1", id, 1), nil))
			return w
		}
		before := s.sup.orders(t)
		for path, status := range map[string]int{
			"POST /runs": 409, "POST /runs/r1/resume": 409, "POST /runs/r1/cancel": 409, "POST /runs/r1/release": 409,
			"POST /runs/r1/steps/review/approve": 409, "POST /runs/r1/steps/review/reject": 409,
			"GET /runs": 200, "GET /runs/r1": 200, "GET /inbox": 200,
		} {
			method, path, _ := strings.Cut(path, " ")
			w := ask(method, path)
			if w.Code != status || status == 409 && problemText(t, w.Body.String()).Refusal.Row != "X10" {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
		if orders := s.sup.orders(t); orders != before {
			t.Errorf("%s: %d orders are carried out, before %d", session, orders, before)
		}
		if w := ask("POST", "/runs/r1/pause"); w.Code != http.StatusOK {
			t.Errorf("%s may not pause: %d %s", session, w.Code, w.Body)
		}
		if all := s.sup.changes(t); !strings.HasPrefix(all[len(all)-1], "agent ") {
			t.Errorf("%s paused as %s", session, all[len(all)-1])
		}
		if _, err := s.sup.Runs.ReleaseRun(t.Context(), change.Actor{Kind: "human", ID: "sam"}, id, ""); err != nil {
			t.Fatal(err)
		}
		// Which agent a step's session is, its name does not say: it orders no agent about either.
		if w, inStep := ask("POST", "/agents/reviewer/start"), strings.Contains(session, "@"); (w.Code == http.StatusConflict) != inStep {
			t.Errorf("%s starts another: %d", session, w.Code)
		}
	}
}

// Names and inputs that are none are refused before the engine is asked.
func TestRunInputs(t *testing.T) {
	s := houseAt(t)
	id := s.gate(t, dial(t, s))
	before := len(s.sup.changes(t))
	for _, c := range []struct{ path, body, words string }{
		{"/runs/-x/pause", "", "path.id"},
		{"/runs/" + strings.Repeat("a", 49) + "/pause", "", "path.id"},
		{"/runs/r1/steps/..%2fx/approve", "", "path.step"},
		{"/runs/r1/cancel", `{"step":"../x"}`, "body.step"},
		{"/runs/r1/cancel", `{"stpe":"x"}`, "body.stpe"},
		{"/runs/r1/steps/review/approve", `{"rejected":true}`, "body.rejected"},
		{"/runs/r1/steps/review/approve", `{"input":"null"}`, "body.input"},
		{"/runs/r1/steps/review/reject", `{"input":"[1]"}`, "body.input"},
		{"/runs/r1/steps/review/approve", `{"input":"{"}`, "not a JSON object"},
		{"/runs", `{"workflow":"nowhere.yaml"}`, "relative to the repository"},
		{"/runs", `{"max_attempts":0}`, "body.max_attempts"},
		{"/runs", `{"cost_limit_action":"stop"}`, "body.cost_limit_action"},
		{"/runs/r1/resume", `{"env":"A=b"}`, "body.env"},
	} {
		text, _ := s.want(t, 422, "POST", api.Base+c.path, c.body)
		if !strings.Contains(text, c.words) {
			t.Errorf("%s %s: %s", c.path, c.body, text)
		}
	}
	for _, c := range []struct{ body, words string }{
		{`{"workflow":"/dev/zero"}`, "/dev/zero: is no regular file, and only such files are read"},
		{`{"workflow":"/"}`, "is no regular file"},
		{`{"workflow":"/dev/null/x.yaml"}`, "not a directory"},
		{`{"workflow":"x.yaml","repo":"/dev/null/x"}`, "not a directory"},
	} {
		if text, _ := s.want(t, 409, "POST", api.Base+"/runs", c.body); !strings.Contains(text, c.words) {
			t.Errorf("%s: %s", c.body, text)
		}
	}
	if all := s.sup.changes(t); len(all) != before {
		t.Errorf("orders: %q", all[before:])
	}
	for _, path := range []string{"/journal?entity=run/r1", "/journal?entity=run/r1/review", "/journal?entity=run/_r/_s"} {
		s.want(t, 200, "GET", api.Base+path, "")
	}
	s.want(t, 422, "GET", api.Base+"/journal?entity=run/r1/a/b", "")
	if text, _ := s.want(t, 200, "GET", api.Base+"/sessions/build@"+id+"-1/output", ""); !strings.HasPrefix(text, "hello\n") {
		t.Errorf("a step said %q", text)
	}
	text, _ := s.want(t, 200, "GET", api.Base+"/runs", "")
	var all struct{ Runs []map[string]any }
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all.Runs) != 1 || strings.Contains(text, "null") {
		t.Errorf("%v: %s", err, text)
	}
}
