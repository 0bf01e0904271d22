package places_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// inView runs a shell command in the view of a session, and returns what it printed.
func (m *machine) inView(s places.Session, command string) string {
	m.t.Helper()
	cmd, remove := m.viewed(s, command)
	defer remove()
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Logf("%s: %v", command, err)
	}
	return string(out)
}

// viewed prepares a shell command in the view of a session.
func (m *machine) viewed(s places.Session, command string) (cmd *exec.Cmd, remove func()) {
	m.t.Helper()
	p, err := places.Of(s)
	if err != nil {
		m.t.Fatal(err)
	}
	if err := p.Make(); err != nil {
		m.t.Fatal(err)
	}
	points, err := sandbox.MakePoints(m.base, p.View)
	if err != nil {
		m.t.Fatal(err)
	}
	argv, err := sandbox.WrapView(os.Args[0], []string{"/bin/sh", "-c", command}, p.View)
	if err != nil {
		m.t.Fatal(err)
	}
	cmd = exec.CommandContext(m.t.Context(), argv[0], argv[1:]...)
	cmd.SysProcAttr, cmd.Env, cmd.Dir = p.View.Attr(), append(p.Env, "GORACE=atexit_sleep_ms=0"), p.View.Dir
	return cmd, func() { _ = points.Remove() }
}

func viewedMachine(t *testing.T, tree string) *machine {
	t.Helper()
	a := sandbox.Abilities()
	if a.By != sandbox.ByNamespaces {
		t.Skipf("there is no view here: %v", a.Why)
	}
	m := newMachine(t, tree)
	m.by = a
	return m
}

