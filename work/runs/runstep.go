package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/control"
	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/driver"
)

const (
	promptBytesMax = 1 << 20 // of a step's prompt; a longer text belongs in a file that the prompt names
	schemaBytesMax = 1 << 20 // of a JSON Schema for reports
	valueMode      = 0o644   // of a value that is too large for the environment: run_state.json has it, too
	valuesFolder   = "values"
	DirMode        = 0o755 // of a run's folders: as public as the repository
)

// StepFacts is what one attempt of a step needs, copied from the team at one moment.
type StepFacts struct {
	Cmd     runstate.StepCommand
	how     howRun
	env     []string
	written string // the prompt as the workflow states it
	Report  string // path where the report is expected
	log     string
	repo    string
	dir     string // the run's folder
	plain   bool   // a command of the workflow itself: its exit code counts if it leaves no report
	own     bool   // a command of Fairlead's own, for a task
	gate    bool   // its failure sends the run back
	lenient bool   // an agent that ends well needs no report
	review  bool   // a review of a task: its report is made from findings

	from      string // the other host that may have written the run's files; empty: none
	otherHost string // the other host on which its session is placed; empty: it runs on this machine

	sentBy  workflow.StepID // the gate that sent the run back to this step; empty: none
	sentWhy string
	request string // what sends a task back, if there is more of it than sentWhy has; see requested
	round   int    // how often the run was sent back to this step
	again   int    // how often this step asked to be run again

	asked task.Asked // of a task: what the newest question shows
}

// FactsOf reads a session's attempt from the team. It returns false if the attempt has ended.
func (c *Controller) FactsOf(t *team.Team, s team.Session, run string, step workflow.StepID) (f StepFacts, ok bool) {
	r := t.Runs[run]
	if r == nil {
		return f, false
	}
	plan, progress, known := r.Find(step)
	if !known {
		return f, false
	}
	for _, todo := range r.ActionsOf(step) {
		if (todo.Do == workflow.RunIt || todo.Do == workflow.EndIt) && todo.Lease.N == s.Lease {
			f.Cmd, ok = runstate.StepCommandOf(r, step, todo.Attempt, todo.Item, todo.Answered)
		}
	}
	if f.Cmd.Agent == "" {
		f.Cmd.Agent = string(step) // a report names an agent; without one it names the step
	}
	f.how, f.written, f.Report, f.repo, f.dir, f.from = howOf(t, run), plan.Prompt, r.ReportFile(step), r.RepoDir, runDir(r),
		t.Notes[run].From
	f.log = logFile(r, f.how, step, max(1, f.Cmd.Attempt))
	if f.otherHost = c.sessions.OtherHost(t, s.ID); f.otherHost == "" {
		f.env = c.environ(run, f.how)
	}
	f.plain = len(plan.Command) > 0 && f.how.Wrapper == "" && f.how.Template == ""
	f.gate = plan.LoopBackTo != "" || plan.Ordered && (step == task.StepCheck || step == task.StepMerged)
	f.own = f.plain && f.how.Task != nil && plan.Command[0] == ownProgram
	f.lenient = plan.ReportOptional && !f.plain
	f.sentBy, f.sentWhy, _ = workflow.SentBack(r, step)
	if k := t.Tasks[run]; k != nil {
		f.ofTask(k, step)
	}
	f.round, f.again = progress.Iteration, progress.Rounds
	// the repository was elsewhere if another machine led
	if name := filepath.Base(plan.Prompt); f.how.Task != nil && strings.HasSuffix(plan.Prompt, filepath.Join("/.agents/runs", run, name)) {
		f.written = filepath.Join(f.dir, name)
		f.review = plan.Agent != "" && name == task.ReviewName
	}
	return f, ok
}

// ofTask adds what a step of a task needs to know of it.
func (f *StepFacts) ofTask(k *state.Task, step workflow.StepID) {
	f.asked = k.Shown.Asked
	if n := len(k.Rounds); n > 0 && step == task.StepWork && k.Rounds[n-1].N == k.Round-1 {
		f.sentBy, f.sentWhy = workflow.StepID(k.Rounds[n-1].By), k.Rounds[n-1].Why
	}
}

