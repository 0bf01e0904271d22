package dispatchfolder

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/rank"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
)

// ask judges a call in a dispatch.
func ask(t *testing.T, f *Folder, repo, who, tool, what string) policy.Verdict {
	t.Helper()
	field := map[string]string{"Bash": "command", "Task": "prompt"}[tool]
	if field == "" {
		field = "file_path"
	}
	input, err := json.Marshal(map[string]string{field: what})
	if err != nil {
		t.Fatal(err)
	}
	return Judge(session(t, f), f, repo, policy.Call{Tool: tool, Input: input, Dir: repo, AgentID: who})
}

// The rules depend on the caller: MAIN has the seed's MAIN_PERMISSIONS (D8), an agent its own (D9), and no
// agent may write the files that enforcement depends on (X10), wherever the folder is.
func TestJudge(t *testing.T) {
	for _, place := range []string{".claude/agent-state-machine/20241218_143022", "elsewhere"} {
		t.Run(place, func(t *testing.T) { judgeIn(t, place) })
	}
}

func judgeIn(t *testing.T, place string) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	repo := t.TempDir()
	f, _, err := Create(filepath.Join(repo, place), dispatch.Setup{Agents: two(), Host: dispatch.Claude, Program: "p"},
		Options{At: at, Repo: repo})
	if err != nil {
		t.Fatal(err)
	}
	do(t, f, dispatch.UserInput{Text: "write notes/plan.md", Named: []string{"notes/plan.md", "/etc/passwd"}})
	do(t, f, dispatch.Delegate{Agent: "reviewer", Text: "look"})
	do(t, f, dispatch.Seen{Caller: "agent-1", Agent: "reviewer"})
	out := f.Workspace(1)
	pointer, err := programFile("p")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who, tool, what, row string
		allow                bool
	}{
		{"", "Write", out + "notes.md", "", true},
		{"", "Write", out + "main.py", "D8", false},
		{"", "Write", filepath.Join(repo, "notes/plan.md"), "", true},
		{"", "Write", filepath.Join(repo, "notes/other.md"), "D8", false},
		{"", "Bash", "ls -l", "", true},
		{"", "Bash", "make", "D8", false},
		{"stranger", "Bash", "make", "D8", false},
		{"agent-1", "Bash", "make", "D9", true},
		{"agent-1", "Write", out + "main.py", "D9", true},
		{"agent-1", "Write", f.DialoguePath(1), "D9", true},
		{"agent-1", "Write", filepath.Join(f.Path(), "state.jsonl"), "X10", false},
		{"agent-1", "Write", filepath.Join(f.Path(), "conversations/messages.jsonl"), "X10", false},
		{"agent-1", "Bash", "echo x > " + filepath.Join(f.Path(), ".commit"), "X10", false},
		{"agent-1", "Bash", "rm -r " + f.Path(), "X10", false},
		{"agent-1", "Bash", "rm " + pointer, "X10", false},
		{"agent-1", "Bash", "rm -r " + state, "X10", false},
		{"agent-1", "Write", filepath.Join(repo, ".claude/settings.json"), "X10", false},
		{"agent-1", "Write", filepath.Join(repo, ".git/hooks/pre-commit"), "X10", false},
	} {
		v := ask(t, f, repo, c.who, c.tool, c.what)
		if v.Allow != c.allow || v.Row != c.row && (c.allow || v.Row != "D9") {
			t.Errorf("%q %s %s: %v %s, %s", c.who, c.tool, c.what, v.Allow, v.Row, v.Reason)
		}
		if !v.Allow && v.Reason == "" {
			t.Errorf("%s %s: denied without a reason", c.tool, c.what)
		}
	}
	do(t, f, dispatch.End{})
	if v := ask(t, f, repo, "", "Bash", "make"); !v.Allow {
		t.Errorf("an ended session still enforces: %s", v.Reason)
	}
}

// The daemon's agents are known by their task keys.
func TestJudgeByTheKeyOfTheWork(t *testing.T) {
	f := begin(t, dispatch.Setup{Host: dispatch.Fairlead, Lead: "coordinator"})
	do(t, f, dispatch.UserInput{Text: "review it", Match: &dispatch.Match{Agent: "reviewer"}})
	s := session(t, f)
	due := s.Due()
	if len(due) != 1 {
		t.Fatalf("%+v", due)
	}
	for who, allow := range map[string]bool{
		due[0].Key(): true, "conv_001/0/0": false, "conv_002/1/0": false, "conv_001/7/0": false,
		"conv_001/x/0": false, "": false,
	} {
		if v := ask(t, f, t.TempDir(), who, "Bash", "make"); v.Allow != allow {
			t.Errorf("%s: %v %s", who, v.Allow, v.Reason)
		}
	}
}

