package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/internal/lazy"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/view"
	"github.com/fairlead-dev/fairlead/workspace"
)

// CheckWorkflow implements --check. It reads the file here and asks no daemon.
func CheckWorkflow(a *cli.App, f view.RunFlags) error {
	conf, err := a.LoadOrNone()
	if err != nil {
		return err
	}
	warnings, err := runs.CheckWorkflow(f, conf)
	if err != nil {
		return cli.Faulty(err)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"workflow": f.Workflow, "faults": []string{}, "warnings": view.Some(warnings)})
	}
	printWarnings(a, warnings)
	_, err = fmt.Fprintln(a.Out, cli.Plain(f.Workflow)+": no faults found")
	return err
}

// printWarnings says which fields of a workflow have no effect.
func printWarnings(a *cli.App, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(a.Err, "warning: "+cli.Line(w, cli.ErrorWidth))
	}
}

// Resume continues a run and follows it to its end.
func Resume(ctx context.Context, a *cli.App, o *RunOptions, id string) error {
	o.named = true
	return BeginAndFollow(ctx, a, o, func(ctx context.Context, h *Connection) (view.RunView, error) {
		view, err := h.Runs.Show(ctx, id)
		if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusNotFound {
			return h.Runs.Resume(ctx, id, o.Flags) // the run may be another program's, or archived
		}
		switch {
		case err != nil:
			return view, err
		case o.Flags.StartAtStep != "":
			return h.Runs.Resume(ctx, id, o.Flags)
		case (view.Stage == string(workflow.Paused) || busy(view)) && o.given:
			return view, &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("run %s is %s and continues with its original flags: leave the flags out, or first `fairlead run cancel %s`", id, cmp.Or(pausedWord(view), view.Status), id)}
		case view.Stage == string(workflow.Paused), view.Away != "":
			if _, err := h.Runs.Release(ctx, id, "resumed at the keyboard"); err != nil {
				return view, err
			}
			return h.Runs.Show(ctx, id)
		case view.Status == string(workflow.IsCompleted) && !view.UpdatedAt.After(h.since):
			fmt.Fprintf(a.Err, "run %s is already completed; --start-at-step STEP runs a part of it again\n", cli.Plain(id))
			return view, nil
		case busy(view), view.Status == string(workflow.IsCompleted):
			return view, nil // the run continues by itself, or did so while this process became its daemon
		}
		return h.Runs.Resume(ctx, id, o.Flags)
	})
}

// busy reports whether a run continues by itself.
func busy(view view.RunView) bool {
	return view.Stage == string(workflow.Driven) && (view.Status == string(workflow.IsRunning) || view.Status == string(workflow.IsWaiting))
}

func pausedWord(view view.RunView) string {
	if view.Stage == string(workflow.Paused) {
		return view.Stage
	}
	return ""
}

// BeginAndFollow starts or continues a run, and follows it to its end.
func BeginAndFollow(ctx context.Context, a *cli.App, o *RunOptions, begin func(context.Context, *Connection) (view.RunView, error)) error {
	h, page, view, err := beginRun(ctx, a, o.named || o.Flags.RunID != "", begin)
	if err != nil {
		return err
	}
	printWarnings(a, view.Warnings)
	v := &Follower{h: h, id: view.ID, noWait: o.noWait, display: displayFor(ctx, a, view)}
	v.display.Look(view)
	view, err = followThrough(ctx, a, v, page.Head)
	h = v.h
	err = cmp.Or(err, v.Ending(view))
	if lerr := h.leave(ctx, a, !errors.Is(err, errLeft)); lerr != nil && cli.CodeOf(err) == cli.ExitDone {
		err = lerr
	}
	if perr := printEnding(a, view); perr != nil {
		return perr
	}
	return err
}

