package policy_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// boundAttempts is one part of attempts-bounds.txt: bounds, and commands under them. The file's head explains the format.
type boundAttempts struct {
	bounds    policy.Rules
	writes    *regexp.Regexp
	all       bool // writes matches what may not be changed
	attempts  []string
	ordinary  []string
	firstLine int
}

func readBoundAttempts(t testing.TB) (parts []*boundAttempts) {
	t.Helper()
	text, err := os.ReadFile("testdata/attempts-bounds.txt")
	if err != nil {
		t.Fatal(err)
	}
	var p *boundAttempts
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.ReplaceAll(line, "⏎", "\n")
		entry, isEntry := strings.CutPrefix(line, "@")
		key, value, _ := strings.Cut(entry, " ")
		list := []string{}
		if value != "" {
			list = append(list, value)
		}
		switch ordinary, isOrdinary := strings.CutPrefix(line, "= "); {
		case line == "" || strings.HasPrefix(line, "# "):
		case isOrdinary:
			p.ordinary = append(p.ordinary, ordinary)
		case !isEntry:
			p.attempts = append(p.attempts, line)
		case key == "none":
			p = &boundAttempts{firstLine: i + 1}
			parts = append(parts, p)
		case key == "can_write":
			p.bounds.CanWrite = append(p.bounds.CanWrite, list...)
			p.bounds.CanWrite = append([]string{}, p.bounds.CanWrite...)
		case key == "cannot_write":
			p.bounds.CannotWrite = append(p.bounds.CannotWrite, list...)
		case key == "can_execute":
			p.bounds.CanExecute = append(append([]string{}, p.bounds.CanExecute...), list...)
		case key == "cannot_execute":
			p.bounds.CannotExecute = append(p.bounds.CannotExecute, list...)
		case key == "writes":
			value, p.all = strings.CutPrefix(value, "!")
			p.writes = regexp.MustCompile("^(?:" + value + ")$")
		default:
			t.Fatalf("attempts-bounds.txt:%d: no such line: %s", i+1, line)
		}
	}
	return parts
}

// boundStage is a scene in which an attempt runs with nothing to hold it, and what it did is seen.
type boundStage struct {
	policytest.Scene
	t      *testing.T
	bin    string
	flag   string
	remote string
}

