package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/process/driver"
	driverexec "github.com/fairlead-dev/fairlead/process/driver/exec"
)

const lonely = `version: 1
agents:
  coder: {driver: exec, command: [sh, -c, 'echo "I am $FAIRLEAD_SESSION"; exec sleep 600'], backoff: {first: 1ms, max: 1ms}}
`

// journalFiles lists the journal's files.
func (w *world) journalFiles() []string {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.dir, ".fairlead", "journal.db*"))
	if err != nil || len(all) == 0 {
		w.t.Fatal("there is no journal: ", err)
	}
	return all
}

// keepJournal copies the journal while it is closed. restore puts the copy back.
func (w *world) keepJournal() (restore func()) {
	kept := map[string][]byte{}
	for _, path := range w.journalFiles() {
		text, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}
		kept[path] = text
	}
	return func() {
		w.loseJournal()
		for path, text := range kept {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (w *world) loseJournal() {
	for _, path := range w.journalFiles() {
		if err := os.Remove(path); err != nil {
			w.t.Fatal(err)
		}
	}
}

// plan makes a dry run of the next start.
func (w *world) plan() view.Plan {
	w.t.Helper()
	conf, err := config.Load(w.dir, os.LookupEnv)
	if err != nil {
		w.t.Fatal(err)
	}
	j, err := sqlite.Open(w.t.Context(), filepath.Join(w.dir, ".fairlead", "journal.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer j.Close()
	plan, err := DryRun(w.t.Context(), outside.Options{
		Name: "test", Config: conf, Journal: j, Drivers: map[string]driver.Driver{"exec": driverexec.Driver{}},
		Lookup: os.LookupEnv, BootID: workspace.BootID(), Log: slog.New(slog.DiscardHandler),
	}, DiskObserver{Folder: filepath.Join(w.dir, ".fairlead", "sessions")})
	if err != nil {
		w.t.Fatal(err)
	}
	return plan
}

// TestOrphans removes the journal, or replaces it by an old copy, while an agent runs. The next
// start uses a higher epoch than any before, starts no second session of the agent, and loses none
// of its output.
func TestOrphans(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"no journal": false, "an old journal": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, lonely, nil)
			w.stop()
			restore := w.loseJournal
			if old {
				restore = w.keepJournal()
			}
			w.start()
			w.command("coder", "continuous")
			first := w.until("coder", "that it runs", running).Session.PID
			if err := syscall.Kill(first, syscall.SIGKILL); err != nil { // coder-1 is dead, coder-2 runs
				t.Fatal(err)
			}
			w.until("coder", "that it runs again", func(v view.AgentView) bool { return running(v) && v.Session.ID == "coder-2" })
			for range 2 { // epochs that only the shim knows
				w.stop()
				w.start()
			}
			pid := w.until("coder", "that it runs", running).Session.PID
			w.stop()
			restore()

			plan := w.plan()
			if plan.Behind == 0 || !strings.Contains(plan.Lines[0].String(), "wait until coder-2 has ended") {
				t.Errorf("the plan says nothing of coder-2: %+v", plan)
			}
			w.start()
			w.command("coder", "continuous")                 // the file asks for a session, too
			soon := time.Now().Add(2 * sessions.OrphanEvery) // a start that did not wait would have happened by then
			w.until("coder", "that time passes", func(view.AgentView) bool { return time.Now().After(soon) })
			shown := w.until("coder", "that a stranger is said",
				func(v view.AgentView) bool { return strings.Contains(v.Doubt, "coder-2 runs as process") })
			if shown.Certainty != view.CertaintyUnknown || running(shown) {
				t.Errorf("%+v", shown)
			}
			if why := w.why("coder"); !strings.Contains(why.Verdict, "does not know it") {
				t.Errorf("why: %s", why.Verdict)
			}
			if err := syscall.Kill(pid, 0); err != nil {
				t.Fatalf("coder-2 was ended: %v", err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			again := w.until("coder", "that it runs again, and its shim has answered",
				func(v view.AgentView) bool { return running(v) && v.Doubt == "" })
			if again.Session.PID == pid {
				t.Errorf("%+v", again)
			}
			aside, err := os.ReadFile(filepath.Join(w.dir, ".fairlead", "sessions-aside", "coder-2.1", "spool"))
			if err != nil || !strings.Contains(string(aside), "I am") {
				t.Errorf("its output is lost: %q, %v", aside, err)
			}
			out, _, err := w.engine.Sessions.Output(t.Context(), again.Session.ID, 0)
			if err != nil {
				t.Fatal(err)
			}
			out.Close()
		})
	}
}

// TestEndedOrphans checks that an orphan session that has ended delays no start, and that its end
// is not recorded for another session.
func TestEndedOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(lonely, "exec sleep 600", "exit 3", 1), nil)
	w.command("coder", "run_once")
	w.until("coder", "that it is over", func(v view.AgentView) bool { return v.Session == nil && v.CurrentState == "pause" })
	w.stop()
	w.loseJournal()
	w.start()
	w.command("coder", "run_once")
	w.until("coder", "that it is over", func(v view.AgentView) bool {
		return v.Session == nil && v.CurrentState == "pause" && len(w.sessions()) > 0
	})
	for n, folder := range []string{"sessions", "sessions-aside"} {
		names, err := os.ReadDir(filepath.Join(w.dir, ".fairlead", folder))
		// The file asks for a session, too; it has another name if that session has ended already.
		if err != nil || len(names) < 1 || len(names) > 2-n {
			t.Errorf("%d: %v, %v", n, names, err)
		}
	}
}

