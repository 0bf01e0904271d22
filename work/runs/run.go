package runs

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

const warningsMax = 20 // kept of one workflow's file

// runRequest is a validated run that has not started. Preparing it changes nothing.
type runRequest struct {
	id       string
	repo     string
	plan     workflow.Plan
	options  workflow.Options
	settings team.RunSettings
	how      howRun
	env      map[string]string

	task *state.Plan // of a task that begins; nil: it is none, or goes on

	freed      bool   // an archived run had this name, whose folder is gone
	leaseFloor uint64 // its last lease
}

// CheckWorkflow reads a workflow and reports every error in it before anything starts, or else warnings. The
// error is *runstate.FileFaults with file, line and column, or a read error.
func CheckWorkflow(flags view.RunFlags, conf *config.Config) (warnings []string, err error) {
	req, err := prepareRun(flags, conf)
	if err != nil {
		return nil, err
	}
	return req.how.Warnings, nil
}

// inRepo sets the repository if the flags name none.
func (c *Controller) inRepo(flags view.RunFlags) view.RunFlags {
	flags.Repo = cmp.Or(flags.Repo, c.opts.Config.Dir)
	return flags
}

func prepareRun(flags view.RunFlags, conf *config.Config) (*runRequest, error) {
	repo, err := sessions.SettledDir(cmp.Or(flags.Repo, conf.Dir))
	if err != nil {
		return nil, unread(clip.Text(cmp.Or(flags.RunID, "new"), 64), err)
	}
	in := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(repo, path)
	}
	req := &runRequest{id: cmp.Or(flags.RunID, newRunID()), repo: repo, env: map[string]string{}}
	if !nameOfRun.MatchString(req.id) {
		return nil, worktree.RefuseRun(clip.Text(req.id, 64),
			"a run's name is made of letters, digits, dot, dash and underscore, begins with no dot or dash, and has 48 characters at most")
	}
	req.how = howRun{
		Workflow: in(flags.Workflow), Wrapper: in(flags.Wrapper), WrapperArgs: flags.WrapperArgs, Template: flags.CommandTemplate,
		GateFile: in(flags.GateStateFile), PollMS: flags.PollIntervalMS, LogsDir: in(flags.LogsDir), Workdir: in(flags.Workdir),
		ReportSchema: in(flags.ReportSchema), WorktreeKeep: flags.WorktreeKeep,
	}
	for _, pair := range flags.Env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" || strings.ContainsRune(pair, 0) {
			return nil, worktree.RefuseRun(req.id, fmt.Sprintf("--env %q is not NAME=VALUE", clip.Text(name, 64)))
		}
		req.env[name] = value
		req.how.EnvNames = append(req.how.EnvNames, name)
	}
	req.options = optionsOf(flags, workflow.DefaultOptions(runtime.NumCPU()))
	if problems := req.options.Check(); len(problems) > 0 {
		return nil, worktree.RefuseRun(req.id, strings.Join(problems, "; "))
	}
	if flags.Workflow == "" {
		return nil, worktree.RefuseRun(req.id, "it has no workflow; name one with --workflow FILE")
	}
	read, err := runstate.ReadWorkflow(req.how.Workflow, runstate.PromptPlaces{Repo: repo, Beside: filepath.Dir(req.how.Workflow)})
	if read == nil {
		return nil, unread(req.id, err)
	}
	var faults *runstate.FileFaults
	if errors.As(err, &faults) {
		return nil, faults.With(playableFaults(read, req.how, conf))
	}
	req.plan = read.Plan
	for i, w := range read.Warnings {
		if i == warningsMax {
			req.how.Warnings = append(req.how.Warnings, fmt.Sprintf("%d more fields of the workflow have no effect", len(read.Warnings)-i))
			break
		}
		req.how.Warnings = append(req.how.Warnings, clip.Text(w.Error(), sessions.TextBytesMax))
	}
	if err := playable(read, req.how, conf); err != nil {
		return nil, err
	}
	req.settings = team.RunSettings{
		Wrapped: req.how.Wrapper != "" || req.how.Template != "", AtLimit: team.AtLimit(flags.CostLimitAction),
	}
	if flags.DailyCostLimit != nil {
		req.settings.CostPerDayUSD = *flags.DailyCostLimit
	}
	return req, nil
}

