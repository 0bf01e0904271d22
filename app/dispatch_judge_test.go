package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/listen"
	"github.com/fairlead-dev/fairlead/work/questions"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// asksFirst asks for two calls and delegates; its next session answers. doesIt asks for nothing.
const (
	asksFirst = `
sessions:
  - - expect_prompt
    - {ask: "May I write it?", tool: Write, args: {file_path: "hello.py"}}
    - {run: 'if [ "$ANSWER" = allow ]; then echo "I may write."; else echo "I may not write."; fi', says: true}
    - {ask: "May I look?", tool: Bash, args: {command: "git status"}}
    - {run: 'if [ "$ANSWER" = allow ]; then echo "I may look."; else echo "I may not look."; fi', says: true}
    - say: '[DELEGATE] {"to": "engineer", "task": "Write hello.py, a Python script"}'
  - - expect_prompt
    - {run: 'case $PROMPT in *"engineer is done"*) echo "It is done.";; *) echo "It is not done.";; esac', says: true}
`
	doesIt = `
steps:
  - expect_prompt
  - run: echo hi > ../past.sh || true
  - sleep: 20s
  - say: "I did it."
`
)

// denial is a denied tool call as the folder stores it, and what was done instead.
type denial struct {
	Denied  dispatch.Denied
	Instead string // the next transition of the conversation
}

func denialsIn(t *testing.T, path string) (all []denial) {
	t.Helper()
	f, err := dispatchfolder.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := f.Lines(0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		ch := &lines[i].Change
		if n := len(all); n > 0 && all[n-1].Instead == "" && ch.From != ch.To {
			all[n-1].Instead = dispatch.Arrow(ch.From, ch.To)
		}
		if denied := change.As[dispatch.Body](ch.Body).Denied; denied != nil {
			all = append(all, denial{Denied: *denied})
		}
	}
	return all
}

