package runstate

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/fairlead-dev/fairlead/core/condition"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/file"
)

//go:embed workflow.schema.json
var workflowSchema []byte

// WorkflowSchema returns the JSON Schema (draft 2020-12) of a workflow's file, for editors. A file that it
// accepts may still have faults that a schema cannot express, such as an unknown step or a cycle.
func WorkflowSchema() []byte { return slices.Clone(workflowSchema) }

// workflowFormat limits a workflow's file. 4 MiB hold 10,000 steps of ten lines; the parser needs a hundred
// times as much memory.
var workflowFormat = file.YAMLFormat{
	BytesMax: 4 << 20, NodesMax: 1_000_000, DepthMax: 64,
	TooLarge: "is larger than 4 MiB; split the workflow",
	TooMuch:  "holds more than any workflow needs (1,000,000 values, 64 deep, with aliases followed)",
	Empty:    "is empty; a workflow has a name and steps",
}

// WorkflowFile is a workflow that was read.
type WorkflowFile struct {
	File    string // as the caller named it
	Plan    workflow.Plan
	Prompts map[workflow.StepID]string // the absolute path of each step's prompt; empty if prompts were not searched

	// Warnings are fields that have no effect, in file order.
	Warnings []FileFault

	root *file.YAMLNode
}

// ReadWorkflow reads a workflow's file and searches its prompts. An empty places.Beside means the file's
// folder. The error is *FileFaults, as from ParseWorkflow, or says why the file cannot be read.
func ReadWorkflow(path string, places PromptPlaces) (*WorkflowFile, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("read the workflow %s: %w", path, err)
	}
	if places.Beside == "" {
		places.Beside = filepath.Dir(whole)
	}
	b, err := readPlain(whole, workflowFormat.BytesMax)
	if err != nil {
		return nil, fmt.Errorf("read the workflow %s: %w", path, err)
	}
	return ParseWorkflow(path, b, &places)
}

// readPlain reads at most most+1 bytes of a regular file that a person named. It follows links and does not
// block on a pipe.
func readPlain(path string, most int) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, plainError(err)
	case !st.Mode().IsRegular():
		return nil, errors.New("is no regular file, and only such files are read")
	}
	f, err := os.Open(path) //nolint:gosec // a file that the user named
	if err != nil {
		return nil, plainError(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, plainError(err)
	}
	return b, nil
}

// ParseWorkflow parses a workflow's file. With places it also searches the prompts. The error is *FileFaults, beside the
// part of the file that could be read, so that a caller can add the faults that it finds there; nil: none of it could.
// Faults have line and column: unknown fields, values of the wrong kind, faults of the plan, conditions with unknown
// names, invalid schemas, missing prompts.
func ParseWorkflow(name string, b []byte, places *PromptPlaces) (*WorkflowFile, error) {
	b = file.Unmarked(b)
	faults := &workflowFaults{file: name}
	root := workflowFormat.Read(b, faults.add)
	if root == nil {
		return nil, faults.err()
	}
	r := &planReader{workflowFaults: faults, source: b, spoiled: map[spot]bool{}}
	w := &WorkflowFile{File: name, root: root, Prompts: map[workflow.StepID]string{}}
	if root.Kind != file.YAMLObject {
		r.add(root.Place, "", "is no mapping; a workflow has a name and steps")
		return nil, faults.err()
	}
	w.Plan = r.plan(root)
	for _, f := range w.Plan.Check() {
		if !r.spoiled[spot{step: f.Step}] && !r.spoiled[spot{f.Step, f.Field, 0}] && !r.spoiled[spot{f.Step, f.Field, f.Item + 1}] {
			faults.list = append(faults.list, w.Place(f))
		}
	}
	r.conditions(w)
	r.schemas(w)
	if places != nil {
		r.prompts(w, *places)
	}
	w.Warnings = file.SortFaults(r.warnings)
	return w, faults.err()
}

// conditions checks every condition.
func (r *planReader) conditions(w *WorkflowFile) {
	known := make(map[string]bool, len(w.Plan.Steps))
	for i := range w.Plan.Steps {
		known[string(w.Plan.Steps[i].ID)] = true
	}
	is := func(id string) bool { return known[id] }
	for i := range w.Plan.Steps {
		s := &w.Plan.Steps[i]
		check := func(text string, kind condition.Kind, field string) {
			if text == "" {
				return
			}
			for _, fault := range condition.Faults(text, kind, is) {
				f := w.Place(workflow.Fault{Step: i, ID: s.ID, Field: field, Item: -1})
				at, exact := r.inText(r.nodeOf(w.root, i, field), fault.Line, fault.Column)
				f.Line, f.Column, f.Text = at.Line, at.Column, fault.Text
				if !exact {
					f.Text = fault.Error()
				}
				r.list = append(r.list, f)
			}
		}
		check(s.When, condition.When, "when")
		if s.Loop != nil {
			check(s.Loop.UntilCondition, condition.Until, "loop.until_condition")
		}
	}
}

// schemas compiles every input_schema.
func (r *planReader) schemas(w *WorkflowFile) {
	for i := range w.Plan.Steps {
		s := &w.Plan.Steps[i]
		if s.InputSchema == "" {
			continue
		}
		if _, err := CompileSchema([]byte(s.InputSchema)); err != nil {
			r.list = append(r.list, w.Place(workflow.Fault{Step: i, ID: s.ID, Field: "input_schema", Item: -1, Fault: err.Error()}))
		}
	}
}

// prompts searches the file of every prompt.
func (r *planReader) prompts(w *WorkflowFile, places PromptPlaces) {
	for i := range w.Plan.Steps {
		s := &w.Plan.Steps[i]
		if s.Prompt == "" {
			continue
		}
		path, err := places.Find(s.Prompt)
		if err != nil {
			r.list = append(r.list, w.Place(workflow.Fault{Step: i, ID: s.ID, Field: "prompt", Item: -1, Fault: err.Error()}))
			continue
		}
		w.Prompts[s.ID] = path
	}
}