// optionsOf applies the flags to the default options.
func optionsOf(flags view.RunFlags, o workflow.Options) workflow.Options {
	set := func(into *int, from *int) {
		if from != nil {
			*into = *from
		}
	}
	set(&o.MaxAttempts, flags.MaxAttempts)
	set(&o.MaxIterations, flags.MaxIterations)
	set(&o.SideBySide, flags.SideBySide)
	o.PauseForHumans = (o.PauseForHumans || flags.PauseForHumans) && !flags.Unattended
	o.GateFile = o.GateFile || flags.GateStateFile != ""
	return o
}

// newRunID makes a run ID in the format of seed 004: eight hex digits.
func newRunID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // rand.Read does not fail
	return hex.EncodeToString(b[:])
}

func runsDir(repo string) string { return filepath.Join(repo, ".agents", "runs") }

// StartRun starts a run of a workflow. It returns after the start is durable. The error is
// *runstate.FileFaults if the workflow is invalid, and *table.Refusal if the run cannot start.
func (c *Controller) StartRun(ctx context.Context, by change.Actor, flags view.RunFlags) (view.RunView, error) {
	if flags.Task != nil {
		return c.startTask(ctx, by, *flags.Task, taskStart{})
	}
	req, err := prepareRun(c.inRepo(flags), c.opts.Config)
	if err != nil {
		return view.RunView{}, err
	}
	dir := filepath.Join(runsDir(req.repo), req.id)
	if err := c.freeName(ctx, by, req); err != nil {
		return view.RunView{}, err
	}
	release, err := c.reserve(ctx, req.id)
	if err != nil {
		return view.RunView{}, err
	}
	defer release()
	if _, err := os.Lstat(filepath.Join(dir, runstate.RunStateName)); err == nil {
		return view.RunView{}, refuseTaken(req.id)
	}
	if flags.GitWorktree {
		if err := c.makeWorktree(ctx, req, flags); err != nil {
			return view.RunView{}, err
		}
	}
	asked := workflow.RunAsked{
		ID: workflow.RunID(req.id), Plan: req.plan, Options: req.options, By: by.ID,
		RepoDir: req.repo, ReportsDir: filepath.Join(dir, "reports"), ManualInputsDir: filepath.Join(dir, "manual_inputs"),
		LeaseFloor: req.leaseFloor,
	}
	view, err := c.begin(ctx, by, req, asked)
	if _, ok := errors.AsType[*table.Refusal](err); ok { // after any other error the run may have started
		err = errors.Join(err, c.dropWorktree(ctx, req))
		removeEmpty(dir)
	}
	return view, err
}

// runFolders are the folders that every run's folder contains.
var runFolders = []string{"reports", "logs", "artifacts", "manual_inputs"}

// removeEmpty removes the empty folders of a refused run. Folders with content remain.
func removeEmpty(dir string) {
	for _, name := range runFolders {
		_ = os.Remove(filepath.Join(dir, name))
	}
	_ = os.Remove(dir)
}

// ownFolder reports whether a run's steps work in its own worktree or clone.
func ownFolder(how howRun) bool {
	if how.Task != nil {
		return true
	}
	if how.Worktree == "" {
		return false
	}
	rel, err := filepath.Rel(how.Worktree, how.Workdir)
	return err == nil && filepath.IsLocal(rel)
}

