package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/core/change"
)

// takeIn imports another program's run_state.json (X3). The run is parked: it is not driven until
// it is resumed. A step that is RUNNING in the file gets a lease, so that later input for it (a
// report, or its loss: W13) can name it.
func (d *runDraft) takeIn(in StateFound) error {
	no := func(step StepID, fault string) error {
		return d.refuse(step, string(RunTakenIn), string(Absent), "X3", fault)
	}
	if err := d.layOut(RunTakenIn, in.RunAsked); err != nil {
		return err
	}
	if !believable(in.CreatedAt) {
		return no("", "created_at is in the year "+strconv.Itoa(in.CreatedAt.Year())+"; take one that has been")
	}
	if fault := extraFault(in.Extra); fault != "" {
		return no("", fault)
	}
	head := change.As[Body](d.changes[0].Body).Head
	head.Extra = in.Extra
	if !in.CreatedAt.IsZero() {
		head.CreatedAt = in.CreatedAt.UTC().Round(0)
	}
	known, strange := stepsNamed(in.Plan.Steps, in.Steps)
	if strange != "" {
		return no("", strange+" of the workflow; resume with the workflow that the file is of")
	}
	var taken []Taken
	alive := 0
	for i := range in.Plan.Steps {
		s := &in.Plan.Steps[i]
		p, found := in.Steps[s.ID]
		if !found {
			continue
		}
		if fault := foreignFault(&p, known); fault != "" {
			return no(s.ID, fault)
		}
		if p.State == Running {
			alive++
		}
		taken = append(taken, Taken{Step: s.ID, Progress: ownView(p, s, in)})
	}
	if alive > sideBySideMax {
		return no("", fmt.Sprintf("%d steps are RUNNING, %d at most can be looked after", alive, sideBySideMax))
	}
	blockedNow(d.applied(), taken)
	d.takeSteps("X3", RunTakenIn, taken)
	if len(d.changes) > batchMax {
		return no("", fmt.Sprintf("it takes %d changes of the journal, %d at most; cut the logs in it", len(d.changes), batchMax))
	}
	return nil
}

// stepsNamed returns the steps of a plan by name, and which of those that a file has are none of them, in words; empty: all are.
func stepsNamed(plan []Step, inFile map[StepID]Progress) (known map[StepID]*Step, strange string) {
	known = make(map[StepID]*Step, len(plan))
	for i := range plan {
		known[plan[i].ID] = &plan[i]
	}
	var none []StepID
	for id := range inFile {
		if known[id] == nil {
			none = append(none, id)
		}
	}
	if len(none) == 0 {
		return known, ""
	}
	slices.Sort(none)
	return known, listed(none, "is no step", "are no steps")
}

// takeSteps journals steps in their present state. Results that are larger than a change may be are
// stored in further changes.
func (d *runDraft) takeSteps(row string, event RunEvent, list []Taken) {
	add := func(step StepID, body Body) { d.add(step, row, "", "", string(event), body) }
	var large []Taken
	bare := slices.Clone(list)
	for i := range list {
		if jsonBytes(list[i]) > partBytesMax {
			large = append(large, list[i])
			bare[i].Facts, bare[i].Items = Facts{}, nil
		}
	}
	for _, part := range parts(bare) {
		add("", Body{Taken: part})
	}
	for _, t := range large {
		piece := func(items []string, facts Facts) {
			facts.Denied = []string{}
			add(t.Step, Body{Step: &StepSet{Value: t.Value, Items: items, Facts: &facts, Add: true}})
		}
		piece(t.Items, Facts{})
		for _, part := range parts(t.Artifacts) {
			piece(nil, Facts{Artifacts: part})
		}
		for _, part := range parts(t.Metrics) {
			piece(nil, Facts{Metrics: part})
		}
		for _, part := range parts(t.Logs) {
			piece(nil, Facts{Logs: part})
		}
	}
}

