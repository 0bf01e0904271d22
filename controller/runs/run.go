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

	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/view"
	"github.com/fairlead-dev/fairlead/workspace"
	"github.com/fairlead-dev/fairlead/worktree"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/runfile"
	"github.com/fairlead-dev/fairlead/team"
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
}

// CheckWorkflow reads a workflow and reports every error in it before anything starts, or else warnings. The
// error is *runfile.FileFaults with file, line and column, or a read error.
func CheckWorkflow(flags view.RunFlags, conf *config.Config) (warnings []string, err error) {
	req, err := prepareRun(flags, conf)
	if err != nil {
		return nil, err
	}
	return req.how.Warnings, nil
}

// inRepo sets the repository if the flags name none.
func inRepo(c *RunController, flags view.RunFlags) view.RunFlags {
	flags.Repo = cmp.Or(flags.Repo, c.opts.Config.Dir)
	return flags
}

func prepareRun(flags view.RunFlags, conf *config.Config) (*runRequest, error) {
	repo, err := sessions.SettledDir(cmp.Or(flags.Repo, conf.Dir))
	if err != nil {
		return nil, err
	}
	in := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(repo, path)
	}
	req := &runRequest{id: cmp.Or(flags.RunID, newRunID()), repo: repo, env: map[string]string{}}
	if !nameOfRun().MatchString(req.id) {
		return nil, worktree.RefuseRun(clip.Text(req.id, 64), "a run's name is made of letters, digits, dot, dash and underscore, begins with no dot or dash, and has 48 characters at most")
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
	read, err := runfile.ReadWorkflow(req.how.Workflow, runfile.PromptPlaces{Repo: repo, Beside: filepath.Dir(req.how.Workflow)})
	if err != nil {
		return nil, err
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

// playable reports the steps that cannot be run, with their positions in the file.
func playable(read *runfile.WorkflowFile, how howRun, conf *config.Config) error {
	if how.Template != "" {
		if err := runfile.CheckTemplate(how.Template); err != nil {
			return worktree.RefuseRun(read.Plan.Name, "--command-template: "+err.Error())
		}
	}
	if how.Wrapper != "" {
		if info, err := os.Stat(how.Wrapper); err != nil || info.IsDir() {
			return worktree.RefuseRun(read.Plan.Name, fmt.Sprintf("--wrapper %s is no file that could be run", how.Wrapper))
		}
	}
	if how.Template != "" || how.Wrapper != "" {
		return nil
	}
	known := map[string]bool{}
	var names []string
	for i := range conf.Agents {
		if conf.Agents[i].Loop != config.LoopForeign {
			known[conf.Agents[i].Name] = true
			names = append(names, conf.Agents[i].Name)
		}
	}
	var faults runfile.FileFaults
	for i, step := range read.Plan.Steps {
		if len(step.Command) > 0 || known[step.Agent] {
			continue
		}
		fault := read.Place(workflow.Fault{Step: i, ID: step.ID, Field: "agent"})
		fault.Text = fmt.Sprintf("no agent %q is configured (there are %s), and the step has no command; configure it in fairlead.yaml, or run with --wrapper", step.Agent, cmp.Or(strings.Join(names, ", "), "none"))
		faults.List = append(faults.List, fault)
	}
	if len(faults.List) > 0 {
		return &faults
	}
	return nil
}

// newRunID makes a run ID in the format of seed 004: eight hex digits.
func newRunID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // rand.Read does not fail
	return hex.EncodeToString(b[:])
}

func runsDir(repo string) string { return filepath.Join(repo, ".agents", "runs") }

// StartRun starts a run of a workflow. It returns after the start is durable. The error is
// *runfile.FileFaults if the workflow is invalid, and *machine.Refusal if the run cannot start.
func (c *RunController) StartRun(ctx context.Context, by seam.Actor, flags view.RunFlags) (view.RunView, error) {
	if flags.Task != nil {
		return startTask(ctx, c, by, *flags.Task, false)
	}
	req, err := prepareRun(inRepo(c, flags), c.opts.Config)
	if err != nil {
		return view.RunView{}, err
	}
	release, err := reserve(ctx, c, req.id)
	if err != nil {
		return view.RunView{}, err
	}
	defer release()
	dir := filepath.Join(runsDir(req.repo), req.id)
	if _, err := os.Lstat(filepath.Join(dir, runfile.RunStateName)); err == nil {
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
	}
	view, err := c.begin(ctx, by, req, asked)
	if _, ok := errors.AsType[*machine.Refusal](err); ok { // after any other error the run may have started
		err = errors.Join(err, c.dropWorktree(ctx, req))
		removeEmpty(dir)
	}
	return view, err
}

func refuseTaken(id string) error {
	return worktree.RefuseRun(id, "there is a run of that name already; `fairlead run resume "+id+"` goes on with it, or choose another --run-id")
}

// reserve gives the name of a run to one order until release is called. Of several orders for one name
// the others are refused before they make anything: what they made and removed would be another run's.
func reserve(ctx context.Context, c *RunController, id string) (release func(), err error) {
	taken := false
	err = c.View(ctx, func(t *team.Team) {
		taken = t.Runs[id] != nil || c.starting[id]
		if !taken {
			c.starting[id] = true
		}
	})
	switch {
	case err != nil:
		return nil, err
	case taken:
		return nil, refuseTaken(id)
	}
	return func() {
		_ = c.View(context.WithoutCancel(ctx), func(*team.Team) { delete(c.starting, id) }) // it fails only if the loop has stopped
	}, nil
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
func (c *RunController) begin(ctx context.Context, by seam.Actor, req *runRequest, asked workflow.Input) (view.RunView, error) {
	for _, name := range runFolders {
		if err := os.MkdirAll(filepath.Join(runsDir(req.repo), req.id, name), DirMode); err != nil {
			return view.RunView{}, fmt.Errorf("make the run's folder: %w", err)
		}
	}
	how, err := json.Marshal(req.how)
	if err != nil {
		return view.RunView{}, err
	}
	req.settings.How, req.settings.OwnFolder, req.settings.Outside = string(how), ownFolder(req.how), outside(c.opts.Config.Dir, req.how)
	if err := c.View(ctx, func(*team.Team) {
		m := c.RunMember(req.id)
		maps.Copy(m.env, req.env)
	}); err != nil {
		return view.RunView{}, err
	}
	if _, err := c.SubmitRun(ctx, by, req.id, team.RunBegun{Asked: asked, Settings: req.settings}); err != nil {
		return view.RunView{}, err
	}
	return c.RunByID(ctx, req.id)
}

// ResumeRun resumes a run that has ended, from a given step or with its failed steps. A run that
// exists only as a file is imported first. Without an ID it resumes the run whose file was written
// last.
func (c *RunController) ResumeRun(ctx context.Context, by seam.Actor, id string, flags view.RunFlags) (view.RunView, error) {
	flags = inRepo(c, flags)
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
	archived, completed := false, false
	if err := c.View(ctx, func(t *team.Team) { _, archived = t.Archive[id] }); err != nil {
		return view.RunView{}, err
	}
	if archived {
		if err := c.RecallRun(ctx, by, id); err != nil {
			return view.RunView{}, err
		}
	}
	if err := c.View(ctx, func(t *team.Team) {
		if r := t.Runs[id]; r != nil {
			completed = r.Status() == workflow.IsCompleted
			was = &runRequest{id: id, repo: r.RepoDir, options: r.Options, settings: t.Notes[id].Settings, how: howOf(t, id), env: map[string]string{}}
		}
	}); err != nil {
		return view.RunView{}, err
	}
	if completed && flags.StartAtStep == "" {
		return c.RunByID(ctx, id) // there is nothing to do
	}
	if was == nil {
		return c.importRun(ctx, by, id, repo, flags)
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
	flags.Wrapper = cmp.Or(flags.Wrapper, was.how.Wrapper)
	if len(flags.WrapperArgs) == 0 {
		flags.WrapperArgs = was.how.WrapperArgs
	}
	flags.CommandTemplate = cmp.Or(flags.CommandTemplate, was.how.Template)
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
	req.options, req.settings.After, req.settings.OneAtATime = optionsOf(flags, was.options), was.settings.After, was.settings.OneAtATime
	for _, name := range was.how.EnvNames {
		if !slices.Contains(req.how.EnvNames, name) {
			req.how.EnvNames = append(req.how.EnvNames, name)
		}
	}
	req.how.Task = was.how.Task
	req.how.Worktree, req.how.WorktreeKeep = was.how.Worktree, was.how.WorktreeKeep || flags.WorktreeKeep
	if req.how.Worktree != "" && flags.Workdir == "" {
		req.how.Workdir = was.how.Workdir
	}
	return req, nil
}

// importRun imports a run that another program started, or that is missing from the journal, and
// resumes it.
func (c *RunController) importRun(ctx context.Context, by seam.Actor, id, repo string, flags view.RunFlags) (view.RunView, error) {
	path := filepath.Join(runsDir(repo), id, runfile.RunStateName)
	taken, err := os.Lstat(path) // before it is read: a later version is not known
	var state runfile.RunState
	if err == nil {
		state, err = runfile.ReadRunState(path)
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
		return view.RunView{}, worktree.RefuseRun(id, fmt.Sprintf("its file says that it is run %q; give its folder that name, or put the right file there", clip.Text(state.RunID, 64)))
	}
	found, err := runfile.StateFoundOf(state, req.plan, req.options, by.ID)
	if err != nil {
		return view.RunView{}, err
	}
	// The run resumes in the folder of its file. The repository may have been moved, and a path in the
	// file must not decide where Fairlead writes.
	dir := filepath.Dir(path)
	found.RepoDir, found.ReportsDir, found.ManualInputsDir = repo, filepath.Join(dir, "reports"), filepath.Join(dir, "manual_inputs")
	if err := c.View(ctx, func(*team.Team) { c.RunMember(id).taken = taken }); err != nil {
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
func (c *RunController) untilLooked(ctx context.Context, id string) error {
	return c.Until(ctx, func(t *team.Team) bool {
		return !slices.ContainsFunc(t.RunActions(id, c.Now()), func(todo team.Action) bool { return todo.Do == team.LookForIt })
	})
}

func (c *RunController) knownRuns(ctx context.Context) (ids []string) {
	_ = c.View(ctx, func(t *team.Team) { ids = t.RunIDs() })
	return ids
}

// newestRun finds the run whose file was written last (W12).
func newestRun(repo string) (string, error) {
	paths, _ := filepath.Glob(filepath.Join(runsDir(repo), "*", runfile.RunStateName)) // the pattern is constant
	newest, at := "", ""
	for _, path := range paths {
		state, err := runfile.ReadRunState(path)
		if err == nil && state.UpdatedAt > at { // the time format sorts as text
			newest, at = filepath.Base(filepath.Dir(path)), state.UpdatedAt
		}
	}
	if newest == "" {
		return "", worktree.RefuseRun("", "there is no run in "+runsDir(repo)+" to go on with; start one with `fairlead run --workflow FILE`")
	}
	return newest, nil
}

// CancelRun ends a run, or one of its steps (W14).
func (c *RunController) CancelRun(ctx context.Context, by seam.Actor, id, step, why string) (uint64, error) {
	return c.SubmitRun(ctx, by, id, workflow.CancelAsked{Step: workflow.StepID(step), By: by.ID, Why: clip.Text(why, loop.NoteBytesMax)})
}

// PauseRun stops new steps from starting. Running steps finish.
func (c *RunController) PauseRun(ctx context.Context, by seam.Actor, id, why string) (uint64, error) {
	return c.SubmitRun(ctx, by, id, workflow.PauseAsked{By: by.ID, Why: clip.Text(why, loop.NoteBytesMax)})
}

// ReleaseRun ends a pause. A run that waits for files of another machine goes on without them.
func (c *RunController) ReleaseRun(ctx context.Context, by seam.Actor, id, why string) (uint64, error) {
	release, err := haveFolder(ctx, c, id)
	if err != nil {
		return 0, err
	}
	defer release()
	return c.SubmitRun(ctx, by, id, workflow.ReleaseAsked{By: by.ID, Why: clip.Text(why, loop.NoteBytesMax)})
}

// Answer submits a person's answer to a waiting step (W9). It writes the answer to the file that the
// step's agent may read, and then records the decision.
func (c *RunController) Answer(ctx context.Context, by seam.Actor, id, step string, answer view.StepAnswer) (uint64, error) {
	c.answers.Lock()
	defer c.answers.Unlock()
	var q *stepQuestion
	if err := c.View(ctx, func(t *team.Team) {
		r := t.Runs[id]
		if r == nil {
			return
		}
		for _, todo := range t.RunActions(id, c.Now()) {
			if s := todo.Step.Lease.Step; todo.Do == team.AskThem && string(s) == step {
				plan, _, _ := r.Find(s)
				q = &stepQuestion{lease: todo.Step.Lease, path: r.InputFile(s), schema: plan.InputSchema}
			}
		}
	}); err != nil {
		return 0, err
	}
	if q == nil {
		return 0, c.noQuestion(ctx, id, step)
	}
	if err := stillShown(ctx, c, id, step, answer.Shown); err != nil {
		return 0, err
	}
	content, err := answerFile(by, answer)
	if err != nil {
		return 0, refuseAnswer(id, step, err)
	}
	in, err := runfile.ParseManualInput("the answer", content, q.schema)
	if err != nil {
		return 0, refuseAnswer(id, step, err)
	}
	if err := os.MkdirAll(filepath.Dir(q.path), DirMode); err != nil {
		return 0, fmt.Errorf("keep the answer: %w", err)
	}
	if err := file.ReplaceUnsynced(q.path, content, workspace.StateMode); err != nil {
		return 0, fmt.Errorf("keep the answer: %w", err)
	}
	return c.answerRun(ctx, by, id, workflow.AnswerRead{Lease: q.lease, Rejected: !in.Approved, By: by.ID, Note: in.Note})
}

// noQuestion reports that a step does not wait for an answer, and what its state is.
func (c *RunController) noQuestion(ctx context.Context, id, step string) error {
	shown, err := c.RunByID(ctx, id)
	if err != nil {
		return err
	}
	var known []string
	for i := range shown.Steps {
		s := &shown.Steps[i]
		known = append(known, s.ID)
		if s.ID == step {
			return &machine.Refusal{
				Subject: "step " + step + " of run " + id, Event: "answer_read", State: s.Status, Row: "W9",
				Reason: "no person is asked about it now: it was answered, or the run went on" + view.Because(s.WaitsFor),
			}
		}
	}
	return &team.Unknown{What: "step of run " + id, Name: clip.Text(step, 64), Known: known[:min(len(known), 50)]}
}

func refuseAnswer(id, step string, err error) error {
	return &machine.Refusal{Subject: "step " + step + " of run " + id, Event: "answer_read", State: string(workflow.Waiting), Row: "W10", Reason: err.Error()}
}

// answerFile encodes an answer for the file at manual_input_path.
func answerFile(by seam.Actor, answer view.StepAnswer) ([]byte, error) {
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
