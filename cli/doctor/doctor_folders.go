package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/view"
)

const (
	foldersAbout = "task folders"
	foldersShown = 10 // the largest; the others are counted
)

// folder is the folder of a task that has ended.
type folder struct {
	task  *view.TaskView
	bytes int64
}

// lookAtFolders names the folders of tasks that are done or dropped. They are no fault: something was changed in one
// after it was shown, it has a repository inside, or a person has restored it.
func lookAtFolders(ctx context.Context, a *cli.App) []Finding {
	all, err := knownRuns(ctx, a)
	if err != nil {
		return []Finding{{About: foldersAbout, What: "which tasks have ended is not known: " + err.Error(), Do: "run doctor again"}}
	}
	var left []folder
	for i := range all {
		t := all[i].Task
		if t == nil || t.Status != view.TaskDone && t.Status != view.TaskDropped {
			continue
		}
		entries, err := os.ReadDir(t.Worktree)
		if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
			continue
		}
		bytes, err := file.DiskUse(ctx, t.Worktree)
		if err != nil {
			return []Finding{{About: foldersAbout, What: fmt.Sprintf("the folder of %s, %s, cannot be measured: %v", t.ID, t.Worktree, err), Do: "make it readable, or remove it when you have looked at it"}}
		}
		left = append(left, folder{t, bytes})
	}
	slices.SortFunc(left, func(a, b folder) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.task.ID, b.task.ID)) })
	var findings []Finding
	for _, f := range left[:min(len(left), foldersShown)] {
		findings = append(findings, Finding{
			OK: true, About: foldersAbout,
			What: fmt.Sprintf("%s is %s, and its folder is still there: %s, %s", f.task.ID, f.task.Status, f.task.Worktree, file.Size(f.bytes)),
			Do:   fmt.Sprintf("`fairlead drop %s` removes it; its content stays under refs/fairlead/tasks/%s, and `fairlead task restore %s` brings it back", f.task.ID, f.task.ID, f.task.ID),
		})
	}
	if more := left[min(len(left), foldersShown):]; len(more) > 0 {
		sum := int64(0)
		for _, f := range more {
			sum += f.bytes
		}
		findings = append(findings, Finding{OK: true, About: foldersAbout, What: fmt.Sprintf("%d more are still there, with %s", len(more), file.Size(sum)), Do: "drop the largest ones, then run doctor again"})
	}
	return findings
}

// knownRuns are all runs; none where no daemon has ever run.
func knownRuns(ctx context.Context, a *cli.App) ([]view.RunView, error) {
	r, err := a.OpenToRead(ctx)
	if none := (*apiclient.NoDaemon)(nil); errors.As(err, &none) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := r.Runs.List(ctx)
	return all, errors.Join(err, r.Close())
}
