package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/read/view"
)

// ours says that all documents of a team are in its folder, as they are.
func (s *rig) ours(what string) {
	s.t.Helper()
	if wrong := s.faultsOfDocuments(); len(wrong) > 0 {
		s.t.Errorf("%s: %.600q", what, wrong)
	}
}

// The folder of a team's documents is anybody's: links, pipes, folders and what cannot be read are
// neither followed nor waited for, and a folder that is taken away or replaced comes back.
func TestHostileDocumentFolder(t *testing.T) {
	t.Parallel()
	s := newRig(t, crewFiles(quickTimes, ""))
	s.must("crew", "summon", "--wait")
	folder := filepath.Join(s.dir, ".fairlead", "agents")
	secret := somebodys(t)
	for name, plant := range map[string]func(path string) error{
		"link.json":   func(path string) error { return os.Symlink(secret, path) },
		"loop.json":   func(path string) error { return os.Symlink(path, path) },
		"pipe.json":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder.json": func(path string) error { return os.MkdirAll(filepath.Join(path, "in.json"), 0o700) },
		"device.json": func(path string) error { return os.Symlink("/dev/zero", path) },
		"second.json": func(path string) error { return os.Link(secret, path) },
		"mode.json":   func(path string) error { return os.WriteFile(path, []byte("{}"), 0) },
		"README":      func(path string) error { return os.WriteFile(path, []byte("notes"), 0o600) },
		strings.Repeat("n", 200) + ".json": func(path string) error {
			return os.WriteFile(path, []byte(`{"type":"agent-identity","name":"Long","gridPosition":8}`), 0o600)
		},
	} {
		if err := plant(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.crewUntil("the one that can be read is there", func(v view.CrewView) bool { return len(v.Agents) == 4 })
	planted := filepath.Join(folder, "agent-1.json") // ours, replaced by a link
	if err := os.Symlink(secret, planted+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(planted+".new", planted); err != nil { // at once: a document that is removed is written again
		t.Fatal(err)
	}
	begun := time.Now()
	s.must("crew", "sleep", "--wait")
	s.must("crew", "wake", "--wait")
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	s.poll("the other documents are written", func() bool {
		text, err := os.ReadFile(filepath.Join(folder, "agent-2.json"))
		return err == nil && strings.Contains(string(text), `"status": "alive"`)
	})
	if text, err := os.ReadFile(secret); err != nil || string(text) != told {
		t.Errorf("somebody's file is %q now: %v", text, err)
	}
	for _, words := range [][]string{{"crew", "--json"}, {"events", "--json"}, {"crew", "show", "agent-1"}} {
		if out, _ := s.fairlead(words...); strings.Contains(out, strings.TrimSpace(told)) {
			t.Errorf("%q shows somebody's file: %s", words, out)
		}
	}
	if err := os.Remove(planted); err != nil {
		t.Fatal(err)
	}
	s.ours("after the link")
}

// The folder is deleted, then replaced by a link to another folder, while the team runs.
func TestDocumentFolderTakenAway(t *testing.T) {
	t.Parallel()
	s := newRig(t, crewFiles(quickTimes, ""))
	s.must("crew", "summon", "--wait")
	folder := filepath.Join(s.dir, ".fairlead", "agents")
	s.ours("at first")
	if err := os.Rename(folder, filepath.Join(s.dir, "taken")); err != nil {
		t.Fatal(err)
	}
	s.must("crew", "sleep", "--wait")
	s.ours("after the folder was deleted")
	elsewhere, round := t.TempDir(), 0
	s.poll("a link is there before the daemon has made the folder again", func() bool {
		round++
		_ = os.Rename(folder, filepath.Join(s.dir, fmt.Sprint("taken", round)))
		return os.Symlink(elsewhere, folder) == nil
	})
	s.must("crew", "wake", "--wait")
	if names, err := os.ReadDir(elsewhere); err != nil || len(names) > 0 {
		t.Errorf("it wrote through a link: %v, %v", names, err)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	s.ours("after the link was taken away")
	s.sound(true)
	if err := os.WriteFile(filepath.Join(folder, "agent-2.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(folder, "agent-3.json")); err != nil {
		t.Fatal(err)
	}
	s.ours("after one was emptied and one deleted")
}

// Ten thousand files that are no documents: the team works meanwhile, each is put aside or taken,
// none is lost, and people are told in few words.
func TestManyForeignDocuments(t *testing.T) {
	t.Parallel()
	if testsize.Race {
		t.Skip("it is the same with the race detector, and takes a minute")
	}
	many := 400
	if long() {
		many = 10_000
	}
	s := newRig(t, crewFiles(quickTimes, ""))
	folder := filepath.Join(s.dir, ".fairlead", "agents")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for n := range many {
		text := fmt.Sprintf(`{"no":"document","n":%d}`, n)
		if n%100 == 99 {
			text = fmt.Sprintf(`{"type":"agent-identity","status":"expired","gridPosition":%d}`, n%4)
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("f-%d.json", n)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := s.stateBytes()
	s.must("crew", "summon", "--wait")
	begun := time.Now()
	s.poll("all were looked at", func() bool {
		left, err := filepath.Glob(filepath.Join(folder, "f-*.json"))
		return err == nil && len(left) == many/100
	})
	view := s.crew()
	t.Logf("%d files: %s after the summon; the journal and the logs grew by %d bytes; %d notices", many,
		time.Since(begun).Round(time.Millisecond), s.stateBytes()-before, len(view.Notices))
	if len(view.Agents) != 3+many/100 || visible(view) != 3 || len(view.Notices) > noticed {
		t.Errorf("%d agents, %d visible, %d notices", len(view.Agents), visible(view), len(view.Notices))
	}
	names, err := filepath.Glob(filepath.Join(folder, "[^.]*"))
	if err != nil || len(names) != many+3 {
		t.Errorf("%d files are there, %d were put there: %v", len(names), many, err)
	}
	s.ours("beside them")
}