// beginRun connects, and starts or continues the run. If the daemon was a command like this one, which ended before it
// was asked, this process takes its place. If it ended before it answered, a run with a name is asked for again: it is begun once,
// as a second one of the name is refused. Of one without a name it is not known.
func beginRun(ctx context.Context, a *cli.App, named bool, begin func(context.Context, *Connection) (view.RunView, error)) (*Connection, api.Page, view.RunView, error) {
	var unanswered *apiclient.NoAnswer // at an earlier try
	for began := time.Now(); ; {
		h, err := connect(ctx, a)
		if err != nil {
			return nil, api.Page{}, view.RunView{}, err
		}
		var run view.RunView
		page, err := h.Journal(ctx, apiclient.JournalQuery{Tail: 1})
		if err == nil {
			run, err = begin(ctx, h)
		}
		if err == nil {
			return h, page, run, nil
		}
		if refused := (*apiclient.Refused)(nil); unanswered != nil && errors.As(err, &refused) {
			err = fmt.Errorf("%w; it may have been begun by this command, whose first try had no answer", err)
		}
		again := h.own == nil && time.Since(began) < connectWait && (apiclient.Away(err) || named && errors.As(err, &unanswered))
		if lerr := h.leave(ctx, a, false); !again || lerr != nil || cli.Pause(ctx, cli.DownPoll) != nil {
			return nil, api.Page{}, view.RunView{}, errors.Join(cli.Faulty(err), lerr)
		}
	}
}

// followThrough follows a run to its end. If the daemon was another command like this one whose own
// run ends first, this process takes over as the daemon.
func followThrough(ctx context.Context, a *cli.App, v *Follower, from uint64) (view.RunView, error) {
	defer v.display.done()
	for {
		view, err := v.follow(ctx, from)
		if err == nil || v.h.own != nil || errors.Is(err, errLeft) || !v.left && !wasLeft(ctx, a, v.last, err) {
			return view, err
		}
		if err := v.h.leave(ctx, a, false); err != nil {
			return view, err
		}
		h, err := connect(ctx, a)
		if err != nil {
			v.h = &Connection{Client: v.h.Client, signals: v.h.signals} // there is no own daemon to stop
			return view, err
		}
		v.h, v.left, from = h, false, v.last
	}
}

// wasLeft reports whether the daemon ended with the command that ran it. The journal says that also if the stream ended
// before this change.
func wasLeft(ctx context.Context, a *cli.App, after uint64, ended error) bool {
	if !apiclient.Away(ended) {
		return false
	}
	reader, err := a.OpenToRead(ctx)
	if err != nil {
		return false
	}
	page, err := reader.Journal(ctx, apiclient.JournalQuery{After: after, Entity: "team/team"})
	return errors.Join(err, reader.Close()) == nil && slices.ContainsFunc(page.Changes, func(ch api.Change) bool { return ch.Actor.ID == runActor })
}

// displayFor chooses how a run is displayed.
func displayFor(ctx context.Context, a *cli.App, view view.RunView) display {
	switch {
	case a.JSON:
		return jsonDisplay{a}
	case a.Screenful():
		return newScreen(ctx, a)
	}
	fmt.Fprintf(a.Out, "run %s of %s: %s\n", cli.Plain(view.ID), cli.Line(view.Workflow, cli.StepWidth), cli.HowMany(len(view.Steps), "step", "steps"))
	return &LineDisplay{A: a, Id: view.ID}
}

