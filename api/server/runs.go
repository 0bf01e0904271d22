package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
)

// RunBackend is what the server asks about runs of workflows (SPEC Workflow). Its errors are
// those of Backend; a workflow that cannot be read lists every fault.
type RunBackend interface {
	StartRun(ctx context.Context, by seam.Actor, flags view.RunFlags) (view.RunView, error)
	ResumeRun(ctx context.Context, by seam.Actor, id string, flags view.RunFlags) (view.RunView, error)
	CancelRun(ctx context.Context, by seam.Actor, id, step, why string) (uint64, error) // step empty: the run
	PauseRun(ctx context.Context, by seam.Actor, id, why string) (uint64, error)
	ReleaseRun(ctx context.Context, by seam.Actor, id, why string) (uint64, error)
	Answer(ctx context.Context, by seam.Actor, id, step string, answer view.StepAnswer) (uint64, error)
	Runs(ctx context.Context) ([]view.RunView, error)             // newest first, without their steps
	RunByID(ctx context.Context, id string) (view.RunView, error) // with its steps
	Inbox(ctx context.Context) ([]view.InboxItem, error)
	PruneRuns(ctx context.Context, by seam.Actor, keep int, olderThan time.Duration, all, dry bool) ([]runs.PrunedRun, error)
}

type runIn struct {
	ID string `path:"id" maxLength:"48" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" example:"f8c1a491" doc:"The run"`
}

type runNoteIn struct {
	ID   string `path:"id" maxLength:"48" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" example:"f8c1a491" doc:"The run"`
	Body *api.NoteBody
}

type cancelIn struct {
	ID   string `path:"id" maxLength:"48" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" example:"f8c1a491" doc:"The run"`
	Body *api.CancelBody
}

type startRunIn struct {
	Body *api.RunBody
}

type resumeIn struct {
	ID   string `path:"id" maxLength:"48" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" example:"f8c1a491" doc:"The run"`
	Body *api.RunBody
}

type answerIn struct {
	ID   string `path:"id" maxLength:"48" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" example:"f8c1a491" doc:"The run"`
	Step string `path:"step" maxLength:"64" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" example:"review" doc:"The step"`
	Body *api.AnswerBody
}

// runRoutes are the routes about runs of workflows.
func runRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"list-runs", get, "/runs", "The runs of workflows",
			"The newest first, without their steps.",
			answer((*Server).runs),
		},
		{
			"start-run", post, "/runs", "Start a run of a workflow",
			"The workflow is read and checked first; status 422 lists every fault with file, line and column, and nothing has begun. The answer comes when the run is durable.",
			created(answer((*Server).startRun)),
		},
		{
			"get-run", get, "/runs/{id}", "One run with its steps",
			"In the order of its plan. `/events` tells of changes as `run/ID` and `run/ID/STEP`.",
			answer((*Server).run),
		},
		{
			"cancel-run", post, "/runs/{id}/cancel", "Cancel a run, or one of its steps",
			"Processes are ended, what was completed stays. A cancelled run can be resumed.",
			answer((*Server).cancelRun),
		},
		{
			"pause-run", post, "/runs/{id}/pause", "Let no further step begin",
			"What is at work finishes.",
			answer((*Server).pauseRun),
		},
		{
			"release-run", post, "/runs/{id}/release", "Let a paused run go on",
			"It goes on where it stood.",
			answer((*Server).releaseRun),
		},
		{
			"resume-run", post, "/runs/{id}/resume", "Have a run that is over go on",
			"From `start_at_step` where one is named, else from whatever failed. Flags that are left out are what they were.",
			answer((*Server).resumeRun),
		},
		{
			"approve-step", post, "/runs/{id}/steps/{step}/approve", "Say yes to a step that waits for people",
			"With `input` where it asks for more. Input that does not fit leaves it waiting, and the reason is in its `bad_input`.",
			reply(false),
		},
		{
			"reject-step", post, "/runs/{id}/steps/{step}/reject", "Say no to a step that waits for people",
			"The run goes back to where the step says, or the step has failed.",
			reply(true),
		},
		{
			"prune-runs", post, "/prune", "Put old runs away",
			"Their folders go to .agents/archive/runs, and nothing is deleted. A run that is at work or waits is never touched.",
			answer((*Server).pruneRuns),
		},
		{
			"list-inbox", get, "/inbox", "What waits for a person",
			"Steps of runs that want an answer, and questions of agents. Whoever has waited longest comes first.",
			answer((*Server).inbox),
		},
	}
}

func (s *Server) runs(ctx context.Context, _ *nothing) (*api.Runs, error) {
	all, err := s.engine.Runs(ctx)
	for i := range all {
		all[i] = *noNulls(all[i])
		all[i].Steps = nil
	}
	return &api.Runs{Runs: some(all)}, err
}

func (s *Server) run(ctx context.Context, in *runIn) (*view.RunView, error) {
	view, err := s.engine.RunByID(ctx, in.ID)
	return noNulls(view), err
}

func (s *Server) startRun(ctx context.Context, in *startRunIn) (*view.RunView, error) {
	if err := mayOrderRun(ctx, "run", ""); err != nil {
		return nil, err
	}
	view, err := s.engine.StartRun(ctx, s.actor(ctx), flagsOf(in.Body))
	return noNulls(view), missing(err)
}

