package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
)

// Decide returns the changes that follow from an input. It changes nothing: apply all changes before
// the next call. No changes and no error mean that the input has no effect, for example because a
// timer is late. The error is a *table.Refusal.
func (r *Run) Decide(in Input, now Now) ([]change.Change, error) {
	now.At = now.At.UTC().Round(0) // as it will be decoded from the journal
	d := &runDraft{run: r, id: r.ID, now: now}
	if about := in.Subject(); about.Starts {
		d.id = RunID(about.Entity)
	}
	if err := d.decide(in); err != nil {
		return nil, err
	}
	return d.changes, nil
}

// runDraft collects the changes of one input.
type runDraft struct {
	run     *Run
	id      RunID
	now     Now
	changes []change.Change
}

// ManyStates stands for the states of steps that differ.
const ManyStates = "several"

// add adds a change of a step or, if it is empty, of the run or of the steps in the body.
func (d *runDraft) add(step StepID, row, from, to, trigger string, body Body) {
	ch := change.Change{
		Machine: "workflow", Entity: "run/" + string(d.id), Row: row, From: cmp.Or(from, body.from()), To: cmp.Or(to, ManyStates),
		Trigger: trigger, At: d.now.At, Body: &body,
	}
	if step != "" {
		ch.Entity += "/" + string(step)
	}
	if body.Head != nil {
		ch.Machine = "run"
	}
	d.changes = append(d.changes, ch)
}

// from returns the previous state of the steps in a body, in one word.
func (b *Body) from() string {
	var moves []Move
	switch {
	case b.Reset != nil:
		moves = b.Reset.Moves
	case b.Moved != nil:
		moves = b.Moved.Moves
	default:
		return string(Absent)
	}
	from := moves[0].From
	for _, move := range moves {
		if move.From != from {
			return ManyStates
		}
	}
	return string(from)
}

func (d *runDraft) decide(in Input) error {
	if about := in.Subject(); !about.Starts && !d.run.complete() {
		return &table.Refusal{
			Subject: "run", Event: string(about.Event), State: string(Absent),
			Takes: []string{string(RunStarted), string(RunTakenIn)},
		}
	}
	switch in := in.(type) {
	case RunAsked:
		return d.layOut(RunStarted, in) // W1
	case StateFound:
		return d.takeIn(in)
	case StateEdited:
		return d.takeEdit(in)
	case PauseAsked:
		return d.stage(RunPaused, in.By, in.Why, cmp.Or(in.Reason, PausedByPerson))
	case ReleaseAsked:
		return d.stage(RunReleased, in.By, in.Why, "")
	case CancelAsked:
		return d.cancel(in)
	case ResumeAsked:
		return d.resume(in)
	case StepOrdered:
		return d.order(in)
	case Judged:
		return d.judge(in)
	case GatesSeen:
		return d.gates(in)
	case SkipsDue:
		return d.skip()
	case TimerFired:
		return d.timer(in.About)
	case StartAsked:
		return d.begin(in)
	case WhenWeighed:
		return d.weighed(in)
	case ItemsSeen:
		return d.itemsSeen(in)
	case AnswerRead:
		return d.answer(in)
	default:
		return d.process(in)
	}
}

// stepDraft is a step with the changes so far applied.
type stepDraft struct {
	*runDraft
	i       int
	plan    *Step
	v       Value
	why     string        // of a failure, a limit or a fault
	whyCode EndReason     // why its process is to end; empty: EndOver
	facts   *Facts        // of the received report
	said    Answer        // of people
	over    bool          // its process is known to have ended
	wait    time.Duration // until it is run again
	items   []string
}

func (d *runDraft) step(i int) *stepDraft {
	return &stepDraft{runDraft: d, i: i, plan: &d.run.Plan.Steps[i], v: d.run.Steps[i].Value}
}

// find returns a step by ID, or a refusal.
func (d *runDraft) find(id StepID, event Event) (*stepDraft, error) {
	i, ok := d.run.index.at[id]
	if !ok {
		return nil, d.refuse(id, string(event), "unknown", "", "the plan has no such step")
	}
	return d.step(i), nil
}

func (d *runDraft) refuse(id StepID, event, state, row, reason string) error {
	subject := "run " + string(d.run.ID)
	if id != "" {
		subject += ", step " + string(id)
	}
	return &table.Refusal{Subject: subject, Event: event, State: state, Row: row, Reason: reason}
}

