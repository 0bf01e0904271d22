package workflow

import "fmt"

// AtRest reports whether nothing of a run is active: no step runs, and none can start before the run is resumed.
func (r *Run) AtRest() bool {
	if !r.complete() || r.alive() > 0 || r.counts()[running] > 0 {
		return false
	}
	switch r.Stage {
	case Parked, Stopped:
		return true
	case Driven:
		status := r.Status()
		return status == IsCompleted || status == IsFailed
	case Absent, Paused:
	}
	return false
}

// takeEdit takes in an edit of the run's own run_state.json (X3). The run is parked until it is resumed. A step that
// was set to PENDING starts over, and so does everything that depends on a step that is no longer done. Leases count
// on, so that input of earlier attempts stays late.
func (d *runDraft) takeEdit(in StateEdited) error {
	r := d.run
	no := func(step StepID, format string, args ...any) error {
		return d.refuse(step, string(RunEdited), string(r.Stage), "X3", fmt.Sprintf(format, args...))
	}
	if !r.AtRest() {
		return no("", "a step of it is active, or can start; edit the file after the run has stopped")
	}
	if fault := extraFault(in.Extra); fault != "" {
		return no("", "%s", fault)
	}
	_, err := d.setHead(RunEdited, func(h *Head) { h.By, h.Why, h.Extra = cut(in.By), "run_state.json was edited", in.Extra })
	if err != nil {
		return err
	}
	known, strange := stepsNamed(r.Plan.Steps, in.Steps)
	if strange != "" {
		return no("", "%s of the workflow", strange)
	}
	list, changed := make([]Taken, len(r.Steps)), make([]bool, len(r.Steps))
	var undone []int
	for i := range r.Steps {
		s, was := &r.Plan.Steps[i], &r.Steps[i]
		list[i] = Taken{Step: s.ID, Progress: *was}
		p, edited := in.Steps[s.ID]
		if !edited {
			continue
		}
		if fault := r.editFault(s, was, &p, known); fault != "" {
			return no(s.ID, "%s", fault)
		}
		list[i].Progress, changed[i] = r.editedView(s, was, p), true
		if p.State != was.State && !p.settled() {
			undone = append(undone, i)
		}
	}
	for i, is := range r.behind(undone...) {
		if is && !changed[i] {
			list[i].Progress, changed[i] = startedOver(&r.Steps[i]), true
		}
	}
	for i := range list {
		for _, need := range r.index.needs[i] {
			if _, edited := in.Steps[list[i].Step]; edited && list[i].State != Pending && !list[need].settled() {
				return no(list[i].Step, "it is %s, but %s, which it needs, would be %s", list[i].State, list[need].Step, list[need].State)
			}
		}
	}
	blockedNow(r, list)
	var taken []Taken
	for i := range list {
		if changed[i] || list[i].BlockedBy != r.Steps[i].BlockedBy {
			taken = append(taken, list[i])
		}
	}
	d.takeSteps("X3", RunEdited, taken)
	if len(d.changes) > batchMax {
		return no("", "it takes %d changes of the journal, %d at most; edit fewer steps at once", len(d.changes), batchMax)
	}
	return nil
}

// editFault returns why a step cannot have been edited so; empty: it can.
func (r *Run) editFault(s *Step, was, p *Progress, known map[StepID]*Step) string {
	if fault := foreignFault(p, known); fault != "" {
		return fault
	}
	switch {
	case p.State == Running, p.State == Waiting:
		return fmt.Sprintf("status %s, but no process and no question of it exists; take PENDING, COMPLETED, FAILED or SKIPPED", p.State)
	case p.settled() && !was.settled() && s.Human && r.Options.PauseForHumans:
		return fmt.Sprintf("status %s, but people have not answered it; take PENDING, and answer it after the resume", p.State)
	case p.BlockedBy != "" && p.BlockedBy != was.BlockedBy:
		return "blocked_by_loop was set, which only a gate does; take " + cut(fmt.Sprintf("%q", was.BlockedBy)) + " or null"
	}
	return ""
}

// editedView is a step as the run continues with it. What only Fairlead keeps stays as long as the status does.
func (r *Run) editedView(s *Step, was *Progress, p Progress) Progress {
	if p.State == Pending && was.State != Pending {
		anew := startedOver(was)
		anew.Extra = p.Extra
		return anew
	}
	own := ownView(p, s, StateFound{RunAsked: RunAsked{Options: r.Options}})
	if own.State != was.State {
		own.N = was.N
		return own
	}
	v := was.Value
	v.Attempts, v.Iteration, v.ReportPath, v.LastError = own.Attempts, own.Iteration, own.ReportPath, own.LastError
	v.StartedAt, v.EndedAt, v.ManualInputPath, v.BlockedBy = own.StartedAt, own.EndedAt, own.ManualInputPath, own.BlockedBy
	v.Index, v.Done, v.Found = own.Index, own.Done, own.Found
	own.Value, own.Denied, own.Cut = v, was.Denied, was.Cut
	return own
}

// startedOver is a step that starts over, as by W12.
func startedOver(was *Progress) Progress {
	return Progress{Value: Value{State: Pending, N: was.N}, Facts: Facts{Denied: []string{}}, Extra: was.Extra}
}
