package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/read/view"
)

// nowTeam has one of everything that the page Now shows: an agent that asks, one that gives up, one at work, one whose
// task waits for a review, and a workflow that asks for approval after a check.
var nowTeam = map[string]string{
	"fairlead.yaml": `version: 1
tasks: {checks: ["echo 'ok <b>12</b> tests'"]}
agents:
  ada: {description: Writes code, driver: exec, command: [sh, -c, 'if [ -e upload.go ]; then echo "// second" >> upload.go; else printf "package upload\n\nfunc Retry() {}\n" > upload.go; fi'], workspace: .}
  bob: {description: Runs the tests, driver: exec, command: [sh, -c, 'echo "--- FAIL: TestUpload <img src=x onerror=alert(1)>"; exit 1'], workspace: bob, failures_max: 1}
  coder: {description: Reads and fixes, driver: script, script: asks.script.yaml, workspace: coder}
  dora: {description: Watches the logs, driver: exec, command: [sh, -c, 'printf "\033[32mreading\033[0m the logs\n"; until [ -e finish ]; do sleep 0.05; done'], workspace: dora}
`,
	"bob/README": "bob\n", "coder/README": "coder\n", "dora/README": "dora\n",
	"asks.script.yaml": `steps:
  - say: I clean up.
  - ask: May I clean up?
    tool: Bash
    args: {command: rm -rf build, description: "Remove what the <b>build</b> made"}
  - run: until [ -e finish ]; do sleep 0.05; done
`,
	"ship.yaml": `name: ship
steps:
  - id: test
    command: [sh, step.sh, '"metrics":{"passed":"412","failed":"0"}']
  - id: notes
    needs: [test]
    human_in_the_loop: true
    loop_back_to: test
    command: [sh, step.sh, '"artifacts":["NOTES.md"],"logs":["wrote the notes <script>x</script>"]']
  - id: publish
    needs: [notes]
    command: [sh, step.sh, '"logs":[]']
`,
	"bad.yaml": "name: nightly\nsteps:\n  - id: build\n    max_attempts: 1\n    command: [sh, -c, 'echo compiling; echo \"main.go:3: undefined: retry <i>x</i>\" >&2; exit 2']\n  - id: deploy\n    needs: [build]\n    command: [\"true\"]\n",
	"step.sh": `now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
printf '{"schema":"agent_run_report_v1","run_id":"%s","step_id":"%s","agent":"script","status":"COMPLETED","started_at":"%s","ended_at":"%s",%s}' "$RUN_ID" "$STEP_ID" "$now" "$now" "$1" > "$REPORT_PATH"
`,
	"NOTES.md": "# Release 1.4\n\n- uploads are tried again\n- <img src=x onerror=alert(1)> is text\n",
}

// nowPage is the landing page of a real daemon, looked at in one view.
type nowPage struct {
	*uitest.Page
	t   *testing.T
	s   *rig
	git func(args ...string) string
}

// The landing page, from the first look to the last: everything that needs a person is there with its content, and is
// answered in place, by the mouse and by the keyboard.
func TestNowPage(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	for _, v := range uitest.Views {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			dir, git := taskRepo(t, "*\n!upload.go\n!.gitignore\n")
			p := &nowPage{Page: uitest.Browse(t), t: t, s: newRigIn(t, dir, nowTeam), git: git}
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			p.Open(p.s.url)
			p.WaitText(".now-head", "Nothing needs you.")
			p.WaitText(".now-head", "Nothing is running.")
			p.WaitText(".now", `fairlead task "Fix the flaky upload test"`)
			p.looksRight()
			p.begins()
			p.shows()
			p.changedMeanwhile()
			p.answered()
			p.NoConsoleErrors()
		})
	}
}

func (p *nowPage) looksRight() {
	p.t.Helper()
	p.Axe()
	p.Until("nothing is wider than the window", uitest.Fits(p.Page))
	p.Until("on a phone a thumb hits every answer",
		`innerWidth > 600 || [...document.querySelectorAll('.need .order')].every(e => e.getBoundingClientRect().height >= 44)`)
}

func (p *nowPage) title(want string) {
	p.t.Helper()
	p.Until("the title of the tab says "+want, `document.title.includes("`+want+`")`)
}

// begins gives everybody something to do, and waits until five things need the person.
func (p *nowPage) begins() {
	s := p.s
	run := func(workflow, id string) {
		p.t.Helper()
		if _, err := s.client().Runs.Start(p.t.Context(), view.RunFlags{Workflow: workflow, RunID: id, PauseForHumans: true}); err != nil {
			p.t.Fatal(err)
		}
	}
	s.must("start", "dora")
	s.must("start", "bob")
	s.must("once", "coder")
	run("ship.yaml", "ship-1")
	run("bad.yaml", "nightly-1")
	s.must("task", "Try the upload again\nThree times, with a pause.", "--agent", "ada")
	s.must("task", "Write about it", "--agent", "ada", "--after", "T1")
	p.WaitText(".now-head", "5 things need you.")
	p.WaitText(".now-head", "1 agent is working.")
	p.title("(5) 5 need you")
}