// PrepareStep decides how to start a step's process and creates the files that it needs.
func (c *Controller) PrepareStep(ctx context.Context, m *sessions.Slot, s team.Session, run string,
	step workflow.StepID,
) (sessions.PreparedLaunch, error) {
	var f StepFacts
	ok := false
	if err := c.loop.View(ctx, func(t *team.Team) { f, ok = c.FactsOf(t, s, run, step) }); err != nil {
		return sessions.PreparedLaunch{}, err
	}
	if !ok {
		return sessions.PreparedLaunch{}, errors.New("the attempt is over")
	}
	artifacts := filepath.Join(f.dir, "artifacts")
	for _, dir := range []string{filepath.Dir(f.Report), filepath.Dir(f.log), artifacts, filepath.Join(f.dir, "manual_inputs")} {
		if err := os.MkdirAll(dir, DirMode); err != nil {
			return sessions.PreparedLaunch{}, fmt.Errorf("make a folder of the run: %w", err)
		}
	}
	for _, old := range []string{f.Report, f.log} { // from an earlier attempt; they must not count for this one
		if err := setAside(old, s.Lease-1, f.again > againKept); err != nil {
			return sessions.PreparedLaunch{}, err
		}
	}
	f.Cmd.Env, f.Cmd.ArtifactsDir, f.Cmd.ValuesDir = f.env, artifacts, filepath.Join(f.dir, valuesFolder)
	if f.review {
		if err := f.beginReview(ctx); err != nil {
			return sessions.PreparedLaunch{}, err
		}
	}
	if f.written != "" {
		places := runstate.PromptPlaces{Repo: f.repo, Beside: filepath.Dir(f.how.Workflow)}
		path, err := places.Find(f.written)
		if err != nil {
			return sessions.PreparedLaunch{}, err
		}
		f.Cmd.Prompt = path
	}
	f.Cmd.Repo = f.worksOn()
	if f.own {
		if _, err := judgedBy(filepath.Join(f.dir, task.FileName), c.opts.Config); err != nil {
			return sessions.PreparedLaunch{}, err
		}
	}
	if f.how.Task != nil {
		env, err := taskEnv(f, step, m.Run != "")
		if err != nil {
			return sessions.PreparedLaunch{}, err
		}
		f.Cmd.Env = append(slices.Clone(f.Cmd.Env), env...)
	}
	workdir := f.Cmd.Repo
	if f.how.Workdir != "" {
		workdir = f.how.Workdir
	}
	if f.how.Task != nil {
		gone := task.Task{ID: f.Cmd.RunID, Tree: f.how.Task.Tree}.There()
		switch {
		case gone != nil && f.own:
			workdir = f.dir // what was shown lands without the folder; the other steps say that it is gone
		case gone != nil:
			return sessions.PreparedLaunch{}, gone
		case step == task.StepWork:
			if err := c.beginRound(ctx, f); err != nil {
				return sessions.PreparedLaunch{}, err
			}
		}
	}
	if m.Run != "" {
		return c.launchCommand(ctx, m, s, f, workdir)
	}
	return c.launchAgent(ctx, m, s, f, workdir)
}

// worksOn is the folder that the step's artifacts are relative to.
func (f StepFacts) worksOn() string {
	if f.how.Task != nil {
		return f.how.Workdir
	}
	return workedOn(f.repo, f.how)
}

// stepEnviron is the step's environment. It writes the values that are too large for one, and says so.
func (c *Controller) stepEnviron(f StepFacts) ([]string, error) {
	env, files, err := f.Cmd.Environ()
	if err != nil || len(files) == 0 {
		return env, err
	}
	root, err := os.OpenRoot(f.dir) // an agent may have put links into the run's folder
	if err != nil {
		return nil, fmt.Errorf("open the folder of the run: %w", err)
	}
	defer root.Close()
	for _, value := range files {
		name := filepath.Join(valuesFolder, filepath.Base(value.Path))
		if _, err := file.ReplaceIn(root, name, strings.NewReader(value.Value), valueMode, DirMode); err != nil {
			return nil, fmt.Errorf("write a large value of step %s (if %s is a link, remove it): %w", f.Cmd.StepID, f.Cmd.ValuesDir, err)
		}
		c.log.Warn("a value is too large for the step's environment: the variable is empty, and its name with _FILE names a file",
			"run", f.Cmd.RunID, "step", f.Cmd.StepID, "file", value.Path)
	}
	return env, nil
}

// ownProgram in a step's command is the program that runs now, wherever it is installed.
const ownProgram = "fairlead"

