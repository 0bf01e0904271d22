package workflow

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// process handles input from a step's process or about it.
func (d *runDraft) process(in Input) error {
	switch in := in.(type) {
	case ProcessAdopted:
		o, err := d.ours(in.Lease, Adopted)
		if err != nil || o.v.State != Running && o.v.Proc == in.Lease.N {
			return err // it was ordered to end
		}
		if o.v.Proc != in.Lease.N {
			return o.refuse(Adopted, "W13", "no process of it is known")
		}
		return o.take(Adopted)
	case StartWithdrawn:
		o, err := d.departed(in.Lease, Withdrawn)
		if o == nil {
			return err
		}
		return o.take(Withdrawn)
	case ProcessLost:
		o, err := d.departed(in.Lease, RunnerDied)
		if o == nil {
			return err
		}
		o.why = "the runner died: " + in.Why
		if o.v.Lost >= lostMax {
			return o.failure() // the step may be the cause
		}
		return o.take(RunnerDied)
	case ProviderBusy:
		o, err := d.departed(in.Lease, ProviderWaits)
		if o == nil {
			return err
		}
		o.why = in.Why
		return o.take(ProviderWaits)
	case ProcessEnded:
		o, err := d.departed(in.Lease, ProcessDeparted)
		if o == nil {
			return err
		}
		o.why = in.Why
		return o.failure()
	case LimitHit:
		o, err := d.ours(in.Lease, LimitReached)
		if err != nil {
			return err
		}
		o.why = "limit reached: " + in.Limit
		return o.take(LimitReached)
	case ReportRead:
		return d.report(in)
	default:
		panic(fmt.Sprintf("workflow: unknown input: %T", in))
	}
}

// departed records the end of a process. If its attempt had ended before, the step may only become
// ready to start: then departed returns no step.
func (d *runDraft) departed(l Lease, event Event) (*stepDraft, error) {
	o, err := d.find(l.Step, event)
	switch {
	case err != nil:
		return nil, err
	case o.v.State == Running && o.v.N == l.N:
		o.over = true
		return o, nil
	case o.v.Proc == l.N && l.N != 0:
		return nil, o.take(ProcessDeparted)
	default:
		return nil, o.refuse(event, "W6", fmt.Sprintf("no process of lease %d is known (the last one is %d)", l.N, o.v.N))
	}
}

// failure is W4 or W5.
func (o *stepDraft) failure() error {
	if o.v.Attempts < cmp.Or(o.plan.MaxAttempts, o.run.Options.MaxAttempts) {
		return o.take(FailedTriesLeft)
	}
	return o.take(FailedForGood)
}

// report handles a step's report.
func (d *runDraft) report(in ReportRead) error {
	o, err := d.ours(in.Lease, Reported)
	if err != nil {
		return err
	}
	if o.v.State != Running {
		return o.refuse(Reported, "W3", "the report of this attempt was read already, or it is over")
	}
	o.over = in.Over
	before := 0
	if o.amid() {
		before = len(o.run.Steps[o.i].Artifacts)
	}
	o.facts = in.Report.Facts.kept(before)
	switch {
	case in.Report.Failed:
		o.why = cmp.Or(in.Report.Why, "the report says FAILED without a reason")
		return o.failure()
	case in.Report.GateFailed:
		return o.gateFailure(in.Report.Why)
	}
	if in.Report.Again > 0 {
		if o.amid() { // the facts of finished items stay; an unfinished item adds none
			o.facts = nil
		}
		o.wait = min(max(in.Report.Again, AgainLeast), AgainMax)
		return o.take(ReportedAgain)
	}
	switch human := o.plan.Human && !o.v.Answered; {
	case human && o.run.Options.PauseForHumans:
		return o.take(ReportedAsking)
	case human:
		return o.finish(ReportedUnasked, in.Until)
	default:
		return o.finish(Reported, in.Until)
	}
}

// finish completes a step, or one item of its loop.
func (o *stepDraft) finish(event Event, until *Verdict) error {
	l := o.plan.Loop
	if l == nil {
		return o.take(event)
	}
	if l.UntilCondition != "" {
		switch {
		case until == nil:
			panic(fmt.Sprintf("workflow: run %s: an item of %s is done, but the result of its until_condition is missing", o.run.ID,
				o.plan.ID))
		case until.Fault != "":
			o.why = "until_condition: " + until.Fault
			return o.take(UntilFaulted)
		case until.Holds:
			return o.take(UntilHolds)
		}
	}
	switch {
	case o.v.Index+1 < o.run.rounds(o.i):
		return o.take(ItemDone)
	case l.endless():
		o.why = fmt.Sprintf("until_condition did not hold in %d rounds, which is max_iterations", l.MaxIterations)
		return o.take(UntilNeverHeld)
	default:
		return o.take(event)
	}
}

