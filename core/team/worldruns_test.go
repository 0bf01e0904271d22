package team

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// The runs of the world: people who start, cancel and resume them, reports that arrive or not,
// gates, and answers.

// beginRun starts a run of a random plan.
func (w *world) beginRun(how uint64) {
	if len(w.team.Runs) >= 3 {
		return
	}
	w.runs++
	id := fmt.Sprint("r", w.runs)
	options := workflow.Options{
		MaxAttempts: 1 + int(how%3), MaxIterations: int(how >> 2 % 3), SideBySide: 1 + int(how>>4%4), PauseForHumans: how>>6%3 > 0,
		BackoffFirst: time.Duration(how>>8%2) * time.Second, BackoffMax: 4 * time.Second,
	}
	settings := RunSettings{
		OwnFolder: how>>17%3 > 0, Wrapped: how>>10%8 == 0,
		AtLimit: from([]AtLimit{"", LimitFails, LimitPauses, LimitWarns}, how>>13),
	}
	if how>>15%4 == 0 {
		settings.CostPerDayUSD = 3
	}
	asked := workflow.RunAsked{
		ID: workflow.RunID(id), Plan: w.anyPlan(), Options: options, RepoDir: "/w", ReportsDir: "/r",
		ManualInputsDir: "/m", By: "test",
	}
	if err := w.event(Event{Run: id, What: RunBegun{Asked: asked, Settings: settings}}); err != nil {
		w.t.Fatalf("a run is refused: %v", err)
	}
}