// A folder that does not belong to a session is left alone.
func TestNameParts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"coder-1": "coder 1", "a-b-12": "a-b 12", "coder": "", "-1": "", "coder-0": "", "coder-x": "",
		"coder-": "", "": "",
	} {
		agent, n, is := sessions.NameParts(name)
		got := ""
		if is {
			got = agent + " " + strconv.FormatUint(n, 10)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestAdoptionByAnOldJournal checks an old copy of the journal that knows the session. The session
// is adopted, although its shim has obeyed newer epochs.
func TestAdoptionByAnOldJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lonely, nil)
	w.command("coder", "continuous")
	w.until("coder", "that it runs", running)
	w.stop()
	restore := w.keepJournal()
	for range 2 {
		w.start()
		w.until("coder", "that it runs", running)
		w.stop()
	}
	restore()
	if plan := w.plan(); plan.Behind == 0 || plan.Lines[0].Steps[0].Do != view.DoAdopt || plan.Lines[0].Quiet() {
		t.Errorf("%+v", plan)
	}
	w.start()
	if a := w.until("coder", "that it runs", running); a.Session.ID != "coder-1" || a.Doubt != "" {
		t.Errorf("%+v", a)
	}
}

// TestDamagedOrphan checks that a damaged record delays only its own agent, and that the plan says
// how to continue.
func TestDamagedOrphan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lonely+"  other: {driver: exec, command: [sleep, '600'], workspace: other}\n", nil)
	w.stop()
	folder := filepath.Join(w.dir, ".fairlead", "sessions", "coder-9")
	w.write(".fairlead/sessions/coder-9/exit.json", "{")
	if plan := w.plan(); !strings.Contains(plan.Lines[0].String(), "cannot be read") {
		t.Errorf("%s", plan.Lines[0])
	}
	w.start()
	w.command("other", "continuous")
	w.until("other", "that it runs", running)
	w.command("coder", "continuous")
	w.until("coder", "that it waits", func(v view.AgentView) bool { return strings.Contains(v.Doubt, "moved away") && !running(v) })
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if a := w.until("coder", "that it runs", running); a.Doubt != "" {
		t.Errorf("%+v", a)
	}
}

// TestForgedEpoch checks a fence file that another program wrote, for a session that has ended and
// one that runs. Its epoch is ignored, the daemon starts, and the running session is adopted.
func TestForgedEpoch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lonely, nil)
	w.command("coder", "continuous")
	pid := w.until("coder", "that it runs", running).Session.PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // coder-1 has ended, coder-2 runs
		t.Fatal(err)
	}
	w.until("coder", "that it runs again", func(v view.AgentView) bool { return running(v) && v.Session.ID == "coder-2" })
	for _, epoch := range []string{"18446744073709551615", "4611686018427387904"} {
		w.stop()
		for _, session := range []string{"coder-1", "coder-2"} {
			w.write(".fairlead/sessions/"+session+"/fence", epoch+"\n")
		}
		if plan := w.plan(); plan.Behind != 0 {
			t.Errorf("the plan uses the forged epoch: %+v", plan)
		}
		w.start()
		if a := w.until("coder", "that it runs", running); a.Session.ID != "coder-2" || a.Doubt != "" {
			t.Errorf("%+v", a)
		}
	}
}
