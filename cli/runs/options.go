package runs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/read/view"
)

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
	set.StringVar(&f.Wrapper, "wrapper", "", "an executable or .py file to run for each step, in place of its command or agent")
	set.StringArrayVar(&f.WrapperArgs, "wrapper-arg", nil, "one more argument for the wrapper; may be repeated")
	set.StringVar(&f.CommandTemplate, "command-template", "",
		"a whole command instead, with {run_id} {step_id} {agent} {prompt} {repo} {report} {attempt} {manual_input}")
	set.StringArrayVar(&f.Env, "env", nil,
		"`K=V` for every step; K alone takes the value from your own environment; may be repeated, or name several: --env A=1 B=2")
	set.IntVar(&o.attempts, "max-attempts", 0, "maximum attempts of a step in each iteration (default 2)")
	set.IntVar(&o.iterations, "max-iterations", 0, "maximum iterations: how often a gate may send the run back (default 4)")
	set.IntVar(&o.sideBySide, "side-by-side", 0, "maximum number of steps at the same time (default: the number of CPUs)")
	set.BoolVar(&f.PauseForHumans, "pause-for-human-input", false, "human steps wait for an answer; this is the default")
	set.BoolVar(&f.Unattended, "unattended", false,
		"human steps go on without an answer; a warning is printed, and the log of each such step says so")
	set.StringVar(&f.GateStateFile, "gate-state-file", "", "a JSON object of gate name to true or false, read again at each check")
	set.Var(&o.poll, "poll-interval", "how often files without change events are checked, in seconds or as 250ms (default 200ms)")
	set.StringVar(&f.LogsDir, "logs-dir", "", "where the steps' logs go (default: logs in the run's folder)")
	set.StringVar(&f.Workdir, "workdir", "", "where the steps' processes run (default: the repository)")
	set.StringVar(&f.ReportSchema, "schema", "", "a JSON Schema for the steps' reports")
	set.Float64Var(&o.costLimit, "daily-cost-limit", 0,
		"USD a day, for all runs of the repository together (default: no limit); the day is that of the time zone in which it was first used")
	set.StringVar(&f.CostLimitAction, "cost-limit-action", "",
		"what happens at that limit: warn (once a day, and the run goes on), pause, or fail (steps at work finish, those after them fail)")
	set.BoolVar(&f.GitWorktree, "git-worktree", false, "work in a clone of the repository")
	set.StringVar(&f.WorktreeRef, "git-worktree-ref", "", "the commit that the clone starts from (default HEAD)")
	set.StringVar(&f.WorktreeBranch, "git-worktree-branch", "",
		"its branch, which comes into the repository after each step (default fairlead/RUN)")
	set.StringVar(&f.WorktreeRoot, "git-worktree-root", "", "where the clone is made (default .agents/worktrees)")
	set.BoolVar(&f.WorktreeKeep, "git-worktree-keep", false, "keep the clone after the run")
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
var pairOfEnv = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// SplitEnv separates the arguments of a command from the further variables of --env.
func (o *RunOptions) SplitEnv(args []string) (rest, pairs []string) {
	for _, arg := range args {
		if len(o.Flags.Env) > 0 && pairOfEnv.MatchString(arg) {
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
				return nil, fmt.Errorf("--env %s: your environment has no such variable; write %s=VALUE", cli.Line(key, 60),
					cli.Line(key, 60))
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
