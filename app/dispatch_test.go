package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// A crew for dispatches: MAIN answers, the engineer writes, and a third agent is described but not
// configured.
const sessionYAML = `
version: 1
dispatch: {main: coordinator, sandbox: off}
agents:
  coordinator: {driver: script, script: coordinator.yaml, workspace: coordinator, description: Coordinates}
  engineer: {driver: script, script: engineer.yaml, workspace: engineer, description: "Use to write Python scripts and programs"}
  reviewer: {driver: script, script: reviewer.yaml, workspace: reviewer, description: "Use to review what somebody wrote"}
`

var sessionScripts = map[string]string{
	"coordinator.yaml": `
steps:
  - expect_prompt
  - run: |
      case $PROMPT in
      *"engineer is done"*) echo "It is written.";;
      *"engineer has failed"*) echo "It could not be done.";;
      *"by yourself"*) echo "I have it done."; echo '[DELEGATE] {"to": "engineer", "task": "write a script, as asked"}';;
      *) echo '{"type":"thought","text":"this I know"}'; echo "I can help with planning.";;
      esac
    raw: true
`,
	"engineer.yaml": `
steps:
  - expect_prompt
  - run: |
      case $PROMPT in
      *"reviewer is done"*) echo "It was looked at.";;
      *"that fails"*) echo "I try."; echo "no idea"; exit 1;;
      *"by a friend"*) echo "Let somebody look at it."; echo '[DELEGATE] {"to": "reviewer", "task": "review it"}';;
      *) echo "print('Hello')" > "$FAIRLEAD_OUTPUTS/hello.py"; echo "I wrote hello.py.";;
      esac
    raw: true
`,
	"reviewer.yaml": `
steps:
  - expect_prompt
  - say: "It is good."
`,
}

// session begins a dispatch folder in a world's repository.
func (w *world) session(mode dispatch.Mode) *dispatchfolder.Folder {
	w.t.Helper()
	return beginSession(w.t, w.dir, mode)
}

func beginSession(t *testing.T, repo string, mode dispatch.Mode) *dispatchfolder.Folder {
	t.Helper()
	setup := dispatch.Setup{Mode: mode, Host: dispatch.Fairlead, Lead: "coordinator", Agents: []dispatch.Description{
		{Name: "engineer", Text: "Use to write Python scripts and programs"},
		{Name: "reviewer", Text: "Use to review what somebody wrote"},
		{Name: "stranger", Text: "Use to translate poems"},
	}}
	if mode == dispatch.Response {
		setup.Lead = ""
	}
	f, _, err := dispatchfolder.Create(filepath.Join(repo, dispatchctl.SessionsFolder, "20261121_100000"), setup,
		dispatchfolder.Options{Repo: repo, Home: repo})
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := f.Session(); dispatchfolder.Best(s, "Write Python scripts").Best == "" {
		t.Skip("descriptions are not ranked yet")
	}
	return f
}