// A dispatch's own permissions apply; those that cannot be parsed are replaced by the seed's.
func TestJudgeByTheSessionsRules(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	repo := t.TempDir()
	rules := json.RawMessage(`{"can_write": ["*.xyz"], "can_execute": ["read"]}`)
	f, _, err := Create("", dispatch.Setup{Agents: two(), ForMain: rules}, Options{At: at, Repo: repo, Tools: []string{"mcp__docs__*"}})
	if err != nil {
		t.Fatal(err)
	}
	do(t, f, dispatch.UserInput{Text: "hello"})
	if v := ask(t, f, repo, "", "Write", f.Workspace(1)+"a.xyz"); !v.Allow {
		t.Error(v.Reason)
	}
	if v := ask(t, f, repo, "", "Write", f.Workspace(1)+"a.md"); v.Allow {
		t.Error("a call that the rules do not list is allowed")
	}
	if v := ask(t, f, repo, "", "mcp__docs__search", "x"); !v.Allow {
		t.Errorf("a tool that was configured: %s", v.Reason)
	}
	if v := ask(t, f, repo, "", "mcp__shell__run", "x"); v.Allow {
		t.Error("an unknown tool is allowed")
	}
	if got := rulesOf(json.RawMessage(`"[MAIN_PERMISSIONS]"`), policy.MainRules()); len(got.CannotWrite) == 0 {
		t.Error("with rules that are a text, every call is allowed")
	}
}

