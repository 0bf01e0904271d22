package workflow

import (
	"cmp"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/backoff"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// act carries out one act of a rule on the step's copy.
func (o *stepDraft) act(act Act, set *StepSet) {
	v := &o.v
	switch act {
	case CountAttempt:
		v.Attempts++
	case UncountAttempt:
		v.Attempts = max(0, v.Attempts-1)
	case BeginProcess:
		v.N++
		v.Proc, v.BegunAt, v.Ending, v.RetryAt, v.DueAt = v.N, o.now.At, "", time.Time{}, time.Time{}
		v.EndReason = ""
		if strings.HasPrefix(v.LastError, gateWords) { // the gate failure has been repeated by this loop-back
			v.LastError = ""
		}
	case ForgetProcess:
		v.Proc, v.BegunAt, v.Ending, v.EndReason = 0, time.Time{}, "", ""
	case EndProcess:
		o.endProcess()
	case StampStart:
		v.StartedAt, v.EndedAt = o.now.At, time.Time{}
	case StampEnd:
		v.EndedAt = o.now.At
	case TakeReport, NoteUnasked:
		o.takeReport(act, set)
	case HoldReport:
		v.Reported = true
	case ClearReport:
		v.Reported = false
		if !o.amid() && v.Rounds == 0 { // the findings of its last round apply until the next report
			set.Facts = &Facts{Denied: []string{}}
		}
	case KeepError:
		v.LastError = cut(o.why)
		if o.facts != nil && set.Facts == nil { // a report of a failure includes its log
			o.takeReport(TakeReport, set)
		}
	case ClearError:
		v.LastError, v.Lost = "", 0
	case StartBackoff:
		v.Lost = 0
		if wait := backoff.After(o.run.Options.BackoffFirst, o.run.Options.BackoffMax, v.Attempts); wait > 0 {
			v.RetryAt = o.now.At.Add(wait)
		}
	case StopBackoff:
		v.RetryAt = time.Time{}
	case StartWait:
		v.Attempts, v.DueAt = 0, o.now.At.Add(o.wait)
		v.Rounds++
	case StopWait:
		v.DueAt = time.Time{}
	case CountLoss:
		v.Lost++
	case NoteWeighed:
		v.Weighed = true
	case TakeItems:
		v.Found, set.Items = true, o.items
	case CountItem:
		if o.plan.Loop != nil {
			v.Done = v.Index + 1
		}
	case NextItem:
		v.Index++
		v.Attempts, v.Rounds, v.Answered, v.Reported, v.ManualInputPath, v.Fault, v.Answer = 0, 0, false, false, "", "", Answer{}
	case AskPeople:
		v.ManualInputPath, v.Fault = o.run.InputFile(o.plan.ID), ""
		if v.Proc == 0 && !v.Reported {
			v.N++ // without an attempt, a question has a lease of its own
		}
		if o.plan.onlyAsks() { // there is nothing to report
			v.Reported = true
		}
	case TakeAnswer:
		v.Answered, v.Reported, v.Fault, v.Answer = true, false, "", o.said
	case KeepFault:
		v.Fault = o.why
	default:
		panic("workflow: unknown act: " + string(act))
	}
}

// endProcess requests the end of the step's process if it may still be alive.
func (o *stepDraft) endProcess() {
	v := &o.v
	switch {
	case v.Proc == 0:
	case o.over:
		v.Proc, v.BegunAt, v.Ending, v.EndReason = 0, time.Time{}, "", ""
	case o.why != "":
		v.Ending, v.EndReason = cut(o.why), cmp.Or(o.whyCode, EndOver)
	default:
		v.Ending, v.EndReason = "its report was read", EndReported
	}
}

// takeReport records what a step produced according to its report. The products of a loop's items
// are accumulated.
func (o *stepDraft) takeReport(act Act, set *StepSet) {
	if o.facts != nil {
		o.v.ReportPath = o.run.ReportFile(o.plan.ID)
		set.Facts, set.Add = o.facts, o.amid()
		o.facts = nil
	}
	if act == TakeReport {
		return
	}
	if set.Facts == nil {
		set.Facts, set.Add = &Facts{Denied: []string{}}, true
	}
	set.Facts.Logs = append(set.Facts.Logs, "human_in_the_loop: no person was asked, because the run does not pause for people")
}

// amid reports whether some items of the step's loop are done.
func (o *stepDraft) amid() bool { return o.plan.Loop != nil && o.v.Index > 0 }

// cut shortens untrusted text.
func cut(s string) string { return clip.Text(s, textKeptMax) }
