package runstate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The list has the workflows of a repository, those that are named first, and nothing else that looks alike.
func TestFindWorkflows(t *testing.T) {
	repo, outside := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) string {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := func(name string) string {
		return "name: " + name +
			"\nsteps:\n  - {id: a, agent: coder, prompt: p.md}\n  - {id: b, agent: coder, prompt: p.md, human_in_the_loop: true}\n  - {id: c, command: [x]}\n"
	}
	write(repo, "p.md", "Do it.")
	named := []string{write(outside, "far.yaml", good("far")), write(repo, "z.yaml", good("z"))}
	write(repo, "a.yml", good("a"))
	write(repo, "bad.yaml", "name: bad\nsteps:\n  - {id: a, comand: [x]}\n")
	write(repo, ".fairlead/workflows/deep/own.yaml", good("own"))
	write(repo, ".agents/workflows/w.yaml", good("w"))
	for _, no := range []string{
		".git/x.yaml", ".github/workflows/x.yaml", "node_modules/m/x.yaml", "vendor/x.yaml",
		".fairlead/runs/x.yaml", "1/2/3/4/5/6/x.yaml", "x.yaml.bak",
	} {
		write(repo, no, good("no"))
	}
	write(repo, "script.yaml", "steps:\n  - say: hello\n")
	write(repo, "ci.yaml", "name: ci\njobs:\n  a:\n    steps: []\n")
	if err := os.Symlink(filepath.Join(repo, "a.yml"), filepath.Join(repo, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	found, cut := FindWorkflows(repo, named)
	var got []string
	for _, f := range found {
		line := f.Path + " " + f.Fault
		if f.WorkflowFile != nil {
			agents, people := f.AgentsAndPeople()
			line = fmt.Sprintf("%s %s %d %v %v", f.Path, f.Plan.Name, len(f.Plan.Steps), agents, people)
		}
		got = append(got, line)
	}
	want := []string{
		"z.yaml z 3 [coder] [b]", ".agents/workflows/w.yaml w 3 [coder] [b]", ".fairlead/workflows/deep/own.yaml own 3 [coder] [b]",
		"a.yml a 3 [coder] [b]",
	}
	var whole []string
	for _, line := range got {
		switch {
		case strings.HasPrefix(line, "bad.yaml "):
			if !strings.Contains(line, "bad.yaml:3:") || !strings.Contains(line, "steps.a.agent: is missing") ||
				strings.Contains(line, repo) {
				t.Errorf("the faulty one: %s", line)
			}
		case strings.HasPrefix(line, filepath.Join(outside, "far.yaml")+" far 3"):
		default:
			whole = append(whole, line)
		}
	}
	if diff := cmp.Diff(want, whole); diff != "" || cut || len(got) != 6 || !strings.HasPrefix(got[0], outside) {
		t.Errorf("cut %t: %s\n%q", cut, diff, got)
	}
}

// At the limit the list says so.
func TestFindWorkflowsLimit(t *testing.T) {
	repo := t.TempDir()
	for i := range foundMax {
		if err := os.WriteFile(filepath.Join(repo, fmt.Sprintf("w%03d.yaml", i)), []byte("name: w\nsteps: [{id: a, command: [x]}]\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	if found, cut := FindWorkflows(repo, nil); len(found) != foundMax || cut {
		t.Errorf("at the limit: %d, cut %t", len(found), cut)
	}
	if err := os.WriteFile(filepath.Join(repo, "x.yaml"), []byte("name: w\nsteps: [{id: a, command: [x]}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if found, cut := FindWorkflows(repo, nil); len(found) != foundMax || !cut {
		t.Errorf("over the limit: %d, cut %t", len(found), cut)
	}
}
