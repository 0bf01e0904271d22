package uitest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// OneAgent are the files of a workspace with one idle agent, for tests that only need the page.
var OneAgent = map[string]string{"fairlead.yaml": "version: 1\nagents:\n  coder: {description: Writes code, driver: exec, command: [\"true\"]}\n"}

// limitedScript works until the file limited appears. Then its provider's rate limit is reached; the
// verb %s is the time at which the limit resets.
const limitedScript = `steps:
  - say: I work.
  - usage: {input_tokens: 1200000, output_tokens: 34000, cost_usd: 12.34}
  - run: until [ -e limited ] || [ ! -e "$PWD" ]; do sleep 0.05; done; rm -f limited
  - emit: |
      {"type":"stopped","ok":false,"reason":"rate_limited","detail":"429: too many requests","until":"%s"}
  - crash
`

// RealQuestions is the real server with a working agent, whose questions the test submits to the
// loop as the agent's listener does.
func RealQuestions(t *testing.T) Target {
	t.Helper()
	until := time.Now().Add(20 * time.Minute).UTC().Format(time.RFC3339)
	s := NewServer(t, map[string]string{
		"fairlead.yaml": `version: 1
agents:
  coder: {description: Writes code, driver: script, script: coder.script.yaml}
  runner: {description: Does steps, driver: script, script: runner.script.yaml}
`,
		"coder.script.yaml":  fmt.Sprintf(limitedScript, until),
		"runner.script.yaml": "steps:\n  - usage: {input_tokens: 70000, output_tokens: 900, cost_usd: 1.5}\n",
		"plan.md":            "Make a plan.\n",
		"one.yaml":           "name: plan-code-review\nsteps:\n  - {id: plan, agent: runner, prompt: plan.md}\n",
	})
	proxy := s.Intercept()
	s.Do("POST", "/agents/coder/start", strings.NewReader(`{}`))
	a := &asker{Server: s, agent: "coder"}
	a.session()
	return Target{URL: s.URL, Agent: "coder", Questions: &Questions{
		Agent: "coder", Ask: a.permission, Write: a.write, InWords: a.inWords, Resume: a.resume, Withdraw: a.withdraw, Heard: s.heard,
		Know:  a.know,
		Limit: func() { s.Put("limited", "") }, Use: a.use,
		Refuse: func() string {
			const reason = "another person is just answering it"
			proxy.RefuseAnswer(reason)
			return reason
		},
		Hostile: func() { a.hostile(proxy) },
	}}
}

// asker submits the questions of one agent.
type asker struct {
	*Server
	agent string
	asked int
}

func (a *asker) submit(what any) {
	a.t.Helper()
	if _, err := a.engine.Loop.Submit(a.t.Context(), turns.ByAgent(a.agent), a.agent, what); err != nil {
		a.t.Fatalf("submit %T: %v", what, err)
	}
}

// session waits until the agent works, and returns the id of its session.
func (a *asker) session() (id string) {
	a.t.Helper()
	a.until("the agent works", "/agents/"+a.agent, func(body []byte) bool {
		var why struct {
			Agent struct{ Session *struct{ ID, Phase string } }
		}
		if err := json.Unmarshal(body, &why); err != nil {
			a.t.Fatal(err)
		}
		if s := why.Agent.Session; s != nil && s.Phase == "running" {
			id = s.ID
		}
		return id != ""
	})
	return id
}

// ask raises a question and returns its id.
func (a *asker) ask(q question.Question) (id string) {
	a.t.Helper()
	a.asked++
	q.Agent, q.Session, q.Ask = a.agent, a.session(), fmt.Sprintf("ask-%d", a.asked)
	a.submit(question.Ask{Question: q})
	if err := a.engine.Loop.View(a.t.Context(), func(t *team.Team) { id = t.Questions.Of(q.Session, q.Ask).ID }); err != nil {
		a.t.Fatal(err)
	}
	return id
}

// permission asks with another key each time, so that a saved answer does not answer the next question.
func (a *asker) permission() string {
	return a.ask(question.Question{
		Kind: question.Permission, What: "run rm -rf build", Why: "no rule allows it", Tool: "Bash",
		Call:      `{"command":"rm -rf build","description":"Tidy up"}`,
		Key:       fmt.Sprintf("Bash rm -rf build %d", a.asked),
		Options:   []question.Option{{ID: "once", Kind: "allow_once"}, {ID: "no", Kind: "reject_once"}},
		ExpiresAt: time.Now().Add(30 * time.Minute),
	})
}

func (a *asker) write() {
	a.ask(question.Question{
		Kind: question.Permission, What: "write ../notes.md", Tool: "Write", Call: `{"file_path":"/work/notes.md","content":"one\ntwo"}`,
		Paths: []string{"/work/notes.md"},
		Options: []question.Option{
			{ID: "a", Kind: "allow_once"},
			{ID: "b", Kind: "allow_once_and_mode", Label: "Yes, and stop asking for edits"},
			{ID: "c", Kind: "reject_once"},
		},
	})
}

