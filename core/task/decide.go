package task

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Decide returns the change that follows from an input. It changes nothing: apply the change before the next call. No change and no error
// mean that the input has no effect, such as the result of an earlier job. The error is a *table.Refusal.
func (t *Task) Decide(id string, at time.Time, by change.Actor, in Input) ([]change.Change, error) {
	event, late := t.event(in)
	if late {
		return nil, nil
	}
	from := cmp.Or(t.Status, Absent)
	rule, err := Table.Look("task "+id, from, event)
	if err != nil {
		return nil, err
	}
	if event == Tried && t.Job != Nothing {
		return nil, &table.Refusal{
			Subject: "task " + id, Event: string(event), State: string(from), Row: rule.ID, Reason: "its question is to be answered first",
		}
	}
	d := draft{task: t, v: t.Value, at: at.UTC().Round(0), by: by, in: in}
	d.v.Status = rule.To
	for _, act := range rule.Do {
		d.act(act)
	}
	if rule.To != from {
		d.v.Since = d.at
	}
	body := Body{Value: d.v, Round: d.round}
	if begin, is := in.(Begin); is {
		body.Plan, body.Value.Round = &begin.Plan, 1
	}
	return []change.Change{{
		Machine: "task", Entity: "run/" + id, Row: rule.ID, From: string(from), To: string(rule.To), Trigger: string(event), At: d.at,
		Actor: by, Body: &body,
	}}, nil
}

// event is the word for an input in the task's state. late: it has no effect.
func (t *Task) event(in Input) (event Event, late bool) {
	switch in := in.(type) {
	case Begin:
		if in.Blocked {
			return GivenBlocked, false
		}
		return Given, false
	case Free:
		return Unblocked, t.Status != Blocked
	case JobBegan:
		return WorkBegan, in.N != t.N || t.Status != Queued || t.Job != Work
	case JobEnded:
		return t.ended(in), in.N != t.N || t.Job == Nothing
	case Answer:
		return in.Subject().Event, in.N != t.N || t.Job != Approve
	case Question:
		if in.Open {
			return Asks, t.Job != Work || t.Status == NeedsYou
		}
		return AsksNoMore, t.Job != Work || t.Status != NeedsYou
	case Drop:
		return DroppedNow, t.Status == Dropped
	case Resume:
		return t.resumed(in), false
	default: // the other ones have one word each
		return in.Subject().Event, false
	}
}

// ended is the word for the result of the job.
func (t *Task) ended(in JobEnded) Event {
	words := map[Job]map[Outcome]Event{
		Prepare: {OK: Prepared},
		Work:    {OK: WorkEnded},
		Checks:  {OK: Checked, Back: CheckFailed},
		Reviews: {OK: Reviewed, Back: Found},
		Show:    {OK: ShownNow, Known: ShownBefore},
		Land: {
			OK: Landed, Again: AsksAgain, Room: NeedsRoom, Recheck: NeedsChecks, Opened: PullOpened, Closed: PullClosed, Back: PullReturned,
		},
		Merged: {OK: MergeChecked, Back: MergeFailed},
	}
	event, known := words[t.Job][in.Outcome]
	switch {
	case !known:
		return JobFailed
	case event == Prepared && t.Made && t.Round == 1:
		return PreparedMade
	case event == Checked && t.Reviewer:
		return CheckedFirst
	case (event == CheckFailed || event == Found) && t.Counted >= t.RoundsMax:
		return OftenBack
	}
	return event
}

// resumed is the word for where a task goes on. None of them lands it.
func (t *Task) resumed(in Resume) Event {
	switch {
	case t.Status == NeedsYou && t.Job == Work:
		return in.Subject().Event // its agent works, and waits for an answer
	case in.Job == Nothing && t.At == Nothing:
		return map[Status]Event{Blocked: ToWaits, NeedsYou: NeedsRoom}[t.Was]
	case in.Job == Nothing && t.At == Approve:
		return ToAnswer
	}
	return map[Job]Event{
		Prepare: ToPrepare, Work: ToWork, Checks: ToCheck, Reviews: ToReview, Show: ToShow, Approve: ToShow, Land: ToShow, Merged: ToShow,
	}[cmp.Or(in.Job, t.At)]
}

// draft is the value with the acts so far.
type draft struct {
	task  *Task
	v     Value
	at    time.Time
	by    change.Actor
	in    Input
	round *Round
}

var jobs = map[Act]Job{
	DoPrepare: Prepare, DoWork: Work, DoCheck: Checks, DoReview: Reviews, DoShow: Show, Ask: Approve, DoLand: Land, DoMerged: Merged,
	DoNothing: Nothing,
}

func (d *draft) act(act Act) {
	v := &d.v
	if job, is := jobs[act]; is {
		v.Job = job
		v.N++
		return
	}
	ended, _ := d.in.(JobEnded)
	switch act {
	case NextRound:
		d.round = &Round{N: v.Round, By: cmp.Or(d.task.Job, Approve), Why: clip.Text(d.why(), textKeptMax), At: d.at}
		v.Round++
		v.Counted++
		v.Why = ""
	case FreeRound:
		v.Counted = 0
	case TakeShown:
		v.Shown = ended.Shown
		v.Shown.Told, v.Shown.Governs.Files, v.Shown.Lines = kept(v.Shown.Told), kept(v.Shown.Governs.Files), kept(v.Shown.Lines)
	case TakeYes:
		answer, _ := d.in.(Answer)
		v.Yes = Yes{By: answer.By, Governing: answer.Governing, At: d.at}
	case TakeLanded:
		v.Landed, v.Said = ended.Landed, clip.Text(ended.Why, textKeptMax)
	case ForgetLanded:
		v.Landed, v.Said = "", ""
	case TakeFailure:
		v.Failure = ended.Failure
		v.Failure.Files, v.Failure.Check = kept(v.Failure.Files), clip.Text(v.Failure.Check, textKeptMax)
	case NoFailure:
		v.Failure, v.Why = Failure{}, ""
	case KeepWhy:
		v.Why = clip.Text(d.why(), textKeptMax)
	case KeepPlace:
		v.At, v.Was = d.task.Job, d.task.Status
	default:
		panic("task: unknown act: " + string(act))
	}
}

// why is the reason that the input gives.
func (d *draft) why() string {
	switch in := d.in.(type) {
	case JobEnded:
		return in.Why
	case Answer:
		return in.Why
	case Drop:
		return in.Why
	case Resume:
		return in.Why
	case Undo:
		return in.Why
	default:
		return ""
	}
}

// kept shortens a list of names. It says how many are left out.
func kept(names []string) []string {
	var short []string
	for _, name := range names[:min(len(names), namesKept)] {
		short = append(short, clip.Text(name, textKeptMax))
	}
	if more := len(names) - namesKept; more > 0 {
		short = append(short, fmt.Sprintf("and %d more", more))
	}
	return short
}