// names are all files and folders of the machine but those of Fairlead, with their modes and times.
func (m *machine) names() (all []string) {
	m.t.Helper()
	err := filepath.WalkDir(m.base, func(p string, e os.DirEntry, err error) error {
		if err != nil || p == m.at("repo/.fairlead") || p == m.at(".points") {
			return filepath.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		all = append(all, strings.Join([]string{p, info.Mode().String(), info.ModTime().String()}, " "))
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

// TestSeen tries each row of the table with a real process: what is closed, and beside it the same act where it is allowed.
func TestSeen(t *testing.T) {
	m := viewedMachine(t, "home/.ssh/id=secret home/.tool/bin/prog=#!/bin/sh home/bin/prog->home/.tool/bin/prog home/docs/note=text"+
		" repo/.git/config=git repo/main.go=code repo/.agents/runs/T9/prompt=other repo/.fairlead/token=token repo/w/secret/key=key repo/w/a/b/keep=kept"+
		" repo/other/mine=theirs repo/w/in/theirs=visible repo/.agents/worktrees/T2/x=other repo/w/.claude/settings.json={}")
	s := m.session("repo/w")
	s.Others = []string{m.at("repo/other"), m.at("repo/w/in")}
	s.Hide, s.Read = []string{m.at("repo/w/secret")}, []string{m.at("home/docs")}
	s.CannotWrite = []string{"a/b/**"}
	s.Env = []string{"HOME=" + m.at("home"), "PATH=/usr/bin:/bin:" + m.at("home/bin") + ":" + m.at("home/none")}
	s.Name, s.Mail = `Ann "B"`, "ann@example.invalid"
	before := m.names()
	for command, want := range map[string]string{
		"cat ~/.ssh/id":                         "No such file",
		"cat ~/docs/note":                       "text",
		"echo > ~/docs/note":                    "Read-only",
		"echo x > ~/x && cat ~/x":               "x",
		"prog && echo ran":                      "ran",
		"echo >> ~/.tool/bin/prog":              "Read-only",
		"echo $PATH | grep -c none":             "0",
		"cat ../main.go":                        "code",
		"echo > ../main.go":                     "Read-only",
		"cat ../.git/config":                    "git",
		"echo > ../.git/x":                      "Read-only",
		"ls -A ../.fairlead ../.agents/runs":    "../.agents/runs:\n\n../.fairlead:\n",
		"cat ../.fairlead/token":                "No such file",
		"ls -A ../other ../.agents/worktrees":   "../.agents/worktrees:\n\n../other:\n",
		"cat in/theirs":                         "visible",
		"echo > in/theirs":                      "Read-only",
		"ls -A secret":                          "",
		"cat a/b/keep":                          "kept",
		"echo > a/b/new":                        "Read-only",
		"mv a moved":                            "busy",
		"mv a/b a/c":                            "busy",
		"rm -rf a; cat a/b/keep":                "kept",
		"echo x > a/new && cat a/new && rm a/*": "x",
		"echo > .claude/settings.json":          "Read-only",
		"mv .claude x":                          "busy",
		"echo x > new && cat new && rm new":     "x",
		"echo x > $TMPDIR/t && cat /tmp/t":      "x",
		"echo x > $XDG_RUNTIME_DIR/t && echo y": "y",
		"git config user.name; git config user.email; git config commit.gpgsign": "Ann \"B\"\nann@example.invalid\nfalse\n",
	} {
		got := m.inView(s, command)
		if len(got) > 300 {
			t.Fatal(got)
		}
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		if err := places.End(s.Own); err != nil {
			t.Error(err)
		}
	}
	after := m.names()
	if i := slices.IndexFunc(after, func(one string) bool { return strings.HasPrefix(one, m.at("repo/w")+" ") }); i >= 0 {
		// the agent wrote there
		before[slices.IndexFunc(before, func(one string) bool { return strings.HasPrefix(one, m.at("repo/w")+" ") })] = after[i]
	}
	if i := slices.IndexFunc(after, func(one string) bool { return strings.HasPrefix(one, m.at("repo/w/a")+" ") }); i >= 0 {
		before[slices.IndexFunc(before, func(one string) bool { return strings.HasPrefix(one, m.at("repo/w/a")+" ") })] = after[i]
	}
	if !slices.Equal(before, after) {
		t.Errorf("the names, modes and times are\n%s\nand were\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}

// TestCacheInView checks that what an agent's tools cache is there in the next session, and that the person's cache stays as it is.
func TestCacheInView(t *testing.T) {
	m := viewedMachine(t, "repo/w/ home/.npm/_cacache/old=old")
	s := m.session("repo/w")
	for i, c := range []struct{ command, want string }{
		{
			"mkdir -p ~/.npm/_cacache && echo new > ~/.npm/_cacache/new && echo put > ~/.npm/_cacache/old && cat ~/.npm/_cacache/*",
			"new\nput\n",
		},
		{"cat ~/.npm/_cacache/*; echo x > ~/.cache/y && cat ~/.cache/y", "new\nput\nx\n"},
		{"rm -r ~/.npm/_cacache; ls -A ~/.npm; cat ~/.cache/y", "x\n"},
	} {
		if got := m.inView(s, c.command); got != c.want {
			t.Errorf("session %d: %q, want %q", i+1, got, c.want)
		}
		if err := places.End(s.Own); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(m.at("home/.npm/_cacache/old")); err != nil || string(text) != "old" {
		t.Errorf("the person's cache is %q, %v", text, err)
	}
	if got := m.inView(s, "cat ~/.npm/_cacache/old"); m.by.Overlays && strings.Contains(got, "old\n") {
		t.Errorf("a file of the person that the agent removed is there again: %q", got)
	}
	s.Agent, s.Own = "other", m.at("repo/.fairlead/tmp/other-1")
	if got := m.inView(s, "cat ~/.npm/_cacache/old; ls -A ~/.npm"); m.by.Overlays != strings.HasPrefix(got, "old") ||
		strings.Contains(got, "new") {
		t.Errorf("overlays %t: another agent sees %q", m.by.Overlays, got)
	}
}

// TestSeenByLandlock tries the places where nothing can be mounted.
func TestSeenByLandlock(t *testing.T) {
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	m := newMachine(t,
		"home/.ssh/id=secret home/docs/note=text home/.nvm/bin/prog=#!/bin/sh repo/main.go=code repo/w/in repo/.fairlead/token=token repo/.agents/runs/T9/x=other")
	m.by = sandbox.Ability{By: sandbox.ByLandlock}
	s := m.session("repo/w")
	s.Read = []string{m.at("home/docs")}
	s.Env[1] += ":" + m.at("home/.nvm/bin")
	for command, want := range map[string]string{
		"cat " + m.at("home/.ssh/id"):                           "Permission denied",
		"cat " + m.at("home/docs/note"):                         "text",
		"cat ~/docs/note":                                       "text",
		"echo > " + m.at("home/docs/note"):                      "Permission denied",
		"prog && echo ran":                                      "ran",
		"~/.nvm/bin/prog && echo ran":                           "ran",
		"echo >> " + m.at("home/.nvm/bin/prog"):                 "Permission denied",
		"echo > " + m.at("home/x"):                              "Permission denied",
		"echo x > ~/x && cat ~/x":                               "x",
		"echo x > $TMPDIR/x && cat $TMPDIR/x":                   "x",
		"echo x > new && cat new":                               "x",
		"echo > ../main.go":                                     "Permission denied",
		"cat ../main.go":                                        "code",
		"mkdir $npm_config_cache/x && ls $GOCACHE && echo made": "made",
	} {
		if got := m.inView(s, command); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		if err := places.End(s.Own); err != nil {
			t.Error(err)
		}
	}
}

// TestRepositoryOfAnAgent shows what no place holds: in a writable folder an agent can make a repository, also in the place of a .git
// that is no folder. One that is a folder is held.
func TestRepositoryOfAnAgent(t *testing.T) {
	const replace = "rm -rf .git; mkdir .git && echo theirs > .git/config; cat .git/config"
	for tree, held := range map[string]bool{
		"repo/w/x": false, "repo/w/.git->person": false,
		"main/.git/worktrees/x/gitdir=BASE/repo/w/.git repo/w/.git=gitdir:_BASE/main/.git/worktrees/x": false,
		"repo/w/.git/config=ours": true,
	} {
		m := viewedMachine(t, tree)
		said := m.inView(m.session("repo/w"), replace)
		if strings.Contains(said, "theirs") == held {
			t.Errorf("%s: %s", tree, said)
		}
		text, _ := os.ReadFile(m.at("repo/w/.git/config"))
		if is := strings.TrimSpace(string(text)) == "theirs"; is == held {
			t.Errorf("%s: outside, git reads %q", tree, text)
		}
	}
}