// launchCommand prepares a step that a wrapper, a template or its own command runs.
func (c *Controller) launchCommand(ctx context.Context, m *sessions.Slot, s team.Session, f StepFacts,
	workdir string,
) (sessions.PreparedLaunch, error) {
	f.Cmd.Wrapper, f.Cmd.WrapperArgs, f.Cmd.Template = f.how.Wrapper, f.how.WrapperArgs, f.how.Template
	argv, err := f.Cmd.Argv()
	if err != nil {
		return sessions.PreparedLaunch{}, err
	}
	own := argv[0] == ownProgram
	if own {
		if argv[0], err = os.Executable(); err != nil {
			return sessions.PreparedLaunch{}, err
		}
	}
	agent := driver.Agent{Name: m.Conf.Name, Command: argv, Workspace: workdir}
	if agent.Env, err = c.stepEnviron(f); err != nil {
		return sessions.PreparedLaunch{}, err
	}
	if err := m.Driver.Check(agent); err != nil {
		return sessions.PreparedLaunch{}, err
	}
	if f.from != "" && (!own || f.how.Task == nil) { // a step of a task confines its commands itself
		if why := c.sessions.SandboxMissing(ctx); why != "" {
			return sessions.PreparedLaunch{}, &task.Unconfined{Host: f.from, Why: why}
		}
	}
	ready, err := c.sessions.Launch(ctx, m, s, agent, driver.Session{ID: s.ID, Kind: driver.Work, Attempt: f.Cmd.Attempt})
	if f.from != "" && (!own || f.how.Task == nil) {
		ready.Confined, ready.Writes = true, []string{filepath.Dir(f.Report), f.Cmd.ArtifactsDir}
	}
	if f.how.Task != nil { // setup and checks of a task get what its agent gets, and the same ports if they are free
		if conf, ok := c.opts.Config.Agent(f.how.Task.Agent); ok {
			ready.Launch.Ports = conf.Ports
		}
	}
	return ready, err
}

// launchAgent prepares a step that an agent of the team runs, in the run's working folder.
func (c *Controller) launchAgent(ctx context.Context, m *sessions.Slot, s team.Session, f StepFacts,
	workdir string,
) (sessions.PreparedLaunch, error) {
	agent, err := c.sessions.AgentFor(m, f.otherHost)
	if err != nil {
		return sessions.PreparedLaunch{}, err
	}
	agent.Workspace = workdir
	if f.Cmd.Model != "" {
		agent.Model = f.Cmd.Model
	}
	if err := m.Driver.Check(agent); err != nil {
		return sessions.PreparedLaunch{}, err
	}
	prompt := ""
	if f.Cmd.Prompt != "" {
		text, err := sessions.ReadUpTo(f.Cmd.Prompt, promptBytesMax)
		if err != nil {
			return sessions.PreparedLaunch{}, fmt.Errorf("read the prompt of step %s: %w", f.Cmd.StepID, err)
		}
		prompt = string(text)
		if f.how.Task != nil {
			prompt = attachedHere(f.dir, prompt)
		}
	}
	images := f.images()
	if f.how.Task != nil {
		if f.request, err = f.requested(ctx); err != nil {
			return sessions.PreparedLaunch{}, err
		}
	}
	before, err := c.handOver(ctx, f, s)
	if err != nil {
		return sessions.PreparedLaunch{}, err
	}
	whole := prompt + before + sentBack(f)
	if f.how.Task != nil && f.Cmd.Prompt != "" {
		f.Cmd.Prompt = filepath.Join(f.dir, fmt.Sprintf("prompt-%s-%d.md", f.Cmd.StepID, s.Lease)) // of this round: PROMPT_PATH
		text := strings.TrimSpace(strings.TrimSpace(whole)+"\n\n"+team.TellWords(s.FirstTells)) + "\n"
		if err := os.WriteFile(f.Cmd.Prompt, []byte(text), 0o600); err != nil {
			return sessions.PreparedLaunch{}, err
		}
	}
	if f.otherHost != "" { // the values of --env are of this machine
		for _, name := range f.how.EnvNames {
			agent.Env = append(agent.Env, name+"="+driver.Variable(name))
		}
	}
	env, err := c.stepEnviron(f)
	if err != nil {
		return sessions.PreparedLaunch{}, err
	}
	agent.Env = append(agent.Env, env...)
	ready, err := c.sessions.Launch(ctx, m, s, agent, driver.Session{
		ID: s.ID, Kind: driver.Work, Prompt: whole + footer(f), Again: cmp.Or(again(f, len(s.FirstTells) > 0), prompt+footer(f)),
		Attempt: f.Cmd.Attempt, PromptIsTask: f.how.Task != nil, Images: images,
	})
	ready.ReadOnly = f.review
	if f.otherHost == "" {
		ready.Run = f.runView(env)
	} else { // what it makes is brought back from there
		ready.Writes = []string{filepath.Dir(f.Report), f.Cmd.ArtifactsDir}
	}
	if tree := f.how.checkout(); tree != "" {
		ready.Clone = tree
	}
	return ready, err
}

