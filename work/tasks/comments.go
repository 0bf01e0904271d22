package tasks

import (
	"context"
	"slices"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Comments returns the comments on a task that are not sent yet.
func (c *Controller) Comments(ctx context.Context, id string) ([]view.TaskComment, error) {
	t, err := c.open(ctx, id)
	if err != nil {
		return nil, err
	}
	c.answers.Lock()
	defer c.answers.Unlock()
	all, err := t.Comments()
	return listed(all), err
}

// AddComment keeps a comment until the next request.
func (c *Controller) AddComment(ctx context.Context, id string, one view.TaskComment) ([]view.TaskComment, error) {
	return c.change(ctx, id, "comment", func(all []task.Comment) ([]task.Comment, error) {
		one.ID = 1
		for _, other := range all {
			one.ID = max(one.ID, other.ID+1)
		}
		return append(all, task.Comment(one)), nil
	})
}

// ChangeComment replaces the text of a comment.
func (c *Controller) ChangeComment(ctx context.Context, id string, comment int, text string) ([]view.TaskComment, error) {
	return c.change(ctx, id, "comment", func(all []task.Comment) ([]task.Comment, error) {
		at := slices.IndexFunc(all, func(one task.Comment) bool { return one.ID == comment })
		if at < 0 {
			return nil, &team.Unknown{What: "comment of task", Name: id}
		}
		all[at].Text = text
		return all, nil
	})
}

// RemoveComment removes a comment.
func (c *Controller) RemoveComment(ctx context.Context, id string, comment int) ([]view.TaskComment, error) {
	return c.change(ctx, id, "comment", func(all []task.Comment) ([]task.Comment, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(one task.Comment) bool { return one.ID == comment })
		if len(left) == len(all) {
			return nil, &team.Unknown{What: "comment of task", Name: id}
		}
		return left, nil
	})
}

func (c *Controller) change(ctx context.Context, id, event string, do func([]task.Comment) ([]task.Comment, error)) ([]view.TaskComment,
	error,
) {
	t, err := c.open(ctx, id)
	if err != nil {
		return nil, err
	}
	c.answers.Lock()
	defer c.answers.Unlock()
	all, err := t.Comments()
	if err != nil {
		return nil, err
	}
	r, err := c.runs.RunByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if s := r.Task.Status; s == view.TaskDone || s == view.TaskDropped {
		return nil, refuse(id, event, *r.Task, "the task is %s, so no agent would get the comment; give a new task", s)
	}
	if all, err = do(all); err != nil {
		return nil, err
	}
	if fault := task.CheckComments(all); fault != nil {
		return nil, refuse(id, event, *r.Task, "%v", fault)
	}
	return listed(all), t.SetComments(all)
}

func listed(all []task.Comment) []view.TaskComment {
	shown := []view.TaskComment{}
	for _, one := range all {
		shown = append(shown, view.TaskComment(one))
	}
	return shown
}