// Ending turns a run's end into an exit code and a text that says how to continue.
func (v *Follower) Ending(view view.RunView) error {
	id := cli.Plain(view.ID)
	switch status := workflow.Status(view.Status); {
	case status == workflow.IsCompleted:
		return nil
	case status == workflow.IsFailed:
		return &cli.Coded{Code: cli.ExitFailed, Err: fmt.Errorf("run %s has failed%s; see `fairlead run show %s`, and continue with `fairlead run resume %s`", id, failures(view), id, id)}
	case status == workflow.IsCancelled:
		return &cli.Coded{Code: cli.ExitCancelled, Err: fmt.Errorf("run %s was cancelled%s; continue it with `fairlead run resume %s`", id, cli.Why(cli.Line(view.Why, cli.ErrorWidth)), id)}
	case v.Asked > 0:
		return &cli.Coded{Code: cli.ExitCancelled, Err: fmt.Errorf("run %s is paused; continue it with `fairlead run resume %s`", id, id)}
	}
	text := "it waits"
	if len(view.Waits) > 0 {
		text = "it waits for " + cli.Line(view.Waits[0], cli.ErrorWidth)
	}
	if more := len(view.Waits) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return &cli.Coded{Code: cli.ExitWaits, Err: fmt.Errorf("run %s is not over: %s; continue it with `fairlead run resume %s`", id, text, id)}
}

// failures quotes the first failed step, and counts the others.
func failures(shown view.RunView) string {
	var failed []view.StepView
	for _, s := range shown.Steps {
		if s.Status == string(workflow.Failed) {
			failed = append(failed, s)
		}
	}
	if len(failed) == 0 {
		return ""
	}
	text := ": " + failed[0].ID + cli.Why(cli.Line(failed[0].LastError, cli.ErrorWidth))
	if len(failed) > 1 {
		text += fmt.Sprintf(" (and %d more steps)", len(failed)-1)
	}
	return text
}

// ended is the last line for programs (DESIGN, Contracts).
type ended struct {
	RunID    string `json:"run_id"`
	Status   string `json:"status"`
	RunState string `json:"run_state"` // the path of run_state.json
}

func printEnding(a *cli.App, view view.RunView) error {
	if a.JSON {
		return a.PrintJSON(ended{view.ID, view.Status, view.StateFile})
	}
	if view.Status != string(workflow.IsCompleted) {
		return nil // the error has the text
	}
	took := ""
	if !view.UpdatedAt.Before(view.CreatedAt) {
		took = " in " + cli.Ago(view.UpdatedAt.Sub(view.CreatedAt))
	}
	_, err := fmt.Fprintf(a.Out, "run %s has %s%s\n", cli.Plain(view.ID), a.Paint(cli.Green, "completed"), took)
	return err
}

// Connection is the daemon that controls runs: the daemon of the repository or, if none runs, one in this
// process that lives as long as the command. Both are reached over the socket, so that there is one
// way to do a thing, and so that `fairlead approve` in another terminal finds the run.
type Connection struct {
	*apiclient.Client
	own     *daemon.Daemon // nil: another process is the daemon
	since   time.Time      // when it was started
	signals chan os.Signal
}

// connectWait is how long to wait for a process that holds the workspace and does not answer yet: of
// two runs that start at the same moment, one becomes the other's daemon.
const connectWait = 10 * time.Second

// connect finds the daemon of the repository, or becomes it.
func connect(ctx context.Context, a *cli.App) (*Connection, error) {
	h := &Connection{since: time.Now(), signals: make(chan os.Signal, 4)}
	signal.Notify(h.signals, os.Interrupt, syscall.SIGTERM)
	for {
		err := connectOnce(ctx, a, h)
		if err == nil {
			return h, nil
		}
		if !errors.As(err, new(*workspace.Busy)) || time.Since(h.since) > connectWait || cli.Pause(ctx, cli.DownPoll) != nil {
			signal.Stop(h.signals)
			return nil, err
		}
	}
}

// connectOnce is one attempt of connect. The error is a *workspace.Busy if another process holds the
// workspace.
func connectOnce(ctx context.Context, a *cli.App, h *Connection) error {
	var err error
	h.Client, err = a.Dial()
	if !errors.As(err, new(*apiclient.NoDaemon)) {
		return err
	}
	if h.own, err = host(ctx, a); err != nil {
		return err
	}
	if h.Client, err = a.Dial(); err != nil {
		return errors.Join(err, h.own.Close())
	}
	return nil
}

