package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/git/diff"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

type changesIn struct {
	TaskPath
	From string `query:"from" maxLength:"64" pattern:"^([0-9a-f]{40,64})?$" doc:"A commit; default: the newest commit of the base that the task has, or the parent of to"`
	To   string `query:"to" maxLength:"64" pattern:"^([0-9a-f]{40,64})?$" doc:"A commit; default: what the person is asked to approve, or the newest content"`
}

type fileIn struct {
	TaskPath
	File int    `path:"file" minimum:"0" maximum:"100000" doc:"Its place in the list of files, from 0"`
	From string `query:"from" required:"true" maxLength:"64" pattern:"^[0-9a-f]{40,64}$" doc:"The commit that the list is from"`
	To   string `query:"to" required:"true" maxLength:"64" pattern:"^[0-9a-f]{40,64}$" doc:"The commit that the list is to"`
}

type imageIn struct {
	TaskPath
	Name string `path:"name" maxLength:"300" doc:"As the task's list of attachments names it"`
}

type oneCommentIn struct {
	TaskPath
	Comment int `path:"comment" minimum:"1" doc:"The comment"`
}

type changeCommentIn struct {
	TaskPath
	Comment int `path:"comment" minimum:"1" doc:"The comment"`
	Body    *api.CommentTextBody
}

// taskRoutes returns the routes about what a task has changed. A task is a run.
func taskRoutes() []route {
	const get = http.MethodGet
	return []route{
		{
			"get-task-changes", get, "/runs/{id}/changes", "List what a task has changed",
			"With its commits, what was shown before, what was asked for, and the results of the checks. Only a run that is a task has it.",
			answer(func(ctx context.Context, s *Server, in *changesIn) (*view.TaskChanges, error) {
				changes, err := s.engine.Tasks.TaskChanges(ctx, in.ID, in.From, in.To)
				return &changes, err
			}),
		},
		{
			"get-task-file", get, "/runs/{id}/changes/{file}", "Show what was changed in one file",
			"As rows of coloured text. Long files and lines are cut, and the answer says so.",
			answer(func(ctx context.Context, s *Server, in *fileIn) (*diff.ChangedRows, error) {
				rows, err := s.engine.Tasks.TaskFile(ctx, in.ID, in.From, in.To, in.File)
				return &rows, err
			}),
		},
		{
			"get-task-image", get, "/runs/{id}/attachments/{name}", "Show an image that was given with a task",
			"The bytes, with the media type of the content: image/png, image/jpeg, image/gif or image/webp. Other files are not served.",
			stream("image/*", handleTaskImage),
		},
	}
}

func handleTaskImage(s *Server, w http.ResponseWriter, r *http.Request, in *imageIn) {
	ctx, cancel := context.WithTimeout(r.Context(), api.AnswerMax)
	defer cancel()
	data, kind, err := s.engine.Tasks.TaskImage(ctx, in.ID, in.Name)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	h := w.Header() // nosniff and a policy that allows nothing are set for every answer
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	// if it cannot be set, the server's own limit applies
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.waits.answer))
	_, _ = w.Write(data)
}

