package policytest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Scene holds the places of a scene. Paths are absolute.
type Scene struct {
	Root, Repo, Home, Outside, Session, Outputs, Dialogue string

	State string // the register of dispatch folders by program
}

// At returns the scene in a folder, which must be resolved.
func At(root string) Scene {
	s := Scene{Root: root, Repo: root + "/repo", Home: root + "/home", Outside: root + "/outside"}
	s.State = s.Home + "/.local/state/fairlead"
	s.Session = s.Repo + "/.claude/agent-state-machine/20261121_120000"
	s.Outputs = s.Session + "/conversations/conv_001/outputs"
	s.Dialogue = s.Session + "/conversations/conv_001/dialogue.md"
	return s
}

// Expand replaces {{repo}} and similar placeholders.
func (s Scene) Expand(text string) string {
	return strings.NewReplacer("{{repo}}", s.Repo, "{{home}}", s.Home, "{{outside}}", s.Outside,
		"{{session}}", s.Session, "{{state}}", s.State, "{{out}}", s.Outputs).Replace(text)
}

// Entry is one file, folder or link.
type Entry struct {
	Path string      // absolute
	Mode fs.FileMode // of a file or a folder; of a pipe with fs.ModeNamedPipe
	Text string      // of a file
	Link string      // a symlink's target
	Same string      // the path of the file that this is another name of (a hard link)
}

const hostileConfig = "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch pwned\"\n"

// Tree lists everything, folders before their content.
func (s Scene) Tree() []Entry {
	file := func(path, text string) Entry { return Entry{Path: path, Mode: 0o644, Text: text} }
	folder := func(path string) Entry { return Entry{Path: path, Mode: fs.ModeDir | 0o755} }
	link := func(path, to string) Entry { return Entry{Path: path, Mode: fs.ModeSymlink, Link: to} }
	repo, out := s.Repo+"/", s.Outputs+"/"
	return []Entry{
		folder(s.Root),
		folder(s.Home), folder(s.Home + "/.claude"), file(s.Home+"/.claude/settings.json", "{}\n"),
		folder(s.Home + "/.local"), folder(s.Home + "/.local/state"), folder(s.State), file(s.State+"/pointer", "x\n"),
		folder(s.Outside), file(s.Outside+"/file.txt", "outside\n"),
		folder(s.Repo),
		file(repo+"README.md", "a readme\nx marks it\n"),
		file(repo+"app.py", "print(1)\nprint(2)\nprint(3)\n"),
		file(repo+"data.json", `{"a":{"b":1}}`+"\n"),
		file(repo+"data.csv", "a,b\n1,2\n"),
		file(repo+"package.json", "{}\n"),
		file(repo+"config.yaml", "a: 1\n"),
		file(repo+".env", "KEY=1\n"),
		file(repo+"run.log", "one\n"),
		file(repo+"a b.txt", "a space\n"),
		file(repo+"--output=x", "a name like a flag\n"),
		file(repo+"-delete", "a name like a flag\n"),
		{Path: repo + "run", Mode: 0o755, Text: "#!/bin/sh\ntouch pwned\n"},
		{Path: repo + "ls", Mode: 0o755, Text: "#!/bin/sh\ntouch pwned\n"},
		{Path: repo + "pipe", Mode: fs.ModeNamedPipe | 0o644},
		folder(repo + "docs"), file(repo+"docs/guide.md", "a guide\n"), link(repo+"docs/out", s.Outside),
		folder(repo + "src"), file(repo+"src/main.py", "print()\n"), file(repo+"src/util.go", "package src\n"),
		folder(repo + ".fairlead"), file(repo+".fairlead/fairlead.yaml", "team: {}\n"),
		folder(repo + ".git"), file(repo+".git/HEAD", "ref: refs/heads/main\n"),
		file(repo+".git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"),
		folder(repo + ".git/hooks"), folder(repo + ".git/objects"), folder(repo + ".git/refs"),
		link(repo+"gitlink", ".git"),
		folder(repo + ".claude"), file(repo+".claude/settings.json", "{}\n"),
		folder(repo + ".claude/agents"), file(repo+".claude/agents/backend.md", "---\nname: backend\n---\n"),
		link(repo+"inner", ".claude"),
		// a hostile repository, and a bare one under another name
		folder(repo + "hostile"), folder(repo + "hostile/.git"), file(repo+"hostile/.git/HEAD", "ref: refs/heads/main\n"),
		file(repo+"hostile/.git/config", hostileConfig), folder(repo + "hostile/.git/objects"), folder(repo + "hostile/.git/refs"),
		folder(repo + "evil"), file(repo+"evil/HEAD", "ref: refs/heads/main\n"), file(repo+"evil/config", hostileConfig),
		folder(repo + "evil/objects"), folder(repo + "evil/refs"),
		folder(repo + ".claude/agent-state-machine"), folder(s.Session),
		file(s.Session+"/state.jsonl", "{}\n"), file(s.Session+"/agent-list.txt", "backend\n"),
		file(s.Session+"/AGENT_DIRECTORY.md", "# backend\n"),
		folder(s.Session + "/conversations"), file(s.Session+"/conversations/messages.jsonl", ""),
		folder(s.Session + "/conversations/conv_001"), file(s.Dialogue, "# Conversation: conv_001\n"), folder(s.Outputs),
		file(out+"notes.md", "a note\n"),
		{Path: out + "tool.sh", Mode: 0o755, Text: "#!/bin/sh\n"},
		{Path: out + "bit.md", Mode: 0o755, Text: "a note that runs\n"},
		file(out+"shebang.txt", "#!/bin/sh\n"),
		file(out+"a.py", "print()\n"),
		file(out+"x", "x\n"),
		link(out+"link.md", "a.py"), link(out+"dangling.md", "new.py"), link(out+"loop", "loop"),
		link(out+"esc.md", "../../../../../settings.json"), link(out+"up", "../../.."),
		{Path: out + "hard.md", Same: s.Outside + "/file.txt"},
	}
}

