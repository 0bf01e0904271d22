package server

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
)

// questionsAsked is what TestRoutes asks about questions.
var questionsAsked = []askedOnce{
	{"list-questions", "GET", "/questions", "", `"questions" "id":"q1" "kind":"permission" "hints":["it deletes files"] "differs":[] "expires_at":null`},
	{"get-question", "GET", "/questions/q1", "", `"id":"q1" "paths":[] "options":[{"id":"y"`},
	{"answer-question", "POST", "/questions/q1/answer", `{"allow":true,"scope":"session"}`, `"seq":11`},
	{"list-saved-answers", "GET", "/saved-answers", "", `"standing" "id":"s1" "session_id":"" "allow":true "by":"human/sam"`},
	{"revoke-saved-answer", "DELETE", "/saved-answers/s1", "", `"seq":12`},
	{"retry-agent", "POST", "/agents/coder/retry", "", `"seq":13`},
	{"end-agent-session", "POST", "/agents/coder/end", "", `"seq":14`},
	{"search-all", "GET", "/search?q=upload&kind=output,channel&agent=coder&limit=5&since=2026-01-02T03:04:05Z", "", `"results":[{"kind":"output","entity":"coder-1","agent":"coder" "offset":1000,"snippet":"the "matches":[[4,10]] "link":"#/agents/coder/output/coder-1/1000" "next":0 "stopped":"" "took_ms" "index":{"seq":1,"behind" "dropped":0 "dropped_until":null`},
	{"list-usage", "GET", "/usage", "", `"agents" "agent":"coder" "sessions":2 "days":[] "runs":[] "budgets":[] "total"`},
	{"download-usage", "GET", "/usage/csv", "", "kind,day,agent,run,workflow,title,model,sessions,input_tokens,output_tokens,cost_usd"},
}

// Every answer arrives as what it was, by who gave it.
func TestQuestionOrders(t *testing.T) {
	s := serve(t)
	c, err := client.Dial(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	_, yes := c.Questions.Answer(ctx, "q1", view.QuestionAnswer{Allow: true, Scope: "always"})
	_, words := c.Questions.Answer(ctx, "q1", view.QuestionAnswer{Option: "y", Text: "with a word"})
	_, revoked := c.Questions.Revoke(ctx, "s1")
	_, retried := c.RetryAgent(ctx, "coder")
	_, over := c.EndAgentSession(ctx, "coder")
	if told, err := c.Tell(ctx, "coder", "use v2"); err != nil || told.When != view.TellAtOnce {
		t.Errorf("tell: %+v, %v", told, err)
	}
	if err := errors.Join(yes, words, revoked, retried, over); err != nil {
		t.Error(err)
	}
	want := []string{`answer q1 {"allow":true,"scope":"always"}`, `answer q1 {"option":"y","text":"with a word"}`, `revoke s1`, `retry coder`, `end coder`}
	for i, line := range want {
		if i >= len(s.fake.orders) || !strings.HasPrefix(s.fake.orders[i], "human ") || !strings.HasSuffix(s.fake.orders[i], ": "+line) {
			t.Fatalf("orders: %q\nwant %s at %d", s.fake.orders, line, i)
		}
	}
	if all, err := client.Get[api.Questions](ctx, c, "/questions", nil); err != nil || len(all.Questions) != 1 || all.Questions[0].Hints == nil {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err := c.Questions.Saved(ctx); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if used, err := c.Usage(ctx, true); err != nil || len(used.Agents) != 1 || used.Days == nil {
		t.Errorf("%+v, %v", used, err)
	}
	var refused *client.Refused
	if _, err := c.Questions.Answer(ctx, "q1", view.QuestionAnswer{Text: "refuse"}); !errors.As(err, &refused) || refused.Refusal.Row != "Q3" {
		t.Errorf("%v", err)
	}
	var p *api.Problem
	if _, err := c.Questions.Show(ctx, "q2"); !errors.As(err, &p) || p.Status != 404 || len(p.Known) != 1 {
		t.Errorf("%v", err)
	}
}

// X10: no agent answers a question of any agent, and none revokes an answer. It may read them.
func TestAgentsAnswerNothing(t *testing.T) {
	f := newFake()
	h := New(Options{Engine: f, User: "sam"}).SocketHandler()
	for _, session := range []string{"coder-17", "reviewer-1", "build@r1-2"} {
		for path, status := range map[string]int{
			"POST /questions/q1/answer": 409, "DELETE /saved-answers/s1": 409, "POST /agents/reviewer/retry": 409, "POST /agents/reviewer/end": 409,
			"GET /questions": 200, "GET /questions/q1": 200, "GET /saved-answers": 200, "GET /usage": 200,
		} {
			method, path, _ := strings.Cut(path, " ")
			w := httptest.NewRecorder()
			body := "{}"
			if strings.HasPrefix(path, "/questions/") {
				body = `{"allow":true}`
			}
			r := httptest.NewRequestWithContext(asSession(t.Context(), session), method, api.Base+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(w, r)
			if w.Code != status || status == 409 && (problemText(t, w.Body.String()).Refusal.Row != "X10" || strings.Contains(path, "/q") && !strings.Contains(w.Body.String(), "only people answer")) {
				t.Errorf("%s: %s %s: %d %s", session, method, path, w.Code, w.Body)
			}
		}
	}
	if len(f.orders) > 0 {
		t.Errorf("orders: %q", f.orders)
	}
}

// What is no answer is refused before the engine is asked.
func TestAnswerInputs(t *testing.T) {
	s := serve(t)
	for _, c := range []struct{ path, body, words string }{
		{"/questions/17/answer", `{"allow":true}`, "path.id"},
		{"/questions/q1/answer", "", "body"},
		{"/questions/q1/answer", `{"alow":true}`, "body.alow"},
		{"/questions/q1/answer", `{"scope":"forever"}`, "body.scope"},
		{"/questions/q1/answer", `{"allow":"yes"}`, "body.allow"},
		{"/questions/q1/answer", `{"text":"` + strings.Repeat("x", 16385) + `"}`, "body.text"},
	} {
		status := 422
		if c.body == "" {
			status = 400
		}
		if text, _ := s.want(t, status, "POST", api.Base+c.path, c.body); !strings.Contains(text, c.words) {
			t.Errorf("%s %.40s: %s", c.path, c.body, text)
		}
	}
	if len(s.fake.orders) > 0 {
		t.Errorf("orders: %q", s.fake.orders)
	}
}