// begin starts or resumes a run with a prepared request.
func (c *Controller) begin(ctx context.Context, by change.Actor, req *runRequest, asked workflow.Input) (view.RunView, error) {
	for _, name := range runFolders {
		if err := os.MkdirAll(filepath.Join(runsDir(req.repo), req.id, name), DirMode); err != nil {
			return view.RunView{}, fmt.Errorf("make the run's folder: %w", err)
		}
	}
	how, err := json.Marshal(req.how)
	if err != nil {
		return view.RunView{}, err
	}
	req.settings.How, req.settings.OwnFolder, req.settings.Outside = string(how), ownFolder(req.how), isOutside(c.opts.Config.Dir, req.how)
	if err := c.loop.View(ctx, func(*team.Team) {
		m := c.RunMember(req.id)
		maps.Copy(m.env, req.env)
	}); err != nil {
		return view.RunView{}, err
	}
	begun := team.RunBegun{Asked: asked, Settings: req.settings, Freed: req.freed, Task: req.task}
	if _, err := c.SubmitRun(ctx, by, req.id, begun); err != nil {
		return view.RunView{}, err
	}
	return c.RunByID(ctx, req.id)
}

// ResumeRun resumes a run that has ended, from a given step or with its failed steps. A run that
// exists only as a file is imported first. Without an ID it resumes the run whose file was written
// last.
func (c *Controller) ResumeRun(ctx context.Context, by change.Actor, id string, flags view.RunFlags) (view.RunView, error) {
	flags = c.inRepo(flags)
	repo, err := sessions.SettledDir(flags.Repo)
	if err != nil {
		return view.RunView{}, err
	}
	if id == "" {
		if id, err = newestRun(repo); err != nil {
			return view.RunView{}, err
		}
	}
	if !filepath.IsLocal(id) || strings.ContainsRune(id, filepath.Separator) {
		return view.RunView{}, &team.Unknown{What: "run", Name: id}
	}
	var was *runRequest
	var pen *stateWriter
	archived, completed := false, false
	if err := c.loop.View(ctx, func(t *team.Team) { _, archived = t.Archive[id] }); err != nil {
		return view.RunView{}, err
	}
	if archived {
		if err := c.RecallRun(ctx, by, id); err != nil {
			return view.RunView{}, err
		}
	}
	if err := c.loop.View(ctx, func(t *team.Team) {
		if r := t.Runs[id]; r != nil {
			completed, pen = r.Status() == workflow.IsCompleted, c.RunMember(id).state
			was = &runRequest{
				id: id, repo: r.RepoDir, options: r.Options, settings: t.Notes[id].Settings, how: howOf(t, id),
				env: map[string]string{},
			}
		}
	}); err != nil {
		return view.RunView{}, err
	}
	if was == nil {
		return c.importRun(ctx, by, id, repo, flags)
	}
	if was.how.Task != nil {
		return c.resumeTask(ctx, by, was, flags)
	}
	if completed && flags.StartAtStep == "" { // then there is nothing to do, unless its file was edited
		if taken, err := pen.takeEdit(ctx, by); err != nil || !taken {
			view, verr := c.RunByID(ctx, id)
			return view, cmp.Or(err, verr)
		}
	}
	req, err := was.under(flags, c.opts.Config)
	if err != nil {
		return view.RunView{}, err
	}
	release, err := worktree.TakeCheckout(ctx, req.how.Worktree)
	if err != nil {
		return view.RunView{}, err
	}
	defer release()
	if err := c.reviveWorktree(ctx, id, req.repo, req.how); err != nil {
		return view.RunView{}, err
	}
	if _, err := pen.takeEdit(ctx, by); err != nil {
		return view.RunView{}, err
	}
	asked := workflow.ResumeAsked{From: workflow.StepID(flags.StartAtStep), By: by.ID, Options: &req.options}
	if len(req.plan.Steps) > 0 {
		asked.Plan = &req.plan
	}
	return c.begin(ctx, by, req, asked)
}

