package runstate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// FileFault is one error in a workflow's file, with its place.
type FileFault = file.Fault

// FileFaults holds every error in a file, in file order.
type FileFaults struct{ List []FileFault }

func (f *FileFaults) Error() string { return file.FaultLines(f.List) }

// With returns the faults together with more of the same file.
func (f *FileFaults) With(more []FileFault) *FileFaults {
	return &FileFaults{file.SortFaults(append(slices.Clone(f.List), more...))}
}

// workflowFaults collects faults while a file is read.
type workflowFaults struct {
	file string
	list []FileFault
}

func (w *workflowFaults) add(at file.Place, path, text string) {
	w.list = append(w.list, at.Fault(w.file, path, text))
}

// err returns all faults in order, or nil.
func (w *workflowFaults) err() error {
	if len(w.list) == 0 {
		return nil
	}
	return &FileFaults{file.SortFaults(w.list)}
}

// Place returns where in the file a fault of the plan is: the entry, else the field, else the step.
func (w *WorkflowFile) Place(f workflow.Fault) FileFault {
	return w.place(f).Fault(w.File, w.path(f), f.Fault)
}

func (w *WorkflowFile) place(f workflow.Fault) file.Place {
	at := w.root
	if f.Step >= 0 {
		steps := w.root.Get("steps")
		if steps == nil || f.Step >= len(steps.Items) {
			return w.root.Place
		}
		at = steps.Items[f.Step]
	}
	for name := range strings.SplitSeq(f.Field, ".") {
		value := at.Get(name)
		if name == "" || value == nil {
			break
		}
		at = value
	}
	if f.Item >= 0 && f.Item < len(at.Items) {
		at = at.Items[f.Item]
	}
	return at.Place
}

func (w *WorkflowFile) path(f workflow.Fault) string {
	path := f.Field
	if f.Step >= 0 {
		path = stepPath(f.Step, string(f.ID))
		if f.Field != "" {
			path += "." + f.Field
		}
	}
	if f.Item >= 0 {
		path += fmt.Sprintf("[%d]", f.Item)
	}
	return path
}

// stepPath names a step by its id if that is a plain word, else by its number from 0.
func stepPath(i int, id string) string {
	plain := id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	})
	if plain {
		return "steps." + id
	}
	return fmt.Sprintf("steps[%d]", i)
}
