package server

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
)

// questionsAsked is what TestRoutes asks about questions.
var questionsAsked = []askedOnce{
	{"list-questions", "GET", "/questions", "", `"questions" "id":"OPEN" "kind":"permission" "hints":[ "differs":[] "expires_at":"`},
	{"get-question", "GET", "/questions/OPEN", "", `"id":"OPEN" "paths":[] "options":[{"id":"y"`},
	{"answer-question", "POST", "/questions/OPEN/answer", `{"allow":true,"scope":"session"}`, `"seq"`},
	{"list-saved-answers", "GET", "/saved-answers", "", `"saved" "id":"SAVED" "session_id":"" "allow":true "by":"human/sam`},
	{"revoke-saved-answer", "DELETE", "/saved-answers/SAVED", "", `"seq"`},
	{"retry-agent", "POST", "/agents/limited/retry", "", `"seq"`},
	{"end-agent-session", "POST", "/agents/asker/end", "", `"seq"`},
	{
		"search-all", "GET", "/search?q=upload&kind=output,channel&agent=coder&limit=5&since=2026-01-02T03:04:05Z", "",
		`"results":[{"kind":"output","entity":"coder-1","agent":"coder" "offset":1000,"snippet":"the "matches":[[4,10]] "link":"#/agents/coder/output/coder-1/1000" "next":0 "stopped":"" "took_ms" "index":{"seq":1,"behind" "dropped":0 "dropped_until":null`,
	},
	{"list-usage", "GET", "/usage", "", `"agents" "agent":"coder" "sessions":1 "days":[{ "runs":[{ "budgets":[] "total"`},
	{"download-usage", "GET", "/usage/csv", "", "kind,day,agent,run,workflow,title,model,sessions,input_tokens,output_tokens,cost_usd"},
}

// Every answer arrives at the agent that asked, and is kept under the name of the person who gave it.
func TestQuestionOrders(t *testing.T) {
	s := houseAt(t)
	c := dial(t, s)
	ctx := t.Context()
	first, asker := s.question(t, c)
	if _, err := c.Questions.Answer(ctx, first, view.QuestionAnswer{Allow: true, Option: "y", Text: "with a word"}); err != nil {
		t.Fatal(err)
	}
	for told := ""; !strings.Contains(told, `"answer"`); { // its prompt may come first
		select {
		case told = <-asker.told:
		case <-time.After(patience):
			t.Fatal("the agent was not told the answer")
		}
		if strings.Contains(told, `"answer"`) && !strings.Contains(told, `"option":"y"`) {
			t.Errorf("the agent is told %s", told)
		}
	}
	var refused *client.Refused
	if _, err := c.Questions.Answer(ctx, first, view.QuestionAnswer{Allow: true}); !errors.As(err, &refused) ||
		refused.Refusal.Reason == "" {
		t.Errorf("answered twice: %v", err)
	}
	second := s.ask(t, c, asker)
	if _, err := c.Questions.Answer(ctx, second, view.QuestionAnswer{Allow: true, Scope: "always"}); err != nil {
		t.Error(err)
	}
	saved, err := c.Questions.Saved(ctx)
	if err != nil || len(saved) != 1 || saved[0].By != "human/sam" || !saved[0].Allow {
		t.Fatalf("%+v, %v", saved, err)
	}
	if _, err := c.Questions.Revoke(ctx, saved[0].ID); err != nil {
		t.Error(err)
	}
	if saved, err := c.Questions.Saved(ctx); err != nil || len(saved) != 0 {
		t.Errorf("after it was revoked: %+v, %v", saved, err)
	}
	third := s.ask(t, c, asker)
	if all, err := client.Get[api.Questions](ctx, c, "/questions", nil); err != nil || len(all.Questions) != 1 ||
		all.Questions[0].ID != third || len(all.Questions[0].Hints) == 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if told, err := c.Tell(ctx, "asker", "use v2"); err != nil || told.When != view.TellAtOnce || told.Session != asker.session {
		t.Errorf("tell: %+v, %v", told, err)
	}
	if _, err := c.EndAgentSession(ctx, "asker"); err != nil {
		t.Error(err)
	}
	<-asker.done
	if used, err := c.Usage(ctx, true); err != nil || used.Total.Sessions != 1 || used.Days == nil {
		t.Errorf("%+v, %v", used, err)
	}
	var p *api.Problem
	if _, err := c.Questions.Show(ctx, "q99"); !errors.As(err, &p) || p.Status != 404 {
		t.Errorf("%v", err)
	}
}

// X10: no agent answers a question of any agent, and none revokes an answer. It may read them.
func TestAgentsAnswerNothing(t *testing.T) {
	s := houseAt(t)
	id, _ := s.question(t, dial(t, s))
	h := New(Options{Engine: s.sup.App, User: "sam"}).SocketHandler()
	for _, session := range []string{"coder-17", "reviewer-1", "build@r1-2"} {
		for path, status := range map[string]int{
			"POST /questions/ID/answer": 409, "DELETE /saved-answers/s1": 409, "POST /agents/reviewer/retry": 409,
			"POST /agents/reviewer/end": 409,
			"GET /questions":            200, "GET /questions/ID": 200, "GET /saved-answers": 200, "GET /usage": 200,
		} {
			before := s.sup.orders(t)
			method, path, _ := strings.Cut(strings.Replace(path, "ID", id, 1), " ")
			w := httptest.NewRecorder()
			body := "{}"
			if strings.HasPrefix(path, "/questions/") {
				body = `{"allow":true}`
			}
			r := httptest.NewRequestWithContext(asSession(t.Context(), session), method, api.Base+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(w, r)
			if w.Code != status || s.sup.orders(t) != before ||
				status == 409 &&
					(problemText(t, w.Body.String()).Refusal.Row != "X10" ||
						strings.Contains(path, "/q") && !strings.Contains(w.Body.String(), "only people answer")) {
				t.Errorf("%s: %s %s: %d %s", session, method, path, w.Code, w.Body)
			}
		}
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
	s.sup.unchanged(t)
}