func (s *Server) resumeRun(ctx context.Context, in *resumeIn) (*view.RunView, error) {
	if err := mayOrderRun(ctx, "resume", in.ID); err != nil {
		return nil, err
	}
	view, err := s.engine.ResumeRun(ctx, s.actor(ctx), in.ID, flagsOf(in.Body))
	return noNulls(view), missing(err)
}

// missing tells a file that whoever asks has named, and that is not there, from a failure of ours.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return api.NewProblem(http.StatusUnprocessableEntity, "%s; paths are absolute, or relative to the repository", err)
	}
	return err
}

func flagsOf(b *api.RunBody) view.RunFlags {
	if b == nil {
		return view.RunFlags{}
	}
	return view.RunFlags(*b)
}

func (s *Server) cancelRun(ctx context.Context, in *cancelIn) (*api.Ordered, error) {
	if err := mayOrderRun(ctx, "cancel", in.ID); err != nil {
		return nil, err
	}
	var what api.CancelBody
	if in.Body != nil {
		what = *in.Body
	}
	seq, err := s.engine.CancelRun(ctx, s.actor(ctx), in.ID, what.Step, what.Note)
	return &api.Ordered{Seq: seq}, err
}

// pauseRun is everybody's, as holding the team is: who sees something go wrong may stop it.
func (s *Server) pauseRun(ctx context.Context, in *runNoteIn) (*api.Ordered, error) {
	seq, err := s.engine.PauseRun(ctx, s.actor(ctx), in.ID, noteOf(in.Body))
	return &api.Ordered{Seq: seq}, err
}

func (s *Server) releaseRun(ctx context.Context, in *runNoteIn) (*api.Ordered, error) {
	if err := mayOrderRun(ctx, "release", in.ID); err != nil {
		return nil, err
	}
	seq, err := s.engine.ReleaseRun(ctx, s.actor(ctx), in.ID, noteOf(in.Body))
	return &api.Ordered{Seq: seq}, err
}

// reply is a route that answers a step which waits for people.
func reply(rejected bool) adder {
	event := map[bool]string{false: "approve", true: "reject"}[rejected]
	return answer(func(s *Server, ctx context.Context, in *answerIn) (*api.Ordered, error) {
		if err := mayOrderRun(ctx, event, in.ID); err != nil {
			return nil, err
		}
		said := view.StepAnswer{Rejected: rejected}
		if in.Body != nil {
			said.Note, said.Input = in.Body.Note, in.Body.Input
		}
		if err := object(said.Input); err != nil {
			return nil, err
		}
		seq, err := s.engine.Answer(ctx, s.actor(ctx), in.ID, in.Step, said)
		return &api.Ordered{Seq: seq}, err
	})
}

// object says what is wrong with an input that is no JSON object; whether it fits what the step
// asks for is the engine's to say.
func object(input string) error {
	if input == "" {
		return nil
	}
	var fields map[string]json.RawMessage
	err := json.Unmarshal([]byte(input), &fields)
	switch {
	case err != nil:
		err = fmt.Errorf("the input is no JSON object: %w", err)
	case fields == nil:
		err = errors.New("the input is no JSON object: it is null")
	default:
		return nil
	}
	p := api.NewProblem(http.StatusUnprocessableEntity, "%s", err)
	p.Errors = []api.Fault{{Message: err.Error(), Location: "body.input", Value: api.Shorten(input)}}
	return p
}

type pruneIn struct{ Body *api.PruneBody }

func (s *Server) pruneRuns(ctx context.Context, in *pruneIn) (*api.Pruned, error) {
	if err := mayOrderRun(ctx, "prune", ""); err != nil {
		return nil, err
	}
	var what api.PruneBody
	if in.Body != nil {
		what = *in.Body
	}
	if what.Keep == nil && what.OlderThanMS == nil { // an order without words must not put everything away
		p := api.NewProblem(http.StatusUnprocessableEntity, "which runs? Give keep, older_than_ms, or both")
		p.Errors = []api.Fault{{Message: "neither keep nor older_than_ms is given", Location: "body"}}
		return nil, p
	}
	keep, older := 0, time.Duration(0)
	if what.Keep != nil {
		keep = *what.Keep
	}
	if what.OlderThanMS != nil {
		older = time.Duration(*what.OlderThanMS) * time.Millisecond
	}
	done, err := s.engine.PruneRuns(ctx, s.actor(ctx), keep, older, what.All, what.DryRun)
	return &api.Pruned{Runs: some(done)}, err
}

func (s *Server) inbox(ctx context.Context, _ *nothing) (*api.Inbox, error) {
	items, err := s.engine.Inbox(ctx)
	for i := range items {
		items[i].Artifacts, items[i].Logs = some(items[i].Artifacts), some(items[i].Logs)
		if q := items[i].Question; q != nil {
			noNullsIn(q)
		}
	}
	return &api.Inbox{Items: some(items)}, err
}

// noNulls is a run in which no list is null.
func noNulls(v view.RunView) *view.RunView {
	v.Waits = some(v.Waits)
	for i := range v.Steps {
		step := &v.Steps[i]
		step.Needs, step.Artifacts, step.Logs = some(step.Needs), some(step.Artifacts), some(step.Logs)
		if step.Metrics == nil {
			step.Metrics = map[string]string{}
		}
	}
	return &v
}
