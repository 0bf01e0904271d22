package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/fromhost"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/files/runstate"
)

type answerIn struct {
	RunPath
	Step string `path:"step" maxLength:"64" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" example:"review" doc:"The step"`
	Body *api.AnswerBody
}

// runRoutes returns the routes about runs of workflows.
func runRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"list-runs", get, "/runs", "List the runs of workflows",
			"Newest first, without their steps.",
			asOf(answer(handleRuns)),
		},
		{
			"list-workflows", get, "/workflows", "List the workflows that can be run",
			"Those that fairlead.yaml names, and the YAML files of the repository with a name and steps, down to five folders. Hidden folders are left out, except .fairlead/workflows and .agents/workflows. Each file is read and checked.",
			answerWithin(time.Minute, handleWorkflows),
		},
		{
			"start-run", post, startRunPath, "Start a run of a workflow",
			"Fairlead reads and checks the workflow first; status 422 lists every fault with file, line and column, and no run exists then. The request returns when the run is durable.",
			created(withFiles(answer(handleStartRun))),
		},
		{
			"get-run", get, "/runs/{id}", "Show one run with its steps",
			"The steps are in the order of the plan. Changes are in `/events` as `run/ID` and `run/ID/STEP`.",
			asOf(answer(handleRun)),
		},
		{
			"cancel-run", post, "/runs/{id}/cancel", "Cancel a run, or one of its steps",
			"Running processes are ended; completed steps keep their results. A cancelled run can be resumed.",
			ordered(
				func(by caller.Identity, in *forRun[*api.CancelBody]) error { return by.MayOrderRun("cancel", in.ID) },
				func(ctx context.Context, e *app.App, by change.Actor, in *forRun[*api.CancelBody]) (uint64, error) {
					return e.Runs.CancelRun(ctx, by, in.ID, or(in.Body).Step, or(in.Body).Note)
				},
			),
		},
		{
			"pause-run", post, "/runs/{id}/pause", "Pause a run",
			"No further step begins; running steps finish.",
			answer(handlePauseRun),
		},
		{
			"release-run", post, "/runs/{id}/release", "Continue a paused run",
			"The run continues where it was paused.",
			ordered(
				func(by caller.Identity, in *runNoteIn) error { return by.MayOrderRun("release", in.ID) },
				func(ctx context.Context, e *app.App, by change.Actor, in *runNoteIn) (uint64, error) {
					return e.Runs.ReleaseRun(ctx, by, in.ID, or(in.Body).Note)
				},
			),
		},
		{
			"resume-run", post, "/runs/{id}/resume", "Resume a run that is over",
			"The run resumes at `start_at_step`, or at the failed steps without it. Flags that are left out keep their values.",
			answer(handleResumeRun),
		},
		{
			"approve-step", post, "/runs/{id}/steps/{step}/approve", "Approve a step that waits for a person",
			"`input` is required if the step asks for it. After invalid input the step still waits, and its `bad_input` has the reason. With `shown` it is refused if what is asked was changed since the inbox showed it.",
			reply(false),
		},
		{
			"reject-step", post, "/runs/{id}/steps/{step}/reject", "Reject a step that waits for a person",
			"The run goes back to the step that the workflow names, or the step fails. `shown` is as for `approve`.",
			reply(true),
		},
		{
			"prune-runs", post, "/prune", "Archive old runs",
			"Their folders are moved to .agents/archive/runs; nothing is deleted. Runs that are running or waiting are never archived.",
			answer(handlePruneRuns),
		},
		{
			"list-inbox", get, "/inbox", "List what needs a person",
			"Steps of runs that need an answer, agents' questions, agents that gave up, runs that failed, and daily limits that stop work. What holds up other work comes first, then what waits for an answer, then what failed; within each, the longest wait comes first.",
			asOf(answer(handleInbox)),
		},
		{
			"list-working", get, "/working", "List what runs now",
			"The sessions of agents and the steps without an agent, each with the last line of its output. The longest running comes first. The output of at most 100 of them is read.",
			asOf(answer(func(ctx context.Context, s *Server, _ *nothing) (*api.Working, error) {
				all, err := s.engine.Status.Working(ctx)
				return &api.Working{Working: some(all)}, err
			})),
		},
	}
}

func handleWorkflows(_ context.Context, s *Server, _ *nothing) (*api.Workflows, error) {
	var named []string
	if s.opts.Workflows != nil {
		named = s.opts.Workflows()
	}
	found, cut := runstate.FindWorkflows(s.opts.Dir, named)
	all := &api.Workflows{Workflows: make([]api.Workflow, 0, len(found)), More: cut}
	for _, f := range found {
		one := api.Workflow{Path: f.Path, Fault: f.Fault}
		if f.WorkflowFile != nil {
			one.Name, one.Description, one.Steps = f.Plan.Name, f.Plan.Description, len(f.Plan.Steps)
			one.Agents, one.Asks = f.AgentsAndPeople()
		}
		all.Workflows = append(all.Workflows, one)
	}
	return all, nil
}