// foreignFault returns why a step is invalid; empty: it is valid.
func foreignFault(p *Progress, known map[StepID]*Step) string {
	switch p.State {
	case Pending, Running, Waiting, Completed, Failed, Skipped:
	default:
		return fmt.Sprintf("status %q; take one of PENDING, RUNNING, WAITING_ON_HUMAN, COMPLETED, FAILED, SKIPPED", cut(string(p.State)))
	}
	gate := known[p.BlockedBy]
	switch {
	case p.Attempts < 0 || p.Iteration < 0:
		return fmt.Sprintf("attempts %d and iteration_count %d; neither can be negative", p.Attempts, p.Iteration)
	case p.Attempts > attemptsMax || p.Iteration > iterationsMax*itemsMax:
		return fmt.Sprintf("attempts %d and iteration_count %d; these numbers are too large", p.Attempts, p.Iteration)
	case p.Index < 0 || p.Index > itemsMax || p.Done < 0 || p.Done > itemsMax:
		return fmt.Sprintf("loop_index %d and loop_completed %d; take numbers from 0 to %d", p.Index, p.Done, itemsMax)
	case p.BlockedBy != "" && gate == nil:
		return fmt.Sprintf("blocked_by_loop names %q, which is no step of the workflow", cut(string(p.BlockedBy)))
	case p.BlockedBy != "" && gate.LoopBackTo == "":
		return fmt.Sprintf("blocked_by_loop names %s, which leads back to nothing", p.BlockedBy)
	}
	for _, at := range []time.Time{p.StartedAt, p.EndedAt} {
		if !believable(at) {
			return "a time in the year " + strconv.Itoa(at.Year()) + "; take one that has been"
		}
	}
	if fault := extraFault(p.Extra); fault != "" {
		return fault
	}
	if fault := pathFault(p.ReportPath); fault != "" {
		return "report_path: " + fault
	}
	if fault := itemsFault(p.Items); fault != "" {
		return "loop_items: " + fault
	}
	return p.Facts.fault()
}

// extraFault returns why unknown fields cannot be stored; empty: they can.
func extraFault(extra string) string {
	switch {
	case len(extra) > jsonBytesMax:
		return "the unknown fields take " + tooLong(len(extra), jsonBytesMax)
	case !utf8.ValidString(extra):
		return "the unknown fields are not UTF-8"
	}
	return ""
}

// believable reports whether a time is plausible for a run; zero means none. Times from the year
// 10000 on cannot be encoded as JSON.
func believable(at time.Time) bool { return at.IsZero() || at.Year() >= 1970 && at.Year() < 9999 }

// pathFault returns why a path is invalid; empty: it is valid.
func pathFault(path string) string {
	switch {
	case len(path) > textBytesMax:
		return tooLong(len(path), textBytesMax)
	case !utf8.ValidString(path) || strings.ContainsRune(path, 0):
		return "is not a path: it has a zero byte, or is not UTF-8"
	}
	return ""
}

// ownView converts another program's step: it derives the fields that only Fairlead keeps, and
// corrects contradictions.
func ownView(p Progress, s *Step, in StateFound) Progress {
	p.Value = Value{
		State: p.State, Attempts: p.Attempts, Iteration: p.Iteration, ReportPath: p.ReportPath, StartedAt: p.StartedAt.UTC().Round(0),
		EndedAt: p.EndedAt.UTC().Round(0), LastError: cut(p.LastError), ManualInputPath: p.ManualInputPath, BlockedBy: p.BlockedBy,
		Index: p.Index, Done: p.Done,
	}
	facts := Facts{Artifacts: p.Artifacts, Metrics: p.Metrics, Denied: []string{}}
	facts.log(p.Logs)
	p.Facts = facts
	if s.Loop == nil || s.Loop.Items != nil || s.Loop.endless() {
		p.Items = nil
	}
	p.Found = len(p.Items) > 0
	switch p.State {
	case Running, Waiting:
		p.N = 1
		p.Reported = p.State == Waiting && p.ReportPath != ""
		p.BlockedBy = ""
		if p.State == Waiting {
			p.ManualInputPath = in.ManualInputsDir + "/" + string(in.ID) + "__" + string(s.ID) + ".json"
		}
	case Pending:
		// it is about to start, so at least one try must be left
		p.Attempts = min(p.Attempts, cmp.Or(s.MaxAttempts, in.Options.MaxAttempts)-1)
	default:
		p.BlockedBy = ""
	}
	return p
}

// blockedNow clears blocks that no longer apply: the gate's target is done again, or the step does
// not depend on it. Otherwise such an imported run would wait forever.
func blockedNow(scratch *Run, taken []Taken) {
	states := make(map[StepID]State, len(taken))
	for i := range taken {
		states[taken[i].Step] = taken[i].State
	}
	back := map[StepID][]bool{}
	for i := range taken {
		gate := taken[i].BlockedBy
		if gate == "" {
			continue
		}
		target := scratch.Plan.Steps[scratch.index.at[gate]].LoopBackTo
		if back[gate] == nil {
			back[gate] = scratch.behind(scratch.index.at[target])
		}
		state, hangs := states[target], back[gate][scratch.index.at[taken[i].Step]] || taken[i].Step == gate
		if !hangs || taken[i].Step == target || state == Completed || state == Skipped {
			taken[i].BlockedBy = ""
		}
	}
}
