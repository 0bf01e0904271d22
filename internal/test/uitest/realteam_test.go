package uitest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/examples"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// The teams of the real server in the scenarios. Each agent is a small program; a test controls it
// by files in its workspace.

// steeredScript is an agent in a channel that says the content of the file answer in the
// workspace's root.
const steeredScript = `until mv ../answer said 2>/dev/null; do sleep 0.02; done
cat said
echo TURN_COMPLETE
`

// brokenYAML has a fault in line 12, column 13.
const brokenYAML = `name: broken
steps:
  - id: plan
    command: [sh, workflows/step.sh]
  - id: code
    command: [sh, workflows/step.sh]
    needs: [plan]
  - id: test
    command: [sh, workflows/step.sh]
    needs: [code]
  - id: review
    needs: [cdoe]
    command: [sh, workflows/step.sh]
`

// askingScript asks for permission each time that the file ask appears.
var askingScript = "steps:\n  - say: I ask.\n" + strings.Repeat(`  - run: until [ -e ask ]; do sleep 0.02; done; rm -f ask
  - ask: May I clean up?
    tool: Bash
    args: {command: rm -rf build}
`, 9)

// RealTarget is the real server with a coder, a reviewer, a workflow and a channel, for a story. In some stories the
// agents of the channel say what the test writes; otherwise they answer by themselves.
func RealTarget(t *testing.T, story string) Target {
	t.Helper()
	steered := story == "hostile messages" || story == "a channel cut and restored"
	files := RunFiles()
	files["workflows/broken.yaml"], files["workflows/hold"] = brokenYAML, ""
	files["fairlead.yaml"] = fmt.Sprintf(`version: 1
agents:
  reviewer: {description: Reads every change, driver: exec, command: ["true"], workspace: reviewer}
  coder: {description: Writes and changes code, driver: exec, command: [sh, -c, %q], workspace: coder}
`, TalkingScript) + MeetingYAML(story)
	files[MeetingFile] = MeetingScript
	meeting := RealMeeting()
	for _, agent := range []string{"reviewer", "coder", "mate", "pilot"} {
		files[agent+"/README"] = "The workspace of " + agent + ".\n"
	}
	if steered {
		files[MeetingFile] = steeredScript
	}
	s := NewServer(t, files)
	if steered {
		meeting = &ChannelStory{Name: "quay", Done: s.answer, Aside: s.answer, TimeOut: func() { /* the turn's own limit ends it */ }}
	}
	return Target{
		URL: s.URL, Agent: "coder", Line: NewLine(t, s.URL), Says: "hello from a real process", ChannelStory: meeting,
		Workflow: &Workflow{
			File: PlanCodeReviewFile, Loop: func() { s.remove("workflows/hold") },
			Ask: func() { /* the run continues without an answer */ },
		},
		Faulty: "workflows/broken.yaml",
		Say:    func(text string) { s.Put("coder/say", text) },
		Finish: func() { s.Put("coder/finish", "") },
	}
}

// RealLiar is the real server with a coder, and an agent whose texts about itself are hostile. The
// server accepts no such names, so they come from the proxy.
func RealLiar(t *testing.T) Target {
	t.Helper()
	s := NewServer(t, map[string]string{
		"fairlead.yaml": fmt.Sprintf("version: 1\nagents:\n  coder: {driver: exec, command: [sh, -c, %q], workspace: coder}\n  liar: {driver: exec, command: [\"true\"], workspace: liar}\n", TalkingScript),
		"coder/README":  "The workspace of coder.\n", "liar/README": "The workspace of liar.\n",
	})
	s.Intercept().Edit("/agents", func(body map[string]any) {
		agents, _ := body["agents"].([]any)
		for _, a := range agents {
			if of, _ := a.(map[string]any); of["name"] == "liar" {
				for _, field := range []string{"name", "description", "note", "doubt", "driver", "waiting_behind"} {
					of[field] = Lie
				}
			}
		}
	})
	return Target{URL: s.URL, Agent: "coder", Liar: Lie, Say: func(text string) { s.Put("coder/say", text) }}
}

// answer gives the next answer to the agent that has the turn. The rename makes it appear
// completely.
func (s *Server) answer(text string) {
	s.t.Helper()
	s.Put("answer.part", text+"\n")
	if err := os.Rename(filepath.Join(s.Dir, "answer.part"), filepath.Join(s.Dir, "answer")); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) remove(name string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.Dir, name)); err != nil {
		s.t.Fatal(err)
	}
}

