package runstate

import (
	"fmt"
	"reflect"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// StateEditedOf compares a run with its run_state.json after an edit, and converts the difference into the machine's
// input; false: there is none. The error says why the file cannot be an edit of this run. Whether the run can hold the
// edited steps is decided by the machine.
func StateEditedOf(now, edited RunState, by string) (workflow.StateEdited, bool, error) {
	fail := func(format string, args ...any) (workflow.StateEdited, bool, error) {
		return workflow.StateEdited{}, false, fmt.Errorf(format, args...)
	}
	now, err := ParseRunState(now.Render())
	if err != nil {
		return workflow.StateEdited{}, false, err
	}
	for _, field := range []struct{ name, is, was string }{
		{"run_id", edited.RunID, now.RunID},
		{"workflow_name", edited.WorkflowName, now.WorkflowName},
		{"repo_dir", edited.RepoDir, now.RepoDir},
		{"reports_dir", edited.ReportsDir, now.ReportsDir},
		{"manual_inputs_dir", edited.ManualInputsDir, now.ManualInputsDir},
		{"created_at", edited.CreatedAt, now.CreatedAt},
	} {
		if field.is != field.was {
			return fail("%s is %q, but the run has %q; this field cannot be edited", field.name, clip.Text(field.is, quoteMax),
				clip.Text(field.was, quoteMax))
		}
	}
	if _, err := runTime("updated_at", edited.UpdatedAt); err != nil {
		return workflow.StateEdited{}, false, err
	}
	if edited.UpdatedAt < now.UpdatedAt { // the time format sorts as text
		return fail("updated_at is %s, but the run has changed since, at %s; edit the newest file", clip.Text(edited.UpdatedAt, quoteMax),
			now.UpdatedAt)
	}
	has := make(map[string]*StepState, len(edited.Steps))
	for i := range edited.Steps {
		has[edited.Steps[i].ID] = &edited.Steps[i]
	}
	in := workflow.StateEdited{By: by, Extra: string(edited.Extra), Steps: map[workflow.StepID]workflow.Progress{}}
	for i := range now.Steps {
		was := &now.Steps[i]
		is := has[was.ID]
		if is == nil {
			return fail("it has no step %s; a step cannot be removed by an edit", was.ID)
		}
		delete(has, was.ID)
		if reflect.DeepEqual(is, was) {
			continue
		}
		p, err := progressOf(is)
		if err != nil {
			return workflow.StateEdited{}, false, err
		}
		in.Steps[workflow.StepID(was.ID)] = p
	}
	for i := range edited.Steps {
		if id := edited.Steps[i].ID; has[id] != nil {
			return fail("%q is no step of the run; edit the workflow to add one", clip.Text(id, quoteMax))
		}
	}
	return in, len(in.Steps) > 0 || in.Extra != string(now.Extra), nil
}
