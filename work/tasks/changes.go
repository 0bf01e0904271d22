package tasks

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/git/diff"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

const (
	requestsMax     = 50 // of one task: the newest
	requestBytesMax = 64 << 10
)

// TaskChanges lists what a task has changed: between two commits, or without them all of it.
func (c *Controller) TaskChanges(ctx context.Context, id, from, to string) (v view.TaskChanges, err error) {
	t, err := c.open(ctx, id)
	if err != nil {
		return v, err
	}
	r, err := c.runs.RunByID(ctx, id)
	if err != nil {
		return v, err
	}
	all, err := c.runs.Runs(ctx)
	if err != nil {
		return v, err
	}
	overlaps := c.Overlaps(ctx, all)[id]
	release, err := c.look(ctx)
	if err != nil {
		return v, err
	}
	defer release()
	v = view.TaskChanges{
		Text: t.Text, Base: t.Base, Land: t.How, Files: []diff.ChangedFile{}, Attached: attached(t), Requests: requests(t),
		Checks: checks(t), Overlaps: overlaps,
	}
	newest, begin, err := c.newest(ctx, t, r, &v)
	if err != nil {
		return v, err
	}
	if v.From, v.To = from, to; to == "" {
		v.To = newest
	}
	if from == "" {
		v.From = begin
	}
	if to != "" && from == "" { // one commit
		if v.From, err = t.Parent(ctx, to); err != nil {
			return v, err
		}
	}
	files, more, err := list(ctx, t, v.From, v.To)
	if err != nil {
		return v, err
	}
	v.More = more
	for _, e := range files {
		v.Files = append(v.Files, e.ChangedFile)
	}
	rounds, err := t.Rounds(ctx)
	if err != nil {
		return v, err
	}
	if v.Round, err = t.Round(ctx); err != nil {
		return v, err
	}
	said, err := t.Comments()
	if err != nil {
		v.Told = append(slices.Clone(v.Told), err.Error())
	}
	threads, err := t.Threads(ctx, said, v.From, v.To)
	if err != nil {
		return v, err
	}
	v.Comments = listed(threads)
	v.Rounds = []view.TaskRound{}
	for _, one := range rounds {
		v.Rounds = append(v.Rounds, view.TaskRound{Round: one.Number, Commit: one.Commit})
	}
	commits, err := t.Commits(ctx, begin, newest)
	if err != nil {
		return v, err
	}
	v.Commits = []view.TaskCommit{}
	for _, one := range commits {
		v.Commits = append(v.Commits, view.TaskCommit{ID: one.ID, Subject: one.Subject, Author: one.Author, At: one.At})
	}
	return v, nil
}

// newest is the commit that a person should see, and the one that it is compared with: those of the question that is open,
// or the newest content.
func (c *Controller) newest(ctx context.Context, t task.Review, r view.RunView, v *view.TaskChanges) (commit, from string, err error) {
	switch asked := r.Task.Asked; {
	case asked != nil && t.Has(ctx, asked.Commit, asked.From):
		v.Shown, v.Tree, v.Govern, v.Told, v.Same = asked.Commit, asked.Tree, asked.GoverningHash, asked.Told, asked.Unchanged
		return asked.Commit, asked.From, nil
	case asked != nil: // another machine has shown it
		commit, err = t.Kept(ctx)
	case slices.Contains([]string{view.TaskQueued, view.TaskBlocked, view.TaskWorking, view.TaskChecking, view.TaskReview}, r.Task.Status):
		v.Live = true
		if _, fault := os.Lstat(t.Tree); errors.Is(fault, fs.ErrNotExist) {
			commit, err = t.Kept(ctx)
			break
		}
		var p task.Picture
		p, err = t.Snapshot(ctx)
		commit = p.Commit
	default:
		if commit, err = t.ShownCommit(ctx); err == nil && commit == "" {
			commit, err = t.Kept(ctx)
		}
	}
	if err != nil {
		return "", "", err
	}
	from, err = t.Before(ctx, commit)
	return commit, from, err
}