// handOver tells a new conversation what an earlier session has done for a task; empty if there was none. A
// conversation that is resumed knows it.
func (c *Controller) handOver(ctx context.Context, f StepFacts, s team.Session) (string, error) {
	if f.how.Task == nil || f.Cmd.StepID != task.StepWork || s.Lease < 2 {
		return "", nil
	}
	t, err := f.task()
	if err != nil {
		return "", err
	}
	text, err := task.HandOver(ctx, t)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", err // its folder is gone
	case err != nil: // the agent may be able to repair it
		c.log.Warn("a new conversation is not told what was done for a task", "task", t.ID, "error", err)
		return "", nil
	case text == "":
		return "", nil
	}
	return "\n\n" + text, nil
}

// sentBack tells an agent why its step is repeated; empty in the first iteration.
func sentBack(f StepFacts) string {
	if f.sentBy == "" {
		return ""
	}
	why := f.sentWhy
	if f.how.Task != nil {
		why = cmp.Or(f.request, found(f), why)
	}
	return fmt.Sprintf("\n\nWhat you did was sent back by the step %s of this run:\n\n%s\n", f.sentBy, strings.TrimSpace(why))
}

// again is what an agent is told in the conversation that it had; empty if there can be none.
func again(f StepFacts, told bool) string {
	if f.sentBy == "" && told {
		return "Go on." + footer(f) // what it was told follows
	}
	if f.sentBy == "" && f.again > 0 {
		return "You reported that this step is not done, and asked to be run again later. The time has come: go on." + footer(f)
	}
	if f.sentBy == "" {
		return ""
	}
	return strings.TrimSpace(sentBack(f)) + footer(f)
}

// footer tells an agent how to report its step.
func footer(f StepFacts) string {
	if f.lenient || f.review {
		return ""
	}
	return fmt.Sprintf(`

This is step %s of run %s, attempt %d. When it is done, write a JSON object to %s, or print it between
the lines <<<RUN_REPORT_JSON and RUN_REPORT_JSON>>>: {"schema": "run_report@v0", "run_id": %q, "step_id": %q, "agent": %q,
"status": "COMPLETED" or "FAILED", "started_at": TIME, "ended_at": TIME, "artifacts": [PATHS], "metrics": {}, "logs": []}.
`, f.Cmd.StepID, f.Cmd.RunID, f.Cmd.Attempt, f.Report, f.Cmd.RunID, f.Cmd.StepID, f.Cmd.Agent)
}

// againKept is how many rounds of a step that asks to be run again keep their reports and logs. After that only the
// last one is kept: a step that looks every minute would otherwise leave 3,000 files a day.
const againKept = 20

// setAside renames a file if it exists (X5). With replace, the file that was set aside before is replaced.
func setAside(path string, n uint64, replace bool) error {
	if replace {
		err := os.Rename(path, path+".last")
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	for try := 0; ; try++ {
		to := path + ".lease" + strconv.FormatUint(n, 10)
		if try > 0 {
			to += "." + strconv.Itoa(try)
		}
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		err := os.Rename(path, to)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("set an old file of the step aside: %w", err)
		}
		return nil
	}
}

// KeepLog copies a session's output to the step's log. The returned channel is closed when the log
// is complete. It is nil for a session without a step.
func (c *Controller) KeepLog(m *sessions.Slot, s team.Session, proc sessionhost.Process) <-chan struct{} {
	run, step, isStep := team.StepOf(s.For)
	if !isStep {
		return nil
	}
	done := make(chan struct{})
	c.loop.Go(func(ctx context.Context) {
		defer close(done)
		var f StepFacts
		if err := c.loop.View(ctx, func(t *team.Team) { f, _ = c.FactsOf(t, s, run, workflow.StepID(step)) }); err != nil || f.log == "" {
			return
		}
		if err := sessionhost.CopyOutput(ctx, f.log, DirMode, 0o644, math.MaxInt64, proc.Output); err != nil && ctx.Err() == nil {
			c.log.Warn("the log of a step is not whole; `fairlead run list` shows the session's own output", "session", s.ID, "log", f.log,
				"error", err)
		}
	})
	return done
}

