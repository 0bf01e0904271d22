package runstate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// workflowFaultsMax is how many faults of one file are listed; longer lists repeat the same mistake.
const workflowFaultsMax = 1000

// FileFault is one error in a workflow's file, with its place.
type FileFault struct {
	File         string
	Line, Column int    // from 1, in characters
	Path         string // steps.code.needs[0]; empty: the whole file
	Text         string // what is wrong and how to correct it
}

func (f FileFault) Error() string {
	if f.Path == "" {
		return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", f.File, f.Line, f.Column, f.Path, f.Text)
}

// FileFaults holds every error in a file, in file order.
type FileFaults struct{ List []FileFault }

func (f *FileFaults) Error() string {
	lines := make([]string, len(f.List))
	for i, one := range f.List {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// With returns the faults together with more of the same file.
func (f *FileFaults) With(more []FileFault) *FileFaults {
	return &FileFaults{inOrder(append(slices.Clone(f.List), more...))}
}

// workflowFaults collects faults while a file is read.
type workflowFaults struct {
	file string
	list []FileFault
}

func (w *workflowFaults) add(at file.Place, path, text string) {
	w.list = append(w.list, FileFault{w.file, at.Line, at.Column, path, text})
}

// err returns all faults in order, or nil.
func (w *workflowFaults) err() error {
	if len(w.list) == 0 {
		return nil
	}
	return &FileFaults{inOrder(w.list)}
}

// inOrder sorts faults by their places, and cuts a long list.
func inOrder(list []FileFault) []FileFault {
	slices.SortStableFunc(list, func(a, b FileFault) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	list = slices.Compact(list)
	if more := len(list) - workflowFaultsMax; more > 0 {
		last := list[workflowFaultsMax]
		last.Path, last.Text = "", fmt.Sprintf("and %d more from here on; correct these first", more)
		list = append(list[:workflowFaultsMax:workflowFaultsMax], last)
	}
	return list
}

// Place returns where in the file a fault of the plan is: the entry, else the field, else the step.
func (w *WorkflowFile) Place(f workflow.Fault) FileFault {
	return FileFault{w.File, w.place(f).Line, w.place(f).Column, w.path(f), f.Fault}
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