// anyPlan returns a plan of up to seven steps. A step needs only earlier ones.
func (w *world) anyPlan() workflow.Plan {
	p := workflow.Plan{Name: "any"}
	chance := func(n int) bool { return w.rnd.IntN(n) == 0 }
	for i := range 1 + w.rnd.IntN(7) {
		s := workflow.Step{ID: workflow.StepID('a' + rune(i)), Prompt: "x.md"}
		if s.Agent = []string{"ada", "ada", "bob", "bob", "cleo", "dora", "nobody", ""}[w.rnd.IntN(8)]; s.Agent == "" || chance(8) {
			s.Prompt, s.Command = "", []string{"true"}
		}
		for j := range i {
			if chance(3) {
				s.Needs = append(s.Needs, workflow.StepID('a'+rune(j)))
			}
		}
		if i > 0 && chance(3) {
			s.LoopBackTo = workflow.StepID('a' + rune(w.rnd.IntN(i)))
		}
		if chance(4) {
			s.Human, s.Ask = true, []workflow.Ask{"", workflow.AskAfter, workflow.AskBefore}[w.rnd.IntN(3)]
		}
		if chance(6) {
			s.When = "x"
		}
		if chance(6) {
			s.Timeout = time.Duration(1+w.rnd.IntN(5)) * time.Second
		}
		if chance(6) {
			s.Loop = &workflow.Loop{Items: []string{`"x"`, `"y"`}[:w.rnd.IntN(3)]}
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

// ofRun applies input of a run. A refusal is a valid result.
func (w *world) ofRun(id string, what any) { _ = w.event(Event{Run: id, What: what}) }

// runHappens applies one random event of a run.
func (w *world) runHappens(how uint64) {
	ids := w.team.RunIDs()
	if len(ids) == 0 || how%8 == 0 {
		w.beginRun(how >> 3)
		return
	}
	id := from(ids, how>>3)
	r := w.team.Runs[id]
	step := r.Plan.Steps[how>>8%uint64(len(r.Plan.Steps))].ID
	switch how >> 16 % 12 {
	case 0:
		w.ofRun(id, workflow.PauseAsked{By: "test"})
	case 1, 2:
		w.ofRun(id, workflow.ReleaseAsked{By: "test"})
	case 3:
		in := workflow.CancelAsked{By: "test"}
		if how>>24%2 == 0 {
			in.Step = step
		}
		w.ofRun(id, in)
	case 4:
		w.ofRun(id, workflow.ResumeAsked{By: "test", From: from([]workflow.StepID{"", step}, how>>24)})
	case 5:
		w.resumeEdited(id, r, step, how)
	case 6:
		w.archive(id, r, how)
	case 7:
		w.runTimer(id, how>>24%2 == 0)
	case 8:
		w.strayRun(id)
	default:
		w.reportLive(how >> 24)
	}
}

// resumeEdited resumes a run whose workflow was edited meanwhile: a step has another agent.
func (w *world) resumeEdited(id string, r *workflow.Run, step workflow.StepID, how uint64) {
	p := r.Plan
	p.Steps = slices.Clone(p.Steps)
	for i := range p.Steps {
		if p.Steps[i].ID == step {
			p.Steps[i].Agent, p.Steps[i].Prompt, p.Steps[i].Command = from(everybody, how>>24), "x.md", nil
		}
	}
	w.ofRun(id, RunBegun{Asked: workflow.ResumeAsked{By: "test", Plan: &p}, Settings: RunSettings{AtLimit: LimitFails}})
}

// archive archives a run that has ended; sometimes it is restored.
func (w *world) archive(id string, r *workflow.Run, how uint64) {
	kept, settings := cloneJSON(r), w.team.Notes[id].Settings
	w.ofRun(id, RunArchived{})
	if w.team.Runs[id] != nil {
		return
	}
	if err := w.event(Event{Run: id, What: workflow.RunAsked{ID: workflow.RunID(id)}}); err == nil {
		w.t.Fatalf("the name of the archived run %s is used again", id)
	}
	if how>>24%2 == 0 {
		w.ofRun(id, RunRecalled{Run: kept, Settings: settings})
		if pausedByLimit(kept) {
			return // it may no longer be possible
		}
		again := cloneJSON(w.team.Runs[id])
		kept.UpdatedAt = again.UpdatedAt
		if diff := cmp.Diff(w.encode(kept), w.encode(again)); diff != "" {
			w.t.Fatalf("the restored run %s differs:\n%s", id, diff)
		}
	}
}

func (w *world) runTimer(id string, due bool) {
	at := w.team.DeadlineRun(id)
	if due && !at.IsZero() && at.After(w.at) {
		w.at = at
	}
	lines := len(w.journal)
	w.ofRun(id, TimerFired{})
	if (at.IsZero() || at.After(w.at)) && len(w.journal) != lines {
		w.t.Fatalf("a timer of %s that is not due (%s) had an effect", id, at)
	}
	if len(w.journal) == lines && !at.IsZero() && !at.After(w.at) {
		w.t.Fatalf("%s: the deadline %s in the past does not end", id, at)
	}
}

// strayRun applies input of sessions in the worker pool that have ended or never existed.
func (w *world) strayRun(id string) {
	lines := len(w.journal)
	for _, what := range []any{
		SessionStarted{Session: "a@" + id + "-999"},
		SessionAdopted{Session: "a@" + id + "-999"},
		SessionReported{Session: "a@" + id + "-999", Offset: 1 << 40},
		SessionEnded{Session: "a@" + id + "-999", Outcome: control.OK},
		workflow.ReportRead{Lease: workflow.Lease{Step: "a", N: 999}},
		workflow.ProcessEnded{Lease: workflow.Lease{Step: "a", N: 999}},
	} {
		if err := w.event(Event{Run: id, What: what}); err == nil || len(w.journal) != lines {
			w.t.Fatalf("%T of an ended session was accepted: %v", what, err)
		}
	}
}

// reportOf returns the report that a step's process leaves, or none.
func (w *world) reportOf(p *proc) *StepReport {
	if _, _, isStep := StepOf(p.what); !isStep || w.rnd.IntN(4) == 0 {
		return nil
	}
	report := &StepReport{Report: workflow.Report{Facts: workflow.Facts{Artifacts: []string{"out"}, Logs: []string{"done"}}}}
	switch w.rnd.IntN(6) {
	case 0:
		report.Report.Failed, report.Report.Why = true, "red"
	case 1, 2:
		report.Report.GateFailed, report.Report.Why = true, "once more"
	}
	return report
}

// reportLive reads a report while its process still runs.
func (w *world) reportLive(how uint64) {
	var ids []string
	for _, id := range w.alive() {
		if w.procs[id].what.Kind == PurposeStep {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	p := w.procs[from(ids, how)]
	if report := w.reportOf(p); report != nil {
		id, step, _ := StepOf(p.what)
		w.ofRun(id, workflow.ReportRead{Lease: workflow.Lease{Step: workflow.StepID(step), N: p.lease}, Report: report.Report})
	}
}

// runActions begins the pending actions of runs that have not begun.
func (w *world) runActions() {
	for _, id := range w.team.RunIDs() {
		for _, action := range w.team.RunActions(id, w.at) {
			key := id + " " + action.Key
			if w.doing[key] {
				continue
			}
			w.doing[key] = true
			forget := func() { delete(w.doing, key) } // a question may be asked again in another iteration
			step := action.Step.Lease.Step
			switch action.Do {
			case StartSession:
				w.later("start "+action.Session.ID, func() { w.startSession(action) })
			case EndSession:
				w.later("end "+action.Session.ID, func() { w.endSession(action) })
			case EvaluateCondition:
				w.later("weigh "+key, func() {
					forget()
					w.ofRun(id, workflow.WhenWeighed{
						Step: step, Iteration: action.Step.Iteration,
						Verdict: workflow.Verdict{Holds: w.rnd.IntN(3) > 0},
					})
				})
			case AskForAnswer:
				w.later("answer "+key, func() {
					forget()
					answer := workflow.AnswerRead{Lease: action.Step.Lease, By: "test", Rejected: w.rnd.IntN(4) == 0}
					if w.rnd.IntN(4) == 0 {
						answer.Fault = fmt.Sprint("not valid ", w.rnd.IntN(3))
					}
					w.ofRun(id, answer)
				})
			default:
				w.t.Fatalf("an action that no plan here can require: %+v", action)
			}
		}
	}
}

// runsSettled returns a run that has not ended although nothing prevents it. A step may wait behind
// the program of a foreign loop, which never ends.
func (w *world) runsSettled() string {
	for _, id := range w.team.RunIDs() {
		r := w.team.Runs[id]
		blocked := false
		for _, a := range w.team.Agents {
			program := a.Session != nil && a.Session.Kind == control.Program
			blocked = blocked ||
				program && slices.ContainsFunc(a.Queue, func(c Request) bool { return c.For.Kind == PurposeStep && c.For.Run == id })
		}
		if status := r.Status(); !blocked && (status == workflow.IsRunning || status == workflow.IsWaiting) {
			return fmt.Sprintf("run %s is %s (%s): %v", id, status, r.Stage, r.Waits())
		}
	}
	return ""
}

// sameRuns compares runs by their stored data and by their results.
func (w *world) sameRuns(live, again *Team) {
	if len(live.Runs) != len(again.Runs) {
		w.t.Fatalf("%d runs, replayed %d", len(live.Runs), len(again.Runs))
	}
	for id, r := range live.Runs {
		back := again.Runs[id]
		if back == nil || string(w.encode(r)) != string(w.encode(back)) {
			w.t.Fatalf("the replayed run %s differs:\n%s", id, cmp.Diff(w.encode(r), w.encode(back)))
		}
		for _, held := range []bool{true, false} {
			now := workflow.Now{At: w.at, Held: held}
			if a, b := listed(r.Actions(now)), listed(back.Actions(now)); !reflect.DeepEqual(a, b) {
				w.t.Fatalf("the replayed run %s has other actions:\n%s", id, cmp.Diff(a, b))
			}
		}
		if a, b := live.DeadlineRun(id), again.DeadlineRun(id); !a.Equal(b) {
			w.t.Fatalf("run %s has the deadline %s, replayed %s", id, a, b)
		}
	}
}

func listed(todo iter.Seq[workflow.Action]) []workflow.Action { return slices.Collect(todo) }

// judgeRun checks a change of a run, of one of its steps or of the worker pool.
func (l *ledger) judgeRun(w *world, ch change.Change) {
	var want string
	switch body := ch.Body.(type) {
	case *workflow.Body:
		if want = "workflow"; body.Head != nil {
			want = "run"
		}
	case *NoteSet, *RunLeft:
		want = "run"
	case *Session, *Used, *QueueSet:
		want = "session"
	}
	if ch.Machine != want {
		w.t.Fatalf("a change of %s by the machine %s, want %s: %+v", ch.Entity, ch.Machine, want, ch)
	}
	if s := change.As[Session](ch.Body); s != nil {
		if ch.Trigger == "opened" {
			l.sits(w, s)
			if l.ids[s.ID] {
				w.t.Fatalf("%s is opened a second time", s.ID)
			}
			l.ids[s.ID] = true
		}
		l.open[ch.Entity] = s.ID
		if ch.To == "none" {
			delete(l.open, ch.Entity)
		}
	}
	for _, line := range Transitions(ch, w.team.StepAgent) {
		if line.From == "" || line.To == "" || line.From == "several" {
			w.t.Fatalf("an incomplete line: %+v of %+v", line, ch)
		}
	}
}

// sits checks a session that is opened: not during a hold, and for a step only if its needs are
// done and its run wants it.
func (l *ledger) sits(w *world, s *Session) {
	id, step, isStep := StepOf(s.For)
	if w.team.Hold.On || w.team.Stopping {
		w.t.Fatalf("%s is opened during a hold, or while Fairlead stops", s.ID)
	}
	if !isStep {
		return
	}
	r := w.team.Runs[id]
	if r.Stage != workflow.Driven {
		w.t.Fatalf("%s is opened, but the run is %s", s.ID, r.Stage)
	}
	l.needsDone(w, id, step)
}

func (l *ledger) needsDone(w *world, id, step string) {
	r := w.team.Runs[id]
	plan, _, _ := r.Find(workflow.StepID(step))
	for _, need := range plan.Needs {
		if _, p, _ := r.Find(need); p.State != workflow.Completed && p.State != workflow.Skipped {
			w.t.Fatalf("step %s of %s begins, but %s, which it needs, is %s", step, id, need, p.State)
		}
	}
}

// stepStarted checks a step's process when it starts.
func (l *ledger) stepStarted(w *world, action Action) {
	id, step, _ := StepOf(action.Session.For)
	r := w.team.Runs[id]
	_, p, known := r.Find(workflow.StepID(step))
	over := l.over(w, action.Agent)
	a := w.team.Agents[action.Agent]
	if !known || p.State != workflow.Running || p.Proc != action.Session.Lease || r.Stage != workflow.Driven ||
		w.team.Hold.On || w.team.Stopping || a != nil && a.Removed || over != "" {
		w.t.Fatalf("%s is started: step %+v, run %s, hold %v, stopping %v, over %q", action.Session.ID, p.Value, r.Stage, w.team.Hold.On,
			w.team.Stopping, over)
	}
	l.needsDone(w, id, step)
	for other, q := range w.procs {
		if q.alive && q.what == action.Session.For {
			w.t.Fatalf("%s is started while %s runs", action.Session.ID, other)
		}
	}
}

// checkRuns is J1 for steps: a RUNNING step has exactly one session, that of its lease. A step with
// a session is active or was asked to end. The worker pool never exceeds its places.
func (l *ledger) checkRuns(w *world) {
	sessions := map[Purpose]*Session{}
	for _, name := range w.team.Names() {
		a := w.team.Agents[name]
		for _, s := range a.Sessions() {
			l.checkLine(w, a.Queue, s)
			if s.For != ForControl && !s.ServesChannels() && !s.servesDispatch() {
				if sessions[s.For] != nil {
					w.t.Fatalf("%s and %s run the same step", s.ID, sessions[s.For].ID)
				}
				sessions[s.For] = s
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.team.Pool.Sessions)) {
		s := w.team.Pool.Sessions[key]
		if s.For.String() != runPrefix+key || l.open[runPrefix+key] != s.ID || sessions[s.For] != nil {
			w.t.Fatalf("in the worker pool %s has %+v, but open are %q and %+v", key, s, l.open[runPrefix+key], sessions[s.For])
		}
		sessions[s.For] = s
	}
	l.checkLine(w, w.team.Pool.Queue, nil)
	places := w.team.Pool.Places
	for _, r := range w.team.Runs {
		places = max(places, r.Options.SideBySide)
	}
	if places > 0 && len(w.team.Pool.Sessions) > places+1 {
		w.t.Fatalf("%d sessions in a worker pool of %d places", len(w.team.Pool.Sessions), places)
	}
	for _, id := range w.team.RunIDs() {
		r := w.team.Runs[id]
		for i := range r.Steps {
			step, p := r.Plan.Steps[i].ID, &r.Steps[i]
			s := sessions[ForStep(id, step)]
			delete(sessions, ForStep(id, step))
			switch {
			case (p.Proc != 0) != (s != nil) || s != nil && s.Lease != p.Proc:
				w.t.Fatalf("step %s of %s has the lease %d, but its session is %+v", step, id, p.Proc, s)
			case p.State == workflow.Running && s == nil:
				w.t.Fatalf("step %s of %s is RUNNING without a session", step, id)
			case s != nil && p.Ending != "" && s.Ending == "" && !w.starting:
				w.t.Fatalf("step %s of %s is ending (%s), but its session is not", step, id, p.Ending)
			}
			w.team.StepWaits(id, string(step))
		}
	}
	for owner := range sessions {
		w.t.Fatalf("a session for the unknown %s", owner)
	}
}

func (l *ledger) checkLine(w *world, queue []Request, s *Session) {
	seen := map[Purpose]bool{}
	for _, c := range queue {
		if seen[c.For] || s != nil && s.For == c.For {
			w.t.Fatalf("%s is in the queue twice, or already has the slot: %+v, %+v", c.For, queue, s)
		}
		seen[c.For] = true
	}
}
