package claudehook

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bash is a shell command's input, of an agent if more names it.
func bash(command, more string) string {
	text, err := json.Marshal(command)
	if err != nil {
		panic(err)
	}
	return event(PreToolUse, fmt.Sprintf(`,"tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":%s}%s`, text, more))
}

const byAgent = `,"agent_id":"a1","agent_type":"fullstack-engineer"`

// While the dispatch's folder says that it is open, MAIN's rules hold, whatever has happened to the entry in the user's state
// folder. A conversation without a dispatch is not held by it.
func TestTheFolderHoldsWithoutItsEntry(t *testing.T) {
	entries := func(w *world) string { return w.path("home/.local/state/fairlead/sessions") }
	entry := func(w *world) string {
		names := must(os.ReadDir(entries(w)))
		if len(names) != 1 {
			w.t.Fatalf("%d entries", len(names))
		}
		return filepath.Join(entries(w), names[0].Name())
	}
	begin := func(w *world, session string) string {
		t.Helper()
		input := strings.NewReplacer("s1", session, "/repo", w.path("repo")).Replace(event(UserPromptSubmit,
			`,"prompt":"/agent-state-machine --path `+session+`"`))
		if a := w.hook(UserPromptSubmit, input); a.Code != 0 || !strings.Contains(string(a.Out), "begun") {
			w.t.Fatalf("%+v %s", a, a.Out)
		}
		return w.path("repo/" + session)
	}
	for name, spoil := range map[string]func(w *world) error{
		"nothing":         func(*world) error { return nil },
		"no entry":        func(w *world) error { return os.Remove(entry(w)) },
		"no state folder": func(w *world) error { return os.RemoveAll(w.path("home/.local/state/fairlead")) },
		"no home": func(w *world) error {
			w.t.Setenv("HOME", w.path("elsewhere"))
			w.t.Setenv("XDG_STATE_HOME", "")
			return nil
		},
		"an empty entry":     func(w *world) error { return os.WriteFile(entry(w), nil, 0o600) },
		"nonsense":           func(w *world) error { return os.WriteFile(entry(w), []byte("nowhere\n"), 0o600) },
		"no folder is there": func(w *world) error { return os.WriteFile(entry(w), []byte("/nowhere/at/all\n"), 0o600) },
		"another's dispatch": func(w *world) error { at := entry(w); return os.WriteFile(at, []byte(begin(w, "s2")+"\n"), 0o600) },
		"a dispatch of the past": func(w *world) error {
			at, other := entry(w), begin(w, "s2")
			w.hook(UserPromptSubmit,
				strings.Replace(event(UserPromptSubmit, `,"prompt":"/agent-state-machine --session end"`), "s1", "s2", 1))
			return os.WriteFile(at, []byte(other+"\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begun(t)
			w.t = t
			if err := spoil(w); err != nil {
				t.Fatal(err)
			}
			if a := w.hook(PreToolUse, bash("touch src/x", "")); !strings.Contains(string(a.Out), `"deny"`) ||
				!strings.Contains(string(a.Out), "D8") {
				t.Errorf("MAIN writes: %+v %s", a, a.Out)
			}
			if a := w.hook(PreToolUse, bash("git status", "")); a.Code != 0 || strings.Contains(string(a.Out), `"deny"`) {
				t.Errorf("MAIN reads: %+v %s", a, a.Out)
			}
			if a := w.hook(PreToolUse, `{"tool_name":"Bash"}`); a.Code != codeBlock {
				t.Errorf("a call without a session: %+v", a)
			}
			if a := w.hook(UserPromptSubmit, event(UserPromptSubmit, `,"prompt":"go on"`)); a.Code != 0 ||
				!strings.Contains(string(a.Out), "Conv: 002") {
				t.Errorf("a prompt: %+v %s", a, a.Out)
			}
			if a := w.hook(PreToolUse, strings.Replace(bash("touch src/x", ""), "s1", "s3", 1)); a.Code != 0 || len(a.Out) > 0 {
				t.Errorf("another conversation: %+v %s", a, a.Out)
			}
			if a := w.hook(UserPromptSubmit, event(UserPromptSubmit, `,"prompt":"/agent-state-machine --session end"`)); a.Code != 0 ||
				!strings.Contains(string(a.Out), "ended") {
				t.Errorf("the end: %+v %s", a, a.Out)
			}
			if a := w.hook(PreToolUse, bash("touch src/x", "")); a.Code != 0 && name != "an empty entry" && name != "nonsense" &&
				name != "no folder is there" && name != "another's dispatch" || len(a.Out) > 0 {
				t.Errorf("after the end: %+v %s", a, a.Out)
			}
		})
	}
}

// An agent's command that names the hooks' folder is denied, one that is not understood is asked about, and an ordinary one
// gets no answer, so that the user's own settings apply.
func TestAgentsCommands(t *testing.T) {
	w := begun(t)
	task := event(PreToolUse,
		`,"tool_name":"Task","tool_use_id":"x","tool_input":{"subagent_type":"fullstack-engineer","prompt":"x","description":"x"}`)
	if a := w.hook(PreToolUse, task); a.Code != 0 || strings.Contains(string(a.Out), `"deny"`) {
		t.Fatalf("%+v %s", a, a.Out)
	}
	for command, want := range map[string]string{
		"for f in .claude/*.json; do echo {} > $f; done":    "deny",
		"pushd .claude; echo {} > settings.json":            "deny",
		"find . -name settings.json -exec cp p.json {} \\;": "deny",
		"d=.claude; cd $d && python3 x.py":                  "deny",
		"python3 -c \"open('.claude/settings.json','w')\"":  "deny",
		`eval "$(base64 -d < x)"`:                           "ask",
		`cp p.json "$(cat where)"`:                          "ask",
		`echo "unfinished`:                                  "ask",
		"go test ./...":                                     "",
		"python3 x.py":                                      "",
		"git status":                                        "",
		"tar xf src.tar":                                    "",
		"git clean -fdx":                                    "",
		"cat .claude/settings.json | head":                  "",
		"pushd src && make && popd":                         "",
		"find . -name '*.go' -exec gofmt -w {} +":           "",
		"for f in src/*.go; do gofmt -l \"$f\"; done":       "",
		"npm install && npm test":                           "",
	} {
		a := w.hook(PreToolUse, strings.Replace(bash(command, byAgent), "/repo", w.path("repo"), 1))
		var is struct {
			Specific struct {
				Decision string `json:"permissionDecision"`
			} `json:"hookSpecificOutput"`
		}
		if err := json.Unmarshal(a.Out, &is); a.Code != 0 || len(a.Out) > 0 && err != nil || is.Specific.Decision != want ||
			want == "" && len(a.Out) > 0 {
			t.Errorf("%s: %+v %s, want %q", command, a, a.Out, want)
		}
	}
}

// The slash command's path may begin with ~, and the same path ends the dispatch.
func TestADispatchInTheHome(t *testing.T) {
	w := newWorld(t)
	w.env = map[string]string{"CLAUDE_PROJECT_DIR": w.path("repo")}
	if err := os.MkdirAll(w.path("home"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, prompt := range []string{"/agent-state-machine --path ~/asm", "/agent-state-machine --session end --path ~/asm"} {
		a := w.hook(UserPromptSubmit,
			strings.Replace(event(UserPromptSubmit, fmt.Sprintf(`,"prompt":%q`, prompt)), "/repo", w.path("repo"), 1))
		if a.Code != 0 || !strings.Contains(string(a.Out), w.path("home/asm")) {
			t.Errorf("%s: %+v %s", prompt, a, a.Out)
		}
	}
	if _, err := os.Stat(w.path("home/asm/state.jsonl")); err != nil {
		t.Error(err)
	}
}

// The user's settings are where Claude Code reads them.
func TestTheUsersPlace(t *testing.T) {
	if got := User("/home/x", "").Dir; got != "/home/x/.claude" {
		t.Error(got)
	}
	if got := User("/home/x", "/etc/claude").Dir; got != "/etc/claude" {
		t.Error(got)
	}
}