// shows looks for the content of each card, and of the other sections.
func (p *nowPage) shows() {
	p.Until("the icon of the tab has the number", `decodeURIComponent(document.querySelector('link[rel=icon]').href).includes('>5</text>')`)
	p.Until("what holds up another task comes first", `document.querySelector('.need h3').innerText.includes('Try the upload again')`)
	p.Until("what failed comes last",
		`/(failed run|run failed)$/.test([...document.querySelectorAll('.need')].map(e => e.dataset.need).join(' '))`)
	p.WaitText(".need[data-need=step]", "holds up T2")
	p.WaitText(".need-diff", "upload.go")
	p.WaitText(".need-diff", "+3")
	p.WaitText(".need-checks", "passed")
	p.WaitText(".now-said", "reading the logs")
	p.Until("no terminal's code is shown", `!document.querySelector('.now').innerText.includes('[32m')`)
	p.WaitText("[aria-labelledby=now-next]", "Write about it")
	p.WaitText("[aria-labelledby=now-next]", "it waits until T1 has landed")
	p.looksRight()
	p.Until("all cards are open",
		`(document.querySelectorAll('.need-toggle[aria-expanded=false]').forEach(b => b.click()), document.querySelectorAll('.need .answer-foot').length >= 5)`)
	for _, words := range []string{
		"--- FAIL: TestUpload <img src=x onerror=alert(1)>", "undefined: retry <i>x</i>", "<img src=x onerror=alert(1)> is text",
		"wrote the notes <script>x</script>",
		"passed 412", "Approved: publish begins. Rejected: the run goes back to test.", "rm -rf build",
	} {
		p.WaitText(".need", words)
	}
	if uitest.Eval[bool](p.Page, `document.querySelector('main img, main script, main .need b b') !== null`) {
		p.t.Error("words of an agent became markup")
	}
	p.looksRight()
}

// changedMeanwhile changes an artifact while the person looks: the approval is refused, and the new content is shown.
func (p *nowPage) changedMeanwhile() {
	if err := os.WriteFile(filepath.Join(p.s.dir, "NOTES.md"), []byte("# Release 2\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.Click("[aria-label='Answer to notes']", "Approve")
	p.WaitText(".notes", "it was changed since you looked")
	p.WaitText(".need", "It was changed while you looked")
	p.WaitText(".need .ask-call", "# Release 2")
	p.looksRight()
	p.Click(".notes", "Dismiss")
	p.Click("[aria-label='Answer to notes']", "Approve")
	p.WaitText(".now-head", "4 things need you")
}

// answered answers everything, until nothing needs the person.
func (p *nowPage) answered() {
	p.Until("the keyboard is on the page", `(document.activeElement.blur?.(), document.activeElement === document.body)`)
	p.Press("a") // no card is chosen, so nothing is answered
	p.Press("j")
	p.Until("the first card has the focus",
		`document.activeElement === document.querySelector('.need') && document.activeElement.innerText.includes('Try the upload again')`)
	p.Press("a")
	p.Until("the task is approved, and the next card has the focus",
		`document.activeElement === document.querySelector('.need') && document.activeElement.innerText.includes('wants to run a command')`)
	p.Press("r")
	p.WaitGone(".need", "rm -rf build")

	// What failed is left, or put away in this browser.
	p.Click(".need[data-need=failed]", "Leave it stopped")
	p.WaitGone(".need", "TestUpload")
	p.Click(".need[data-need=run]", "Put away")
	p.WaitGone(".need", "undefined: retry")

	// The task that waited begins; its work is sent back, comes again, and lands.
	p.WaitText(".need", "Write about it")
	p.WaitText(".now-head", "1 thing needs you.")
	p.title("(1) 1 needs you")
	p.Click(".need", "Request changes")
	p.Until("the text has the focus", `document.activeElement.tagName === 'TEXTAREA'`)
	p.Press("say <b>why</b>")
	p.Click(".need", "Request changes")
	p.WaitText(".need", "You asked in round 1: say <b>why</b>")
	p.Click(".need", "Approve and land")
	p.WaitText(".now-head", "Nothing needs you.")
	p.Until("the title of the tab has no number", `!document.title.includes('(')`)
	p.Until("the icon of the tab is the ordinary one", `document.querySelector('link[rel=icon]').href.endsWith('/favicon.svg')`)
	for _, what := range []string{"Try the upload again", "landed on main", "Write about it", "ship", "is done", "+3"} {
		p.WaitText("[aria-labelledby=now-finished]", what)
	}
	if text := p.git("show", "main:upload.go"); !strings.Contains(text, "// second") {
		p.t.Errorf("what has landed is %q", text)
	}
	p.looksRight()
	// ages and figures still move it
	p.Until("it is marked as seen", `(document.querySelector('.now-seen')?.click(), !document.querySelector('.now-seen'))`)
	p.WaitText("[aria-labelledby=now-finished]", "Nothing has finished since you looked.")
	p.OpenTeam(p.s.url)
	p.WaitText(".roster", "dora")
	p.Press("g")
	p.WaitText("[aria-labelledby=now-finished]", "Nothing has finished since you looked.")
	p.WaitText(".now-head", "Nothing needs you.")
}
