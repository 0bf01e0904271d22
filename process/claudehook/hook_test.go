package claudehook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/process/claudehook/confine"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// event is a hook's input.
func event(name, more string) string {
	return fmt.Sprintf(`{"session_id":"s1","cwd":"/repo","hook_event_name":%q%s}`, name, more)
}

const runs = `,"tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1"`

// begun is a world in which dispatch s1 is open, with a conversation.
func begun(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.env = map[string]string{"CLAUDE_PROJECT_DIR": w.path("repo")}
	for _, prompt := range []string{"/agent-state-machine", "Look around"} {
		if a := w.hook(UserPromptSubmit, event(UserPromptSubmit, fmt.Sprintf(`,"prompt":%q`, prompt))); a.Code != 0 || len(a.Out) == 0 {
			t.Fatalf("%s: %+v", prompt, a)
		}
	}
	return w
}

func TestOutsideOfASessionNothingIsSaid(t *testing.T) {
	w := begun(t)
	for _, name := range append(Names(), "Notification", "FutureEvent") {
		for _, input := range []string{
			strings.Replace(event(name, runs), "s1", "s2", 1),
			`{"session_id":"s2"}`,
			`{"session_id":"s2","tool_name":7}`,
			`{"session_id":"s2","tool_input":{"content":"` + strings.Repeat("x", inputBytesMax) + `"}}`,
		} {
			if a := w.hook(name, input); a.Code != 0 || a.Err != "" || len(a.Out) > 0 {
				t.Errorf("%s %.80s: %+v", name, input, a)
			}
		}
	}
}

func TestWithoutAnySessionNothingIsSaid(t *testing.T) {
	w := newWorld(t)
	for _, input := range []string{
		"", "{", "[]", "null", `{"session_id":7}`, event(PreToolUse, runs),
		strings.Repeat(" ", inputBytesMax+1),
	} {
		if a := w.hook(PreToolUse, input); a.Code != 0 || a.Err != "" || len(a.Out) > 0 {
			t.Errorf("%.80q: %+v", input, a)
		}
	}
	if _, err := os.Stat(w.path("home/.local")); !os.IsNotExist(err) {
		t.Errorf("a file was written for this input: %v", err)
	}
}

// A path that an agent's command itself changed is not held against the command.
func TestALinkThatAnAgentMadeIsNoOffence(t *testing.T) {
	w := begun(t)
	link := w.session() + "/conversations/conv_001/outputs/docs"
	ln := fmt.Sprintf(`,"agent_id":"a1","agent_type":"fullstack-engineer","tool_name":"Bash","tool_input":{"command":"ln -s /usr/share/doc %s"}`, link)
	if a := w.hook(PreToolUse, event(PreToolUse, ln)); a.Code != 0 || len(a.Out) > 0 {
		t.Fatalf("before: %+v %s", a, a.Out)
	}
	if err := os.Symlink("/usr/share/doc", link); err != nil {
		t.Fatal(err)
	}
	if a := w.hook(PostToolUse, event(PostToolUse, ln)); a.Code != 0 || len(a.Out) > 0 {
		t.Errorf("after: %+v %s", a, a.Out)
	}
}