// LoopItems returns the items of a step's loop as JSON texts. It returns none if the step has no
// loop, or if the items are not known yet.
func (r *Run) LoopItems(id StepID) []string {
	i, ok := r.index.at[id]
	if !ok || r.Plan.Steps[i].Loop == nil {
		return nil
	}
	if items := r.Plan.Steps[i].Loop.Items; items != nil {
		return items
	}
	return r.Steps[i].Items
}

// rounds returns the maximum number of iterations of a loop.
func (r *Run) rounds(i int) int {
	l := r.Plan.Steps[i].Loop
	n := len(r.LoopItems(r.Plan.Steps[i].ID))
	if l.endless() || l.MaxIterations > 0 && l.MaxIterations < n {
		return l.MaxIterations
	}
	return n
}

// gateWords is the beginning of the last_error of a gate that sent the run back. It is null again
// while the gate runs (SPEC, corrections, "W6").
const gateWords = "Gate failure: "

// GateReason is the reason in the last error of a step that failed as a gate; false: it failed otherwise, or not.
func GateReason(lastError string) (why string, failed bool) {
	return strings.CutPrefix(lastError, gateWords)
}

// gateFailure is W6 or W7.
func (o *stepDraft) gateFailure(reason string) error {
	reason = cmp.Or(reason, "no reason given")
	o.why = gateWords + reason
	switch {
	case o.plan.LoopBackTo == "":
		return o.take(GateLeadsNowhere)
	case o.v.Iteration >= o.run.Options.MaxIterations:
		o.why = fmt.Sprintf("%s (max-iterations %d is reached)", cut(o.why), o.run.Options.MaxIterations)
		return o.take(GateAtLimit)
	}
	if err := o.take(GateFailed); err != nil {
		return err
	}
	o.loopBack()
	return nil
}

// answer handles people's answer (W9, W10).
func (d *runDraft) answer(in AnswerRead) error {
	o, err := d.ours(in.Lease, Answered)
	if err != nil {
		return err
	}
	o.said = in.Record
	o.said.By = cut(in.By)
	switch {
	case d.run.Stage == Parked || d.run.Stage == Stopped:
		return o.refuse(Answered, "W9", "the run is "+string(d.run.Stage)+"; resume it first")
	case o.v.State != Waiting:
		return o.refuse(Answered, "W9", "its question is no longer open")
	case in.Fault != "":
		if o.why = cut(in.Fault); o.why == o.v.Fault {
			return nil
		}
		return o.take(AnswerFaulty)
	case in.Rejected:
		if err := o.take(Rejected); err != nil {
			return err
		}
		reason := "rejected by " + in.By
		if in.Note != "" {
			reason += ": " + in.Note
		}
		return o.gateFailure(reason)
	case o.v.Reported:
		if err := o.take(Answered); err != nil {
			return err
		}
		return o.finish(Approved, in.Until)
	}
	if err := o.take(AnsweredFirst); err != nil {
		return err
	}
	if d.now.Held || d.run.Stage != Driven || d.run.alive() >= d.run.Options.SideBySide || d.run.unmet(o.i) || !in.Place {
		return o.take(Withdrawn) // answered; it starts when there is a place and its needs are done
	}
	return nil
}

const (
	textKeptMax   = 2000      // limit for an error message, which is shown on a page
	lineKeptMax   = 1000      // of one line of a report's log
	logsKeptMax   = 1000      // lines of a step's log: the file has all
	deniedKeptMax = 2         // sentences: calls that were denied, and calls made without asking
	artifactsMax  = 1000      // of one report
	artifactBytes = 1024      // length of a path
	metricsMax    = 1000      // of one report
	metricBytes   = 1024      // length of a name, and of a value
	factsBytesMax = 768 << 10 // of one report in the journal, whose changes take 1 MiB
)

// logsCut replaces omitted lines.
const logsCut = "… (older lines are left out; the whole is in the report and in the log file)"

