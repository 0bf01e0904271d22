package server

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/controller/seam"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/runfile"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// said keeps an order about runs as one line.
func (f *fake) said(by seam.Actor, format string, args ...any) {
	f.do(func() {
		f.orders = append(f.orders, fmt.Sprintf("%s %s: ", by.Kind, by.ID)+fmt.Sprintf(format, args...))
	})
}

// knows answers with what the fake answers everybody with, and that there is one run only.
func (f *fake) knows(ctx context.Context, id, note string) error {
	if err := f.answer(); err != nil {
		return err
	}
	switch {
	case id != "r1":
		return &team.Unknown{What: "run", Name: id, Known: []string{"r1"}}
	case note == "refuse":
		return &machine.Refusal{Subject: "run r1", Event: "cancel", State: "stopped", Row: "W14", Reason: "it is over", Takes: []string{"resume"}}
	case note == "hang":
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (f *fake) view() view.RunView {
	return view.RunView{
		ID: "r1", Workflow: "plan-code-review", Status: "waiting", Stage: "driven", RepoDir: "/repo", CreatedAt: testTime, UpdatedAt: testTime,
		Counts: view.Counts{Completed: 1, Waiting: 1},
		Steps:  []view.StepView{{ID: "build", Status: "COMPLETED", Attempts: 1}, {ID: "review", Status: "WAITING_ON_HUMAN", Needs: []string{"build"}, Human: true}},
	}
}

func (f *fake) StartRun(_ context.Context, by seam.Actor, flags view.RunFlags) (view.RunView, error) {
	if err := f.answer(); err != nil {
		return view.RunView{}, err
	}
	if flags.Workflow == "broken.yaml" {
		return view.RunView{}, fmt.Errorf("read the workflow: %w", &runfile.FileFaults{List: []runfile.FileFault{
			{File: "broken.yaml", Line: 3, Column: 7, Path: "steps.0.needs", Text: `there is no step "buidl"`},
			{File: "broken.yaml", Line: 9, Column: 1, Text: "a step has no id"},
		}})
	}
	if flags.Workflow == "nowhere.yaml" {
		return view.RunView{}, fmt.Errorf("read the workflow nowhere.yaml: %w", fs.ErrNotExist)
	}
	f.said(by, "start %s", api.Encode(flags))
	return f.view(), nil
}

func (f *fake) ResumeRun(ctx context.Context, by seam.Actor, id string, flags view.RunFlags) (view.RunView, error) {
	if err := f.knows(ctx, id, ""); err != nil {
		return view.RunView{}, err
	}
	f.said(by, "resume %s", api.Encode(flags))
	return f.view(), nil
}

func (f *fake) CancelRun(ctx context.Context, by seam.Actor, id, step, why string) (uint64, error) {
	if err := f.knows(ctx, id, why); err != nil {
		return 0, err
	}
	f.said(by, "cancel %s step %q %q", id, step, why)
	return 9, nil
}

func (f *fake) PauseRun(ctx context.Context, by seam.Actor, id, why string) (uint64, error) {
	if err := f.knows(ctx, id, why); err != nil {
		return 0, err
	}
	f.said(by, "pause %s %q", id, why)
	return 9, nil
}

func (f *fake) ReleaseRun(ctx context.Context, by seam.Actor, id, why string) (uint64, error) {
	if err := f.knows(ctx, id, why); err != nil {
		return 0, err
	}
	f.said(by, "release %s %q", id, why)
	return 9, nil
}

func (f *fake) Answer(ctx context.Context, by seam.Actor, id, step string, answer view.StepAnswer) (uint64, error) {
	if err := f.knows(ctx, id, answer.Note); err != nil {
		return 0, err
	}
	f.said(by, "answer %s %s rejected=%v input %q %q", id, step, answer.Rejected, answer.Input, answer.Note)
	return 9, nil
}

func (f *fake) Runs(context.Context) ([]view.RunView, error) {
	return []view.RunView{f.view()}, f.answer()
}

func (f *fake) TaskChanges(ctx context.Context, id, from, to string) (view.TaskChanges, error) {
	if err := f.knows(ctx, id, ""); err != nil {
		return view.TaskChanges{}, err
	}
	return view.TaskChanges{
		Text: "fix it", Base: "main", Land: "squash", From: from, To: to, Files: []view.DiffFile{{Name: "x", Status: view.DiffModified, Added: 1}},
		Commits: []view.TaskCommit{}, Rounds: []view.TaskRound{}, Requests: []view.TaskRequest{}, Checks: []view.TaskCheck{}, Attached: []view.TaskAttached{},
	}, nil
}

func (f *fake) TaskFile(ctx context.Context, id, _, _ string, _ int) (view.DiffRows, error) {
	if err := f.knows(ctx, id, ""); err != nil {
		return view.DiffRows{}, err
	}
	return view.DiffRows{Rows: []view.DiffRow{{Kind: view.DiffAdd, New: 1, Tokens: []view.DiffToken{{Text: "a"}}}}}, nil
}

func (f *fake) TaskImage(ctx context.Context, id, name string) ([]byte, string, error) {
	if name != "a.gif" {
		return nil, "", &team.Unknown{What: "attached image of task " + id, Name: name}
	}
	return []byte("GIF89a"), "image/gif", f.knows(ctx, id, "")
}

func (f *fake) Comments(ctx context.Context, id string) ([]view.TaskComment, error) {
	return []view.TaskComment{{ID: 1, File: "x", Line: 1, Text: "why?"}}, f.knows(ctx, id, "")
}

func (f *fake) AddComment(ctx context.Context, id string, one view.TaskComment) ([]view.TaskComment, error) {
	return []view.TaskComment{one}, f.knows(ctx, id, one.Text)
}

func (f *fake) ChangeComment(ctx context.Context, id string, comment int, text string) ([]view.TaskComment, error) {
	return []view.TaskComment{{ID: comment, Text: text}}, f.knows(ctx, id, text)
}

func (f *fake) RemoveComment(ctx context.Context, id string, _ int) ([]view.TaskComment, error) {
	return nil, f.knows(ctx, id, "")
}

func (f *fake) RequestTask(ctx context.Context, by seam.Actor, id, text, shown string) (uint64, error) {
	if err := f.knows(ctx, id, text); err != nil {
		return 0, err
	}
	f.said(by, "request %s %q shown %q", id, text, shown)
	return 9, nil
}

func (f *fake) MergeTask(ctx context.Context, by seam.Actor, id, shown string) (uint64, error) {
	if err := f.knows(ctx, id, ""); err != nil {
		return 0, err
	}
	f.said(by, "merge %s shown %q", id, shown)
	return 9, nil
}

func (f *fake) DropTask(ctx context.Context, by seam.Actor, id, why string) (string, error) {
	if err := f.knows(ctx, id, why); err != nil {
		return "", err
	}
	f.said(by, "drop %s %q", id, why)
	return "refs/fairlead/tasks/" + id, nil
}

func (f *fake) RunByID(ctx context.Context, id string) (view.RunView, error) {
	if err := f.knows(ctx, id, ""); err != nil {
		return view.RunView{}, err
	}
	return f.view(), nil
}

// pruned is what was asked, as the body of the request has it.
type pruned struct {
	Keep        int   `json:"keep"`
	OlderThanMS int64 `json:"older_than_ms"`
	All         bool  `json:"all"`
	DryRun      bool  `json:"dry_run"`
}

func (f *fake) PruneRuns(_ context.Context, by seam.Actor, keep int, olderThan time.Duration, all, dry bool) ([]runs.PrunedRun, error) {
	if err := f.answer(); err != nil {
		return nil, err
	}
	f.said(by, "prune %s", api.Encode(pruned{keep, olderThan.Milliseconds(), all, dry}))
	return []runs.PrunedRun{{ID: "r1", Status: "waiting", UpdatedAt: testTime, Did: runs.RunWasKept, Why: "it is not over; cancel it first"}}, nil
}

func (f *fake) Working(context.Context) ([]view.WorkView, error) {
	return []view.WorkView{{Agent: "coder", Session: "coder-1", Status: view.StatusRunning, Since: &testTime, Last: "go test ./..."}}, f.answer()
}

func (f *fake) Inbox(context.Context) ([]view.InboxItem, error) {
	return []view.InboxItem{{Kind: "step", Run: "r1", Step: "review", Since: testTime, Why: "review waits for people"}}, f.answer()
}
