package tasks

import (
	"context"
	"slices"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Comments returns the comments on a task, those of earlier rounds too, at their places in the newest content.
func (c *Controller) Comments(ctx context.Context, id string) ([]view.TaskComment, error) {
	t, err := c.open(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := c.runs.RunByID(ctx, id)
	if err != nil {
		return nil, err
	}
	c.answers.Lock()
	defer c.answers.Unlock()
	all, err := t.Comments()
	if err != nil {
		return nil, err
	}
	return listed(c.placed(ctx, t, r, all)), nil
}

// AddComment keeps a comment. The next request sends it.
func (c *Controller) AddComment(ctx context.Context, id string, said view.TaskComment) ([]view.TaskComment, error) {
	return c.change(ctx, id, "comment", func(t task.Review, r view.RunView, all []task.Comment) ([]task.Comment, error) {
		one := task.Comment{ID: 1, File: said.File, Line: said.Line, Old: said.Old, Quote: said.Quote, Text: said.Text}
		for _, other := range all {
			one.ID = max(one.ID, other.ID+1)
		}
		if err := task.CheckComments([]task.Comment{one}); err != nil { // before git looks for its file
			return nil, refuse(id, "comment", *r.Task, "%v", err)
		}
		var err error
		if one.Round, err = t.Round(ctx); err != nil {
			return nil, err
		}
		if to, from, err := c.newest(ctx, t, r, &view.TaskChanges{}); err == nil { // otherwise it is about its quote
			if one, err = t.Anchored(ctx, one, from, to); err != nil {
				return nil, err
			}
		}
		return append(task.MakeRoom(all), one), nil
	})
}

// ChangeComment replaces the text of a comment that is not sent, or says whether one is resolved.
func (c *Controller) ChangeComment(ctx context.Context, id string, comment int, text string, resolved *bool) ([]view.TaskComment, error) {
	return c.change(ctx, id, "comment", func(_ task.Review, r view.RunView, all []task.Comment) ([]task.Comment, error) {
		at := slices.IndexFunc(all, func(one task.Comment) bool { return one.ID == comment })
		switch {
		case at < 0:
			return nil, &team.Unknown{What: "comment of task", Name: id}
		case text != "" && all[at].Sent > 0:
			return nil, refuse(id, "comment", *r.Task,
				"comment %d was sent in round %d, and stays what its agent was told; write another one, or resolve it", comment, all[at].Sent)
		}
		if text != "" {
			all[at].Text = text
		}
		if resolved != nil {
			all[at].Resolved = *resolved
		}
		return all, nil
	})
}

// RemoveComment removes a comment that is not sent.
func (c *Controller) RemoveComment(ctx context.Context, id string, comment int) ([]view.TaskComment, error) {
	return c.change(ctx, id, "comment", func(_ task.Review, r view.RunView, all []task.Comment) ([]task.Comment, error) {
		at := slices.IndexFunc(all, func(one task.Comment) bool { return one.ID == comment })
		switch {
		case at < 0:
			return nil, &team.Unknown{What: "comment of task", Name: id}
		case all[at].Sent > 0:
			return nil, refuse(id, "comment", *r.Task, "comment %d was sent in round %d, so it is not removed; resolve it", comment, all[at].Sent)
		}
		return slices.Delete(all, at, at+1), nil
	})
}

func (c *Controller) change(ctx context.Context, id, event string,
	do func(t task.Review, r view.RunView, all []task.Comment) ([]task.Comment, error),
) ([]view.TaskComment, error) {
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
	if all, err = do(t, r, all); err != nil {
		return nil, err
	}
	if fault := task.CheckComments(all); fault != nil {
		return nil, refuse(id, event, *r.Task, "%v", fault)
	}
	if err := t.SetComments(all); err != nil {
		return nil, err
	}
	return listed(c.placed(ctx, t, r, all)), nil
}

// placed are comments at their places in the newest content. Where it cannot be read, they stand where they were said.
func (c *Controller) placed(ctx context.Context, t task.Review, r view.RunView, all []task.Comment) []task.Thread {
	threads, err := c.findPlaces(ctx, t, r, all)
	if err == nil {
		return threads
	}
	threads = make([]task.Thread, len(all))
	for i, one := range all {
		threads[i] = one.Thread()
	}
	return threads
}

func (c *Controller) findPlaces(ctx context.Context, t task.Review, r view.RunView, all []task.Comment) ([]task.Thread, error) {
	if len(all) == 0 {
		return nil, nil
	}
	release, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	to, from, err := c.newest(ctx, t, r, &view.TaskChanges{})
	if err != nil {
		return nil, err
	}
	return t.Threads(ctx, all, from, to)
}

func listed(all []task.Thread) []view.TaskComment {
	shown := []view.TaskComment{}
	for _, one := range all {
		v := view.TaskComment{
			ID: one.ID, File: one.File, Line: one.Line, Old: one.Old, Quote: one.Quote, Text: one.Text, Round: one.Round, Sent: one.Sent,
			State: one.State,
		}
		if one.Gone {
			v.About = one.About()
		} else if one.Now.File != "" {
			v.At = &view.TaskAt{File: one.Now.File, Line: one.Now.Line, Old: one.Now.Old}
		}
		shown = append(shown, v)
	}
	return shown
}