// refuse returns a refusal for a step.
func (o *stepDraft) refuse(event Event, row, reason string) error {
	return o.runDraft.refuse(o.plan.ID, string(event), string(o.v.State), row, reason)
}

// take applies the table's rule for an event in the step's state.
func (o *stepDraft) take(event Event) error {
	rule, err := Table.Look(fmt.Sprintf("run %s, step %s", o.run.ID, o.plan.ID), o.v.State, event)
	if err != nil {
		return err
	}
	from := o.v.State
	set := &StepSet{}
	for _, act := range rule.Do {
		o.act(act, set)
	}
	o.v.State = rule.To
	set.Value = o.v
	o.add(o.plan.ID, rule.ID, string(from), string(rule.To), string(event), Body{Step: set})
	if o.v.settled() && event != GateFailed { // a gate that sends the run back is only briefly done
		o.free(o.i)
	}
	return nil
}

// free unblocks the steps that were blocked until these targets are done again.
func (d *runDraft) free(targets ...int) {
	r := d.run
	var moves []Move
	for i := range r.Steps {
		gate, blocked := r.index.at[r.Steps[i].BlockedBy]
		if !blocked {
			continue
		}
		if target, leads := r.index.at[r.Plan.Steps[gate].LoopBackTo]; leads && slices.Contains(targets, target) {
			moves = append(moves, Move{Step: r.Plan.Steps[i].ID, From: Pending})
		}
	}
	d.list(moves, TargetDone, Pending, func(part []Move) Body { return Body{Moved: &Moved{Moves: part, To: Pending}} })
}

// list moves many steps by one rule. It panics if one of them does not accept the event in its
// state.
func (d *runDraft) list(moves []Move, event Event, to State, body func([]Move) Body) {
	for _, part := range chunks(moves) {
		var row string
		for _, move := range part {
			rule, err := Table.Look(string(move.Step), move.From, event)
			if err != nil || rule.To != to {
				panic(fmt.Sprintf("workflow: one of many steps cannot move to %s: %v", to, err))
			}
			row = rule.ID
		}
		d.add("", row, "", string(to), string(event), body(part))
	}
}

// ours finds the step of a lease. Input with an ended lease is refused.
func (d *runDraft) ours(l Lease, event Event) (*stepDraft, error) {
	o, err := d.find(l.Step, event)
	if err != nil {
		return nil, err
	}
	if l.N != o.v.N {
		return nil, o.refuse(event, "W6",
			fmt.Sprintf("it belongs to lease %d, which has ended; the last one is %d (iteration %d, attempt %d)", l.N, o.v.N, o.v.Iteration,
				o.v.Attempts))
	}
	return o, nil
}

// order is W12 for a step that starts only when it is ordered. Another step that was ordered and has not started is not to start, and
// the steps behind it that have ended in an earlier iteration have not ended in this one.
func (d *runDraft) order(in StepOrdered) error {
	o, err := d.find(in.Step, Ordered)
	switch {
	case err != nil:
		return err
	case !o.plan.Ordered || d.run.Stage == Stopped || d.run.Stage == Parked:
		return o.refuse(Ordered, "W12", "the run is "+string(d.run.Stage)+", or the step is not one that is ordered")
	}
	moves := []Move{{Step: in.Step, From: o.v.State}}
	at := d.run.index.at[in.Step]
	for i := range d.run.Steps {
		p := &d.run.Steps[i]
		withdrawn, again := p.State == Pending && p.Order > 0, i > at && p.State != Pending && p.Iteration < in.Iteration
		if i != at && d.run.Plan.Steps[i].Ordered && (withdrawn || again) {
			moves = append(moves, Move{Step: d.run.Plan.Steps[i].ID, From: p.State})
		}
	}
	d.list(moves, Ordered, Pending, func(part []Move) Body {
		return Body{Reset: &Reset{Moves: part, Ending: "it is to do its work again", Target: in.Step, Order: in.N, Iteration: in.Iteration}}
	})
	return nil
}