// fault says why the facts of a step in another program's file are invalid; empty: they are valid.
func (f *Facts) fault() string {
	if len(f.Artifacts) > itemsMax {
		return fmt.Sprintf("%d artifacts, %d at most; name folders", len(f.Artifacts), itemsMax)
	}
	for _, path := range f.Artifacts {
		if !isArtifact(path) {
			return fmt.Sprintf("%q is no artifact: a path of 1 to %d bytes is", clip.Text(path, nameBytesMax), artifactBytes)
		}
	}
	if len(f.Metrics) > itemsMax {
		return fmt.Sprintf("%d metrics, %d at most", len(f.Metrics), itemsMax)
	}
	for _, m := range f.Metrics {
		if !m.fits() {
			return fmt.Sprintf("metric %q: names have 1 to %d bytes, values %d at most", clip.Text(m.Name, nameBytesMax), metricBytes,
				metricBytes)
		}
	}
	return ""
}

func isArtifact(path string) bool {
	return path != "" && len(path) <= artifactBytes && utf8.ValidString(path)
}

func (m Metric) fits() bool {
	return m.Name != "" && len(m.Name) <= metricBytes && len(m.Value) <= metricBytes && utf8.ValidString(m.Name) &&
		utf8.ValidString(m.Value)
}

// kept returns the part of a report's facts that is stored, and says in Cut what is left out: the first artifacts (their
// numbers are names of variables), the metrics that fit, and the newest lines of the log, each shortened. before is the
// number of artifacts that the step has from earlier items of its loop.
func (f *Facts) kept(before int) *Facts {
	kept := Facts{Denied: []string{}}
	room := factsBytesMax / 2
	takes := func(value any) bool {
		room -= jsonBytes(value) + 1
		return room >= 0
	}
	for _, path := range f.Artifacts[:min(len(f.Artifacts), artifactsMax, itemsMax-before)] {
		if !isArtifact(path) || !takes(path) {
			break
		}
		kept.Artifacts = append(kept.Artifacts, path)
	}
	kept.leavesOut(len(f.Artifacts)-len(kept.Artifacts), len(f.Artifacts), "artifacts",
		fmt.Sprintf("a step keeps %d of a report and %d in all, of %d bytes each, and of %d KiB together with the metrics", artifactsMax,
			itemsMax, artifactBytes, factsBytesMax/2>>10))
	for _, m := range f.Metrics {
		if m.fits() && len(kept.Metrics) < metricsMax && takes(m) {
			kept.Metrics = append(kept.Metrics, m)
		}
	}
	kept.leavesOut(len(f.Metrics)-len(kept.Metrics), len(f.Metrics), "metrics",
		fmt.Sprintf("a step keeps %d, of %d bytes each", metricsMax, metricBytes))
	kept.log(f.Logs)
	for _, sentence := range f.Denied[:min(len(f.Denied), deniedKeptMax)] {
		kept.Denied = append(kept.Denied, clip.Text(sentence, lineKeptMax))
	}
	return &kept
}

// log keeps the newest lines of a log.
func (f *Facts) log(lines []string) {
	older := len(lines) > 0 && lines[0] == logsCut // it was cut before
	if older {
		lines = lines[1:]
	}
	bytes, first, cut := 0, len(lines), 0
	for first > 0 && len(lines)-first < logsKeptMax-1 {
		size := jsonBytes(clip.Text(lines[first-1], lineKeptMax))
		if bytes+size > factsBytesMax/2 {
			break
		}
		bytes += size
		first--
	}
	if first > 0 || older {
		f.Logs = append(f.Logs, logsCut)
	}
	for _, line := range lines[first:] {
		f.Logs = append(f.Logs, clip.Text(line, lineKeptMax))
		if len(line) > lineKeptMax {
			cut++
		}
	}
	f.leavesOut(first, len(lines), "log lines",
		fmt.Sprintf("a step keeps the last %d, of %d KiB together", logsKeptMax-1, factsBytesMax/2>>10))
	if cut > 0 {
		f.Cut = append(f.Cut, fmt.Sprintf("%d of %d log lines %s cut to %d bytes", cut, len(lines), isOrAre(cut), lineKeptMax))
	}
}

// leavesOut notes that n of all entries are not kept.
func (f *Facts) leavesOut(n, all int, what, limit string) {
	if n > 0 {
		f.Cut = append(f.Cut, fmt.Sprintf("%d of %d %s %s only in its report: %s", n, all, what, isOrAre(n), limit))
	}
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
