package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

// put writes files into the folder of a run and returns its task.
func put(t *testing.T, checks []string, files map[string]string) task.Review {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return task.Review{Task: task.Task{ID: "T1", Run: dir, Checks: checks}}
}

// Only the step approve asks a person about a task, and only while it waits.
func TestAsked(t *testing.T) {
	t.Parallel()
	step := func(id string, state workflow.State) view.StepView {
		return view.StepView{ID: id, Status: string(state)}
	}
	for name, c := range map[string]struct {
		steps []view.StepView
		want  bool
	}{
		"waits":             {[]view.StepView{step(task.StepWork, workflow.Completed), step(task.StepApprove, workflow.Waiting)}, true},
		"another one waits": {[]view.StepView{step("deploy", workflow.Waiting), step(task.StepApprove, workflow.Pending)}, false},
		"answered":          {[]view.StepView{step(task.StepApprove, workflow.Completed)}, false},
		"no such step":      {[]view.StepView{step(task.StepWork, workflow.Running)}, false},
	} {
		if got := asked(view.RunView{Steps: c.steps}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A result belongs to a command only if that command gave it: after the configuration has changed, the others have
// not run. A file that cannot be read has no results.
func TestChecks(t *testing.T) {
	t.Parallel()
	ended := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	results, err := json.Marshal([]task.CheckResult{
		{Command: "go vet ./...", Passed: true, Took: 1500 * time.Millisecond, Ended: ended},
		{Command: "go test ./...", Took: time.Second, Ended: ended, Tail: "FAIL"},
	})
	if err != nil {
		t.Fatal(err)
	}
	passed := view.TaskCheck{Command: "go vet ./...", State: "passed", TookMS: 1500, EndedAt: &ended}
	failed := view.TaskCheck{Command: "go test ./...", State: "failed", TookMS: 1000, EndedAt: &ended, Output: "FAIL"}
	none := func(command string) view.TaskCheck { return view.TaskCheck{Command: command, State: "not_run"} }
	for name, c := range map[string]struct {
		commands []string
		file     string
		want     []view.TaskCheck
	}{
		"both ran": {[]string{"go vet ./...", "go test ./..."}, string(results), []view.TaskCheck{passed, failed}},
		"one was added": {
			[]string{"go vet ./...", "go test ./...", "npm test"},
			string(results),
			[]view.TaskCheck{passed, failed, none("npm test")},
		},
		"one was replaced": {[]string{"go vet ./...", "npm test"}, string(results), []view.TaskCheck{passed, none("npm test")}},
		"they were swapped": {
			[]string{"go test ./...", "go vet ./..."},
			string(results),
			[]view.TaskCheck{none("go test ./..."), none("go vet ./...")},
		},
		"half a file": {[]string{"go vet ./..."}, `[{"command":`, []view.TaskCheck{none("go vet ./...")}},
		"no commands": {nil, string(results), []view.TaskCheck{}},
	} {
		if got := checks(put(t, c.commands, map[string]string{"checks.json": c.file})); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := checks(put(t, []string{"a"}, nil)); !reflect.DeepEqual(got, []view.TaskCheck{none("a")}) {
		t.Errorf("without a file: %+v", got)
	}
}

// Requests keep the number of their round, and what is in their files is shown as text.
func TestRequests(t *testing.T) {
	t.Parallel()
	got := requests(put(t, nil, map[string]string{
		task.RequestName(1): " also the docs\n", task.RequestName(3): "b\xff.txt",
		task.RequestName(4): strings.Repeat("x", requestBytesMax+1),
		task.RequestName(0): "no round", "request-2.md.bak": "another file", "request-02.md": "no number of ours",
	}))
	want := []view.TaskRequest{{Round: 1, Text: "also the docs"}, {Round: 3, Text: "b\uFFFD.txt"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%.300v, want %v", got, want)
	}
	if got := requests(put(t, nil, nil)); got == nil || len(got) != 0 {
		t.Errorf("none are %v; the page needs a list", got)
	}
}

func TestAttached(t *testing.T) {
	t.Parallel()
	folder := task.AttachmentsName + "/"
	if got := attached(put(t, nil, map[string]string{folder + "b.txt": "", folder + "a.txt": "", "c.txt": ""})); !slices.Equal(got,
		[]view.TaskAttached{{Name: "a.txt"}, {Name: "b.txt"}}) {
		t.Errorf("%v", got)
	}
	if got := attached(put(t, nil, nil)); got == nil || len(got) != 0 {
		t.Errorf("none are %v; the page needs a list", got)
	}
}

func TestListed(t *testing.T) {
	t.Parallel()
	here := task.Comment{ID: 3, File: "a.go", Line: 7, Old: true, Quote: "q", Text: "no", Round: 2}.Thread()
	gone := task.Comment{ID: 4, File: "b.go", Line: 2, Text: "why", Round: 1, Sent: 1, Hunk: []string{"a", "b"}, HunkAt: 1}.Thread()
	gone.Now, gone.Gone, gone.State = task.At{}, true, task.ThreadChanged
	if got, want := listed([]task.Thread{here, gone}), []view.TaskComment{
		{
			ID: 3, File: "a.go", Line: 7, Old: true, Quote: "q", Text: "no", Round: 2, State: "open",
			At: &view.TaskAt{File: "a.go", Line: 7, Old: true},
		},
		{ID: 4, File: "b.go", Line: 2, Text: "why", Round: 1, Sent: 1, State: "changed", About: []string{"  a", "> b"}},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := listed(nil); got == nil || len(got) != 0 {
		t.Errorf("none are %v; the page needs a list", got)
	}
}

// A refusal is an answer that names the task, its state and the reason.
func TestRefuse(t *testing.T) {
	t.Parallel()
	err := refuse("T1", "merge", view.TaskView{Status: view.TaskWorking}, "it is at %d %%", 50)
	var refusal *table.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("%T", err)
	}
	if want := (table.Refusal{
		Subject: "task T1", Event: "merge", State: view.TaskWorking, Row: "W9",
		Reason: "it is at 50 %",
	}); !reflect.DeepEqual(*refusal, want) {
		t.Errorf("%+v, want %+v", *refusal, want)
	}
}

// At most looksMax requests run git at the same time. Another one waits for a place until its caller gives up.
func TestLook(t *testing.T) {
	t.Parallel()
	c := New(nil, nil)
	var releases []func()
	for i := range looksMax {
		release, err := c.look(t.Context())
		if err != nil {
			t.Fatalf("place %d: %v", i, err)
		}
		releases = append(releases, release)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // if there were a place, each would take it with a chance of one half
		if _, err := c.look(gone); !errors.Is(err, context.Canceled) {
			t.Fatalf("with %d others: %v", looksMax, err)
		}
	}
	got := make(chan error)
	go func() {
		_, err := c.look(t.Context())
		got <- err
	}()
	releases[0]()
	if err := <-got; err != nil {
		t.Error(fmt.Errorf("after one has ended: %w", err))
	}
}