// judge is W12 for a run whose steps are ordered: only what orders them knows whether more will be. The steps that a run has not needed
// that is completed are skipped (W11).
func (d *runDraft) judge(in Judged) error {
	if _, err := d.setHead(in.event(), func(h *Head) { h.Judged = in.As }); err != nil || in.As != IsCompleted {
		return err
	}
	var moves []Move
	for i := range d.run.Steps {
		if p := &d.run.Steps[i]; d.run.Plan.Steps[i].Ordered && p.State == Pending {
			moves = append(moves, Move{Step: d.run.Plan.Steps[i].ID, From: Pending})
		}
	}
	d.list(moves, NotNeeded, Skipped, func(part []Move) Body { return Body{Moved: &Moved{Moves: part, To: Skipped}} })
	return nil
}

// begin is W2: a place is free for a step, and nothing prevents its start.
func (d *runDraft) begin(in StartAsked) error {
	o, err := d.find(in.Step, Started)
	if err != nil {
		return err
	}
	if row, why := d.keeps(o); why != "" {
		return o.refuse(Started, row, why)
	}
	if l := o.plan.Loop; l != nil && l.Items != nil {
		o.v.Found = true
	}
	if d.run.asksFirst(o.i) {
		if err := o.take(StartedAsking); err != nil {
			return err
		}
		return o.take(Asking)
	}
	return o.take(Started)
}

// keeps returns what prevents a step from starting, and the row that does; empty: it may start.
func (d *runDraft) keeps(o *stepDraft) (row, why string) {
	r := d.run
	switch at := r.place(o.i); {
	case o.v.State != Pending:
		return "W2", "only a step that is PENDING begins"
	case at != ready && at != asking:
		return r.waitsFor(o.i)
	case r.Stage != Driven:
		return "W2", "the run is " + string(r.Stage)
	case d.now.Held:
		return "X8", "the team is held"
	case at == ready && r.alive() >= r.Options.SideBySide:
		return "W2", fmt.Sprintf("%d steps run side by side, which is the limit", r.alive())
	}
	return "", ""
}

func (d *runDraft) weighed(in WhenWeighed) error {
	o, err := d.find(in.Step, WhenTrue)
	switch {
	case err != nil:
		return err
	case d.run.place(o.i) != weighing || in.Iteration != o.v.Iteration:
		return o.refuse(WhenTrue, "W11", fmt.Sprintf("its condition is not needed (iteration %d)", o.v.Iteration))
	case in.Verdict.Fault != "":
		o.why = "when: " + in.Verdict.Fault
		return o.take(WhenFaulted)
	case in.Verdict.Holds:
		return o.take(WhenTrue)
	default:
		return o.take(WhenFalse)
	}
}

func (d *runDraft) itemsSeen(in ItemsSeen) error {
	o, err := d.find(in.Step, ItemsFound)
	if err != nil {
		return err
	}
	if d.run.place(o.i) != seeking || in.Iteration != o.v.Iteration {
		return o.refuse(ItemsFound, "W15", fmt.Sprintf("its items are not needed (iteration %d)", o.v.Iteration))
	}
	if in.Fault == "" {
		in.Fault = itemsFault(in.Items)
	}
	switch {
	case in.Fault != "":
		o.why = "loop items: " + in.Fault
		return o.take(ItemsFaulted)
	case len(in.Items) == 0:
		return o.take(NothingToLoop)
	default:
		o.items = in.Items
		return o.take(ItemsFound)
	}
}

// timer handles a deadline. It ignores one whose subject has changed.
func (d *runDraft) timer(about Deadline) error {
	i, ok := d.run.index.at[about.Step]
	if !ok || d.now.At.Before(about.At) {
		return nil
	}
	o := d.step(i)
	switch about.What {
	case TimeUp:
		if at := d.run.timeoutOf(i); at.IsZero() || !at.Equal(about.At) || o.v.N != about.N {
			return nil
		}
		o.why = fmt.Sprintf("timeout: it took longer than %s", o.plan.Timeout)
		return o.failure()
	case RetryDue:
		if d.run.Stage != Driven || o.v.State != Pending || !o.v.RetryAt.Equal(about.At) || o.v.RetryAt.IsZero() {
			return nil
		}
		return o.take(BackoffElapsed)
	case WaitOver:
		if d.run.Stage != Driven || o.v.State != Pending || !o.v.DueAt.Equal(about.At) || o.v.DueAt.IsZero() {
			return nil
		}
		return o.take(WaitElapsed)
	default:
		panic(fmt.Sprintf("workflow: unknown deadline: %q", about.What))
	}
}
