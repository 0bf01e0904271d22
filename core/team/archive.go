package team

import (
	"encoding/json"
	"fmt"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// atRest reports whether nothing of a run is active, or will be without a request.
func atRest(r *workflow.Run) bool {
	switch r.Status() {
	case workflow.IsCompleted, workflow.IsFailed, workflow.IsCancelled:
	case workflow.IsRunning, workflow.IsWaiting:
		return false
	}
	for action := range r.Actions(workflow.Now{Held: true}) {
		if action.Do == workflow.EndIt || action.Do == workflow.RunIt || action.Do == workflow.FindReport {
			return false
		}
	}
	return true
}

// archive is X5 for a run that has ended: active, waiting and resumable runs stay.
func (d *decision) archive(id string, r *workflow.Run) error {
	if status := r.Status(); !atRest(r) {
		return &table.Refusal{
			Subject: "run " + id, Event: "run_archived", State: string(status), Row: "X5",
			Reason: "only a run that is over, and whose processes have ended, is archived; cancel it first",
		}
	}
	if waits := d.team.waitingFor(id); waits != "" {
		return &table.Refusal{
			Subject: "run " + id, Event: "run_archived", State: string(r.Status()), Row: "X5",
			Reason: "run " + waits + " waits until it has completed; cancel that one first",
		}
	}
	d.add(runPrefix+id, "run", "X5", string(r.Stage), "archived", "run_archived", &RunLeft{Status: r.Status()})
	return nil
}

// recallBytesMax limits a change that restores a part of a run, far below the journal's limit of one
// megabyte, as at the start of the run.
const recallBytesMax = 256 << 10

// recall restores an archived run, in as many changes as necessary.
func (d *decision) recall(id string, what RunRecalled) error {
	no := func(reason string) error {
		return &table.Refusal{Subject: "run " + id, Event: "run_recalled", State: "known", Row: "X5", Reason: reason}
	}
	r := what.Run
	switch _, gone := d.team.Archive[id]; {
	case d.team.Runs[id] != nil:
		return no("it is not archived")
	case !gone:
		return &Unknown{What: "run", Name: id, Known: d.team.RunIDs()}
	case r == nil || string(r.ID) != id || len(r.Plan.Steps) == 0 || len(r.Plan.Steps) != r.StepCount || len(r.Steps) != r.StepCount:
		return no("its record in the journal is incomplete")
	case !atRest(r):
		return no("its record in the journal is not an archived run: parts of it are active")
	}
	head := r.Head
	add := func(machine, from, to string, body workflow.Body) {
		d.add(runPrefix+id, machine, "X5", from, to, "run_recalled", &body)
	}
	add("run", "archived", string(r.Stage), workflow.Body{Head: &head})
	for n, part := range inParts(r.Plan.Steps) {
		set := &workflow.PlanPart{Steps: part}
		if n == 0 {
			set.Name, set.Description = r.Plan.Name, r.Plan.Description
		}
		add("workflow", string(workflow.Absent), string(workflow.Pending), workflow.Body{Plan: set})
	}
	var steps []workflow.Taken
	for i := range r.Steps {
		steps = append(steps, workflow.Taken{Step: r.Plan.Steps[i].ID, Progress: r.Steps[i]})
	}
	for _, part := range inParts(steps) {
		add("workflow", string(workflow.Absent), workflow.ManyStates, workflow.Body{Taken: part})
	}
	if what.Task != nil {
		d.add(runPrefix+id, "task", "X5", "archived", string(what.Task.Status), "run_recalled",
			&task.Body{Plan: &what.Task.Plan, Value: what.Task.Value, Recalled: what.Task.Rounds})
	}
	if !what.Settings.same(&RunSettings{}) || what.Changes > 0 {
		d.note(id, "X5", "settings_given", NoteSet{Settings: what.Settings, Changes: what.Changes})
	}
	return nil
}

// inParts splits a list so that each part fits into a change.
func inParts[T any](list []T) [][]T {
	var all [][]T
	begin, bytes := 0, 0
	for i := range list {
		text, err := json.Marshal(list[i])
		if err != nil {
			panic(fmt.Sprintf("team: a run that cannot be journaled: %v", err))
		}
		if i > begin && bytes+len(text) > recallBytesMax {
			all = append(all, list[begin:i])
			begin, bytes = i, 0
		}
		bytes += len(text)
	}
	return append(all, list[begin:])
}