// tellSession adds a person's input, as the command line does.
func tellSession(t *testing.T, f *dispatchfolder.Folder, text string) dispatch.Dispatch {
	t.Helper()
	s, err := f.Session()
	if err != nil {
		t.Fatal(err)
	}
	in := dispatch.UserInput{Text: text, Match: dispatchfolder.MatchOf(dispatchfolder.Best(s, text))}
	_, s, err = f.Do(time.Now(), change.Actor{Kind: "human", ID: "tester"}, in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answered waits until a conversation has ended, and returns what was recorded of it.
func (w *world) answered(f *dispatchfolder.Folder, n int) string {
	w.t.Helper()
	wait.Value(w.t, fmt.Sprintf("the end of conversation %d", n), f.Session, func(s dispatch.Dispatch) bool {
		return s.Made >= n && (s.Open == nil || s.Open.N > n)
	})
	text, err := f.Dialogue(n)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

func holds(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%s does not say %q:\n%s", what, word, text)
		}
	}
}

// TestHostedSession plays the example of seed 002 with real processes. MAIN answers an input that
// fits no agent (D2, D7). An agent that fits gets the task, and MAIN gets the result (D3, D4). A
// failure is reported as (task failed). The answer says so if an agent is described but not
// configured. Each input has its own conversation.
func TestHostedSession(t *testing.T) {
	w := newWorld(t, sessionYAML, sessionScripts)
	f := w.session(dispatch.Orchestrator)

	tellSession(t, f, "What can you help with?")
	holds(t, "the answer", w.answered(f, 1), "I can help with planning.", "this I know")
	tellSession(t, f, "Write a hello world Python script")
	holds(t, "the dialogue", w.answered(f, 2), "I wrote hello.py.", "[MAIN → ENGINEER]", "[ENGINEER → MAIN]", "task completed")
	if text, err := os.ReadFile(filepath.Join(f.Workspace(2), "hello.py")); err != nil || string(text) != "print('Hello')\n" {
		t.Errorf("the script is %q, %v", text, err)
	}
	tellSession(t, f, "Write a Python program that fails")
	holds(t, "the dialogue", w.answered(f, 3), "task failed", "no idea", "I try.")
	tellSession(t, f, "translate poems")
	holds(t, "the dialogue", w.answered(f, 4), "not an agent of fairlead.yaml", "task failed")
	tellSession(t, f, "Please have it done by yourself")
	holds(t, "the dialogue", w.answered(f, 5), "write a script, as asked", "I wrote hello.py.", "It is written.")

	shown, err := w.engine.Dispatch.Folder(context.Background(), f.Name())
	talks, fault := f.Conversations()
	if err != nil || fault != nil {
		t.Fatalf("the page says %+v, %v, %v", shown, err, fault)
	}
	if len(talks) != 5 || shown.State != dispatch.Main || shown.Read == 0 || len(shown.Layers) != 3 {
		t.Errorf("the page shows %d conversations, state %s, %d bytes, layers %v", len(talks), shown.State, shown.Read, shown.Layers)
	}
	w.took("dispatch/"+f.Name(), "D1", "D2", "D3", "D4", "D7")
	for _, name := range []string{"coordinator", "engineer"} {
		w.until(name, "it is at rest", func(v view.AgentView) bool { return v.Session == nil })
	}
}

// D5: in mode interactive an agent asks another one for help and gets the result; MAIN gets the
// final answer.
func TestHostedInteractive(t *testing.T) {
	w := newWorld(t, sessionYAML, sessionScripts)
	f := w.session(dispatch.Interactive)
	tellSession(t, f, "Write a Python script, looked at by a friend")
	holds(t, "the dialogue", w.answered(f, 1), "[ENGINEER → REVIEWER]", "It is good.", "It was looked at.", "[ENGINEER → MAIN]")
	w.took("dispatch/"+f.Name(), "D5")
}

// D6: in mode response messages are processed one at a time in the order of their names. A message
// that fits no agent is moved aside.
func TestHostedInbox(t *testing.T) {
	w := newWorld(t, sessionYAML, sessionScripts)
	f := w.session(dispatch.Response)
	for name, text := range map[string]string{
		"1.md": "Write a hello world Python script", "2.txt": "xyzzy plugh", "3.md": "review what somebody wrote",
	} {
		w.write(filepath.Join(dispatchctl.SessionsFolder, f.Name(), dispatchctl.InboxFolder, name), text)
	}
	holds(t, "the second", w.answered(f, 2), "review what somebody wrote", "It is good.")
	inbox := filepath.Join(f.Path(), dispatchctl.InboxFolder)
	for name, want := range map[string]string{"1.md.result.md": "I wrote hello.py.", "3.md.result.md": "It is good."} {
		if text, err := os.ReadFile(filepath.Join(inbox, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s says %q, %v", name, text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(inbox, "unmatched", "2.txt")); err != nil {
		t.Error(err)
	}
	w.took("dispatch/"+f.Name(), "D6")
}

// TestHostedWorkOutlivesTheDaemon checks that an agent that runs while the daemon is stopped is
// adopted, and that its output from that time is its result.
func TestHostedWorkOutlivesTheDaemon(t *testing.T) {
	w := newWorld(t, sessionYAML, map[string]string{
		"coordinator.yaml": sessionScripts["coordinator.yaml"], "reviewer.yaml": sessionScripts["reviewer.yaml"],
		"engineer.yaml": `
steps:
  - expect_prompt
  - say: "I begin."
  - run: while ! test -f ../go; do sleep 0.02; done
  - say: "I am done."
  - run: echo "print()" > "$FAIRLEAD_OUTPUTS/late.py"
    says: true
`,
	})
	f := w.session(dispatch.Orchestrator)
	tellSession(t, f, "Write a hello world Python script")
	session := w.until("engineer", "it works", func(v view.AgentView) bool { return v.Session != nil && v.Session.PID != 0 }).Session.ID
	w.stop()
	w.write("go", "")
	w.start()
	holds(t, "the dialogue", w.answered(f, 1), "I begin.\nI am done.", "task completed")
	if n := strings.Count(strings.Join(w.history("session/engineer"), "\n"), "none -> opened"); n != 1 {
		t.Errorf("%s was not the only session: there were %d", session, n)
	}
}
