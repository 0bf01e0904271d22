package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// jsonFace is for programs: each change of the run as `fairlead events --json` prints it.
type jsonFace struct{ a *app }

func (f jsonFace) change(ch api.Change) error { return f.a.printJSON(ch) }
func (jsonFace) look(view.RunView)            {}
func (jsonFace) say(string, ...any)           {}
func (jsonFace) done()                        {}

// lineFace is for a log or a pipe: a line for whatever a person would want to know.
type lineFace struct {
	a     *app
	id    string
	width int // of the widest step's name so far
}

func (f *lineFace) look(view view.RunView) {
	for _, s := range view.Steps {
		f.width = min(max(f.width, len(s.ID)), stepWidth)
	}
}

func (f *lineFace) done() {}

func (f *lineFace) say(format string, args ...any) {
	fmt.Fprintln(f.a.err, "fairlead: "+plain(fmt.Sprintf(format, args...)))
}

func (f *lineFace) change(ch api.Change) error {
	for _, told := range f.a.tell(f.id, ch) {
		if _, err := fmt.Fprintf(f.a.out, "%s  %-*s  %s\n", ch.Time.Local().Format(time.TimeOnly), f.width, line(told.step, stepWidth), told.text); err != nil {
			return err
		}
	}
	return nil
}

const (
	stepWidth  = 32  // of a step's name, which may be longer
	errorWidth = 300 // of an error that an agent reported
)

// sentence is about one step, or about the run where there is no step.
type sentence struct{ step, text string }

// tell puts a change of a run into words; most changes are of no interest and give none.
func (a *app) tell(id string, ch api.Change) []sentence {
	var body team.Body
	if json.Unmarshal(ch.Data, &body) != nil || body.Run == nil {
		return nil // of a newer version, perhaps; `fairlead events` shows it as it is
	}
	step, _ := strings.CutPrefix(ch.Entity, "run/"+id+"/")
	switch run := body.Run; {
	case run.Head != nil:
		return a.tellRun(ch, run.Head)
	case run.Step != nil:
		if text := a.tellStep(id, step, ch, run.Step); text != "" {
			return []sentence{{step, text}}
		}
	case run.Reset != nil && run.Reset.Gate != "":
		return []sentence{{string(run.Reset.Gate), a.paint(yellow, "sends the run back to "+line(string(run.Reset.Target), stepWidth)) + behind(len(run.Reset.Moves))}}
	case run.Moved != nil && run.Moved.To == workflow.Skipped:
		var all []sentence
		for _, move := range run.Moved.Moves {
			all = append(all, sentence{string(move.Step), a.paint(dim, "skipped: there is nothing to do")})
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

func (a *app) tellRun(ch api.Change, head *workflow.Head) []sentence {
	why := ""
	if head.Why != "" {
		why = ": " + line(head.Why, errorWidth)
	}
	switch workflow.RunEvent(ch.Trigger) {
	case workflow.RunPaused:
		return []sentence{{"", a.paint(yellow, "paused by "+line(head.By, stepWidth)) + why}}
	case workflow.RunReleased:
		return []sentence{{"", "released by " + line(head.By, stepWidth) + why}}
	case workflow.RunResumed:
		return []sentence{{"", "resumed by " + line(head.By, stepWidth) + why}}
	case workflow.RunCancelled:
		return []sentence{{"", a.paint(yellow, "cancelled by "+line(head.By, stepWidth)) + why}}
	}
	return nil
}

func (a *app) tellStep(id, step string, ch api.Change, set *workflow.StepSet) string {
	v := set.Value
	failure := line(v.LastError, errorWidth)
	switch workflow.Event(ch.Trigger) {
	case workflow.ProcessDeparted:
		return "" // of an attempt that was over, and told of, before
	case workflow.Started, workflow.AnsweredFirst:
		return "began" + which(v)
	case workflow.Adopted:
		return "goes on: it outlived the one who had started it" + which(v)
	case workflow.RunnerDied:
		return a.paint(yellow, "nobody knows how it ended; it is done again") + why(failure)
	case workflow.FailedTriesLeft:
		return a.paint(yellow, fmt.Sprintf("failed (attempt %d), tried again in %s", v.Attempts, ago(v.RetryAt.Sub(ch.Time)))) + why(failure)
	case workflow.Answered, workflow.Approved, workflow.Rejected:
		return "answered by " + line(ch.Actor.ID, stepWidth)
	case workflow.AnswerFaulty:
		return a.paint(yellow, "the answer is not valid") + why(line(v.Fault, errorWidth))
	case workflow.ItemDone:
		return fmt.Sprintf("%s %d done", itemOr(v), v.Done)
	case workflow.GateFailed:
		return a.paint(yellow, "completed"+took(v)) + why(failure)
	}
	switch workflow.State(ch.To) {
	case workflow.Completed:
		return a.paint(green, "completed") + took(v) + made(set.Facts) + a.denied(set.Facts)
	case workflow.Failed:
		return a.paint(red, "failed") + took(v) + why(failure)
	case workflow.Waiting:
		return a.paint(yellow, "waits for a person") + fmt.Sprintf(": fairlead approve %s %s (or reject)", id, line(step, pathWidth))
	case workflow.Skipped:
		return a.paint(dim, "skipped: its condition does not hold")
	}
	return ""
}

// itemOr is what a loop counts: the items it goes over, or the rounds until it is good enough.
func itemOr(v workflow.Value) string {
	if v.Found {
		return "item"
	}
	return "round"
}

// which is the attempt, the iteration and the item, where they are not the first ones.
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
	return " in " + ago(v.EndedAt.Sub(v.StartedAt))
}

// madeMost is how many artifacts a line names.
const madeMost = 3

func made(facts *workflow.Facts) string {
	if facts == nil || len(facts.Artifacts) == 0 {
		return ""
	}
	text := "  " + line(strings.Join(facts.Artifacts[:min(madeMost, len(facts.Artifacts))], ", "), 100)
	if more := len(facts.Artifacts) - madeMost; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// denied is what the step's agent was not allowed, though it went well.
func (a *app) denied(facts *workflow.Facts) string {
	if facts == nil {
		return ""
	}
	text := line(runs.DeniedIn(facts.Logs), errorWidth)
	if text == "" {
		return ""
	}
	return "  " + a.paint(yellow, text)
}

func why(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