func judgedWorld(t *testing.T, main string) func(text string, n int) (string, view.FolderView) {
	t.Helper()
	files := map[string]string{
		"coordinator.yaml": main, "engineer.yaml": sessionScripts["engineer.yaml"],
		"reviewer.yaml": sessionScripts["reviewer.yaml"],
	}
	w := newWorld(t, sessionYAML, files)
	f := w.session(dispatch.Orchestrator)
	return func(text string, n int) (string, view.FolderView) {
		t.Helper()
		in := dispatch.UserInput{Text: text} // no agent's description is compared: MAIN gets the input
		if _, _, err := f.Do(time.Now(), human, in); err != nil {
			t.Fatal(err)
		}
		dialogue := w.answered(f, n)
		view, err := w.engine.Dispatch.Folder(context.Background(), f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return dialogue, view
	}
}

// D8, D9: the rules answer what MAIN asks for. An allowed call proceeds. A denied call is recorded
// with the agent that could make it and with what was done instead.
func TestMainIsJudgedWhenItAsks(t *testing.T) {
	t.Parallel()
	tell := judgedWorld(t, asksFirst)
	dialogue, view := tell("Please ask first, as you should", 1)
	denials := denialsIn(t, view.Path)
	holds(t, "the dialogue", dialogue, "MAIN was denied", "hello.py", "It is done.")
	if strings.Contains(dialogue, "git status") {
		t.Errorf("git status was denied:\n%s", dialogue)
	}
	if len(denials) != 1 {
		t.Fatalf("the denials are %+v", denials)
	}
	denied := denials[0]
	if denied.Denied.Row != "D8" || denied.Denied.Tool != "Write" || denied.Denied.Delegate != "engineer" ||
		!strings.Contains(denied.Instead, "[MAIN → ENGINEER]") {
		t.Errorf("the denial is %+v", denied)
	}
}

// TestMainBreaksTheRules checks that what MAIN does without asking is recorded, and that its round
// ends with an error. If MAIN's program does not report the call, the check of the disk afterwards
// finds it.
func TestMainBreaksTheRules(t *testing.T) {
	t.Parallel()
	tell := judgedWorld(t, doesIt)
	dialogue, view := tell("just do it", 1)
	denials := denialsIn(t, view.Path)
	holds(t, "the dialogue", dialogue, "MAIN was denied", "did not ask", "not undone")
	if strings.Contains(dialogue, "I did it.") {
		t.Errorf("the round continued:\n%s", dialogue)
	}
	if len(denials) == 0 || !strings.Contains(denials[0].Denied.Reason, "it did not ask first") {
		t.Errorf("the denials are %+v", denials)
	}
}

// secretMain runs a program as MAIN that does not report what it does.
func secretMain(t *testing.T, box string) (*world, string, view.FolderView) {
	t.Helper()
	yaml := strings.Replace(sessionYAML, "sandbox: off", "sandbox: "+box, 1)
	yaml = strings.Replace(yaml, "{driver: script, script: coordinator.yaml,",
		`{driver: exec, command: [sh, -c, "echo hi > ../secret.py; echo note > $FAIRLEAD_OUTPUTS/note.md; echo I did nothing."],`, 1)
	w := newWorld(t, yaml,
		map[string]string{"engineer.yaml": sessionScripts["engineer.yaml"], "reviewer.yaml": sessionScripts["reviewer.yaml"]})
	f := w.session(dispatch.Orchestrator)
	if _, _, err := f.Do(time.Now(), human, dispatch.UserInput{Text: "good morning"}); err != nil {
		t.Fatal(err)
	}
	dialogue := w.answered(f, 1)
	view, err := w.engine.Dispatch.Folder(context.Background(), f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(f.Workspace(1), "note.md")); err != nil {
		t.Errorf("its own outputs were not writable: %v\n%s", err, dialogue)
	}
	holds(t, "the dialogue", dialogue, "I did nothing.")
	return w, dialogue, view
}

// TestMainIsCheckedAfterwards checks that, without a sandbox, the check of the disk afterwards
// finds changes that were not reported.
func TestMainIsCheckedAfterwards(t *testing.T) {
	t.Parallel()
	_, _, view := secretMain(t, "off")
	denials := denialsIn(t, view.Path)
	if len(denials) != 1 {
		t.Fatalf("the denials are %+v", denials)
	}
	if last := denials[0].Denied; last.Tool != "(check afterwards)" || last.Call != "secret.py" {
		t.Errorf("the denial is %+v", last)
	}
}

// TestMainInItsSandbox checks that the sandbox denies a write that the rules did not see (DESIGN,
// MAIN's sandbox), and that why reports it.
func TestMainInItsSandbox(t *testing.T) {
	t.Parallel()
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	w, _, view := secretMain(t, "required")
	if _, err := os.Stat(filepath.Join(w.dir, "secret.py")); err == nil {
		t.Error("the file was written")
	}
	if len(view.Layers) != 3 || !view.Layers[1].Holds || view.Layers[2].Holds {
		t.Errorf("the layers are %+v", view.Layers)
	}
	why, err := w.engine.Status.Why(context.Background(), "coordinator")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(why.Evidence)
	holds(t, "why", string(text), "it is held by the sandbox", "see the repository read-only")
}

// TestOptionFor checks which of the offered options is chosen: once before always, and none of an
// unknown kind.
func TestOptionFor(t *testing.T) {
	t.Parallel()
	all := []driver.Option{
		{ID: "1", Kind: "allow_always"},
		{ID: "2", Kind: "reject_always"},
		{ID: "3", Kind: "allow_once"},
		{ID: "4", Kind: "reject_once"},
		{ID: "5", Kind: "allow"},
	}
	for _, c := range []struct {
		options []driver.Option
		allow   bool
		want    string
	}{
		{all, true, "3"},
		{all, false, "4"},
		{all[:2], true, "1"},
		{all[:2], false, "2"},
		{all[4:], true, ""},
		{all[:1], false, ""},
		{nil, true, ""},
	} {
		if got, found := listen.OptionFor(c.options, c.allow); got != c.want || found != (c.want != "") {
			t.Errorf("the option of %+v for %v is %q", c.options, c.allow, got)
		}
	}
}

// TestCallOf checks how tool calls are read from a program's questions.
func TestCallOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, raw, text, want string }{
		{"Bash", `{"args":{"command":"ls"}}`, "", `Bash {"command":"ls"}`},
		{"mcp__x__y", `{"args":{"a":1}}`, "", `mcp__x__y {"a":1}`},
		{"run", ``, "make all", `Bash {"command":"make all"}`},
		{"write", `{"args":{"file_path":"a.md"}}`, "a.md", `Write {"file_path":"a.md"}`},
		{"append", ``, "a.md", `Write {"file_path":"a.md"}`},
		{"edit", ``, "a.md", `Edit {"file_path":"a.md"}`},
		{"Write", `{"args":"hidden"}`, "", `Write {}`},
		{"Write", `not json`, "", `Write {}`},
	} {
		fact := driver.Fact{Tool: c.tool, Text: c.text}
		_ = json.Unmarshal([]byte(c.raw), &fact) // what cannot be read has no arguments
		call := listen.CallOf(fact)
		if got := call.Tool + " " + string(call.Input); got != c.want {
			t.Errorf("%s %s is read as %s, want %s", c.tool, c.raw, got, c.want)
		}
	}
}