// reviewRoutes returns the routes for a person's comments on a task, and for the answer.
func reviewRoutes() []route {
	const post = http.MethodPost
	return []route{
		{
			"list-comments", http.MethodGet, "/runs/{id}/comments", "List a person's comments on a task",
			"Those of all rounds, at their places in the newest content, with their states.",
			answer(func(ctx context.Context, s *Server, in *RunPath) (*view.TaskComments, error) {
				return commented(s.engine.Tasks.Comments(ctx, in.ID))
			}),
		},
		{
			"add-comment", post, "/runs/{id}/comments", "Comment on a line",
			"The next request sends it. It stays with its text over the rounds.",
			answer(func(ctx context.Context, s *Server, in *forTask[*api.CommentBody]) (*view.TaskComments, error) {
				if err := identity(ctx).MayOrderRun("comment", in.ID); err != nil {
					return nil, err
				}
				if in.Body == nil {
					return nil, bodyMissing()
				}
				b := in.Body
				return commented(s.engine.Tasks.AddComment(ctx, in.ID,
					view.TaskComment{File: b.File, Line: b.Line, Old: b.Old, Quote: b.Quote, Text: b.Text}))
			}),
		},
		{
			"change-comment", post, "/runs/{id}/comments/{comment}", "Change a comment, or resolve it",
			"The text can be changed until a request has sent the comment.",
			answer(func(ctx context.Context, s *Server, in *changeCommentIn) (*view.TaskComments, error) {
				if err := identity(ctx).MayOrderRun("comment", in.ID); err != nil {
					return nil, err
				}
				if in.Body == nil {
					return nil, bodyMissing()
				}
				b := in.Body
				if b.Text == "" && b.Resolved == nil {
					return nil, api.NewProblem(http.StatusUnprocessableEntity, "the body says nothing; send {\"text\": \"…\"} or {\"resolved\": true}")
				}
				return commented(s.engine.Tasks.ChangeComment(ctx, in.ID, in.Comment, b.Text, b.Resolved))
			}),
		},
		{
			"remove-comment", http.MethodDelete, "/runs/{id}/comments/{comment}", "Remove a comment that is not sent",
			"One that a request has sent can be resolved.",
			answer(func(ctx context.Context, s *Server, in *oneCommentIn) (*view.TaskComments, error) {
				if err := identity(ctx).MayOrderRun("comment", in.ID); err != nil {
					return nil, err
				}
				return commented(s.engine.Tasks.RemoveComment(ctx, in.ID, in.Comment))
			}),
		},
		{
			"request-task", post, "/runs/{id}/request", "Ask for changes",
			"The text and the comments that are new go back to the agent, into the same conversation; open ones of earlier rounds are named. With `shown` it is refused if another commit is shown by now.",
			ordered(
				func(by caller.Identity, in *forTask[*api.RequestBody]) error { return by.MayOrderRun("request", in.ID) },
				func(ctx context.Context, e *app.App, by change.Actor, in *forTask[*api.RequestBody]) (uint64, error) {
					return e.Tasks.RequestTask(ctx, by, in.ID, or(in.Body).Text, or(in.Body).Shown)
				},
			),
		},
		{
			"merge-task", post, "/runs/{id}/merge", "Approve a task, and land it",
			"`tree` or `shown` name the tree or the commit that the person looked at; if the question shows another one, it is refused. Without them it means what the question shows when the order arrives, and its record says that no hash was given. If files are changed that decide what runs later, `governing` names their hash; without it, or with another one, it is refused. A task whose landing failed lands again, if they name what was approved.",
			ordered(
				func(by caller.Identity, in *forTask[*api.MergeBody]) error { return by.MayOrderRun("merge", in.ID) },
				func(ctx context.Context, e *app.App, by change.Actor, in *forTask[*api.MergeBody]) (uint64, error) {
					return e.Tasks.MergeTask(ctx, by, in.ID, or(in.Body).Shown, or(in.Body).Tree, or(in.Body).Governing)
				},
			),
		},
		{
			"sync-task", post, "/runs/{id}/sync", "Fetch the remote for a task",
			"It fetches `tasks.remote` of the person's repository into its remote-tracking branches, with the person's login and without a prompt, and brings what has come to the folder's origin. It moves no branch.",
			longAnswer(task.SyncMax, func(ctx context.Context, s *Server, in *RunPath) (*view.TaskSync, error) {
				if err := identity(ctx).MayOrderRun("sync", in.ID); err != nil {
					return nil, err
				}
				shown, err := s.engine.Tasks.SyncTask(ctx, in.ID)
				return &shown, err
			}),
		},
		{
			"drop-task", post, "/runs/{id}/drop", "End a task, and remove its folder",
			"Its processes are ended first. What was written stays under the ref that the answer names.",
			answer(func(ctx context.Context, s *Server, in *runNoteIn) (*api.Dropped, error) {
				if err := identity(ctx).MayOrderRun("drop", in.ID); err != nil {
					return nil, err
				}
				ref, err := s.engine.Tasks.DropTask(ctx, s.actor(ctx), in.ID, or(in.Body).Note)
				return &api.Dropped{Ref: ref}, err
			}),
		},
	}
}

// gitRoutes returns the routes that change the person's repository besides landing.
func gitRoutes() []route {
	const post = http.MethodPost
	return []route{
		{
			"undo-task", post, "/runs/{id}/undo", "Take back what a task has landed",
			"If the landed commit is the tip of the branch and nothing else has it, the branch and its clean checkout are moved back, and the task is asked about again. Otherwise a new task, which the answer names, reverts it.",
			longAnswer(undoMax, func(ctx context.Context, s *Server, in *RunPath) (*view.TaskUndone, error) {
				if err := identity(ctx).MayOrderRun("undo", in.ID); err != nil {
					return nil, err
				}
				done, err := s.engine.Runs.UndoTask(ctx, s.actor(ctx), in.ID)
				return &done, err
			}),
		},
		{
			"push-task", post, "/runs/{id}/push", "Push the branch of a task to a remote, without a forge",
			"What was shown last, or else what the folder has, as one commit, with the person's login and without a prompt. Commits that only the remote has are replaced with `force` only. If files are changed that decide what runs later, `governing` names their hash, unless a person has approved these.",
			longAnswer(task.PublishMax, func(ctx context.Context, s *Server, in *forTask[*api.PushBody]) (*view.TaskPushed, error) {
				if err := identity(ctx).MayOrderRun("push", in.ID); err != nil {
					return nil, err
				}
				b := or(in.Body)
				done, err := s.engine.Runs.PushTask(ctx, in.ID,
					task.Publishing{Remote: b.Remote, Branch: b.Branch, Force: b.Force, Governing: b.Governing})
				return &done, err
			}),
		},
		{
			"checkout-task", post, "/runs/{id}/checkout", "Work on a task by hand, in a worktree of the repository",
			"An ordinary worktree of the person's repository, on the task's branch, with what was shown; only while the task waits for a person. Hooks and filters of git do not run. If files differ from the base that decide what runs later, `governing` names their hash; without it, it is refused. With `done` what was committed there becomes the task's, which is checked and shown again, and the worktree is removed; it is refused while something there is not committed.",
			longAnswer(undoMax, func(ctx context.Context, s *Server, in *forTask[*api.CheckoutBody]) (*view.TaskCheckout, error) {
				if err := identity(ctx).MayOrderRun("checkout", in.ID); err != nil {
					return nil, err
				}
				b := or(in.Body)
				if b.Done {
					done, err := s.engine.Tasks.EndCheckout(ctx, s.actor(ctx), in.ID)
					return &done, err
				}
				made, err := s.engine.Tasks.CheckOutTask(ctx, in.ID, b.Dir, b.Governing)
				return &made, err
			}),
		},
	}
}

// undoMax is how much longer the answer to an undo may take: a folder of a large repository is made.
const undoMax = 2 * time.Minute

func bodyMissing() error {
	return api.NewProblem(http.StatusUnprocessableEntity, "the body is missing; send {\"text\": \"…\"}")
}

func commented(all []view.TaskComment, err error) (*view.TaskComments, error) {
	return &view.TaskComments{Comments: some(all)}, err
}
