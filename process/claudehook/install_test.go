package claudehook

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree is every file and folder below a place, with its text and mode.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(b)
		}
		all[rel] = info.Mode().String() + " " + text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func carry(t *testing.T, steps []Step, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply(steps); err != nil {
		t.Fatal(err)
	}
}

func TestInstallAndUninstall(t *testing.T) {
	for what, have := range map[string]map[string]string{
		"nothing":           {},
		"settings":          {".claude/settings.json": "{\n  \"model\": \"opus\"\n}\n"},
		"an empty object":   {".claude/settings.json": "{}", ".claude/settings.local.json": "{ }\n"},
		"a command by hand": {".claude/commands/agent-state-machine.md": "# by hand\n", ".claude/commands/other.md": "x"},
		"agents and hooks": {
			".claude/agents/a.md":   "x",
			".claude/settings.json": `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}`,
		},
		"a session's folder": {".claude/agent-state-machine/20261120_143001/state.jsonl": "{}\n"},
	} {
		for place, at := range map[string]func(string) Place{
			"project": func(dir string) Place { return Project(dir, false) },
			"local":   func(dir string) Place { return Project(dir, true) },
			"user":    func(home string) Place { return User(home, "") },
			"plugin":  func(dir string) Place { return Plugin(filepath.Join(dir, "plugin")) },
		} {
			t.Run(what+" "+place, func(t *testing.T) {
				dir := t.TempDir()
				for name, text := range have {
					if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o640); err != nil {
						t.Fatal(err)
					}
				}
				before := tree(t, dir)
				steps, err := Install(at(dir), program)
				if len(steps) == 0 {
					t.Fatalf("install has no steps: %v", err)
				}
				carry(t, steps, err)
				with := tree(t, dir)
				if steps, err := Install(at(dir), program); err != nil || len(steps) > 0 {
					t.Errorf("installed twice: %v %v", steps, err)
				}
				steps, err = Install(at(dir), Program{Path: "/new/fairlead", Args: []string{"hook"}})
				carry(t, steps, err)
				if d := cmp.Diff(with, tree(t, dir)); d == "" {
					t.Error("install does not notice that the program has moved")
				}
				steps, err = Uninstall(at(dir))
				carry(t, steps, err)
				if d := cmp.Diff(before, tree(t, dir)); d != "" {
					t.Errorf("uninstall does not restore the previous state:\n%s", d)
				}
				if steps, err := Uninstall(at(dir)); err != nil || len(steps) > 0 {
					t.Errorf("uninstalled twice: %v %v", steps, err)
				}
			})
		}
	}
}

