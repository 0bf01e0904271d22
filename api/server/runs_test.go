package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/view"
)

// Every order about a run arrives as what it was, by who gave it.
func TestRunOrders(t *testing.T) {
	s := serve(t)
	c, err := client.Dial(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	attempts := 3
	shown, err := c.Runs.Start(ctx, view.RunFlags{Workflow: "w.yaml", MaxAttempts: &attempts, Env: []string{"A=b"}})
	if err != nil || shown.ID != "r1" || len(shown.Steps) != 2 || shown.Steps[1].Needs[0] != "build" {
		t.Errorf("started: %+v, %v", shown, err)
	}
	_, resumed := c.Runs.Resume(ctx, "r1", view.RunFlags{StartAtStep: "build"})
	_, cancelled := c.Runs.Cancel(ctx, "r1", "review", "enough")
	_, paused := c.Runs.Pause(ctx, "r1", "lunch")
	_, released := c.Runs.Release(ctx, "r1", "")
	_, yes := c.Runs.Answer(ctx, "r1", "review", view.StepAnswer{Input: `{"a":1}`, Note: "good"})
	_, no := c.Runs.Answer(ctx, "r1", "review", view.StepAnswer{Rejected: true})
	if err := errors.Join(resumed, cancelled, paused, released, yes, no); err != nil {
		t.Error(err)
	}
	want := []string{
		`start {"workflow":"w.yaml","env":["A=b"],"max_attempts":3}`, `resume {"start_at_step":"build"}`, `cancel r1 step "review" "enough"`,
		`pause r1 "lunch"`, `release r1 ""`, `answer r1 review rejected=false input "{\"a\":1}" "good"`, `answer r1 review rejected=true input "" ""`,
	}
	for i, line := range want {
		if i >= len(s.fake.orders) || !strings.HasPrefix(s.fake.orders[i], "human ") || !strings.HasSuffix(s.fake.orders[i], ": "+line) {
			t.Fatalf("orders: %q\nwant %s at %d", s.fake.orders, line, i)
		}
	}
	if runs, err := c.Runs.List(ctx); err != nil || len(runs) != 1 || runs[0].Steps != nil || runs[0].Waits == nil {
		t.Errorf("%+v, %v", runs, err)
	}
	if one, err := c.Runs.Show(ctx, "r1"); err != nil || one.Counts.Waiting != 1 || one.Steps[0].Needs == nil {
		t.Errorf("%+v, %v", one, err)
	}
	if items, err := c.Inbox(ctx); err != nil || len(items) != 1 || items[0].Step != "review" {
		t.Errorf("%+v, %v", items, err)
	}
	var refused *client.Refused
	if _, err := c.Runs.Cancel(ctx, "r1", "", "refuse"); !errors.As(err, &refused) || refused.Refusal.Row != "W14" {
		t.Errorf("%v", err)
	}
	var p *api.Problem
	if _, err := c.Runs.Show(ctx, "r2"); !errors.As(err, &p) || p.Status != 404 || len(p.Known) != 1 {
		t.Errorf("%v", err)
	}
}

// A workflow with faults is answered with every one of them, each at its place.
func TestWorkflowFaults(t *testing.T) {
	s := serve(t)
	text, _ := s.want(t, 422, "POST", api.Base+"/runs", `{"workflow":"broken.yaml"}`)
	p := problemText(t, text)
	if len(p.Errors) != 2 || p.Errors[0].Location != "broken.yaml:3:7" || p.Errors[0].Message != `steps.0.needs: there is no step "buidl"` || p.Errors[1].Location != "broken.yaml:9:1" {
		t.Errorf("%s", text)
	}
	if !strings.Contains(p.Detail, "broken.yaml:3:7") || !strings.Contains(p.Detail, "1 more") {
		t.Errorf("detail: %s", p.Detail)
	}
	if len(s.fake.orders) > 0 {
		t.Errorf("it was started: %q", s.fake.orders)
	}
}

// X10: an agent starts, resumes, cancels, releases and answers nothing, whichever it is. It may
// read, and may pause, as it may hold the team.
func TestAgentsOrderNoRuns(t *testing.T) {
	f := newFake()
	h := New(Options{Engine: f, User: "sam"}).SocketHandler()
	for _, session := range []string{"coder-17", "build@r1-2"} {
		f.orders = nil
		for path, status := range map[string]int{
			"POST /runs": 409, "POST /runs/r1/resume": 409, "POST /runs/r1/cancel": 409, "POST /runs/r1/release": 409,
			"POST /runs/r1/steps/review/approve": 409, "POST /runs/r1/steps/review/reject": 409, "POST /runs/r1/pause": 200,
			"GET /runs": 200, "GET /runs/r1": 200, "GET /inbox": 200,
		} {
			method, path, _ := strings.Cut(path, " ")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(asSession(t.Context(), session), method, api.Base+path, nil))
			if w.Code != status || status == 409 && problemText(t, w.Body.String()).Refusal.Row != "X10" {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
		if len(f.orders) != 1 || !strings.HasPrefix(f.orders[0], "agent ") || !strings.HasSuffix(f.orders[0], `pause r1 ""`) {
			t.Errorf("%s gave the orders %q", session, f.orders)
		}
		// Which agent a step's session is, its name does not say: it orders no agent about either.
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(asSession(t.Context(), session), "POST", api.Base+"/agents/reviewer/start", nil))
		if inStep := strings.Contains(session, "@"); (w.Code == http.StatusConflict) != inStep {
			t.Errorf("%s starts another: %d", session, w.Code)
		}
	}
}

// Names and inputs that are none are refused before the engine is asked.
func TestRunInputs(t *testing.T) {
	s := serve(t)
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
	if len(s.fake.orders) > 0 {
		t.Errorf("orders: %q", s.fake.orders)
	}
	for _, path := range []string{"/journal?entity=run/r1", "/journal?entity=run/r1/review", "/journal?entity=run/_r/_s"} {
		s.want(t, 200, "GET", api.Base+path, "")
	}
	s.want(t, 422, "GET", api.Base+"/journal?entity=run/r1/a/b", "")
	s.fake.say("review@r1-3", "hello\n")
	s.fake.endSession("review@r1-3", "ok")
	if text, _ := s.want(t, 200, "GET", api.Base+"/sessions/review@r1-3/output", ""); text != "hello\n" {
		t.Errorf("a step said %q", text)
	}
	text, _ := s.want(t, 200, "GET", api.Base+"/runs", "")
	var all struct{ Runs []map[string]any }
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all.Runs) != 1 || strings.Contains(text, "null") {
		t.Errorf("%v: %s", err, text)
	}
}
