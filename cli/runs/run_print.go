package runs

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// jsonFace is for programs: each change of the run as `fairlead events --json` prints it.
type jsonFace struct{ a *cli.App }

// Change prints one change of the run.
func (f jsonFace) Change(ch api.Change) error { return f.a.PrintJSON(ch) }

// Look prints what changed since the last view of the run.
func (jsonFace) Look(view.RunView)  {}
func (jsonFace) say(string, ...any) {}
func (jsonFace) done()              {}

// LineFace is for a log or a pipe: a line for each change that matters to a person.
type LineFace struct {
	A     *cli.App
	Id    string
	width int // of the longest step name so far
}

// Look prints what changed since the last view of the run.
func (f *LineFace) Look(view view.RunView) {
	for _, s := range view.Steps {
		f.width = min(max(f.width, len(s.ID)), cli.StepWidth)
	}
}

func (f *LineFace) done() {}

func (f *LineFace) say(format string, args ...any) {
	fmt.Fprintln(f.A.Err, "fairlead: "+cli.Plain(fmt.Sprintf(format, args...)))
}

// Change prints one change of the run.
func (f *LineFace) Change(ch api.Change) error {
	for _, told := range tell(f.A, f.Id, ch) {
		if _, err := fmt.Fprintf(f.A.Out, "%s  %-*s  %s\n", ch.Time.Local().Format(time.TimeOnly), f.width, cli.Line(told.step, cli.StepWidth), told.text); err != nil {
			return err
		}
	}
	return nil
}

// sentence is about one step, or about the run if step is empty.
type sentence struct{ step, text string }

// tell describes a change of a run; most changes are not shown and give nothing.
func tell(a *cli.App, id string, ch api.Change) []sentence {
	var body team.Body
	if json.Unmarshal(ch.Data, &body) != nil || body.Run == nil {
		return nil // perhaps of a newer version; `fairlead events` shows it unchanged
	}
	step, _ := strings.CutPrefix(ch.Entity, "run/"+id+"/")
	switch run := body.Run; {
	case run.Head != nil:
		return tellRun(a, ch, run.Head)
	case run.Step != nil:
		if text := tellStep(a, id, step, ch, run.Step); text != "" {
			return []sentence{{step, text}}
		}
	case run.Reset != nil && run.Reset.Gate != "":
		return []sentence{{string(run.Reset.Gate), a.Paint(cli.Yellow, "sends the run back to "+cli.Line(string(run.Reset.Target), cli.StepWidth)) + behind(len(run.Reset.Moves))}}
	case run.Moved != nil && run.Moved.To == workflow.Skipped:
		var all []sentence
		for _, move := range run.Moved.Moves {
			all = append(all, sentence{string(move.Step), a.Paint(cli.Dim, "skipped: there is nothing to do")})
		}
		return all
	}
	return nil
}

// behind says how many steps go back with a gate's target.
func behind(moves int) string {
	if moves < 2 {
		return ""
	}
	return fmt.Sprintf("; %d steps are done again", moves)
}

func tellRun(a *cli.App, ch api.Change, head *workflow.Head) []sentence {
	why := ""
	if head.Why != "" {
		why = ": " + cli.Line(head.Why, cli.ErrorWidth)
	}
	switch workflow.RunEvent(ch.Trigger) {
	case workflow.RunPaused:
		return []sentence{{"", a.Paint(cli.Yellow, "paused by "+cli.Line(head.By, cli.StepWidth)) + why}}
	case workflow.RunReleased:
		return []sentence{{"", "released by " + cli.Line(head.By, cli.StepWidth) + why}}
	case workflow.RunResumed:
		return []sentence{{"", "resumed by " + cli.Line(head.By, cli.StepWidth) + why}}
	case workflow.RunCancelled:
		return []sentence{{"", a.Paint(cli.Yellow, "cancelled by "+cli.Line(head.By, cli.StepWidth)) + why}}
	}
	return nil
}

func tellStep(a *cli.App, id, step string, ch api.Change, set *workflow.StepSet) string {
	v := set.Value
	failure := cli.Line(v.LastError, cli.ErrorWidth)
	switch workflow.Event(ch.Trigger) {
	case workflow.ProcessDeparted:
		return "" // of an attempt whose end was shown before
	case workflow.Started, workflow.AnsweredFirst:
		return "began" + which(v)
	case workflow.Adopted:
		return "continues: it outlived the daemon that started it" + which(v)
	case workflow.RunnerDied:
		return a.Paint(cli.Yellow, "its outcome is unknown; it is run again") + cli.Why(failure)
	case workflow.FailedTriesLeft:
		return a.Paint(cli.Yellow, fmt.Sprintf("failed (attempt %d), retried in %s", v.Attempts, cli.Ago(v.RetryAt.Sub(ch.Time)))) + cli.Why(failure)
	case workflow.Answered, workflow.Rejected:
		return "answered by " + cli.Line(ch.Actor.ID, cli.StepWidth)
	case workflow.AnswerFaulty:
		return a.Paint(cli.Yellow, "the answer is not valid") + cli.Why(cli.Line(v.Fault, cli.ErrorWidth))
	case workflow.ItemDone:
		return fmt.Sprintf("%s %d done", itemOr(v), v.Done)
	case workflow.GateFailed:
		return a.Paint(cli.Yellow, "completed"+took(v)) + cli.Why(failure)
	}
	switch workflow.State(ch.To) {
	case workflow.Completed:
		return a.Paint(cli.Green, "completed") + took(v) + made(set.Facts) + denied(a, set.Facts)
	case workflow.Failed:
		return a.Paint(cli.Red, "failed") + took(v) + cli.Why(failure)
	case workflow.Waiting:
		return a.Paint(cli.Yellow, "waits for a person") + fmt.Sprintf(": fairlead approve %s %s (or reject)", id, cli.Line(step, cli.PathWidth))
	case workflow.Skipped:
		return a.Paint(cli.Dim, "skipped: its condition does not hold")
	}
	return ""
}

// itemOr is what a loop counts: its items, or the rounds until its condition holds.
func itemOr(v workflow.Value) string {
	if v.Found {
		return "item"
	}
	return "round"
}

// which names the attempt, the iteration and the item, unless they are the first.
func which(v workflow.Value) string {
	var parts []string
	if v.Attempts > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", v.Attempts))
	}
	if v.Iteration > 0 {
		parts = append(parts, fmt.Sprintf("iteration %d", v.Iteration+1))
	}
	if v.Found {
		parts = append(parts, fmt.Sprintf("item %d", v.Index+1))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func took(v workflow.Value) string {
	if v.StartedAt.IsZero() || v.EndedAt.Before(v.StartedAt) {
		return ""
	}
	return " in " + cli.Ago(v.EndedAt.Sub(v.StartedAt))
}

// madeMost is how many artifacts a line names.
const madeMost = 3

func made(facts *workflow.Facts) string {
	if facts == nil || len(facts.Artifacts) == 0 {
		return ""
	}
	text := "  " + cli.Line(strings.Join(facts.Artifacts[:min(madeMost, len(facts.Artifacts))], ", "), 100)
	if more := len(facts.Artifacts) - madeMost; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// denied says what the step's agent was denied, although the step succeeded.
func denied(a *cli.App, facts *workflow.Facts) string {
	if facts == nil {
		return ""
	}
	text := cli.Line(strings.Join(facts.Denied, "; "), cli.ErrorWidth)
	if text == "" {
		return ""
	}
	return "  " + a.Paint(cli.Yellow, text)
}