// TestLookAtTree checks that changed files are found by name, and that a workspace over the limit
// is skipped with a report.
func TestLookAtTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"same", "grows", "goes", "mode", ".git/index", ".claude/x", "deep/.claude/y"} {
		put(name, "x")
	}
	before := dispatchctl.LookAtTree(dir)
	put("grows", "xx")
	put("deep/new", "x")
	put(".git/index", "other")
	put("deep/.claude/y", "other")
	for _, err := range []error{os.Remove(filepath.Join(dir, "goes")), os.Chmod(filepath.Join(dir, "mode"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, path := range before.Changed(dispatchctl.LookAtTree(dir)) {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if got := fmt.Sprint(names); got != "[deep/.claude/y deep/new goes grows mode]" {
		t.Errorf("changed: %s", got)
	}
}

// FuzzWorkWords checks that arbitrary text after a tag, and arbitrary tool calls, are read or
// reported as invalid.
func FuzzWorkWords(f *testing.F) {
	for _, seed := range []string{
		`{"to":"engineer","task":"write it"}`, `{"to":"","task":"x"}`, `{"to":7}`, `{"task":"x"} more`, `{"args":{"command":"ls"}}`,
		`{"args":{"file_path":"a"},"cut":[]}`, `{`, ``, "\xff\xfe{}", `{"args":{"command":["a","b"]}}`,
	} {
		f.Add("write", seed)
	}
	f.Fuzz(func(t *testing.T, tool, text string) {
		if d, fault := listen.ReadDelegation(&marker.Marker{Kind: marker.Delegate, JSON: []byte(text)}); fault == "" &&
			(strings.TrimSpace(d.To) == "" || strings.TrimSpace(d.Task) == "") {
			t.Errorf("%q delegates %+v", text, d)
		}
		fact := driver.Fact{Tool: tool, Text: text}
		_ = json.Unmarshal([]byte(text), &fact) // what cannot be read has no arguments
		call := listen.CallOf(fact)
		if !json.Valid(call.Input) || call.Input[0] != '{' {
			t.Errorf("%s %q is read as %s", tool, text, call.Input)
		}
		questions.Shown(call.Input)
	})
}

// TestMainAsksForWhatIsCut checks that MAIN is denied a truncated call, because it cannot be known
// to be harmless, also if the visible part is allowed. Truncated file content does not matter,
// because only the path is judged.
func TestMainAsksForWhatIsCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, dir, "coordinator")
		defer b.end()
		b.hostSessions(dir)
		f := beginSession(t, dir, dispatch.Orchestrator)
		r := &replies{}
		asks := r.asksFor(`Bash {"command":"git status"}`, `Bash cut=command {"command":"git status"}`,
			`Write cut=content {"file_path":"notes.md","content":"long"}`)
		b.host.play = func(s *fakeSession) {
			s.next(time.Hour)
			asks(s)
		}
		b.start()
		if _, _, err := f.Do(time.Now(), human,
			dispatch.UserInput{Text: "please write notes.md", Named: []string{"notes.md"}}); err != nil {
			t.Fatal(err)
		}
		b.sessions.(notifiedSessions).Say()
		b.after(10 * time.Second)
		b.checkReceived(r, "coordinator-1", "yes", "no", "yes")
		if all := denialsIn(t, f.Path()); len(all) != 1 || !strings.Contains(all[0].Denied.Reason, "too long to be judged") {
			t.Errorf("the denials are %+v", all)
		}
	})
}