// host starts a daemon in this process. A repository without a fairlead.yaml has no agents;
// workflows whose steps are commands need none.
func host(ctx context.Context, a *cli.App) (*daemon.Daemon, error) {
	conf, err := a.LoadOrNone()
	if err != nil {
		return nil, err
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // as in up: closing a terminal must not end the daemon
	return daemon.OpenForRuns(ctx, conf, "127.0.0.1:0", a.Logger(false))
}

// runActor is the actor that stops a daemon which ran in a command. A command that follows a run in
// it sees by this name that no person stopped the daemon, and takes over.
const runActor = "fairlead run"

// leaveQuiet is how long the command waits for other work without a message.
const leaveQuiet = 500 * time.Millisecond

// leave ends the connection. A daemon of this process stops first, like with `fairlead down`: running
// sessions finish, unless another signal comes; then they continue, and the next daemon adopts them.
func (h *Connection) leave(ctx context.Context, a *cli.App, wait bool) error {
	defer signal.Stop(h.signals)
	defer h.Client.Close()
	if h.own == nil {
		return nil
	}
	err := h.own.Engine.Stop(context.WithoutCancel(ctx), seam.Actor{Kind: "human", ID: runActor}, false)
	if err != nil || !wait {
		return errors.Join(err, h.own.Close())
	}
	patience := time.NewTimer(leaveQuiet)
	defer patience.Stop()
	for {
		select {
		case <-patience.C:
			fmt.Fprintln(a.Err, "fairlead: waiting for other work of this repository to finish; Ctrl-C exits without waiting")
		case <-h.own.Engine.Stopped():
			return h.own.Close()
		case err := <-h.own.Ran:
			h.own.Ran <- nil
			return errors.Join(err, h.own.Close())
		case <-h.signals:
			fmt.Fprintln(a.Err, "fairlead: exiting now; running sessions continue, and the next `fairlead up` adopts them")
			return h.own.Close()
		}
	}
}

// RunOptions are the flags of `fairlead run` and `fairlead run resume` as typed.
type RunOptions struct {
	Flags  view.RunFlags
	Check  bool
	noWait bool
	given  bool // at least one flag was given
	named  bool // it is about a run that is known by its name
	poll   seconds

	attempts, iterations, sideBySide int
	costLimit                        float64
}

// AddRunFlags adds the flags that `run` and `resume` share: the seed's and Fairlead's own.
func (o *RunOptions) AddRunFlags(set *pflag.FlagSet) {
	f := &o.Flags
	set.StringVar(&f.Workflow, "workflow", "", "the workflow, a YAML file")
	set.StringVar(&f.Repo, "repo", "", "the repository to work on (default: --dir)")
	set.StringVar(&f.StartAtStep, "start-at-step", "", "resume at this step; the steps upstream of it stay completed")
	set.StringVar(&f.Wrapper, "wrapper", "", "an executable or .py file to run for each step")
	set.StringArrayVar(&f.WrapperArgs, "wrapper-arg", nil, "one more argument for the wrapper; may be repeated")
	set.StringVar(&f.CommandTemplate, "command-template", "", "a whole command instead, with {run_id} {step_id} {agent} {prompt} {repo} {report} {attempt} {manual_input}")
	set.StringArrayVar(&f.Env, "env", nil, "`K=V` for every step; K alone takes the value from your own environment; may be repeated, or name several: --env A=1 B=2")
	set.IntVar(&o.attempts, "max-attempts", 0, "maximum attempts of a step in each iteration (default 2)")
	set.IntVar(&o.iterations, "max-iterations", 0, "maximum iterations: how often a gate may send the run back (default 4)")
	set.IntVar(&o.sideBySide, "side-by-side", 0, "maximum number of steps at the same time (default: the number of CPUs)")
	set.BoolVar(&f.PauseForHumans, "pause-for-human-input", false, "human steps wait for an answer; this is the default")
	set.BoolVar(&f.Unattended, "unattended", false, "human steps go on without an answer; a warning is printed, and the log of each such step says so")
	set.StringVar(&f.GateStateFile, "gate-state-file", "", "a JSON object of gate name to true or false, read again at each check")
	set.Var(&o.poll, "poll-interval", "how often files without change events are checked, in seconds or as 250ms (default 200ms)")
	set.StringVar(&f.LogsDir, "logs-dir", "", "where the steps' logs go (default: logs in the run's folder)")
	set.StringVar(&f.Workdir, "workdir", "", "where the steps' processes run (default: the repository)")
	set.StringVar(&f.ReportSchema, "schema", "", "a JSON Schema for the steps' reports")
	set.Float64Var(&o.costLimit, "daily-cost-limit", 0, "USD a local day, for all runs of the repository together (default: no limit)")
	set.StringVar(&f.CostLimitAction, "cost-limit-action", "", "what happens at that limit: warn, pause, or fail (steps at work finish, those after them fail)")
	set.BoolVar(&f.GitWorktree, "git-worktree", false, "work in a separate git worktree")
	set.StringVar(&f.WorktreeRef, "git-worktree-ref", "", "the commit that the worktree starts from (default HEAD)")
	set.StringVar(&f.WorktreeBranch, "git-worktree-branch", "", "the worktree's branch (default fairlead/RUN)")
	set.StringVar(&f.WorktreeRoot, "git-worktree-root", "", "where the worktree is made (default .agents/worktrees)")
	set.BoolVar(&f.WorktreeKeep, "git-worktree-keep", false, "keep the worktree after the run")
	set.BoolVar(&o.noWait, "no-wait", false, "return, with exit code 4, when the run waits for people or for a gate")
}

// Take turns the flags into a request: flags that were not given are left out, so that a resumed run
// keeps its values, and paths become absolute, because the daemon runs in another folder.
func (o *RunOptions) Take(cmd *cobra.Command, dir string) error {
	f, given := &o.Flags, cmd.Flags().Changed
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		o.given = o.given || !slices.Contains([]string{"repo", "no-wait", "dir", "json", "workflow"}, flag.Name)
	})
	f.Repo = cmp.Or(f.Repo, dir)
	repo, err := filepath.Abs(f.Repo)
	if err != nil {
		return fmt.Errorf("find the repository %s: %w", f.Repo, err)
	}
	if real, err := filepath.EvalSymlinks(repo); err == nil {
		repo = real
	}
	if info, err := os.Stat(repo); err != nil || !info.IsDir() {
		return cli.Usage(cmd, fmt.Errorf("--repo %s is not a folder", cli.Line(f.Repo, cli.PathWidth)))
	}
	f.Repo = repo
	for _, path := range []*string{&f.Workflow, &f.GateStateFile, &f.LogsDir, &f.Workdir, &f.ReportSchema, &f.WorktreeRoot} {
		*path = cli.Absolute(*path, repo)
	}
	if f.Wrapper != "" {
		if f.Wrapper = program(f.Wrapper, repo); !cli.Exists(f.Wrapper) {
			return cli.Usage(cmd, fmt.Errorf("--wrapper %s does not exist", cli.Line(f.Wrapper, cli.PathWidth)))
		}
	}
	if f.Env, err = withValues(f.Env, os.LookupEnv); err != nil {
		return cli.Usage(cmd, err)
	}
	for name, n := range map[string]struct {
		value int
		least int
		to    **int
	}{
		"max-attempts":   {o.attempts, 1, &f.MaxAttempts},
		"max-iterations": {o.iterations, 0, &f.MaxIterations},
		"side-by-side":   {o.sideBySide, 1, &f.SideBySide},
	} {
		if !given(name) {
			continue
		}
		if n.value < n.least {
			return cli.Usage(cmd, fmt.Errorf("--%s %d is less than %d", name, n.value, n.least))
		}
		*n.to = &n.value
	}
	if given("daily-cost-limit") {
		if !(o.costLimit >= 0) { // also NaN
			return cli.Usage(cmd, errors.New("--daily-cost-limit is negative; 0 means no limit"))
		}
		f.DailyCostLimit = &o.costLimit
	}
	f.PollIntervalMS = time.Duration(o.poll).Milliseconds()
	if err := o.agree(cmd); err != nil {
		return err
	}
	if f.Unattended {
		cmd.PrintErrln("warning: --unattended: steps that ask people go on without an answer; the log of each says so")
	}
	return nil
}

