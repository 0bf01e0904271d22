package workflow

import (
	"fmt"
	"iter"
	"strconv"
	"time"
)

// ActionKind is a kind of action that a run requests.
type ActionKind string

const (
	EndIt             ActionKind = "end_process" // with a grace period; then report ProcessEnded
	RunIt             ActionKind = "run_process" // if this lease has no process yet; idempotent
	FindReport        ActionKind = "look_for"    // RUNNING according to another program's file: report ReportRead, or ProcessLost
	SkipIt            ActionKind = "skip"        // report SkipsDue
	EvaluateCondition ActionKind = "weigh"       // report WhenWeighed
	FindItems         ActionKind = "find_items"  // report ItemsSeen
	AskForAnswer      ActionKind = "ask_people"  // a question that is no longer listed is withdrawn
	StartIt           ActionKind = "start"       // report StartAsked when there is a free place
)

// Action is one action. The same state produces the same key; repeating an action has no further
// effect.
type Action struct {
	Key       string
	Do        ActionKind
	Lease     Lease  // of EndIt, RunIt, FindReport and AskForAnswer; of the others only its Step
	Iteration int    // of EvaluateCondition and FindItems: to be passed back
	Attempt   int    // of RunIt
	Item      int    // of RunIt: the loop's item, from 0
	Answered  bool   // of RunIt: the answer is at ManualInputPath
	Why       string // of EndIt
}

// Actions derives the pending actions from the state, in the preferred order. It can be called
// again after every change and after a crash. The cost is proportional to the length of the list,
// not to the number of steps. While the team is held, it lists no action that starts a process. It
// never lists more starts than there are places.
func (r *Run) Actions(now Now) iter.Seq[Action] {
	return func(yield func(Action) bool) {
		if !r.complete() {
			return
		}
		for _, part := range []func(Now, func(Action) bool) bool{r.processes, r.preparations, r.questions, r.starts} {
			if !part(now, yield) {
				return
			}
		}
	}
}

// asksListed is how many steps that begin with a question are listed at a time. The list is read at
// every event, so the others follow with the next one.
const asksListed = 64

// ActionsOf returns the pending actions for one step, except its start, which depends on other
// steps.
func (r *Run) ActionsOf(id StepID) (actions []Action) {
	i, ok := r.index.at[id]
	if !ok {
		return nil
	}
	keep := func(t Action) bool { actions = append(actions, t); return true }
	r.processOf(i, keep)
	r.preparationOf(i, keep)
	r.questionOf(i, keep)
	return actions
}

func (r *Run) key(do ActionKind, i int, n uint64) string {
	return string(do) + "/" + string(r.ID) + "/" + string(r.Plan.Steps[i].ID) + "/" + strconv.FormatUint(n, 10)
}

func (r *Run) lease(i int, n uint64) Lease { return Lease{Step: r.Plan.Steps[i].ID, N: n} }

func (r *Run) processes(_ Now, yield func(Action) bool) bool {
	for i := range r.Steps {
		if r.Steps[i].Proc != 0 && !r.processOf(i, yield) {
			return false
		}
	}
	for i := range r.Steps {
		if r.Steps[i].Proc == 0 && !r.processOf(i, yield) {
			return false
		}
	}
	return true
}

func (r *Run) processOf(i int, yield func(Action) bool) bool {
	p := &r.Steps[i]
	switch {
	case p.Ending != "":
		return yield(Action{Key: r.key(EndIt, i, p.Proc), Do: EndIt, Lease: r.lease(i, p.Proc), Why: p.Ending})
	case p.State == Running && p.Proc != 0:
		return yield(Action{
			Key: r.key(RunIt, i, p.Proc), Do: RunIt, Lease: r.lease(i, p.Proc), Iteration: p.Iteration, Attempt: p.Attempts, Item: p.Index,
			Answered: p.Answered,
		})
	case p.State == Running:
		return yield(Action{Key: r.key(FindReport, i, p.N), Do: FindReport, Lease: r.lease(i, p.N)})
	}
	return true
}