func (a *asker) inWords() string {
	return a.ask(question.Question{
		Kind: question.Asked, What: "Which branch?\nBoth are green.", ExpiresAt: time.Now().Add(time.Hour),
		Options: []question.Option{{ID: "main", Label: "main"}, {ID: "next", Label: "next"}},
	})
}

func (a *asker) resume() {
	a.ask(question.Question{
		Kind: question.Resume, What: "its conversation ses_1 would resume with another model", Paths: []string{"model m1 → m2"},
		Options: []question.Option{{ID: "resume", Label: "Resume it"}, {ID: "fresh", Label: "Start a new one"}},
	})
}

func (a *asker) withdraw(id string) {
	a.submit(question.TakeBack{ID: id, Why: "the program does not need the answer any more"})
}

func (a *asker) know() {
	a.submit(team.ConversationNamed{Session: a.session(), Conversed: team.Conversed{
		ID: "ses_1a2b", Model: "scripted/m1", Mode: "build", Program: "opencode 1.18.33", Enforced: "asks before it writes and runs",
		Resumed: true,
	}})
	a.submit(team.StatusSaid{Session: a.session(), Text: "reading the tests"})
}

// use waits for the usage of the agent's session, and has a run use something.
func (a *asker) use() []string {
	var run struct {
		ID string `json:"run_id"`
	}
	if err := json.Unmarshal(a.Do("POST", "/runs", strings.NewReader(`{"workflow":"one.yaml"}`)), &run); err != nil {
		a.t.Fatal(err)
	}
	words := []string{"$12.34", time.Now().UTC().Format(time.DateOnly), run.ID, "plan-code-review"}
	a.until("all usage is known", "/usage", func(body []byte) bool {
		return strings.Contains(string(body), "12.34") && strings.Contains(string(body), run.ID)
	})
	return words
}

// hostile puts hostile texts into every field that an agent can choose. Names of agents and
// workflows are checked when they are loaded, so those in the table of usage come from the proxy.
func (a *asker) hostile(proxy *Proxy) {
	lies := []question.Option{
		{ID: Lie, Kind: Lie, Label: Lie},
		{ID: "__proto__", Kind: "__proto__"},
		{ID: "x", Kind: "toString", Label: Lie},
	}
	for _, kind := range []question.Kind{question.Permission, question.Asked, question.Resume} {
		a.ask(question.Question{
			Kind: kind, What: Lie + "\n" + Lie, Why: Lie, Tool: "mcp__" + Lie + "__" + Lie,
			Call:  `{"command":"` + "\\u202e\\u001b[31m<img src=x>" + `","__proto__":{"polluted":1}}`,
			Paths: []string{Lie}, Options: lies, Key: Lie, Default: Lie,
		})
	}
	id := a.ask(question.Question{
		Kind: question.Permission, What: Lie, Tool: Lie, Call: Lie, Key: "another",
		Options: []question.Option{{ID: "a", Kind: "allow_once"}},
	})
	a.Do("POST", "/questions/"+id+"/answer", strings.NewReader(`{"allow":true,"scope":"always"}`))
	session := a.session()
	a.submit(team.ConversationNamed{
		Session:   session,
		Conversed: team.Conversed{ID: Lie, Model: Lie, Mode: Lie, Program: Lie, Enforced: Lie},
	})
	a.submit(team.StatusSaid{Session: session, Text: Lie})
	proxy.Edit("/inbox", func(body map[string]any) {
		items, _ := body["items"].([]any)
		for _, kind := range []string{"step", "failed", "run", "limit"} {
			item := map[string]any{
				"id": kind + Lie, "kind": kind, "since": Lie, "blocks": []any{Lie, Lie}, "artifacts": []any{Lie},
				"logs": []any{Lie}, "metrics": map[string]any{Lie: Lie},
			}
			for _, field := range []string{
				"run_id", "step_id", "workflow_name", "why", "agent", "error", "back_to", "bad_input",
				"manual_input_path", "shown",
			} {
				item[field] = Lie
			}
			item["then"], item["files"] = []any{Lie}, []any{map[string]any{"name": Lie, "bytes": 1, "text": Lie}}
			item["made"] = []any{map[string]any{
				"step_id": Lie, "agent": Lie, "status": Lie, "artifacts": []any{Lie},
				"metrics": map[string]any{"__proto__": Lie}, "logs": []any{Lie},
			}}
			items = append(items, item)
		}
		body["items"] = items
	})
	proxy.Edit("/working", func(body map[string]any) {
		row := map[string]any{"status": Lie, "since": Lie, "last_at": Lie}
		for _, field := range []string{
			"agent", "session_id", "status_why", "purpose", "run_id", "step_id", "workflow_name", "title",
			"last", "says",
		} {
			row[field] = Lie
		}
		running := map[string]any{"status": "running", "agent": Lie, "session_id": "x", "title": Lie, "last": Lie, "since": nil}
		body["working"] = []any{row, running}
	})
	proxy.Edit("/usage", func(body map[string]any) {
		row := []any{map[string]any{
			"agent": Lie, "day": Lie, "run_id": Lie, "workflow_name": Lie, "sessions": 1, "input_tokens": 1,
			"output_tokens": 1, "cost_usd": 1e9,
		}}
		body["agents"], body["days"], body["runs"] = row, row, row
	})
}