// agree refuses flags that contradict each other.
func (o *RunOptions) agree(cmd *cobra.Command) error {
	f := &o.Flags
	switch {
	case f.Unattended && f.PauseForHumans:
		return cli.Usage(cmd, errors.New("--unattended and --pause-for-human-input exclude each other; give one of them"))
	case f.CostLimitAction != "" && f.CostLimitAction != "warn" && f.CostLimitAction != "pause" && f.CostLimitAction != "fail":
		return cli.Usage(cmd, fmt.Errorf("--cost-limit-action %s is not one of warn, pause and fail", cli.Line(f.CostLimitAction, 40)))
	case f.Wrapper != "" && f.CommandTemplate != "":
		return cli.Usage(cmd, errors.New("--wrapper and --command-template exclude each other; give one of them"))
	case len(f.WrapperArgs) > 0 && f.Wrapper == "":
		return cli.Usage(cmd, errors.New("--wrapper-arg needs --wrapper"))
	case !f.GitWorktree && (f.WorktreeRef != "" || f.WorktreeBranch != "" || f.WorktreeRoot != "" || f.WorktreeKeep):
		return cli.Usage(cmd, errors.New("--git-worktree-ref, -branch, -root and -keep need --git-worktree"))
	}
	return nil
}

// program is the absolute path of a file, or for a bare name what the shell would find.
func program(name, repo string) string {
	path := cli.Absolute(name, repo)
	if !cli.Exists(path) && !strings.ContainsRune(name, filepath.Separator) {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	return path
}

// pairOfEnv is an argument that goes with an --env before it, as in --env A=1 B=2.
var pairOfEnv = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*=`)

// SplitEnv separates the arguments of a command from the further variables of --env.
func (o *RunOptions) SplitEnv(args []string) (rest, pairs []string) {
	for _, arg := range args {
		if len(o.Flags.Env) > 0 && pairOfEnv().MatchString(arg) {
			pairs = append(pairs, arg)
		} else {
			rest = append(rest, arg)
		}
	}
	return rest, pairs
}

// withValues fills in variables that are named without a value, so that a secret need not appear in
// a program's arguments, which every user of the machine can read.
func withValues(env []string, lookup func(string) (string, bool)) ([]string, error) {
	var full []string
	for _, pair := range env {
		key, _, has := strings.Cut(pair, "=")
		if key == "" {
			return nil, errors.New("--env needs K=V, or K for a variable of your own environment")
		}
		if !has {
			value, ok := lookup(key)
			if !ok {
				return nil, fmt.Errorf("--env %s: your environment has no such variable; write %s=VALUE", cli.Line(key, 60), cli.Line(key, 60))
			}
			pair = key + "=" + value
		}
		full = append(full, pair)
	}
	return full, nil
}

// seconds is a duration in the seed's format, 0.5, or Go's, 500ms.
type seconds time.Duration

func (s *seconds) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

// Type is the flag's type in help texts.
func (s *seconds) Type() string { return "seconds" }

// pollMost is the longest interval between checks of files.
const pollMost = time.Hour

// Set parses the flag.
func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, ferr := strconv.ParseFloat(text, 64); ferr == nil && n < pollMost.Seconds()+1 {
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || d < time.Millisecond || d > pollMost {
		return errors.New("expected a time from 1ms to 1h, such as 0.5 (seconds) or 250ms")
	}
	*s = seconds(d)
	return nil
}