func handleRuns(ctx context.Context, s *Server, _ *nothing) (*api.Runs, error) {
	all, err := s.engine.Runs.Runs(ctx)
	var overlaps map[string][]view.TaskOverlap
	if _, past := ctx.Value(atKey{}).(string); !past { // what files have now says nothing about then
		overlaps = s.engine.Tasks.Overlaps(ctx, all)
	}
	for i := range all {
		all[i] = *noNulls(all[i])
		if all[i].Steps = nil; all[i].Task != nil {
			all[i].Task.Overlaps = overlaps[all[i].ID]
		}
	}
	return &api.Runs{Runs: some(all)}, err
}

func handleRun(ctx context.Context, s *Server, in *RunPath) (*view.RunView, error) {
	view, err := s.engine.Runs.RunByID(ctx, in.ID)
	return noNulls(view), err
}

const startRunPath = "/runs"

// withFiles is a route that accepts files in its body.
func withFiles(add adder) adder {
	return func(s *Server, h huma.API, op huma.Operation) {
		op.MaxBodyBytes = api.StartRunBytesMax + 1 // one byte more than the limit, so that a longer body is detected
		add(s, h, op)
	}
}

func handleStartRun(ctx context.Context, s *Server, in *only[*api.RunBody]) (*view.RunView, error) {
	if err := identity(ctx).MayOrderRun("run", ""); err != nil {
		return nil, err
	}
	flags := view.RunFlags(or(in.Body))
	var err error
	if flags.Workflow, err = fromhost.Workflow(ctx, "start-run", flags.Workflow, s.opts.Dir, s.opts.Listed); err != nil {
		return nil, err
	}
	view, err := s.engine.Runs.StartRun(ctx, s.actor(ctx), flags)
	return noNulls(view), missing(err)
}

func handleResumeRun(ctx context.Context, s *Server, in *forRun[*api.RunBody]) (*view.RunView, error) {
	if err := identity(ctx).MayOrderRun("resume", in.ID); err != nil {
		return nil, err
	}
	view, err := s.engine.Runs.ResumeRun(ctx, s.actor(ctx), in.ID, view.RunFlags(or(in.Body)))
	return noNulls(view), missing(err)
}

// missing turns the error for a missing file that the caller has named into a problem; other errors
// are unchanged.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return api.NewProblem(http.StatusUnprocessableEntity, "%s; use an absolute path, or one relative to the repository", err)
	}
	return err
}

// handlePauseRun is allowed for every caller, like holding the team, because it only stops work.
func handlePauseRun(ctx context.Context, s *Server, in *runNoteIn) (*api.Ordered, error) {
	seq, err := s.engine.Runs.PauseRun(ctx, s.actor(ctx), in.ID, or(in.Body).Note)
	return &api.Ordered{Seq: seq}, err
}

// reply is a route that answers a step that waits for a person.
func reply(rejected bool) adder {
	event := map[bool]string{false: "approve", true: "reject"}[rejected]
	return answer(func(ctx context.Context, s *Server, in *answerIn) (*api.Ordered, error) {
		if err := identity(ctx).MayOrderRun(event, in.ID); err != nil {
			return nil, err
		}
		b := or(in.Body)
		said := view.StepAnswer{Rejected: rejected, Note: b.Note, Input: b.Input, Shown: b.Shown, Tree: b.Tree, Governing: b.Governing}
		if err := object(said.Input); err != nil {
			return nil, err
		}
		seq, err := s.engine.Runs.Answer(ctx, s.actor(ctx), in.ID, in.Step, said)
		return &api.Ordered{Seq: seq}, err
	})
}

// object returns an error if an input is not a JSON object. The controller checks whether it matches
// the step's schema.
func object(input string) error {
	if input == "" {
		return nil
	}
	var fields map[string]json.RawMessage
	err := json.Unmarshal([]byte(input), &fields)
	switch {
	case err != nil:
		err = fmt.Errorf("the input is not a JSON object: %w", err)
	case fields == nil:
		err = errors.New("the input is not a JSON object: it is null")
	default:
		return nil
	}
	p := api.NewProblem(http.StatusUnprocessableEntity, "%s", err)
	p.Errors = []api.Fault{{Message: err.Error(), Location: "body.input", Value: api.Shorten(input)}}
	return p
}

func handlePruneRuns(ctx context.Context, s *Server, in *only[*api.PruneBody]) (*api.Pruned, error) {
	if err := identity(ctx).MayOrderRun("prune", ""); err != nil {
		return nil, err
	}
	what := or(in.Body)
	if what.Keep == nil && what.OlderThanMS == nil { // an empty request must not archive everything
		p := api.NewProblem(http.StatusUnprocessableEntity, "no runs selected; give keep, older_than_ms, or both")
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
	done, err := s.engine.Runs.PruneRuns(ctx, s.actor(ctx), keep, older, what.All, what.DryRun)
	return &api.Pruned{Runs: some(done)}, err
}

func handleInbox(ctx context.Context, s *Server, _ *nothing) (*api.Inbox, error) {
	items, err := s.engine.Status.Inbox(ctx)
	for i := range items {
		items[i].Artifacts, items[i].Logs, items[i].Blocks = some(items[i].Artifacts), some(items[i].Logs), some(items[i].Blocks)
		if q := items[i].Question; q != nil {
			noNullsIn(q)
		}
	}
	return &api.Inbox{Items: some(items)}, err
}

// noNulls replaces null lists in a run by empty ones.
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