// What the user wrote after install stays after uninstall.
func TestUninstallLeavesWhatTheUserWrote(t *testing.T) {
	dir := t.TempDir()
	place := Project(dir, false)
	settings, command := filepath.Join(dir, ".claude/settings.json"), filepath.Join(dir, ".claude/commands/agent-state-machine.md")
	if err := os.MkdirAll(filepath.Dir(settings), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte("{\n  \"model\": \"opus\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	steps, err := Install(place, program)
	carry(t, steps, err)
	edit := func(path, old, with string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), old) {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, with, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit(settings, "\"model\": \"opus\"", "\"model\": \"haiku\"")
	edit(command, "The user called", "Be kind. The user called")
	steps, err = Uninstall(place)
	carry(t, steps, err)
	left := tree(t, dir)
	if left[".claude/settings.json"] != "-rw------- {\n  \"model\": \"haiku\"\n}\n" ||
		!strings.Contains(left[".claude/commands/agent-state-machine.md"], "Be kind.") {
		t.Errorf("%v", left)
	}
	var named int
	for _, s := range steps {
		if s.Act == Left && s.Note != "" {
			named++
		}
	}
	if named != 2 {
		t.Errorf("the files that remain (the old copy, a changed command) are not named: %v", steps)
	}
}

func TestInstallLeavesAloneWhatItCannotRead(t *testing.T) {
	for what, spoil := range map[string]func(dir string) error{
		"comments": func(dir string) error { return os.WriteFile(dir+"/settings.json", []byte("{ // mine\n}"), 0o600) },
		"a folder": func(dir string) error { return os.Mkdir(dir+"/settings.json", 0o755) },
		"a link that leads out": func(dir string) error {
			return os.Symlink("/etc/hostname", dir+"/settings.json")
		},
		"a link that leads nowhere": func(dir string) error { return os.Symlink("gone", dir+"/settings.json") },
		"too much": func(dir string) error {
			return os.WriteFile(dir+"/settings.json", []byte("{}"+strings.Repeat(" ", settingsBytesMax)), 0o600)
		},
		"commands as a file": func(dir string) error { return os.WriteFile(dir+"/commands", nil, 0o600) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(dir+"/.claude", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir + "/.claude"); err != nil {
				t.Fatal(err)
			}
			if _, err := Install(Project(dir, false), program); err == nil {
				t.Error("install was not refused")
			}
		})
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"agent-state-machine.md": "mine", "agent-state-machine.md.before-fairlead": "mine, too"} {
		if err := os.MkdirAll(dir+"/.claude/commands", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/.claude/commands/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Install(Project(dir, false), program); err == nil || !strings.Contains(err.Error(), "move one of the two") {
		t.Errorf("%v", err)
	}
}

// A link within the place is followed, and stays a link.
func TestInstallFollowsALink(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/.claude", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/shared.json", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../shared.json", dir+"/.claude/settings.json"); err != nil {
		t.Fatal(err)
	}
	steps, err := Install(Project(dir, false), program)
	carry(t, steps, err)
	if info, err := os.Lstat(dir + "/.claude/settings.json"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	if text, err := os.ReadFile(dir + "/shared.json"); err != nil || !strings.Contains(string(text), "PreToolUse") {
		t.Errorf("%s %v", text, err)
	}
}

// The shell runs what install writes: a program that is missing or fails blocks while a dispatch is open, and
// does nothing otherwise.
func TestTheCommandInAShell(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	exe := func(name, text string) Program {
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return Program{Path: path, Args: []string{"hook"}}
	}
	gone := Program{Path: filepath.Join(home, "it's gone")}
	fine, wrong, crashed := exe("fi ne", `echo "$@"`), exe("wrong", "echo no >&2; exit 2"), exe("crashed", "exit 1")
	try := func(p Program, event string) string {
		code, out, errs := shell(t, p.command(event))
		text := strings.TrimSpace(out)
		if strings.Contains(errs, ".claude/settings.json") {
			text += " named"
		}
		return strings.TrimSpace(strings.Join([]string{text, map[int]string{0: "passes", 1: "fails", 2: "blocks"}[code]}, " "))
	}
	for range 2 {
		open := map[string]string{}
		if _, err := os.Stat(filepath.Join(home, "state")); err == nil {
			open = map[string]string{"gone PreToolUse": "named blocks", "gone UserPromptSubmit": "named blocks"}
		}
		want := map[string]string{
			"fine PreToolUse": "hook PreToolUse passes", "wrong PreToolUse": "named blocks", "crashed PreToolUse": "named blocks",
			"gone PreToolUse":       "passes",
			"fine UserPromptSubmit": "hook UserPromptSubmit passes", "wrong UserPromptSubmit": "named blocks",
			"crashed UserPromptSubmit": "named blocks", "gone UserPromptSubmit": "passes",
			"fine Stop": "hook Stop passes", "crashed Stop": "fails", "gone Stop": "passes",
		}
		maps.Copy(want, open)
		got := map[string]string{}
		for name, p := range map[string]Program{"fine": fine, "wrong": wrong, "crashed": crashed, "gone": gone} {
			for _, event := range []string{PreToolUse, UserPromptSubmit, Stop} {
				if key := name + " " + event; want[key] != "" {
					got[key] = try(p, event)
				}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if err := os.MkdirAll(filepath.Join(home, "state/fairlead/sessions"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, "state/fairlead/sessions/x"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The command is the same in every place, so that the program runs it once.
func TestTwoPlacesAskOnce(t *testing.T) {
	dir := t.TempDir()
	project, local := Project(dir, false), Project(dir, true)
	for _, place := range []Place{project, local} {
		steps, err := Install(place, program)
		carry(t, steps, err)
	}
	shared, err := os.ReadFile(dir + "/.claude/settings.json")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(dir + "/.claude/settings.local.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(shared), string(own)); d != "" {
		t.Errorf("the commands differ:\n%s", d)
	}

	named := func(steps []Step, err error) (text string) {
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if s.Act == Left {
				text += s.Note
			}
		}
		return text
	}
	if note := named(Install(project, Program{Path: "/another/fairlead", Args: []string{"hook"}})); !strings.Contains(note,
		"recorded twice") {
		t.Errorf("the note does not name the other program: %q", note)
	}
	if err := os.WriteFile(dir+"/.claude/settings.local.json", []byte(strings.Replace(string(own), "{", `{"disableAllHooks": true,`, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if note := named(Install(project, program)); !strings.Contains(note, "nothing is enforced") {
		t.Errorf("the note does not report that no hook is called: %q", note)
	}

	steps, err := Uninstall(project)
	carry(t, steps, err)
	if _, err := os.Stat(dir + "/.claude/commands/agent-state-machine.md"); err != nil {
		t.Errorf("the command was removed although other settings need it: %v", err)
	}
	steps, err = Uninstall(local)
	carry(t, steps, err)
	if left := tree(t, dir); len(left) != 2 { // the folder, .claude and what the test wrote
		if _, there := left[".claude/commands"]; there {
			t.Errorf("files are left: %v", left)
		}
	}
}
