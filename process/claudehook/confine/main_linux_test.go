package confine

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// alone is the first argument of a process of these tests that holds a command by Landlock alone.
const alone = "landlock-alone"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == alone {
		c, err := parse(os.Args[2:])
		if err == nil {
			err = c.become([]string{"/bin/sh", "-c", c.Text, "sh"}, 0)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(sandbox.CannotSandbox)
	}
	os.Exit(m.Run())
}

// person is a project in the home folder of a person, with what a command must not reach.
type person struct {
	home, project, dispatch string
	socket                  string
}

func newPerson(t *testing.T) person {
	t.Helper()
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := person{
		home: filepath.Join(dir, "home"), project: filepath.Join(dir, "home", "repo"),
		socket: filepath.Join(dir, "home", "repo", "socket"),
	}
	p.dispatch = filepath.Join(p.project, ".claude", "agent-state-machine", "d")
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	t.Setenv("HOME", p.home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("PATH", filepath.Join(p.home, ".tools", "bin")+":/usr/bin:/bin")
	for name, text := range map[string]string{
		"repo/README.md": "read me\n", "repo/.git/HEAD": "ref: refs/heads/main\n", "repo/.claude/settings.json": "{}\n",
		"repo/.fairlead/token":      "secret\n",
		"repo/.fairlead/journal.db": "journal\n", ".ssh/id": "secret\n", ".config/gh/hosts.yml": "login\n",
		".config/other/login":                 "secret\n",
		".local/state/fairlead/dispatches/s1": "tie\n", "other/file": "secret\n", "elsewhere/d/state.jsonl": "{}\n",
		"repo/.claude/agent-state-machine/d/state.jsonl":                         "{}\n",
		"repo/.claude/agent-state-machine/d/conversations/conv_001/dialogue.md":  "# Dialogue\n",
		"repo/.claude/agent-state-machine/d/conversations/conv_001/outputs/kept": "kept\n",
		"repo/.claude/agent-state-machine/d/conversations/conv_002/dialogue.md":  "# Dialogue\n",
		"../tmp/kept": "", ".tools/bin/rg": "#!/bin/sh\necho found\n",
	} {
		file := filepath.Join(p.home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Chdir(p.project)
	return p
}

// code runs a command, and returns its exit code.
func (c Command) code(t *testing.T, verb string) (code int, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{verb}, c.Args()...)...)
	said, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(said)
}

// TestMainsView: a command of MAIN reads the project, and nothing else of the person but what a program that it asks answers from; it
// writes nothing but in folders of its own. Each denial has a twin that is allowed.
func TestMainsView(t *testing.T) {
	p := newPerson(t)
	const denied, allowed = 1, 0
	asks := []string{"cat", "ls", "chmod", "kill", "mkdir", "python3"}
	for _, row := range []struct {
		text     string
		programs []string
		want     int
		mounted  bool // Landlock alone does not hold it
	}{
		{text: "cat README.md .git/HEAD .claude/settings.json " + p.dispatch + "/state.jsonl", want: allowed},
		{text: "cat ../elsewhere/d/state.jsonl", want: allowed},
		{text: "cat ../other/file", want: denied},
		{text: "cat ../.ssh/id", want: denied},
		{text: "cat .fairlead/token", want: denied, mounted: true},
		{text: "cat .fairlead/journal.db", want: denied, mounted: true},
		{text: "cat .fairlead/journal.db", programs: []string{"fairlead"}, want: allowed},
		{text: "cat .fairlead/token", programs: []string{"fairlead"}, want: denied, mounted: true},
		{text: "cat ../.local/state/fairlead/dispatches/s1", want: denied},
		{text: "cat ../.local/state/fairlead/dispatches/s1", programs: []string{"fairlead"}, want: allowed},
		{text: "cat ../.config/gh/hosts.yml", want: denied},
		{text: "cat ../.config/gh/hosts.yml", programs: []string{"gh"}, want: allowed},
		{text: "cat ../.config/other/login", programs: []string{"gh"}, want: denied},
		{text: "rg", programs: []string{"rg"}, want: allowed},
		{text: "rg", want: denied},
		{text: "echo x > \"$HOME/new\" && echo x > \"$TMPDIR/new\"", want: allowed},
		{text: "echo x > README.md", want: denied},
		{text: "echo x > new", want: denied},
		{text: "echo x > .claude/settings.json", want: denied},
		{text: "echo x > " + p.dispatch + "/conversations/conv_001/dialogue.md", want: denied},
		{text: "chmod 0777 README.md", want: denied},
		{text: "cat /proc/" + strconv.Itoa(os.Getpid()) + "/environ", want: denied},
		{text: "cat /proc/self/environ > /dev/null", want: allowed},
		{text: "kill -0 " + strconv.Itoa(os.Getpid()), want: denied},
		{text: "kill -0 $$", want: allowed},
	} {
		for verb, holds := range map[string]bool{
			Verb:  sandbox.Abilities().By == sandbox.ByNamespaces,
			alone: !row.mounted && !strings.Contains(row.text, "../.local") && !strings.Contains(row.text, "$TMPDIR"),
		} {
			if !holds {
				continue
			}
			c := Command{
				Not: p.project, Text: row.text, Programs: append(row.programs, asks...),
				Reads: []string{p.dispatch, filepath.Join(p.home, "elsewhere", "d")},
			}
			if code, out := c.code(t, verb); strings.Contains(out, "nothing was") || (code == 0) != (row.want == allowed) {
				t.Errorf("%s of %q with %v: %d, want %d: %s", verb, row.text, row.programs, code, row.want, out)
			}
		}
	}
	for file, want := range map[string]string{"README.md": "read me\n", ".claude/settings.json": "{}\n"} {
		if text, err := os.ReadFile(filepath.Join(p.project, file)); err != nil || string(text) != want {
			t.Errorf("%s is %q (%v)", file, text, err)
		}
	}
}

// TestSocketsOfOutside: neither MAIN nor an agent connects to a socket of outside, nor to one at which a program of outside listens in the
// project. A socket of the command's own is the twin.
func TestSocketsOfOutside(t *testing.T) {
	p := newPerson(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	outside := filepath.Join(p.home, "socket")
	l, err := net.Listen("unix", outside)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, row := range []struct {
		agent bool
		at    string
		want  int
	}{{false, outside, 1}, {true, outside, 1}, {false, p.socket, 1}, {true, p.socket, 1}} {
		c := Command{
			Agent: row.agent, Not: p.project, Programs: []string{"python3"},
			Text: "exec python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"" + row.at + "\")'",
		}
		if code, out := c.code(t, Verb); code != row.want {
			t.Errorf("agent %v, %s: %d, want %d: %s", row.agent, row.at, code, row.want, out)
		}
	}
	own := "import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"own\"); s.listen(); socket.socket(socket.AF_UNIX).connect(\"own\")"
	if code, out := (Command{Agent: true, Not: p.project, Text: "exec python3 -c '" + own + "'"}).code(t, Verb); code != 0 {
		t.Errorf("its own socket: %d: %s", code, out)
	}
}

// TestAgentsConversation: an agent writes in the folder of its conversation, which lies in .claude, and in no other one; what is
// Fairlead's in the project is not there.
func TestAgentsConversation(t *testing.T) {
	p := newPerson(t)
	if sandbox.Abilities().By != sandbox.ByNamespaces {
		t.Skip("there is no view here")
	}
	of := func(n string) string { return filepath.Join(p.dispatch, "conversations", n) }
	for text, allowed := range map[string]bool{
		"echo x > " + of("conv_001") + "/outputs/made && echo x >> " + of("conv_001") + "/dialogue.md": true,
		"cat " + of("conv_002") + "/dialogue.md":                                                       true,
		"echo x > " + of("conv_002") + "/dialogue.md":                                                  false,
		"echo x > " + p.dispatch + "/state.jsonl":                                                      false,
		"mv " + of("conv_001") + " " + of("conv_003"):                                                  false,
		"echo x > made":                       true,
		"cat .fairlead/token":                 false,
		"rm -r .fairlead":                     false,
		"mv .fairlead other":                  false,
		"cat ../elsewhere/d/state.jsonl":      true,
		"echo x > ../elsewhere/d/state.jsonl": false,
		"echo x > ../elsewhere/d/new":         false,
	} {
		c := Command{
			Agent: true, Not: p.project, Text: text, Reads: []string{p.dispatch, filepath.Join(p.home, "elsewhere", "d")},
			Writes: []string{of("conv_001")},
		}
		if code, out := c.code(t, Verb); code == sandbox.CannotSandbox || (code == 0) != allowed {
			t.Errorf("%q: %d: %s", text, code, out)
		}
	}
	if _, err := os.Stat(of("conv_001") + "/outputs/made"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(p.project, ".fairlead", "token")); err != nil || string(text) != "secret\n" {
		t.Errorf("the token is %q (%v)", text, err)
	}
	if err := os.RemoveAll(filepath.Join(p.project, ".fairlead")); err != nil {
		t.Fatal(err)
	}
	c := Command{Agent: true, Not: p.project, Text: "mkdir .fairlead 2>/dev/null; echo x > .fairlead/settings.json"}
	if code, out := c.code(t, Verb); code == 0 || code == sandbox.CannotSandbox {
		t.Errorf("it made Fairlead's folder: %d: %s", code, out)
	}
	Sweep()
	if _, err := os.Lstat(filepath.Join(p.project, ".fairlead")); err == nil {
		t.Error("the folder was left")
	}
}