func list(ctx context.Context, t task.Review, from, to string) ([]diff.Entry, int, error) {
	text, err := t.ListChanges(ctx, from, to)
	if err != nil {
		return nil, 0, err
	}
	all, more, err := diff.ReadList(text)
	if err != nil {
		return nil, 0, err
	}
	governs, err := t.Governs(ctx, from, to)
	for i := range all {
		all[i].Governs = slices.ContainsFunc(all[i].Paths, func(p string) bool { return slices.Contains(governs, p) })
	}
	slices.SortStableFunc(all, func(a, b diff.Entry) int { // those come first
		switch {
		case a.Governs == b.Governs:
			return 0
		case a.Governs:
			return -1
		}
		return 1
	})
	return all, more, err
}

// TaskFile returns what was changed in one file of a list, counted from 0.
func (c *Controller) TaskFile(ctx context.Context, id, from, to string, file int) (v diff.ChangedRows, err error) {
	t, err := c.open(ctx, id)
	if err != nil {
		return v, err
	}
	release, err := c.look(ctx)
	if err != nil {
		return v, err
	}
	defer release()
	all, _, err := list(ctx, t, from, to)
	if err != nil {
		return v, err
	}
	if file < 0 || file >= len(all) {
		return v, &team.Unknown{What: "changed file of task", Name: id}
	}
	e := all[file]
	if e.Binary {
		return diff.ChangedRows{Rows: []diff.ChangedRow{}, Binary: true}, nil
	}
	size, err := t.Size(ctx, e.From, e.To)
	if err != nil {
		return v, err
	}
	if size > diff.FileBytesMax {
		return diff.ChangedRows{Rows: []diff.ChangedRow{}, TooLarge: true}, nil
	}
	text, err := t.FileChanges(ctx, from, to, e.Paths...)
	if err != nil {
		return v, err
	}
	v, err = diff.Rows(e.Name, text)
	if v.Rows == nil {
		v.Rows = []diff.ChangedRow{}
	}
	return v, err
}

// checks are the configured commands with their newest results, and then the results with the base's governing files.
func checks(t task.Review) []view.TaskCheck {
	all := []view.TaskCheck{}
	done, err := t.CheckResults()
	if err != nil {
		done = nil // it is written again with the next check
	}
	for _, base := range []bool{false, true} {
		of := slices.DeleteFunc(slices.Clone(done), func(d task.CheckResult) bool { return d.Base != base })
		if base && len(of) == 0 {
			break
		}
		for i, line := range t.Checks {
			check := view.TaskCheck{Command: line, State: "not_run", Base: base}
			if i < len(of) && of[i].Command == line {
				d := &of[i]
				if check.State = "failed"; d.Passed {
					check.State = "passed"
				}
				check.TookMS, check.EndedAt, check.Output = d.Took.Milliseconds(), &d.Ended, d.Tail
			}
			all = append(all, check)
		}
	}
	return all
}

// requests are what a person asked to be changed so far.
func requests(t task.Review) []view.TaskRequest {
	all := []view.TaskRequest{}
	rounds, err := task.Requests(t.Run)
	if err != nil {
		return all
	}
	for _, round := range rounds[max(0, len(rounds)-requestsMax):] {
		text, err := sessions.ReadUpTo(filepath.Join(t.Run, task.RequestName(round)), requestBytesMax)
		if err == nil {
			all = append(all, view.TaskRequest{Round: round, Text: strings.ToValidUTF8(strings.TrimSpace(string(text)), "\uFFFD")})
		}
	}
	return all
}

// attached are the files that were given with the task.
func attached(t task.Review) []view.TaskAttached {
	all := []view.TaskAttached{}
	for _, name := range runs.Attached(t.Run) {
		_, kind, err := runs.AttachedImage(t.Run, name)
		if err != nil {
			kind = "" // it is shown by its name
		}
		all = append(all, view.TaskAttached{Name: name, Image: kind})
	}
	return all
}

// TaskImage returns an image that was given with a task, and its media type.
func (c *Controller) TaskImage(ctx context.Context, id, name string) (data []byte, kind string, err error) {
	t, err := c.open(ctx, id)
	if err != nil {
		return nil, "", err
	}
	if slices.Contains(runs.Attached(t.Run), name) {
		data, kind, err = runs.AttachedImage(t.Run, name)
	}
	if err != nil || kind == "" {
		return nil, "", &team.Unknown{What: "attached image of task " + id, Name: name}
	}
	return data, kind, nil
}
