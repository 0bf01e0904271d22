package claudehook

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// An agent that the daemon runs is restricted too: by the task that the daemon gave it, not by what the
// program calls itself.
func TestAnAgentOfTheDaemonIsHeldToItsState(t *testing.T) {
	w := newWorld(t)
	folder, _, err := dispatchfolder.Create("", dispatch.Setup{Host: dispatch.Fairlead, Lead: "lead"},
		dispatchfolder.Options{Repo: w.path("repo"), Home: w.path("home"), At: w.at})
	if err != nil {
		t.Fatal(err)
	}
	by := change.Actor{Kind: "human"}
	if _, _, err := folder.Do(w.at, by,
		dispatch.UserInput{Text: "Write a Python script", Match: &dispatch.Match{Agent: "fullstack-engineer"}}); err != nil {
		t.Fatal(err)
	}
	ask := func(state, conversation, name, command string) Answer {
		w.env = map[string]string{
			"FAIRLEAD_FOLDER": folder.Path(), "FAIRLEAD_STATE": state, "FAIRLEAD_CONVERSATION": conversation,
			"FAIRLEAD_MARK": "x.y",
		}
		return w.hook(name,
			strings.Replace(event(name,
				`,"tool_name":"Bash","tool_input":{"command":"`+command+`"},"agent_id":"sub","agent_type":"fullstack-engineer"`), "/repo",
				w.path("repo"), 1))
	}
	for _, c := range []struct{ state, conversation, command, want string }{
		{"MAIN", "conv_001", "ls", ""},
		{"MAIN", "conv_001", "make", "(D8, MAIN)"},
		{"fullstack-engineer", "conv_001", "make", ""},
		{"fullstack-engineer", "conv_001", "echo x >> " + folder.Path() + "/state.jsonl", "(X10, FULLSTACK_ENGINEER)"},
		{"fullstack-engineer", "conv_002", "make", "conv_002 has ended"}, // it may not write in another conversation
		{"database-architect", "conv_001", "make", "(D8, MAIN)"},
		{"", "", "make", "(D8, MAIN)"},
	} {
		a := ask(c.state, c.conversation, PreToolUse, c.command)
		if c.want == "" && len(a.Out) > 0 || !bytes.Contains(a.Out, []byte(c.want)) || a.Code != 0 {
			t.Errorf("%+v: %s %s", c, a.Out, a.Err)
		}
	}
	if a := ask("MAIN", "conv_001", PostToolUse, "make"); !bytes.Contains(a.Out, []byte(`"block"`)) {
		t.Errorf("a call that ran although it is not allowed passes: %s", a.Out)
	}
	if a := ask("MAIN", "conv_001", Stop, ""); len(a.Out) > 0 || a.Code != 0 {
		t.Errorf("the stop of a hosted agent gets an answer: %+v", a)
	}
	s, err := folder.Session()
	if err != nil || s.Denied != 5 {
		t.Errorf("%d denials are recorded: %v", s.Denied, err)
	}
	w.env["FAIRLEAD_FOLDER"] = w.path("gone")
	if a := w.hook(PreToolUse, event(PreToolUse, runs)); a.Code != codeBlock {
		t.Errorf("a call passes although its session cannot be found: %+v", a)
	}
	if _, _, err := folder.Do(w.at, by, dispatch.End{}); err != nil {
		t.Fatal(err)
	}
	if a := ask("MAIN", "conv_001", PreToolUse, "make"); len(a.Out) > 0 || a.Code != 0 {
		t.Errorf("after the end: %+v", a)
	}
}

// On a host of a team no dispatch runs. An agent in a checkout below the host's repository is not restricted by a
// dispatch of the leader, and its hooks need no daemon: they look for a dispatch in files, and find none.
func TestHooksInACheckoutOfAHost(t *testing.T) {
	w := newWorld(t)
	tree := w.path("repo/.agents/worktrees/r1")
	for _, dir := range []string{tree, w.path("repo/.fairlead/cluster")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(tree, "fairlead.yaml"), []byte("version: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.env = map[string]string{"FAIRLEAD_MARK": "x.y", "FAIRLEAD_SESSION": "coder-1"}
	for _, name := range []string{PreToolUse, PostToolUse, Stop} {
		if a := w.hook(name, strings.Replace(event(name, runs), "/repo", tree, 1)); len(a.Out) > 0 || a.Err != "" || a.Code != 0 {
			t.Errorf("%s: %+v", name, a)
		}
	}
}
