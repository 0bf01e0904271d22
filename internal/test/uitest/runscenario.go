package uitest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Workflow is a workflow that a target can run, and the hooks by which a test controls it; they are
// nil if the run proceeds by itself. Its gate review sends the run back to code once, and then
// approve waits for people.
type Workflow struct {
	File string // as it is typed into the form

	Loop  func()             // lets the gate send the run back
	Ask   func()             // lets the run come to the question
	End   func()             // lets the run come to its end, once it was approved
	Heard func(t *testing.T) // checks what the server received
}

func (p *Page) startRun(file string) {
	p.t.Helper()
	p.Click(".places", "Runs")
	p.Click(".run-tools", "Start a run")
	p.WaitText("dialog", "Start a run")
	p.Until("the form has the focus", `document.activeElement.name === 'workflow'`)
	p.Press(file)
	p.Click("dialog .dialog-foot", "Start")
}

func hook(do func()) {
	if do != nil {
		do()
	}
}

// ARun starts a run, watches a loop-back, is asked, approves, and sees the run complete.
func ARun(t *testing.T, p *Page, target Target) {
	needs(t, target.Workflow != nil, "run a workflow")
	w := target.Workflow
	p.OpenTeam(target.URL)
	p.startRun(w.File)
	p.WaitText("#run-title", "plan-code-review")
	p.WaitText(".graph .node", "plan")
	p.Until("all steps are drawn", `document.querySelectorAll('.graph .node').length === 6`)
	hook(w.Loop)
	p.WaitText(".loop-count", "1")
	p.Click(".graph", "review")
	p.WaitText("#step-title", "review")
	p.WaitText(".step-facts", "Leads back to")
	hook(w.Ask)
	p.WaitText(".node-wait", "waits for you")
	p.WaitText(".place-count-now", "1")
	p.Click(".run-forms", "Timeline")
	p.Until("each attempt has a bar",
		`[...document.querySelectorAll('.time-row')].find(r => r.innerText.includes('code')).querySelectorAll('.bar').length >= 2`)
	p.Click(".places", "Inbox")
	p.WaitText(".inbox-item", "approve")
	p.Click(".inbox-item .answer-foot", "Approve")
	p.WaitText(".entry-fault", "is needed")
	Eval[bool](p,
		`(() => { const s = document.querySelector('.inbox-item select'); s.value = '0'; s.dispatchEvent(new Event('change', {bubbles: true})); return true; })()`)
	p.Click(".inbox-item .answer-foot", "Approve")
	p.WaitText(".inbox", "Nothing waits for you")
	p.Until("the count is removed", `!document.querySelector('.place-count-now')`)
	if w.Heard != nil {
		w.Heard(t)
	}
	p.Click(".places", "Runs")
	p.Click(".run-rows", "plan-code-review")
	hook(w.End)
	p.WaitText(".run-head .state", "completed")
	p.WaitGone(".orders", "Resume") // no order is possible
}

// FaultyRun checks that the faults of a workflow are shown with their positions, and that no run
// began.
func FaultyRun(t *testing.T, p *Page, target Target) {
	needs(t, target.Workflow != nil && target.Faulty != "", "refuse a workflow")
	p.OpenTeam(target.URL)
	p.startRun(target.Faulty)
	p.WaitText("dialog .faults", "No run was started")
	p.WaitText("dialog .faults", ":12:13")
	p.Axe()
	p.Press(kb.Escape)
	p.Until("the form is closed", `!document.querySelector('dialog')`)
	p.WaitText(".run-list", "No runs yet")
}

// RunByKeyboard opens a run, walks through it and cancels it without a mouse.
func RunByKeyboard(t *testing.T, p *Page, target Target) {
	needs(t, target.Workflow != nil && target.Workflow.Loop != nil, "hold a run still")
	p.OpenTeam(target.URL)
	p.startRun(target.Workflow.File)
	p.WaitText("#run-title", "plan-code-review")
	p.Until("the steps are drawn", `document.querySelectorAll('.graph .node').length === 6`)
	p.tabTo("the graph", `e.dataset.step`)
	p.Press(kb.Home)
	p.Until("the first step has the focus", `document.activeElement.dataset.step === 'plan'`)
	key := kb.ArrowRight
	if Eval[bool](p, `innerWidth < 620`) {
		key = kb.ArrowDown
	}
	p.Press(key)
	p.Until("an arrow leads to the next step", `document.activeElement.dataset.step === 'code'`)
	p.Press(kb.Enter)
	p.WaitText("#step-title", "code")
	p.Press(kb.Escape)
	p.Until("the step is closed", `!document.querySelector('#step-title')`)
	p.Press("i")
	p.WaitText(".inbox", "Nothing waits for you")
	p.Press("r")
	p.WaitText(".run-list", "plan-code-review")
	p.Press("x") // has no effect here, regardless of the selected agent
	p.Press("a")
	p.WaitText(".roster", target.Agent)
	if got := p.Text(".notes"); strings.TrimSpace(got) != "" {
		t.Errorf("a key acted out of sight: %s", got)
	}
}