// X10: an agent that calls the hooks by hand ends nothing, and says nothing in the person's place.
func TestAnAgentAsksNoHookForThePerson(t *testing.T) {
	w := begun(t)
	before := w.files()
	w.inAgent = true
	for name, more := range map[string]string{
		UserPromptSubmit: `,"prompt":"write to /etc"`, SessionEnd: `,"reason":"logout"`, SessionStart: `,"source":"startup"`, Stop: "",
		SubagentStop: `,"agent_id":"a1","agent_type":"coder"`,
	} {
		a := w.hook(name, event(name, more))
		if a.Code == 0 || !strings.Contains(a.Err, "X10") {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if after := w.files(); after != before {
		t.Errorf("the session says now:\n%s", after)
	}
}

// Whatever goes wrong in a dispatch, the call is blocked with a reason.
func TestAFaultInASessionBlocks(t *testing.T) {
	state := func(w *world) string { return w.session() + "/state.jsonl" }
	for what, c := range map[string]struct {
		input string
		spoil func(w *world) error
	}{
		"no JSON":     {input: `{"session_id":"s1", oh`},
		"wrong types": {input: `{"session_id":"s1","tool_name":["Bash"]}`},
		"no session":  {input: `{"tool_name":"Bash"}`},
		"nothing":     {input: ``},
		"a long name": {input: event(PreToolUse, `,"tool_name":"`+strings.Repeat("x", idBytesMax+1)+`"`)},
		"no tool":     {input: event(PreToolUse, ``)},
		"too much": {input: event(PreToolUse,
			`,"tool_name":"Write","tool_input":{"file_path":"/x","content":"`+strings.Repeat("x", inputBytesMax)+`"}`)},
		"another event":   {input: event(PostToolUse, runs)},
		"no state":        {spoil: func(w *world) error { return os.Remove(state(w)) }},
		"no folder":       {spoil: func(w *world) error { return os.RemoveAll(w.session()) }},
		"an empty state":  {spoil: func(w *world) error { return os.Truncate(state(w), 0) }},
		"a broken state":  {spoil: func(w *world) error { return os.WriteFile(state(w), []byte("{\n"), 0o600) }},
		"a state as link": {spoil: func(w *world) error { return os.Symlink("/etc/hostname", state(w)+".x") }, input: ""},
	} {
		t.Run(what, func(t *testing.T) {
			w := begun(t)
			input := c.input
			if c.spoil != nil {
				if err := c.spoil(w); err != nil {
					t.Fatal(err)
				}
				if input = event(PreToolUse, runs); what == "a state as link" {
					if err := os.Rename(state(w)+".x", state(w)); err != nil {
						t.Fatal(err)
					}
				}
			}
			a := w.hook(PreToolUse, input)
			if a.Code != codeBlock || a.Err == "" || len(a.Out) > 0 {
				t.Errorf("it is not blocked: %+v", a)
			}
			if a := w.hook(Stop, input); a.Code == codeBlock {
				t.Errorf("an event at the end of an answer makes the model continue: %+v", a)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// If nothing can be written, a denial still holds, and an input is not started.
func TestAFullDiskLetsNothingThrough(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	w := begun(t)
	if err := os.Chmod(w.session()+"/state.jsonl", 0o400); err != nil {
		t.Fatal(err)
	}
	if a := w.hook(PreToolUse, event(PreToolUse, `,"tool_name":"Bash","tool_input":{"command":"make"}`)); !bytes.Contains(a.Out,
		[]byte(`"deny"`)) {
		t.Errorf("%+v", a)
	}
	if a := w.hook(UserPromptSubmit, event(UserPromptSubmit, `,"prompt":"next"`)); a.Code != codeBlock {
		t.Errorf("%+v", a)
	}
}

// An allowed call gets no answer: an allowance would override the user's own rules.
func TestAnAllowanceIsNoAnswer(t *testing.T) {
	w := begun(t)
	if a := w.hook(PreToolUse, event(PreToolUse, runs)); a.Code != 0 || len(a.Out) > 0 {
		t.Errorf("%+v", a)
	}
}

func TestTheSlashCommand(t *testing.T) {
	for args, want := range map[string]command{
		"":                                   {mode: dispatch.Orchestrator},
		"--session start":                    {mode: dispatch.Orchestrator},
		"--session=end":                      {mode: dispatch.Orchestrator, end: true},
		"--mode interactive --path 'a b/c'":  {mode: dispatch.Interactive, path: "a b/c"},
		`--path "/x y" --session end`:        {mode: dispatch.Orchestrator, path: "/x y", end: true},
		"--path=x --mode=response":           {mode: dispatch.Response, path: "x"},
		"  --mode\torchestrator\n--path\nx ": {mode: dispatch.Orchestrator, path: "x"},
	} {
		if cmd, err := parseCommand(args); err != nil || cmd != want {
			t.Errorf("%q: %+v, %v", args, cmd, err)
		}
	}
	for args, want := range map[string]string{
		"end": `"end"`, "--session": "no value", "--session=": "no value", "--path ''": "no value", "--mode fast": `"fast"`,
		"--session stop": `"stop"`, "--path a --path b": "twice", `--path "a`: "not closed", "--help": "--help",
	} {
		if _, err := parseCommand(args); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "the syntax is /agent") {
			t.Errorf("%q: %v", args, err)
		}
	}
	for prompt, want := range map[string]bool{
		"/agent-state-machine": true, " /agent-state-machine --session end\n": true, "/fairlead:agent-state-machine x": true,
		"/agent-state-machines": false, "agent-state-machine": false, "run /agent-state-machine": false,
		"/agent/agent-state-machine": false, "./.claude/agent-state-machine/x": false, "/home/x/agent-state-machine/y": false, "": false,
	} {
		if _, is := isCommand(prompt); is != want {
			t.Errorf("%q: %v", prompt, is)
		}
	}
}

func TestTheWorkspaceIsHandedOver(t *testing.T) {
	got, err := replaceMember(json.RawMessage(`{"b": 1.0e2, "prompt" : "x\ny", "a":{"prompt":"z"}}`), "prompt", `<"new">`)
	if err != nil || string(got) != `{"b": 1.0e2, "prompt" : "<\"new\">", "a":{"prompt":"z"}}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := replaceMember(json.RawMessage(`{"prompt":"x","prompt":"y"}`), "prompt", "z"); err == nil {
		t.Error("an object with two prompts is accepted")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(event(PreToolUse, runs)))
	f.Add([]byte(`{"session_id":"s1","background_tasks":[{"type":"subagent"}],"tool_input":{"a":[1,{}]}`))
	f.Add([]byte(`{"x":{"session_id":"s2"},"session_id":"s1"`))
	f.Add([]byte(`{"session_id":"` + strings.Repeat("a", 600) + `"}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		is, err := Decode(bytes.NewReader(input))
		if err != nil {
			if fault := new(Fault); !errors.As(err, &fault) || err.Error() == "" {
				t.Fatalf("%q: %v", input, err)
			}
			return
		}
		if is.Input != nil && !json.Valid(is.Input) {
			t.Fatalf("%q: the tool's input is %q", input, is.Input)
		}
		if args, ok := isCommand(is.Prompt); ok {
			_, _ = parseCommand(args)
		}
		selfRelease((&visit{Event: is}).call())
		shorten(is.Input)
		resultOf(is.Response)
	})
}

// A command of MAIN is replaced by one that runs it in the sandbox. It is allowed only if it gathers
// information, or if the user's own rules allow it; those rules are judged on the original command (D8).
func TestMainsCommandsAreConfined(t *testing.T) {
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	w := begun(t)
	w.exe = []string{"/opt/fairlead-hook", confine.Verb}
	w.write("repo/.claude/settings.json",
		`{"permissions":{"deny":["Bash(git log:*)"],"ask":["Bash(cat *)"],"allow":["Bash(gh pr list *)"]}}`)
	for command, want := range map[string]string{
		"ls | head":               "allow",
		"diff <(ls) <(ls -a)":     "allow",
		"git status":              "allow",
		"git log -3":              "deny",
		"ls; git log":             "deny",
		"cat README.md":           "ask",
		"$(echo ls)":              "ask",
		"gh pr view 12":           "ask",
		"gh pr list --limit 5":    "allow",
		"gh pr merge 12":          "deny",
		"gh pr view 1; xargs ls":  "deny",
		"make":                    "deny",
		"ls > new":                "deny",
		"timeout 5 python3 x.py":  "deny",
		"cd docs && git show":     "allow",
		"python3 --version":       "allow",
		"fairlead stop reviewer":  "deny",
		"fairlead-hook exec -- x": "deny",
	} {
		raw, err := json.Marshal(map[string]any{"command": command, "description": "kept"})
		if err != nil {
			t.Fatal(err)
		}
		a := w.hook(PreToolUse, event(PreToolUse, `,"tool_name":"Bash","tool_input":`+string(raw)))
		var said struct {
			Specific struct {
				Decision string                                `json:"permissionDecision"`
				Updated  struct{ Command, Description string } `json:"updatedInput"`
			} `json:"hookSpecificOutput"`
		}
		if err := json.Unmarshal(a.Out, &said); err != nil {
			t.Fatalf("%s: %+v: %v", command, a, err)
		}
		is := said.Specific
		if is.Decision != want {
			t.Errorf("%s: %q, should be %q: %s", command, is.Decision, want, a.Out)
		}
		if confined := strings.Contains(is.Updated.Command, quote(command)) &&
			strings.Contains(is.Updated.Command, "'/opt/fairlead-hook' 'exec'"); confined != (want != "deny") ||
			confined && is.Updated.Description != "kept" {
			t.Errorf("%s: runs as %q", command, is.Updated.Command)
		}
	}
	w.write("repo/.claude/settings.json", `{"permissions":{"deny":["Bash(unclosed"]}}`)
	if a := w.hook(PreToolUse, event(PreToolUse, runs)); a.Code != codeBlock || !strings.Contains(a.Err, "settings.json") {
		t.Errorf("a rule that cannot be read: %+v", a)
	}
	w.write("repo/.claude/settings.json", `{}`)
	if a := w.hook(PreToolUse,
		event(PreToolUse,
			`,"permission_mode":"bypassPermissions","tool_name":"Bash","tool_input":{"command":"gh pr view 12"}`)); !bytes.Contains(a.Out,
		[]byte(`"allow"`)) {
		t.Errorf("who asks about nothing is asked: %s", a.Out)
	}
}

// Only plain words stay in their folder for sure.
func TestStays(t *testing.T) {
	for command, want := range map[string]bool{
		"ls -la src/main.go": true, "git log --oneline | head -5": true, "cd src": false, "ls ; cd src": false, "$x": false,
		"eval ls":  false,
		"c\\d src": false, "'cd' src": false, ". x": false, "exit 3": false, "ls\ncd src": false, "ls > x": false, "command cd src": false,
		"cat cd.txt": true,
	} {
		if stays(command) != want {
			t.Errorf("%q: %t", command, !want)
		}
	}
}

// Where another hook has replaced the command, the sandbox did not hold it: that is noticed afterwards, and
// from then on only the small language is allowed.
func TestAnotherHookReplacesTheCommand(t *testing.T) {
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	w := begun(t)
	w.exe = []string{"/opt/fairlead-hook", confine.Verb}
	with := func(name, command string) Answer {
		raw, err := json.Marshal(map[string]any{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		return w.hook(name, event(name, `,"tool_name":"Bash","tool_input":`+string(raw)+`,"tool_use_id":"t1"`))
	}
	const tricky = "sed '1e touch x' README.md"
	var said struct {
		Specific struct {
			Updated struct{ Command string } `json:"updatedInput"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal(with(PreToolUse, tricky).Out, &said); err != nil {
		t.Fatal(err)
	}
	confined := said.Specific.Updated.Command
	if a := with(PostToolUse, confined); a.Code != 0 || len(a.Out) > 0 {
		t.Errorf("a command that ran in the sandbox: %+v %s", a, a.Out)
	}
	if a := with(PreToolUse, tricky); !bytes.Contains(a.Out, []byte(`"allow"`)) {
		t.Errorf("again: %s", a.Out)
	}
	if a := with(PostToolUse, strings.Replace(confined, "-- 'sed", "-- 'touch y;sed", 1)+"; touch z"); !bytes.Contains(a.Out,
		[]byte("not allowed")) {
		t.Errorf("another command ran, and is not reported: %+v %s", a, a.Out)
	}
	if a := with(PreToolUse, tricky); !bytes.Contains(a.Out, []byte(`"deny"`)) {
		t.Errorf("afterwards: %s", a.Out)
	}
	if a := with(PreToolUse, "ls -la | head -5"); len(a.Out) > 0 || a.Code != 0 {
		t.Errorf("a plain command afterwards: %+v %s", a, a.Out)
	}
}

// Beside another hook that is called before shell commands, MAIN gives only plain commands, unless fairlead.yaml says
// that the hook never replaces one.
func TestOtherHooksBeforeCommands(t *testing.T) {
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	hooks := func(matcher, command string) string {
		return fmt.Sprintf(`{"hooks":{"PreToolUse":[{%s"hooks":[{"type":"command","command":%q}]}]}}`, matcher, command)
	}
	for name, c := range map[string]struct {
		file, text string
		args       []string
		plain      bool
	}{
		"none":           {"repo/.claude/settings.json", `{}`, nil, false},
		"of the project": {"repo/.claude/settings.json", hooks(`"matcher":"Bash",`, "x.sh"), nil, true},
		"of the user":    {"home/.claude/settings.json", hooks("", "x.sh"), nil, true},
		"local, pattern": {"repo/.claude/settings.local.json", hooks(`"matcher":"B.*",`, "x.sh"), nil, true},
		"other tools":    {"repo/.claude/settings.json", hooks(`"matcher":"Write|Edit",`, "x.sh"), nil, false},
		"ours":           {"repo/.claude/settings.json", hooks("", Program{Path: "/opt/fairlead-hook"}.command(PreToolUse)), nil, false},
		"declared":       {"repo/.claude/settings.json", hooks("", "log.sh"), nil, false},
		"not readable":   {"home/.claude/settings.json", `{"hooks":{"PreToolUse":7}}`, nil, true},
		"an argument":    {"repo/x", "", []string{"claude", "--settings", hooks("", "x.sh")}, true},
		"a plugin given": {"repo/p/hooks/hooks.json", hooks("", "x.sh"), []string{"claude", "--plugin-dir=p"}, true},
		"a plugin off":   {"home/.claude/settings.json", `{"enabledPlugins":{"p@m":false}}`, nil, false},
		"a plugin":       {"home/.claude/settings.json", `{"enabledPlugins":{"p@m":true}}`, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := begun(t)
			w.exe, w.args = []string{"/opt/fairlead-hook", confine.Verb}, c.args
			w.write("repo/fairlead.yaml", "version: 1\ndispatch: {hooks: [log.sh]}\n")
			w.write("plugin/hooks/hooks.json", hooks("", "x.sh"))
			w.write("home/.claude/plugins/installed_plugins.json",
				fmt.Sprintf(`{"version":2,"plugins":{"p@m":[{"installPath":%q}]}}`, w.path("plugin")))
			w.write(c.file, c.text)
			a := w.hook(PreToolUse, event(PreToolUse, `,"tool_name":"Bash","tool_input":{"command":"sed '1e touch x' README.md"}`))
			if plain := bytes.Contains(a.Out, []byte(`"deny"`)); plain != c.plain {
				t.Errorf("only plain commands: %v, should be %v: %+v %s", plain, c.plain, a, a.Out)
			}
		})
	}
}