func newBoundStage(t *testing.T) *boundStage {
	t.Helper()
	s := &boundStage{Scene: policytest.Build(t), t: t, bin: t.TempDir()}
	s.flag, s.remote = filepath.Join(s.bin, "flag"), filepath.Join(s.Outside, "remote.git")
	files := map[string]string{
		s.bin + "/evil": "#!/bin/sh\n: > '" + s.flag + "'\n", s.Repo + "/scripts/ok": "#!/bin/sh\n", s.Repo + "/tool-x": "#!/bin/sh\n",
		s.Repo + "/scripts/sub/evil": "#!/bin/sh\nevil\n",
		s.Repo + "/src/main.go":      "package main\n", s.Repo + "/deploy/a.yaml": "a: 1\n", s.Repo + "/data/aa.csv": "a\n",
		s.Repo + "/gen/a": "a\n", s.Repo + "/lib/gen/b": "b\n", s.Repo + "/notes/ab.txt": "a\n",
		s.Repo + "/x.patch": "--- app.py\n+++ app.py\n@@ -1 +1 @@\n-print(1)\n+print(9)\n",
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(s.Repo+"/run", []byte("#!/bin/sh\nevil\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"git init -q --bare ../outside/remote.git", "git remote add origin ../outside/remote.git",
		"git commit -q --allow-empty -m second", "git config push.default current",
	} {
		if out, err := s.command(command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	return s
}

func (s *boundStage) command(text string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	s.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "/bin/bash", "-c", text)
	cmd.Dir, cmd.WaitDelay = s.Repo, time.Second
	cmd.Env = append(s.Env(), "PATH="+s.bin+":/usr/bin:/bin", "BIN="+s.bin, "HOME="+s.Home, "TMPDIR="+s.bin,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	return cmd
}

// files are the names below the scene and what is in them, without those that any command of git may change.
func (s *boundStage) files() map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(s.Root, func(p string, e os.DirEntry, err error) error {
		name, _ := strings.CutPrefix(p, s.Repo+"/")
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(name, ".git/") && !strings.HasPrefix(name, ".git/refs") && name != ".git/config" &&
			!strings.HasPrefix(name, ".git/hooks"):
		case e.Type().IsRegular():
			text, err := os.ReadFile(p)
			all[name] = string(text)
			return err
		default:
			target, _ := os.Readlink(p) // empty for what is no link
			all[name] = e.Type().String() + target
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// harm runs a command and returns what it did that the bounds do not let it do; empty: nothing.
func (s *boundStage) harm(p *boundAttempts, command string) string {
	before := s.files()
	_ = s.command(command).Run() // what it did counts
	after := s.files()
	var did []string
	if _, err := os.Lstat(s.flag); err == nil {
		did = append(did, "executed evil")
	}
	see := func(name string) {
		inside := !filepath.IsAbs(name)
		switch {
		case strings.HasPrefix(name, s.remote):
			did = append(did, "pushed")
		case inside && p.writes.MatchString(name) != p.all:
		case p.bounds.CanWrite == nil && p.bounds.CannotWrite == nil: // only programs are bounded
		case !inside && p.all:
		default:
			did = append(did, "changed "+name)
		}
	}
	for name, text := range after {
		if was, ok := before[name]; !ok || was != text {
			see(name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			see(name)
		}
	}
	return strings.Join(did, ", ")
}

// Attempts to get past bounds. Those that a pattern may allow run with nothing to hold them, and must have no effect (D8, X10). The longest
// form also runs the others, to prove that most of them would have one. doc/testing.md has the figures.
func TestBoundAttempts(t *testing.T) {
	attempts, out, asked, harmless, through, works, ordinary, plain, wrong := 0, 0, 0, 0, 0, 0, 0, 0, 0
	runAll := testsize.Pick(false, false, true)
	s := newBoundStage(t).Scene
	allowed := map[*boundAttempts][]string{}
	parts := readBoundAttempts(t)
	for _, p := range parts {
		book := policy.Permissions{Allow: patterns(t, "*", "Bash(*)"), Bounds: p.bounds}
		answer := func(command string) (verdict, why string) {
			input := policytest.Case{Tool: "Bash", Arg: command}.Input(s)
			verdict, rule, doubt := book.Answer(policy.Call{Tool: "Bash", Input: input, Dir: s.Repo}, nil, workspaceOf(s),
				dispatchfolder.Disk{})
			return verdict, rule + doubt
		}
		for _, command := range p.attempts {
			attempts++
			verdict, _ := answer(command)
			switch verdict {
			case "deny":
				out++
			case "":
				asked++
			default:
				allowed[p] = append(allowed[p], command)
			}
			if verdict != "allow" && runAll && newBoundStage(t).harm(p, command) != "" {
				works++
			}
		}
		for _, command := range p.ordinary {
			ordinary++
			switch verdict, why := answer(command); verdict {
			case "deny":
				wrong++
				t.Errorf("%q is denied by %q", command, why)
			case "allow":
				plain++
			}
		}
	}
	for _, p := range parts {
		for _, command := range allowed[p] {
			if harm := newBoundStage(t).harm(p, command); harm != "" {
				through++
				t.Errorf("bounds of line %d: %q is allowed, and %s", p.firstLine, command, harm)
			} else {
				harmless++
			}
		}
	}
	if runAll && works < attempts/2 {
		t.Errorf("only %d of %d attempts would have an effect", works, attempts)
	}
	t.Logf("%d attempts: %d denied, %d left to a person, %d allowed and without effect, %d through; %d of the first two would work; of %d ordinary calls %d allowed and %d denied",
		attempts, out, asked, harmless, through, works, ordinary, plain, wrong)
}
