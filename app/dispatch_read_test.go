package app

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/session"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/outside"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// inFolders runs a test with dispatch folders in a bubble.
func inFolders(t *testing.T, test func(t *testing.T, b *bubble, s notifiedSessions, dir string)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, dir, "coordinator", "engineer", "reviewer")
		defer b.end()
		s := b.hostSessions(dir)
		b.host.play = playAgent
		test(t, b, s, dir)
	})
}

// ofCLI begins a dispatch that only the command line serves.
func ofCLI(t *testing.T, repo, path string) *dispatchfolder.Folder {
	t.Helper()
	setup := dispatch.Setup{
		Mode:   dispatch.Orchestrator,
		Agents: []dispatch.Description{{Name: "engineer", Text: "Use to write Python scripts"}},
	}
	f, _, err := dispatchfolder.Create(path, setup, dispatchfolder.Options{Repo: repo, Home: repo})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func do(t *testing.T, f *dispatchfolder.Folder, ins ...dispatch.Input) {
	t.Helper()
	for _, in := range ins {
		if _, _, err := f.Do(time.Now(), change.Actor{Kind: "human", ID: "tester"}, in); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bubble) folderIs(name string) *team.Dispatch {
	b.t.Helper()
	b.sessions.(notifiedSessions).Say()
	b.settle()
	f := b.replayed().Dispatches[name]
	if f == nil {
		b.t.Fatalf("there is no session %s", name)
	}
	return f
}

// TestFolderIsImported checks that every line in a folder is in the journal once: lines from before
// the daemon's start, lines that are added while it runs or is stopped, and lines of other programs
// in the format of the seed.
func TestFolderIsImported(t *testing.T) {
	inFolders(t, func(t *testing.T, b *bubble, s notifiedSessions, dir string) {
		f := ofCLI(t, dir, filepath.Join(dir, dispatchctl.SessionsFolder, "20261121_100000"))
		do(t, f, dispatch.UserInput{Text: "before"})
		b.start()
		b.checkFolder(f)
		do(t, f, dispatch.Respond{Text: "yes"}, dispatch.UserInput{Text: "meanwhile"})
		b.checkFolder(f)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		do(t, f, dispatch.Respond{Text: "yes"})
		b.start()
		b.checkFolder(f)
		if n := len(b.host.running()); n > 0 {
			t.Errorf("%d agents were started for a dispatch without a host", n)
		}

		line := `{"timestamp": "2026-11-21T10:00:00", "type": "transition", "state": "engineer", "trigger": "by hand", "previous": "MAIN"}` + "\n"
		do(t, f, dispatch.UserInput{Text: "the next"})
		file, err := os.OpenFile(filepath.Join(f.Path(), dispatchctl.HistoryName), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for _, part := range []string{line[:20], line[20:]} { // written in two halves
			if _, err := file.WriteString(part); err != nil {
				t.Fatal(err)
			}
			b.folderIs(f.Name())
		}
		if is := b.folderIs(f.Name()); is.State.State() != "engineer" {
			t.Errorf("after another program's transition %s is in charge", is.State.State())
		}
		last := b.history()[len(b.history())-1]
		if last.Entity != "dispatch/"+f.Name() || last.Actor.ID != "another program, in state.jsonl" {
			t.Errorf("the journal ends with %+v", last)
		}
	})
}

// TestFolderIsReplaced checks that a replaced or truncated history is read again with a report, and
// that a removed folder disappears and can return.
func TestFolderIsReplaced(t *testing.T) {
	inFolders(t, func(t *testing.T, b *bubble, s notifiedSessions, dir string) {
		path := filepath.Join(dir, dispatchctl.SessionsFolder, "20261121_100000")
		f := ofCLI(t, dir, path)
		do(t, f, dispatch.UserInput{Text: "one"}, dispatch.Respond{Text: "yes"}, dispatch.UserInput{Text: "two"})
		b.start()
		if is := b.folderIs(f.Name()); is.State.Made != 2 {
			t.Fatalf("imported: %+v", is.State.Now)
		}
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		if is := b.folderIs(f.Name()); !is.Gone {
			t.Error("a removed folder is still listed")
		}
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
		do(t, f, dispatch.Respond{Text: "yes"})
		if is := b.folderIs(f.Name()); is.Gone || is.State.Open != nil {
			t.Errorf("a restored folder is %+v", is)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		b.after(time.Second)
		f = ofCLI(t, dir, path)
		if is := b.folderIs(f.Name()); is.Gone || is.State.Made != 0 || is.State.Phase != dispatch.Ready {
			t.Errorf("another dispatch in the same folder is %+v", is.State.Now)
		}
		if !strings.Contains(b.logged.String(), "read anew") {
			t.Error("the replacement was not reported")
		}
	})
}

// TestFolderNames checks that two folders of one name in different places are two dispatches, and
// that their names do not change.
func TestFolderNames(t *testing.T) {
	inFolders(t, func(t *testing.T, b *bubble, s notifiedSessions, dir string) {
		one := ofCLI(t, dir, filepath.Join(dir, dispatchctl.SessionsFolder, "same"))
		two := ofCLI(t, dir, filepath.Join(dir, "elsewhere", "same"))
		strange := ofCLI(t, dir, filepath.Join(dir, dispatchctl.SessionsFolder, "with space"))
		b.start()
		b.sessions.(notifiedSessions).Say()
		b.settle()
		paths := map[string]string{}
		for name, f := range b.replayed().Dispatches {
			paths[f.Path] = name
		}
		if len(paths) != 3 || paths[one.Path()] == paths[two.Path()] || !strings.HasPrefix(paths[strange.Path()], "with_space-") {
			t.Fatalf("the sessions are %v", paths)
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		do(t, one, dispatch.UserInput{Text: "one"})
		do(t, two, dispatch.UserInput{Text: "two"}, dispatch.Respond{Text: "yes"})
		b.start()
		b.sessions.(notifiedSessions).Say()
		b.settle()
		for path, name := range paths {
			if f := b.replayed().Dispatches[name]; f.Path != path {
				t.Errorf("%s is %s now", name, f.Path)
			}
		}
	})
}

// TestChosenFolders checks that the newest folders are watched, and those for which agents work.
func TestChosenFolders(t *testing.T) {
	p := &dispatchctl.FolderWriter{
		E: dispatchctl.New(nil, outside.Options{Log: slogNone()}, nil), Known: map[string]*dispatchctl.WrittenFolder{},
	}
	var paths []string
	for i := range dispatchctl.FoldersMax + 50 {
		paths = append(paths, fmt.Sprintf("/s/%03d", i))
	}
	old := paths[len(paths)-1]
	p.Known[old] = &dispatchctl.WrittenFolder{Host: dispatch.Fairlead, Phase: dispatch.Working}
	chosen := p.Chosen(paths)
	if len(chosen) != dispatchctl.FoldersMax+1 || !slices.Contains(chosen, old) || slices.Contains(chosen, paths[dispatchctl.FoldersMax]) {
		t.Errorf("%d folders are chosen, the last is %s", len(chosen), chosen[len(chosen)-1])
	}
}

// X8: a held team keeps an input and says why it waits. The input begins with the release. A
// message of an inbox also waits until then.
func TestHostedSessionIsHeld(t *testing.T) {
	inFolders(t, func(t *testing.T, b *bubble, s notifiedSessions, dir string) {
		f := beginSession(t, dir, dispatch.Orchestrator)
		b.start()
		if _, err := b.engine.Agents.Hold(t.Context(), human, true, "lunch"); err != nil {
			t.Fatal(err)
		}
		do(t, f, dispatch.UserInput{Text: "a script", Match: &dispatch.Match{Agent: "engineer"}})
		s.Say()
		b.after(10 * time.Second)
		if n := b.host.startsOf("engineer"); n != 0 {
			t.Fatalf("%d sessions in a held team", n)
		}
		view, err := b.engine.Dispatch.Folder(t.Context(), f.Name())
		if err != nil || !strings.Contains(view.Waits["conv_001/1/0"], "held") {
			t.Errorf("the input waits for %v, %v", view.Waits, err)
		}
		if _, err := b.engine.Agents.Hold(t.Context(), human, false, ""); err != nil {
			t.Fatal(err)
		}
		b.after(10 * time.Second)
		if is := b.folderIs(f.Name()); is.State.Open != nil || b.host.startsOf("engineer") != 1 {
			t.Errorf("after the release %d sessions, and the conversation is %+v", b.host.startsOf("engineer"), is.State.Open)
		}
	})
}

// TestHostedWorkIsLostOrOverItsLimit checks that a lost session ends its conversation as
// interrupted (D11), and that one that reaches its limit fails with the limit's name (X9).
func TestHostedWorkIsLostOrOverItsLimit(t *testing.T) {
	inFolders(t, func(t *testing.T, b *bubble, s notifiedSessions, dir string) {
		f := beginSession(t, dir, dispatch.Orchestrator)
		b.host.play = func(s *fakeSession) {
			if s.id == "engineer-1" {
				s.lasts(time.Second)
				s.finish(session.Exit{Lost: true, Why: "nobody saw its end"})
				return
			}
			s.say("usage 10 10 5")
			s.lasts(time.Hour)
		}
		b.agent("engineer").Limits.CostPerDayUSD = 4
		b.start()
		script := &dispatch.Match{Agent: "engineer"}
		do(t, f, dispatch.UserInput{Text: "the first", Match: script}, dispatch.UserInput{Text: "the second", Match: script})
		for range 20 {
			s.Say()
			b.after(2 * time.Second)
		}
		first, err := f.Dialogue(1)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, "the first", string(first), "interrupted")
		second, err := f.Dialogue(2)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, "the second", string(second), "task failed", "cost_per_day_usd")
		if !strings.Contains(b.rows("dispatch/"+f.Name()), "D11") {
			t.Errorf("the rows are %s", b.rows("dispatch/"+f.Name()))
		}
	})
}

func slogNone() *slog.Logger { return slog.New(slog.DiscardHandler) }