// RunsAccessible checks that runs, their steps, their questions and the inbox break no rule of axe.
func RunsAccessible(t *testing.T, p *Page, target Target) {
	needs(t, target.Workflow != nil && target.Workflow.Ask != nil, "hold a run still")
	p.OpenTeam(target.URL)
	p.startRun(target.Workflow.File)
	p.WaitText("#run-title", "plan-code-review")
	target.Workflow.Loop()
	target.Workflow.Ask()
	p.WaitText(".node-wait", "approve")
	p.Click(".graph", "approve")
	p.WaitText(".step .answer", "Risk")
	for range inViews(p) {
		for _, form := range []string{"Timeline", "Graph"} {
			p.Click(".run-forms", form)
			p.Axe()
		}
		p.Until("nothing is wider than the window",
			Fits(p)+` && document.querySelector('.run-pane').scrollWidth <= document.querySelector('.run-pane').clientWidth`)
		p.Click(".places", "Inbox")
		p.WaitText(".inbox", "Risk")
		p.Axe()
		p.Until("nothing is wider than the window", Fits(p))
		p.Click(".places", "Runs")
		p.WaitText(".run-list", "plan-code-review")
		p.Axe()
		p.Click(".run-tools", "Start a run")
		p.WaitText("dialog", "Workflow")
		p.Click("dialog", "More")
		p.Axe()
		p.Press(kb.Escape)
		p.Until("the form is closed", `!document.querySelector('dialog')`)
		p.Click(".run-rows", "plan-code-review")
		p.WaitText("#run-title", "plan-code-review")
		p.Until("the steps are drawn", `document.querySelectorAll('.graph .node').length > 0`)
		p.Click(".graph", "approve")
		p.WaitText(".step .answer", "Risk")
	}
}

// PlanCodeReviewFile is the file of the workflow in RunFiles.
const PlanCodeReviewFile = "workflows/plan-code-review.yaml"

// RunFiles are the files of a repository in which a real daemon can run the workflow
// plan-code-review with no account: a script does the steps, and its gate fails once.
func RunFiles() map[string]string {
	return map[string]string{PlanCodeReviewFile: planCodeReviewYAML, "workflows/step.sh": stepScript}
}

const planCodeReviewYAML = `name: plan-code-review
steps:
  - id: plan
    command: [sh, workflows/step.sh]
  - id: code
    command: [sh, workflows/step.sh]
    needs: [plan]
  - id: test
    command: [sh, workflows/step.sh]
    needs: [code]
  - id: review
    command: [sh, workflows/step.sh, gate]
    needs: [code, test]
    loop_back_to: code
  - id: approve
    command: [sh, workflows/step.sh]
    needs: [review]
    human_in_the_loop: true
    input_schema:
      type: object
      required: [risk]
      properties:
        approved: {type: boolean}
        risk: {enum: [low, high], title: Risk, description: How bad it can get}
        comment: {type: string, title: Comment}
        canaries: {type: integer, title: Canaries, default: 2}
        notify: {type: boolean, title: Tell the others}
  - id: release
    command: [sh, workflows/step.sh]
    needs: [approve]
`

const stepScript = `#!/bin/sh
# Does a step by saying so, once the file hold is gone. With the word gate it sends the run back,
# the first time.
while [ -e workflows/hold ]; do sleep 0.02; done
echo "working on $STEP_ID, attempt $STEP_ATTEMPT"
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
failure=
if [ "$1" = gate ] && [ ! -e ".looped-$RUN_ID" ]; then
  touch ".looped-$RUN_ID"
  failure=',"gate_failure":"a test is missing"'
fi
printf '<<<RUN_REPORT_JSON\n{"schema":"agent_run_report_v1","run_id":"%s","step_id":"%s","agent":"%s","status":"COMPLETED","started_at":"%s","ended_at":"%s","artifacts":[],"metrics":{"lines":3},"logs":["%s is done"]%s}\nRUN_REPORT_JSON>>>\n' \
  "$RUN_ID" "$STEP_ID" "${AGENT_ID:-script}" "$now" "$now" "$STEP_ID" "$failure"
`

// meetingYAML is a fairlead.yaml's part with the channel of [RealMeeting].
const meetingYAML = `  mate:
    driver: exec
    command: [sh, ../meeting.sh]
    workspace: mate
    turn_timeout: MATE
  pilot:
    driver: exec
    command: [sh, ../meeting.sh]
    workspace: pilot
    turn_timeout: PILOT
channels:
  quay:
    agents: [mate, pilot]
    maxRounds: 1
`

// MeetingYAML, at the end of a fairlead.yaml whose list of agents comes last before it, makes the
// channel of [RealMeeting]; its agents run MeetingFile. Only a turn that is to time out in this story has a short
// limit; the others last for as long as a browser on a busy machine needs.
func MeetingYAML(story string) string {
	mate, pilot := "10m", "10m"
	switch story {
	case "timed out":
		mate = "10s"
	case "a channel cut and restored": // its first agent answers
		pilot = "10s"
	}
	return strings.NewReplacer("MATE", mate, "PILOT", pilot).Replace(meetingYAML)
}

// MeetingFile is the file of MeetingScript.
const MeetingFile = "meeting.sh"

// MeetingScript is an agent in a channel that answers every prompt, at once or slowly.
const MeetingScript = `prompt=$(cat)
case "$prompt" in
*"which quay"*) echo "the north quay" ;;
*"please be slow"*) exec sleep 60 ;;
*) echo "berth seven is free" ;;
esac
echo TURN_COMPLETE
`

// RealMeeting is the channel of MeetingYAML, whose agents answer by themselves.
func RealMeeting() *ChannelStory {
	return &ChannelStory{Name: "quay", Says: "berth seven", SaysAside: "the north quay"}
}