// old is the modification time of all files: long enough ago that git trusts it.
var old = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Build creates the scene in a new folder; its repository is a real one if git is installed.
func Build(t testing.TB) Scene {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := At(root)
	for _, e := range s.Tree() {
		if err := make1(e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := exec.LookPath("git"); err == nil {
		s.commit(t)
	}
	return s
}

func make1(e Entry) error {
	switch {
	case e.Link != "":
		return os.Symlink(e.Link, e.Path)
	case e.Same != "":
		return os.Link(e.Same, e.Path)
	case e.Mode.IsDir():
		return os.MkdirAll(e.Path, e.Mode.Perm())
	case e.Mode&fs.ModeNamedPipe != 0:
		return syscall.Mkfifo(e.Path, uint32(e.Mode.Perm()))
	}
	if err := os.WriteFile(e.Path, []byte(e.Text), e.Mode.Perm()); err != nil {
		return err
	}
	return os.Chtimes(e.Path, old, old)
}

// commit turns the repository into a real one with one commit.
func (s Scene) commit(t testing.TB) {
	t.Helper()
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"config", "user.name", "somebody"},
		{"config", "user.email", "somebody@example.com"},
		{"add", "--", "README.md", "app.py", "data.json", "data.csv", "docs/guide.md", "src"},
		{"commit", "-q", "-m", "begin"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = s.Repo, s.Env()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// Env is the environment for commands on the scene. GIT_OPTIONAL_LOCKS=0 keeps git from refreshing its index
// when it only reads; MAIN's shell runs with it.
func (s Scene) Env() []string {
	return []string{
		"PATH=/usr/bin:/bin", "HOME=" + s.Home, "TMPDIR=" + s.Outside, "GIT_OPTIONAL_LOCKS=0", "GIT_CONFIG_NOSYSTEM=1",
		"LC_ALL=C",
	}
}