// under combines a recorded run with the current flags. It reads the workflow again if its file
// still exists.
func (was *runRequest) under(flags view.RunFlags, conf *config.Config) (*runRequest, error) {
	flags.Repo, flags.RunID = was.repo, was.id
	flags.Workflow = cmp.Or(flags.Workflow, was.how.Workflow)
	if flags.Wrapper == "" && flags.CommandTemplate == "" { // one that is named now takes the place of both
		flags.Wrapper, flags.CommandTemplate = was.how.Wrapper, was.how.Template
	}
	if len(flags.WrapperArgs) == 0 && (flags.Wrapper == "") == (was.how.Wrapper == "") {
		flags.WrapperArgs = was.how.WrapperArgs
	}
	flags.GateStateFile = cmp.Or(flags.GateStateFile, was.how.GateFile)
	flags.PollIntervalMS = cmp.Or(flags.PollIntervalMS, was.how.PollMS)
	flags.LogsDir, flags.Workdir = cmp.Or(flags.LogsDir, was.how.LogsDir), cmp.Or(flags.Workdir, was.how.Workdir)
	flags.ReportSchema = cmp.Or(flags.ReportSchema, was.how.ReportSchema)
	flags.CostLimitAction = cmp.Or(flags.CostLimitAction, string(was.settings.AtLimit))
	if flags.DailyCostLimit == nil {
		flags.DailyCostLimit = &was.settings.CostPerDayUSD
	}
	req, err := prepareRun(flags, conf)
	if err != nil {
		return nil, err
	}
	req.options, req.settings.After = optionsOf(flags, was.options), was.settings.After
	for _, name := range was.how.EnvNames {
		if !slices.Contains(req.how.EnvNames, name) {
			req.how.EnvNames = append(req.how.EnvNames, name)
		}
	}
	req.how.Worktree, req.how.WorktreeBranch, req.how.WorktreeKeep = was.how.Worktree, was.how.WorktreeBranch,
		was.how.WorktreeKeep || flags.WorktreeKeep
	if req.how.Worktree != "" && flags.Workdir == "" {
		req.how.Workdir = was.how.Workdir
	}
	return req, nil
}

