package examples_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/drivertest"
	"github.com/fairlead-dev/fairlead/driver/script"
)

// copyOf makes a copy of an example as a person would.
func copyOf(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	out, err := exec.Command("sh", filepath.Join(name, "new.sh"), dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "fairlead up") {
		t.Fatalf("new.sh: %v\n%s", err, out)
	}
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, out)
	}
	return string(out)
}

func load(t *testing.T, dir string) []config.Agent {
	t.Helper()
	cfg, err := config.Load(dir, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Agents
}

// Every file of the example is accepted by those who will read it.
func TestTrioIsAccepted(t *testing.T) {
	agents := load(t, "trio")
	if len(agents) != 3 {
		t.Fatalf("%d agents", len(agents))
	}
	for _, a := range agents {
		if err := (script.Driver{}).Check(driver.Agent{Name: a.Name, Script: a.Script, Workspace: a.Workspace}); err != nil {
			t.Error(err)
		}
	}
}

// hurry takes the waiting out of a script: its sleeps, its rests and its typing.
func hurry(p *script.Program) {
	p.Pace = 0
	var list func([]script.Step)
	list = func(steps []script.Step) {
		for i := range steps {
			s := &steps[i]
			s.From, s.To = 0, 0
			if s.Verb == "say" || s.Verb == "think" {
				s.Delay = 0
			}
			list(s.Steps)
			list(s.Else)
			for _, c := range s.Choices {
				list(c)
			}
		}
	}
	for _, s := range p.Sessions {
		list(s.Steps)
	}
	list(p.Cleanup)
}

// stage is the real workspace, in which only crashes and what is left running are not real.
type stage struct{ *script.Workspace }

func (stage) Crash(string) error                                { return nil }
func (stage) Spawn(string, string, bool, []string) (int, error) { return 1, nil }

// played is one session and how it ended.
type played struct {
	end script.End
	out []byte
}

func play(t *testing.T, a config.Agent, n int, kind driver.Kind) played {
	t.Helper()
	program, err := script.Load(a.Script)
	if err != nil {
		t.Error(err)
		return played{}
	}
	hurry(program)
	world, err := script.OpenWorkspace(a.Workspace, nil)
	if err != nil {
		t.Error(err)
		return played{}
	}
	defer world.Close()
	var out bytes.Buffer
	part := script.Part{Name: a.Name, Session: fmt.Sprintf("%s-%d", a.Name, n), Kind: kind, Attempt: 1, Prompt: a.SessionPrompt}
	end := script.Play(t.Context(), program, part, script.Stage{Out: io.Writer(&out), World: stage{world}})
	return played{end, out.Bytes()}
}

// The three play ten sessions and a cleanup each, side by side in one repository:
// all that should work does, and every commit arrives.
func TestTrioPlays(t *testing.T) {
	const sessions = 10
	dir := copyOf(t, "trio")
	results := make(map[string][]played)
	var mu sync.Mutex
	var agents sync.WaitGroup
	for _, a := range load(t, dir) {
		agents.Go(func() {
			for n := 1; n <= sessions+1; n++ {
				kind := driver.Work
				if n > sessions {
					kind = driver.Cleanup
				}
				p := play(t, a, n, kind)
				mu.Lock()
				results[a.Name] = append(results[a.Name], p)
				mu.Unlock()
			}
		})
	}
	agents.Wait()

	for _, name := range []string{"coder", "tester"} {
		for n, p := range results[name] {
			if p.end.Stop == nil || !p.end.Stop.OK {
				t.Errorf("%s, session %d: %+v\n%s", name, n+1, p.end.Stop, p.out)
			}
		}
	}
	ends := make(map[string]int)
	for _, p := range results["flaky"] {
		switch {
		case p.end.Stop == nil:
			ends["crashed"]++
		case p.end.Stop.OK:
			ends["ok"]++
		default:
			ends["failed"]++
		}
		usage := false
		for _, f := range drivertest.Facts(t, script.Driver{}, &drivertest.Recording{Bytes: p.out}, 0) {
			usage = usage || f.Kind == driver.UsageReported
		}
		if !usage {
			t.Errorf("flaky reported no usage:\n%s", p.out)
		}
	}
	if ends["ok"] < 3 || ends["failed"] < 1 || ends["crashed"] < 1 {
		t.Errorf("flaky shows too little of its nature: %v; try another seed", ends)
	}

	git(t, dir, "fsck", "--strict")
	log := git(t, dir, "log", "--format=%an")
	if coder, tester := strings.Count(log, "coder"), strings.Count(log, "tester"); coder != sessions+1 || tester < sessions {
		t.Errorf("%d commits by coder, %d by tester:\n%s", coder, tester, git(t, dir, "log", "--format=%an %s"))
	}
	if out, err := exec.Command("sh", filepath.Join(dir, "check.sh")).CombinedOutput(); err != nil || strings.Count(string(out), "ok ") != 3 {
		t.Errorf("check.sh: %v\n%s", err, out)
	}
	if dirty := git(t, dir, "status", "--porcelain", "--", "coder", "tester"); dirty != "" {
		t.Errorf("not committed:\n%s", dirty)
	}
	report, err := os.ReadFile(filepath.Join(dir, "tester", "REPORT.md"))
	if err != nil || !strings.Contains(string(report), "tester-9") {
		t.Errorf("%v\n%s", err, report)
	}
}

// In the repository where the example stands, nothing is committed.
func TestTrioLeavesOtherRepositoriesAlone(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	inner := filepath.Join(dir, "examples", "trio")
	if err := os.CopyFS(inner, os.DirFS("trio")); err != nil {
		t.Fatal(err)
	}
	for _, a := range load(t, inner) {
		if a.Name != "coder" {
			continue
		}
		p := play(t, a, 1, driver.Work)
		if p.end.Stop == nil || p.end.Stop.OK || !bytes.Contains(p.out, []byte("new.sh")) {
			t.Errorf("%+v\n%s", p.end.Stop, p.out)
		}
	}
	if out, err := exec.Command("git", "-C", dir, "log").CombinedOutput(); err == nil {
		t.Errorf("it committed:\n%s", out)
	}
}

func TestNewRefusesFullFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("sh", "trio/new.sh", dir).CombinedOutput(); err == nil || !strings.Contains(string(out), "not empty") {
		t.Errorf("%v\n%s", err, out)
	}
}
