package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/read/view"
)

// everyPage are the pages of a filled team: the place in the address, and what is shown there in the end.
var everyPage = []struct{ name, place, where, words string }{
	{"now", "#/now", ".now-head", "5 things need you."},
	{"team", "#/agents", ".roster", "dora"},
	{"agent output", "#/agents/dora/output", ".tape", "reading the logs"},
	{"agent evidence", "#/agents/dora/evidence", ".evidence", "yes"},
	{"agent history", "#/agents/bob/history", ".history", "gave up"},
	{"agent history of a time", "#/agents/coder/history/last-hour", ".history", "May I clean up?"},
	{"agent not there", "#/agents/erin/output", ".agent", "No such agent"},
	{"tasks", "#/tasks", ".board", "Write about it"},
	{"task", "#/tasks/T1", ".task-head", "Try the upload again"},
	{"crew", "#/crew", ".crew", "julian"},
	{"crew lead", "#/crew/@lead/transcript", ".crew", "julian"},
	{"runs", "#/runs", ".run-list", "nightly"},
	{"run", "#/runs/ship-1", ".graph", "publish"},
	{"step", "#/runs/ship-1/notes", ".step .answer", "Approve"},
	{"failed step", "#/runs/nightly-1/build", ".step", "undefined: retry"},
	{"channels", "#/channels", ".channel-list", "quay"},
	{"channel", "#/channels/quay", ".entries", "berth seven is free"},
	{"dispatch", "#/dispatch", ".session-list", "MAIN has it"},
	{"conversation", "#/dispatch/CURRENT/conv_001", ".dialogue", "hello_world.py is written"},
	{"inbox", "#/inbox", ".inbox", "wants to run a command"},
	{"history", "#/history", ".history", "coder"},
	{"history of a time", "#/history/last-hour", ".history", "ended:"},
	{"history of a span", "#/history/2020-01-01T00:00..2020-01-02T12:30", ".history:has(.history-ends)", "Nothing happened in this time."},
	{"change", "#/history/3", ".history-spot", "were read"},
	{"usage", "#/usage", ".usage-sum", "tokens"},
	{"repositories", "#/repositories", ".repos", "this one"},
	{"moment", "#/now?at=40", "[aria-labelledby=now-before]", "fairlead.yaml"},
	{"moment of an agent", "#/agents/dora/history?at=9", ".moment", "As it was"},
}

// everyDialog are the dialogs, each with the key or the button that opens it.
var everyDialog = []struct{ name, place, key, button, words string }{
	{"help", "#/now", "?", "", "Keys and words"},
	{"palette", "#/now", "/", "", "Go to"},
	{"hold", "#/now", "h", "", "Hold the team?"},
	{"new task", "#/tasks", "", "New task", "New task"},
	{"start a run", "#/runs", "", "Start a run", "Start a run"},
	{"add an agent", "#/agents", "", "Add an agent", "Add an agent"},
}

// filledTeam is a daemon with something on every page: cards, a task, runs, a channel, a crew, a dispatch, tokens.
func filledTeam(t *testing.T) (s *rig, session string) {
	t.Helper()
	dir, _ := taskRepo(t, "*\n!upload.go\n!.gitignore\n")
	files := maps.Clone(nowTeam)
	crew := exampleCrew(t)
	delete(crew, "fairlead.yaml")
	maps.Copy(files, crew)
	files["fairlead.yaml"] = nowTeam["fairlead.yaml"] +
		"  julian: {description: Leads a team of eight, driver: script, script: julian.script.yaml, workspace: julian, env: {PACE: \"0.05\"}}\n" +
		uitest.MeetingYAML("") + "team: {lead: julian, size: 8}\n"
	files[uitest.MeetingFile] = uitest.MeetingScript
	files["mate/README"], files["pilot/README"] = "mate\n", "pilot\n"
	s = newRigIn(t, dir, files)
	s.must("crew", "summon")
	s.must("channel", "say", "quay", "Which berth is free? Shall we retry?")
	s.must("dispatch", "start", "--host", "none")
	folder, err := dispatchfolder.Current(s.dir)
	if err != nil || folder == nil {
		t.Fatalf("no dispatch has begun: %v", err)
	}
	do := func(in dispatch.Input) {
		t.Helper()
		if _, _, err := folder.Do(time.Now(), change.Actor{Kind: "agent", ID: "main"}, in); err != nil {
			t.Fatal(err)
		}
	}
	s.must("dispatch", "input", "Please write it down")
	do(dispatch.Deny{
		Tool: "Write", Call: "hello_world.py", Row: "D8", Reason: "this requires to write Python, which MAIN cannot do",
		Delegate: "ada", Capability: "write Python",
	})
	s.must("dispatch", "delegate", "ada", "Create hello_world.py")
	at := filepath.Join(folder.Workspace(1), "hello_world.py")
	if err := os.WriteFile(at, []byte("print(\"Hello, World!\")\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	do(dispatch.Wrote{File: dispatch.File{Path: at}})
	s.must("dispatch", "done", "hello_world.py is written.")
	for _, agent := range []string{"dora", "bob"} {
		s.must("start", agent)
	}
	s.must("once", "coder")
	for id, workflow := range map[string]string{"ship-1": "ship.yaml", "nightly-1": "bad.yaml"} {
		if _, err := s.client().Runs.Start(t.Context(), view.RunFlags{Workflow: workflow, RunID: id, PauseForHumans: true}); err != nil {
			t.Fatal(err)
		}
	}
	s.must("task", "Try the upload again\nThree times, with a pause.", "--agent", "ada")
	s.must("task", "Write about it", "--agent", "ada", "--after", "T1")
	return s, folder.Name()
}

// Every page of a filled team, in all four views: axe finds nothing, nothing is wider than the window, nothing is
// written to the console.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	s, session := filledTeam(t)
	for _, v := range uitest.AllViews {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			p.Open(s.url + "#/now")
			looksRight := func(t *testing.T) {
				t.Helper()
				p.Until("the link to this part is in sight, if it has one",
					uitest.PlaceInSight+` || !document.querySelector('.places [aria-current]')`)
				p.Axe()
				p.Until("nothing is wider than the window", uitest.Fits(p))
			}
			onTop := func() {
				p.Until("nothing covers what is written with",
					`[...document.querySelectorAll('.composer textarea')].every(e => { const r = e.getBoundingClientRect(); return document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2) === e; })`)
			}
			for _, e := range everyPage {
				uitest.Eval[bool](p, `(location.hash = '`+strings.ReplaceAll(e.place, "CURRENT", session)+`', true)`)
				p.WaitText(e.where, e.words)
				looksRight(t)
				onTop()
			}
			for _, e := range everyDialog {
				uitest.Eval[bool](p, `(document.activeElement.blur(), location.hash = '`+e.place+`', true)`)
				p.Until("the page is live again", `document.querySelector('.line-live') && !document.querySelector('.moment')`)
				if e.key != "" {
					p.Press(e.key)
				} else {
					p.Click("main", e.button)
				}
				p.WaitText("dialog", e.words)
				looksRight(t)
				p.Press(kb.Escape)
				p.Until("the dialog is closed", `!document.querySelector('dialog')`)
			}
			p.NoConsoleErrors()
		})
	}
}