// Without a dispatch only the rules apply; agents may let git write its records unless Options.NoCommits is
// set.
func TestJudgeAs(t *testing.T) {
	repo := t.TempDir()
	call := func(command string) policy.Call {
		input, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		return policy.Call{Tool: "Bash", Input: input, Dir: repo}
	}
	var none dispatch.Dispatch
	if v := JudgeAs(none, nil, repo, true, call("make")); v.Allow {
		t.Error("MAIN may run make")
	}
	if v := JudgeAs(none, nil, repo, false, call("make")); !v.Allow {
		t.Error(v.Reason)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, never := range []bool{false, true} {
		f, s, err := Create("", dispatch.Setup{Agents: two()}, Options{At: at, Repo: repo, NoCommits: never})
		if err != nil {
			t.Fatal(err)
		}
		if v := JudgeAs(s, f, repo, false, call("git commit -m x")); v.Allow == never {
			t.Errorf("no commits: %v, and the verdict is %v: %s", never, v.Allow, v.Reason)
		}
	}
}

func TestMatchOf(t *testing.T) {
	r := rank.Ranking{Best: "writer", Scores: []rank.Candidate{
		{Name: "reviewer", Score: 1}, {Name: "writer", Score: 3.5, Terms: []rank.Term{{Word: "Python"}, {Word: "write"}}},
	}}
	if m := MatchOf(r); m == nil || m.Agent != "writer" || m.Score != 3.5 || strings.Join(m.Terms, " ") != "Python write" {
		t.Errorf("%+v", m)
	}
	s := dispatch.Dispatch{Setup: dispatch.Setup{Agents: two()}}
	if m := MatchOf(Best(s, "Write a hello world Python script")); m == nil || m.Agent != "fullstack-engineer" || len(m.Terms) == 0 {
		t.Errorf("a script leads to %+v", m)
	}
	if m := MatchOf(Best(s, "Thanks!")); m != nil {
		t.Errorf("thanks leads to %+v", m)
	}
}

// Disk sees a scene with all its links as the kernel does.
func TestDiskSeesTheScene(t *testing.T) {
	disk, s := Disk{}, policytest.Build(t)
	out, repo := s.Outputs+"/", s.Repo+"/"
	for _, c := range []struct {
		path string
		want policy.File
	}{
		{repo + "README.md", policy.File{Path: repo + "README.md", Kind: policy.Regular, Links: 1}},
		{repo + "run", policy.File{Path: repo + "run", Kind: policy.Regular, Exec: true, Script: true, Links: 1}},
		{out + "bit.md", policy.File{Path: out + "bit.md", Kind: policy.Regular, Exec: true, Links: 1}},
		{out + "shebang.txt", policy.File{Path: out + "shebang.txt", Kind: policy.Regular, Script: true, Links: 1}},
		{out + "hard.md", policy.File{Path: out + "hard.md", Kind: policy.Regular, Links: 2}},
		{s.Outside + "/file.txt", policy.File{Path: s.Outside + "/file.txt", Kind: policy.Regular, Links: 2}},
		{repo, policy.File{Path: s.Repo, Kind: policy.Folder}},
		{repo + "pipe", policy.File{Path: repo + "pipe", Kind: policy.Other}},
		{"/dev/null", policy.File{Path: "/dev/null", Kind: policy.Other}},
		{repo + "nothing", policy.File{Path: repo + "nothing", Kind: policy.Missing}},
		{repo + "no/where/at all", policy.File{Path: repo + "no/where/at all", Kind: policy.Missing}},
		{repo + "docs/./../app.py", policy.File{Path: repo + "app.py", Kind: policy.Regular, Links: 1}},
		{repo + "docs/out", policy.File{Path: s.Outside, Kind: policy.Folder}},
		{repo + "docs/out/../home", policy.File{Path: s.Home, Kind: policy.Folder}}, // not docs/home
		{repo + "docs/out/new.md", policy.File{Path: s.Outside + "/new.md", Kind: policy.Missing}},
		{out + "link.md", policy.File{Path: out + "a.py", Kind: policy.Regular, Links: 1}},
		{out + "dangling.md", policy.File{Path: out + "new.py", Kind: policy.Missing}},
		{out + "esc.md", policy.File{Path: repo + ".claude/settings.json", Kind: policy.Regular, Links: 1}},
		{out + "up/state.jsonl", policy.File{Path: s.Session + "/state.jsonl", Kind: policy.Regular, Links: 1}},
		{repo + "gitlink/config", policy.File{Path: repo + ".git/config", Kind: policy.Regular, Links: 1}},
	} {
		got, err := disk.Look(c.path)
		if err != nil || got != c.want {
			t.Errorf("Look(%s) is\n%+v, %v; it should be\n%+v", c.path, got, err, c.want)
		}
	}
	for _, p := range []string{out + "loop", out + "loop/x", repo + "README.md/x"} {
		if got, err := disk.Look(p); err == nil {
			t.Errorf("Look(%s) is %+v; it cannot be known, and should be an error", p, got)
		}
	}
}

// Disk resolves a path like the kernel.
func TestDisk(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, err := range []error{
		os.MkdirAll(at("a/b"), 0o700), os.WriteFile(at("a/b/run"), []byte("#!/bin/sh\n"), 0o700), //nolint:gosec // an executable file
		os.WriteFile(at("plain"), []byte("x"), 0o600), os.Symlink("a/b", at("link")), os.Symlink("nowhere/new", at("dangling")),
		os.Symlink("loop2", at("loop1")), os.Symlink("loop1", at("loop2")), os.Symlink(at("link"), at("again")),
		os.Link(at("plain"), at("twin")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path, want string
		kind       policy.Kind
	}{
		{"plain", "plain", policy.Regular},
		{"link/run", "a/b/run", policy.Regular},
		{"link/../b/run", "a/b/run", policy.Regular},
		{"again/./run", "a/b/run", policy.Regular},
		{"link", "a/b", policy.Folder},
		{"link/new/deep", "a/b/new/deep", policy.Missing},
		{"dangling", "nowhere/new", policy.Missing},
	} {
		got, err := Disk{}.Look(dir + "/" + c.path)
		if err != nil || got.Path != at(c.want) || got.Kind != c.kind {
			t.Errorf("%s: %+v, %v", c.path, got, err)
		}
	}
	run, _ := Disk{}.Look(at("a/b/run"))
	plain, _ := Disk{}.Look(at("plain"))
	if !run.Exec || !run.Script || plain.Exec || plain.Script || plain.Links != 2 {
		t.Errorf("%+v, %+v", run, plain)
	}
	for _, bad := range []string{"loop1", "new/../x", "plain/x"} {
		if got, err := (Disk{}).Look(dir + "/" + bad); err == nil {
			t.Errorf("%s leads to %+v", bad, got)
		}
	}
	if dev, err := (Disk{}).Look(os.DevNull); err != nil || dev.Kind != policy.Other {
		t.Errorf("%+v, %v", dev, err)
	}
}