// StepOver adds the step's report to the end of its session. said are the last lines of its output. It returns
// false if Fairlead is stopping.
func (c *Controller) StepOver(ctx context.Context, m *sessions.Slot, s team.Session, run string, step workflow.StepID,
	what *team.SessionEnded, said []string, kept <-chan struct{},
) bool {
	if kept != nil {
		select {
		case <-kept:
		case <-ctx.Done():
			return false
		}
	}
	c.bringAfter(ctx, s, run)
	var f StepFacts
	ok := false
	if err := c.loop.View(ctx, func(t *team.Team) { f, ok = c.FactsOf(t, s, run, step) }); err != nil {
		return false
	}
	if !ok {
		return true // the attempt has ended, so a report is late
	}
	fault := c.taken(f, s.ID)
	read := c.reportOf
	if f.review {
		read = func(ctx context.Context, m *sessions.Slot, f StepFacts, s team.Session) (*runstate.StepReport, error) {
			return c.reviewReport(ctx, m, f, s, what)
		}
	}
	what.NoVerdict = f.own && !what.Exit.Lost && what.Exit.Signal != ""
	report, err := read(ctx, m, f, s)
	if err == nil && report == nil && !f.review && !what.NoVerdict && (f.plain || f.lenient && what.Outcome == control.OK) {
		report, err = madeReport(f, s, what, said)
	}
	if err != nil {
		what.Fault = err.Error()
	}
	if fault != "" {
		what.Fault, report = sessions.Joined(fault, what.Fault), nil
	}
	if report == nil {
		return ctx.Err() == nil
	}
	if f.how.Task != nil && step == task.StepWork && what.Outcome == control.OK {
		if silent, err := c.silent(ctx, m, s); err != nil {
			c.log.Warn("whether an answer has a word is not known", "run", run, "session", s.ID, "error", err)
		} else if silent {
			report.Facts.Metrics = append(report.Facts.Metrics, workflow.Metric{Name: task.MetricSilent, Value: "true"})
		}
	}
	if report.Warning != "" {
		c.log.Warn(report.Warning, "run", run, "step", step)
	}
	if report.CostUSD > 0 && !c.reportCost(ctx, m, s, what.Exit.SpoolBytes, report.CostUSD) {
		return false
	}
	what.Report = &team.StepReport{Report: report.Report}
	err = c.loop.View(ctx, func(t *team.Team) {
		if r := t.Runs[run]; r != nil {
			what.Report.Until = runstate.WeighUntil(r, step, report.Report)
		}
	})
	return err == nil
}

// itemsAsked is a loop that reads its items from a file or an artifact.
type itemsAsked struct {
	step      workflow.StepID
	iteration int
	from      workflow.StepID // the step whose first artifact lists the items; empty: none
	file      string          // the file that lists them; empty: that step has no artifact
	repo      string
}

const ItemsFileMax = 512 << 10 // the limit of the workflow machine

func (a itemsAsked) find() workflow.ItemsSeen {
	seen := workflow.ItemsSeen{Step: a.step, Iteration: a.iteration, Items: []string{}}
	if a.file == "" {
		seen.Fault = fmt.Sprintf("step %s has no artifact; its report must name a file with a JSON list", a.from)
		return seen
	}
	items, err := readItems(a.repo, a.file)
	if err != nil {
		seen.Fault = err.Error()
	}
	seen.Items = items
	return seen
}

// readItems reads a JSON list, or {"items": a list}, from a file of the repository. Links that lead out of the
// repository are refused.
func readItems(repo, name string) ([]string, error) {
	if rel, err := filepath.Rel(repo, name); filepath.IsAbs(name) && err == nil {
		name = rel
	}
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("the list of items %q is not below the repository", name)
	}
	root, err := os.OpenRoot(repo)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, ItemsFileMax+1))
	if err != nil {
		return nil, err
	}
	if len(text) > ItemsFileMax {
		return nil, fmt.Errorf("%s is larger than %d bytes; loop over fewer items", name, ItemsFileMax)
	}
	text = file.Unmarked(text)
	var list []json.RawMessage
	var in struct {
		Items *[]json.RawMessage `json:"items"`
	}
	switch err := json.Unmarshal(text, &list); {
	case err == nil:
	case json.Unmarshal(text, &in) == nil && in.Items != nil:
		list = *in.Items
	default:
		return nil, fmt.Errorf("%s is no JSON list, and no object whose \"items\" is one: %w", name, err)
	}
	items := make([]string, len(list))
	for i, one := range list {
		items[i] = strings.TrimSpace(string(one))
	}
	return items, nil
}