func (r *Run) preparations(_ Now, yield func(Action) bool) bool {
	if r.Stage != Driven {
		return true
	}
	n := r.counts()
	if n[pointless] > 0 && !yield(Action{Key: fmt.Sprintf("%s/%s/%d", SkipIt, r.ID, n[settled]), Do: SkipIt}) {
		return false
	}
	for _, at := range []place{weighing, seeking} {
		for i := range r.in(at) {
			if !r.preparationOf(i, yield) {
				return false
			}
		}
	}
	return true
}

func (r *Run) preparationOf(i int, yield func(Action) bool) bool {
	do := EvaluateCondition
	switch at := r.place(i); {
	case r.Stage != Driven || at != weighing && at != seeking:
		return true
	case at == seeking:
		do = FindItems
	}
	iteration := r.Steps[i].Iteration
	return yield(Action{Key: r.key(do, i, uint64(iteration)), Do: do, Lease: r.lease(i, 0), Iteration: iteration})
}

func (r *Run) questions(_ Now, yield func(Action) bool) bool {
	for i := range r.in(waiting) {
		if !r.questionOf(i, yield) {
			return false
		}
	}
	return true
}

func (r *Run) questionOf(i int, yield func(Action) bool) bool {
	if r.Steps[i].State != Waiting || r.Stage != Driven && r.Stage != Paused {
		return true
	}
	n := r.Steps[i].N
	return yield(Action{Key: r.key(AskForAnswer, i, n), Do: AskForAnswer, Lease: r.lease(i, n)})
}

// starts lists the steps that may start, up to the number of places.
func (r *Run) starts(now Now, yield func(Action) bool) bool {
	if now.Held || r.Stage != Driven {
		return true
	}
	return r.firstOf(asking, asksListed, yield) && r.firstOf(ready, r.Options.SideBySide-r.alive(), yield)
}

func (r *Run) firstOf(at place, room int, yield func(Action) bool) bool {
	if room <= 0 {
		return true
	}
	for i := range r.in(at) {
		if !yield(Action{Key: r.key(StartIt, i, r.Steps[i].N+1), Do: StartIt, Lease: r.lease(i, 0)}) {
			return false
		}
		if room--; room == 0 {
			break
		}
	}
	return true
}

// Wanted is the last check before a process starts: it reports whether the run still wants this
// lease. If not, the start is withdrawn with the returned reason.
func (r *Run) Wanted(l Lease, now Now) (ok bool, why string) {
	_, p, known := r.Find(l.Step)
	switch {
	case !known || p.State != Running || p.Proc != l.N || p.N != l.N || p.Ending != "":
		return false, "the attempt is over"
	case r.Stage != Driven:
		return false, "the run is " + string(r.Stage)
	case now.Held:
		return false, "the team is held"
	}
	return true, ""
}

// The subjects of deadlines.
const (
	TimeUp   = "time_up"   // an attempt has reached its step's timeout
	RetryDue = "retry_due" // a failed step may be retried
	WaitOver = "wait_over" // the time that a step named for its next run has come
)

// Deadline is the next time at which a run changes without an event, and its subject. A timer whose
// subject has changed meanwhile has no effect.
type Deadline struct {
	At   time.Time // zero: never
	What string
	Step StepID
	N    uint64 // the lease, of TimeUp
}

// Deadline returns the earliest deadline.
func (r *Run) Deadline() Deadline {
	var next Deadline
	first := func(at time.Time) bool { return !at.IsZero() && (next.At.IsZero() || at.Before(next.At)) }
	for i := range r.Steps {
		if at := r.timeoutOf(i); first(at) {
			next = Deadline{At: at, What: TimeUp, Step: r.Plan.Steps[i].ID, N: r.Steps[i].N}
		}
	}
	for i := range r.Steps {
		at := r.Steps[i].retry()
		if r.Stage != Driven || !first(at) {
			continue
		}
		next = Deadline{At: at, What: RetryDue, Step: r.Plan.Steps[i].ID}
		if !r.Steps[i].DueAt.IsZero() {
			next.What = WaitOver
		}
	}
	return next
}