// importRun imports a run that another program started, or that is missing from the journal, and
// resumes it.
func (c *Controller) importRun(ctx context.Context, by change.Actor, id, repo string, flags view.RunFlags) (view.RunView, error) {
	path := filepath.Join(runsDir(repo), id, runstate.RunStateName)
	pen := &stateWriter{e: c, m: &runMember{id: id}, begun: true}
	seen, err := pen.look(path) // before it is read: a later version is not known
	var state runstate.RunState
	if err == nil {
		state, err = runstate.ReadRunState(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return view.RunView{}, &team.Unknown{What: "run", Name: id, Known: c.knownRuns(ctx)}
	}
	if err != nil {
		return view.RunView{}, err
	}
	flags.RunID = id
	if flags.Workflow == "" {
		return view.RunView{}, worktree.RefuseRun(id, "its file does not say which workflow it is of; name that with --workflow FILE")
	}
	req, err := prepareRun(flags, c.opts.Config)
	if err != nil {
		return view.RunView{}, err
	}
	if state.RunID != id {
		return view.RunView{},
			worktree.RefuseRun(id,
				fmt.Sprintf("its file says that it is run %q; give its folder that name, or put the right file there",
					clip.Text(state.RunID, 64)))
	}
	found, err := runstate.StateFoundOf(state, req.plan, req.options, by.ID)
	if err != nil {
		return view.RunView{}, err
	}
	// The run resumes in the folder of its file. The repository may have been moved, and a path in the
	// file must not decide where Fairlead writes.
	dir := filepath.Dir(path)
	found.RepoDir, found.ReportsDir, found.ManualInputsDir = repo, filepath.Join(dir, "reports"), filepath.Join(dir, "manual_inputs")
	pen.files.Confirm(seen)
	pen.taken = seen.Seq
	if err := c.loop.View(ctx, func(*team.Team) {
		pen.m = c.RunMember(id)
		pen.m.state = pen
	}); err != nil {
		return view.RunView{}, err
	}
	if _, err := c.begin(ctx, by, req, found); err != nil {
		return view.RunView{}, err
	}
	if err := c.untilLooked(ctx, id); err != nil {
		return view.RunView{}, err
	}
	if _, err := c.SubmitRun(ctx, by, id, workflow.ResumeAsked{From: workflow.StepID(flags.StartAtStep), By: by.ID}); err != nil {
		return view.RunView{}, err
	}
	return c.RunByID(ctx, id)
}

// untilLooked waits until every step that the imported file lists as RUNNING has been examined.
func (c *Controller) untilLooked(ctx context.Context, id string) error {
	return c.loop.Until(ctx, func(t *team.Team) bool {
		return !slices.ContainsFunc(t.RunActions(id, c.loop.Now()), func(todo team.Action) bool { return todo.Do == team.FindReport })
	})
}

func (c *Controller) knownRuns(ctx context.Context) (ids []string) {
	_ = c.loop.View(ctx, func(t *team.Team) { ids = t.RunIDs() })
	return ids
}

// newestRun finds the run whose file was written last (W12).
func newestRun(repo string) (string, error) {
	paths, _ := filepath.Glob(filepath.Join(runsDir(repo), "*", runstate.RunStateName)) // the pattern is constant
	newest, at := "", ""
	for _, path := range paths {
		state, err := runstate.ReadRunState(path)
		if err == nil && state.UpdatedAt > at { // the time format sorts as text
			newest, at = filepath.Base(filepath.Dir(path)), state.UpdatedAt
		}
	}
	if newest == "" {
		return "", worktree.RefuseRun("",
			"there is no run in "+runsDir(repo)+" to go on with; start one with `fairlead run --workflow FILE`")
	}
	return newest, nil
}

// CancelRun ends a run, or one of its steps (W14).
func (c *Controller) CancelRun(ctx context.Context, by change.Actor, id, step, why string) (uint64, error) {
	return c.SubmitRun(ctx, by, id, workflow.CancelAsked{Step: workflow.StepID(step), By: by.ID, Why: clip.Text(why, loop.NoteBytesMax)})
}

// PauseRun stops new steps from starting. Running steps finish.
func (c *Controller) PauseRun(ctx context.Context, by change.Actor, id, why string) (uint64, error) {
	return c.SubmitRun(ctx, by, id, workflow.PauseAsked{By: by.ID, Why: clip.Text(why, loop.NoteBytesMax)})
}

// ReleaseRun ends a pause. A run that waits for files of another machine goes on without them.
func (c *Controller) ReleaseRun(ctx context.Context, by change.Actor, id, why string) (uint64, error) {
	release, err := c.haveFolder(ctx, id)
	if err != nil {
		return 0, err
	}
	defer release()
	return c.SubmitRun(ctx, by, id, workflow.ReleaseAsked{By: by.ID, Why: clip.Text(why, loop.NoteBytesMax)})
}

// Answer submits a person's answer to a waiting step (W9). It writes the answer to the file that the
// step's agent may read, and then records the decision.
func (c *Controller) Answer(ctx context.Context, by change.Actor, id, step string, answer view.StepAnswer) (uint64, error) {
	c.answers.Lock()
	defer c.answers.Unlock()
	var q *stepQuestion
	var asked task.Asked
	var governs task.Governs
	isTask, dir := false, ""
	if err := c.loop.View(ctx, func(t *team.Team) {
		r := t.Runs[id]
		if r == nil {
			return
		}
		for _, todo := range t.RunActions(id, c.loop.Now()) {
			if s := todo.Step.Lease.Step; todo.Do == team.AskForAnswer && string(s) == step {
				plan, _, _ := r.Find(s)
				q = &stepQuestion{lease: todo.Step.Lease, path: r.InputFile(s), schema: plan.InputSchema}
				if k := t.Tasks[id]; k != nil {
					isTask, asked, governs, dir = true, k.Shown.Asked, k.Shown.Governs, runDir(r)
				}
			}
		}
	}); err != nil {
		return 0, err
	}
	if q == nil {
		return 0, c.noQuestion(ctx, id, step)
	}
	if isTask {
		if err := NotByHand(task.Task{ID: id, Run: dir}, "answer"); err != nil {
			return 0, err
		}
	}
	if err := c.stillShown(ctx, id, step, answer.Shown); err != nil {
		return 0, err
	}
	if err := named(id, answer.Tree, asked); err != nil {
		return 0, err
	}
	content, err := answerFile(by, answer)
	if err != nil {
		return 0, refuseAnswer(id, step, err)
	}
	in, err := runstate.ParseManualInput("the answer", content, q.schema)
	if err != nil {
		return 0, refuseAnswer(id, step, err)
	}
	if in.Approved {
		if err := allowed(id, answer.Governing, governs); err != nil {
			return 0, err
		}
	} else {
		governs.Hash = ""
	}
	what := workflow.AnswerRead{
		Lease: q.lease, Rejected: !in.Approved, By: by.ID, Note: in.Note,
		Record: workflow.Answer{Tree: asked.Tree, Named: answer.Tree != "", Governing: governs.Hash},
	}
	if isTask { // no program reads a file of its answer, and none approves it
		return c.answerTask(ctx, by, id, dir, what)
	}
	if err := os.MkdirAll(filepath.Dir(q.path), DirMode); err != nil {
		return 0, fmt.Errorf("keep the answer: %w", err)
	}
	if err := file.ReplaceUnsynced(q.path, content, workspace.StateMode); err != nil {
		return 0, fmt.Errorf("keep the answer: %w", err)
	}
	return c.answerRun(ctx, by, id, what)
}

// answerTask answers the question about a task. The request that a rejection makes is there before its agent can begin.
func (c *Controller) answerTask(ctx context.Context, by change.Actor, id, dir string, what workflow.AnswerRead) (uint64, error) {
	remove := func() {}
	if what.Rejected {
		var err error
		if remove, err = keepRejection(ctx, dir, what.Note); err != nil {
			return 0, err
		}
	}
	seq, err := c.answerRun(ctx, by, id, what)
	if errors.As(err, new(*table.Refusal)) { // after any other error it may have been taken
		remove()
	}
	return seq, err
}

// noQuestion reports that a step does not wait for an answer, and what its state is.
func (c *Controller) noQuestion(ctx context.Context, id, step string) error {
	shown, err := c.RunByID(ctx, id)
	if err != nil {
		return err
	}
	var known []string
	for i := range shown.Steps {
		s := &shown.Steps[i]
		known = append(known, s.ID)
		if s.ID == step {
			return &table.Refusal{
				Subject: "step " + step + " of run " + id, Event: "answer_read", State: s.Status, Row: "W9",
				Reason: "no person is asked about it now: it was answered, or the run went on" + view.Because(s.WaitsFor),
			}
		}
	}
	return &team.Unknown{What: "step of run " + id, Name: clip.Text(step, 64), Known: known[:min(len(known), 50)]}
}

// answerFile encodes an answer for the file at manual_input_path.
func answerFile(by change.Actor, answer view.StepAnswer) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if answer.Input != "" {
		if err := json.Unmarshal([]byte(answer.Input), &fields); err != nil {
			return nil, fmt.Errorf("the input is no JSON object: %w", err)
		}
		if fields == nil {
			return nil, errors.New("the input is no JSON object: it is null")
		}
	}
	put := func(name string, value any) {
		text, _ := json.Marshal(value) // marshalling strings and booleans cannot fail
		fields[name] = text
	}
	if _, said := fields["approved"]; !said || answer.Rejected {
		put("approved", !answer.Rejected)
	}
	if answer.Note != "" {
		put("note", answer.Note)
	}
	put("by", by.ID)
	return json.MarshalIndent(fields, "", "  ")
}

// unread refuses a run because of a path that the caller named and that cannot be read, such as that of a device. What the file says,
// and that there is none, are errors of their own.
func unread(id string, err error) error {
	if errors.As(err, new(*runstate.FileFaults)) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return worktree.RefuseRun(id, err.Error())
}

func refuseTaken(id string) error {
	return worktree.RefuseRun(id,
		"there is a run of that name already; `fairlead run resume "+id+"` goes on with it, or choose another --run-id")
}

func refuseAnswer(id, step string, err error) error {
	return &table.Refusal{
		Subject: "step " + step + " of run " + id, Event: "answer_read", State: string(workflow.Waiting), Row: "W10",
		Reason: err.Error(),
	}
}