// RealAsking is the real server with an agent that asks for permission.
func RealAsking(t *testing.T) Target {
	t.Helper()
	s := NewServer(t, map[string]string{
		"fairlead.yaml":    "version: 1\nagents:\n  coder: {description: Writes code, driver: script, script: asks.script.yaml}\n",
		"asks.script.yaml": askingScript,
	})
	s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
	return Target{URL: s.URL, Agent: "coder", Line: NewLine(t, s.URL), Questions: &Questions{Agent: "coder", Ask: s.ask, Heard: s.heard}}
}

// until requests the API until its answer contains the wanted text.
func (s *Server) until(what, path string, holds func(body []byte) bool) {
	s.t.Helper()
	var body []byte
	if !wait.Poll(func() bool {
		body = s.Do("GET", path, nil)
		return holds(body)
	}) {
		s.t.Fatalf("waited %v until %s; GET %s answers: %s", wait.Patience, what, path, body)
	}
}

// ask makes the agent ask and returns the question's id.
func (s *Server) ask() (id string) {
	s.t.Helper()
	s.Put("ask", "")
	s.until("the agent asks", "/inbox", func(body []byte) bool {
		var inbox struct {
			Items []struct {
				Question *struct{ ID string }
			}
		}
		if err := json.Unmarshal(body, &inbox); err != nil {
			s.t.Fatal(err)
		}
		for _, item := range inbox.Items {
			if item.Question != nil {
				id = item.Question.ID
			}
		}
		return id != ""
	})
	return id
}

// heard returns the answer to a question as the journal has it, spelled as the body of the request;
// empty while there is none.
func (s *Server) heard(t *testing.T, id string) string {
	t.Helper()
	var page struct {
		Changes []struct {
			Data struct {
				Question struct {
					Question struct {
						State, Kind, Option, Text, Scope string
						Allow                            bool
					}
				}
			}
		}
	}
	if err := json.Unmarshal(s.Do("GET", "/journal?tail=20&entity=question/"+id, nil), &page); err != nil {
		t.Fatal(err)
	}
	for _, ch := range page.Changes {
		if q := ch.Data.Question.Question; q.State == "answered" {
			if q.Kind == "permission" {
				q.Option = "" // of a permission: derived from the answer
			}
			body, err := json.Marshal(struct {
				Allow  bool   `json:"allow"`
				Option string `json:"option,omitempty"`
				Text   string `json:"text,omitempty"`
				Scope  string `json:"scope"`
			}{q.Allow, q.Option, q.Text, q.Scope})
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
	}
	return ""
}

// RealCrew is the real server with the lead of examples/crew, which answers by itself.
func RealCrew(t *testing.T) Target {
	t.Helper()
	files := exampleFiles(t, examples.Files, "crew")
	for name, text := range files {
		files[name] = strings.Replace(text, `PACE: "0.7"`, `PACE: "0.05"`, 1)
	}
	s := NewServer(t, files)
	return Target{URL: s.URL, Line: NewLine(t, s.URL), Agent: "julian", CrewStory: RealCeremony("julian")}
}

// RealDispatch is the real server with the agents of examples/session, which do what they are given.
func RealDispatch(t *testing.T) Target {
	t.Helper()
	s := NewServer(t, exampleFiles(t, os.DirFS(filepath.Join(UIDir(), "..", "examples", "session")), "."))
	return Target{
		URL: s.URL, Agent: "coordinator",
		DispatchStory: &DispatchStory{
			Input: "Write a hello world Python script", Agent: "fullstack-engineer", File: "hello_world.py",
			Text: "Hello, World!",
		},
	}
}

func exampleFiles(t *testing.T, from fs.FS, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(from, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, name)
		files[strings.TrimPrefix(name, root+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// RealLimited is the real server with an agent that has used up its daily cost, so the next order
// to start it is refused.
func RealLimited(t *testing.T) (target Target, words string) {
	t.Helper()
	s := NewServer(t, map[string]string{
		"fairlead.yaml":     "version: 1\nagents:\n  coder: {description: Writes code, driver: script, script: costs.script.yaml, limits: {cost_per_day_usd: 1}}\n",
		"costs.script.yaml": "steps:\n  - usage: {cost_usd: 2}\n",
	})
	s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
	s.until("the session is over and its cost is known", "/agents/coder", func(body []byte) bool {
		var why struct {
			Agent struct {
				Session *struct{}
				Current string `json:"current_state"`
				Usage   struct {
					Cost float64 `json:"cost_usd"`
				} `json:"usage_today"`
			}
		}
		return json.Unmarshal(body, &why) == nil && why.Agent.Session == nil && why.Agent.Current == "pause" && why.Agent.Usage.Cost == 2
	})
	return Target{URL: s.URL, Agent: "coder"}, "is reached; raise it in fairlead.yaml"
}
