package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// The page of sessions on the real daemon. In one story agents of fairlead.yaml do the work, those
// of examples/session. In the other one people and programs say what happens, by the command line
// and as hooks do, in the session's own folder: the page hears of each line by the journal.
func TestSessionPage(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	for i, c := range []struct {
		name   string
		target func(t *testing.T) (*rig, *uitest.DispatchStory)
	}{
		{"a session denied and delegated", talkedSession},
		{"a hosted session", playedSession},
	} {
		at := slices.IndexFunc(uitest.Scenarios(), func(s uitest.Scenario) bool { return s.Name == c.name })
		if at < 0 {
			t.Fatalf("no story is called %q any more", c.name)
		}
		story := uitest.Scenarios()[at]
		t.Run(story.Name, func(t *testing.T) {
			t.Parallel()
			s, sitting := c.target(t)
			p := uitest.Browse(t)
			p.Resize(uitest.Views[i%2].Size)
			p.Scheme(uitest.Views[i%2].Scheme)
			story.Run(t, p, uitest.Target{URL: s.url, Agent: "coordinator", DispatchStory: sitting})
			p.NoConsoleErrors()
		})
	}
}

// playedSession is a daemon with the example's agents, which do what they are given.
func playedSession(t *testing.T) (*rig, *uitest.DispatchStory) {
	t.Helper()
	return newRig(t, exampleSession(t)),
		&uitest.DispatchStory{
			Input: "Write a hello world Python script", Agent: "fullstack-engineer", File: "hello_world.py",
			Text: "Hello, World!",
		}
}

// exampleSession are the files of examples/session.
func exampleSession(t *testing.T) map[string]string {
	t.Helper()
	files, root := map[string]string{}, os.DirFS(filepath.Join("..", "..", "examples", "session"))
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// talkedSession is one in which a person types what happens, and a hook denies.
func talkedSession(t *testing.T) (*rig, *uitest.DispatchStory) {
	t.Helper()
	const agent = "fullstack-engineer"
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  coordinator:\n    driver: exec\n    command: [sh, -c, 'true']\n    workspace: .\n",
		".claude/agents/" + agent + ".md": "---\nname: " + agent +
			"\ndescription: Use to write and run programs, Python scripts and web servers\n---\n",
	})
	s.must("dispatch", "start", "--host", "none")
	folder, err := dispatchfolder.Current(s.dir)
	if err != nil || folder == nil {
		t.Fatalf("no session has begun: %v", err)
	}
	tell := func(in dispatch.Input) {
		t.Helper()
		if _, _, err := folder.Do(time.Now(), change.Actor{Kind: "agent", ID: "main"}, in); err != nil {
			t.Fatal(err)
		}
	}
	return s, &uitest.DispatchStory{
		Name: folder.Name(), Input: "Please write it down", Agent: agent, File: "hello_world.py", Text: "Hello, World!",
		Deny: func() {
			tell(dispatch.Deny{
				Tool: "Write", Call: "hello_world.py", Row: "D8",
				Reason: "this requires to write Python, which MAIN cannot do", Delegate: agent, Capability: "write Python",
			})
		},
		Delegate: func() { s.must("dispatch", "delegate", agent, "Create hello_world.py") },
		Made: func() {
			at := filepath.Join(folder.Workspace(1), "hello_world.py")
			if err := os.WriteFile(at, []byte("print(\"Hello, World!\")\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			tell(dispatch.Wrote{File: dispatch.File{Path: at}})
		},
		Done:    func() { s.must("dispatch", "done", "It is written.") },
		Respond: func() { s.must("dispatch", "respond", "There you are.") },
	}
}
