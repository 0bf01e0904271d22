package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/runs"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/read/view"
)

// taken parses flags of `fairlead run` as a shell would give them.
func taken(t *testing.T, dir string, words ...string) (view.RunFlags, error) {
	t.Helper()
	var opts runs.RunOptions
	cmd := &cobra.Command{Use: "run"}
	opts.AddRunFlags(cmd.Flags())
	if err := cmd.Flags().Parse(words); err != nil {
		return view.RunFlags{}, err
	}
	err := opts.Take(cmd, dir)
	return opts.Flags, err
}

// SPEC Workflow, "What the flags mean": what was not given is left to the engine, and so to
// the seed's defaults, or to what the run was.
func TestRunFlags(t *testing.T) {
	repo, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, "flow.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := taken(t, repo, "--workflow", "flow.yaml")
	if err != nil || f.Repo != repo || f.Workflow != filepath.Join(repo, "flow.yaml") {
		t.Errorf("a workflow of the repository: %+v, %v", f, err)
	}
	if f.MaxAttempts != nil || f.MaxIterations != nil || f.SideBySide != nil || f.DailyCostLimit != nil || f.PollIntervalMS != 0 {
		t.Errorf("what nobody said is said: %+v", f)
	}
	t.Setenv("FAIRLEAD_RUN_TEST", "from outside")
	f, err = taken(t, repo, "--workflow", filepath.Join(repo, "flow.yaml"), "--max-attempts", "3", "--max-iterations", "0",
		"--poll-interval", "0.25",
		"--env", "A=b=c", "--env", "FAIRLEAD_RUN_TEST", "--wrapper", "sh", "--wrapper-arg", "-x", "--wrapper-arg", "a,b",
		"--daily-cost-limit", "1.5", "--cost-limit-action", "pause")
	if err != nil {
		t.Fatal(err)
	}
	if *f.MaxAttempts != 3 || *f.MaxIterations != 0 || f.PollIntervalMS != 250 || *f.DailyCostLimit != 1.5 || f.CostLimitAction != "pause" {
		t.Errorf("%+v", f)
	}
	if !slices.Equal(f.Env, []string{"A=b=c", "FAIRLEAD_RUN_TEST=from outside"}) || !slices.Equal(f.WrapperArgs, []string{"-x", "a,b"}) {
		t.Errorf("%q, %q", f.Env, f.WrapperArgs)
	}
	if !filepath.IsAbs(f.Wrapper) {
		t.Errorf("a wrapper that the shell finds: %q", f.Wrapper)
	}
}

// Invalid flags are refused with exit code 2.
func TestRunFlagsRefused(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"not a folder":                    {"--repo", "nowhere/at/all"},
		"less than 1":                     {"--max-attempts", "0"},
		"less than 0":                     {"--max-iterations", "-1"},
		"exclude each other":              {"--wrapper", "sh", "--command-template", "true"},
		"needs --wrapper":                 {"--wrapper-arg", "x"},
		"not one of warn, pause and fail": {"--cost-limit-action", "explode"},
		"is negative":                     {"--daily-cost-limit", "-1"},
		"need --git-worktree":             {"--git-worktree-keep"},
		"--env needs K=V":                 {"--env", "=x"},
		"has no such variable":            {"--env", "FAIRLEAD_NOBODY_HAS_THIS"},
		"from 1ms to 1h":                  {"--poll-interval", "0"},
		"invalid argument \"for ever\"":   {"--poll-interval", "for ever"},
	} {
		_, err := taken(t, t.TempDir(), words...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", words, err, want)
		}
	}
}

// runChange makes a change of the journal as the daemon sends it.
func runChange(t *testing.T, entity, trigger, to string, body workflow.Body) api.Change {
	t.Helper()
	data, err := change.Encode(&body)
	if err != nil {
		t.Fatal(err)
	}
	return api.Change{
		Time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Entity: entity, Trigger: trigger, To: to,
		Actor: change.Actor{Kind: "human", ID: "ann"}, Data: api.Raw(data),
	}
}

// The lines of a run without a terminal: each change that a person wants to know, as text, and no output of
// an agent can move a cursor.
func TestRunLines(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	step := func(v workflow.Value, facts *workflow.Facts) workflow.Body {
		return workflow.Body{Step: &workflow.StepSet{Value: v, Facts: facts}}
	}
	var out bytes.Buffer
	f := &runs.LineDisplay{A: &cli.App{Out: &out}, Id: "r1"}
	f.Look(view.RunView{ID: "r1", Steps: []view.StepView{{ID: "code"}, {ID: "review"}}})
	for _, ch := range []api.Change{
		runChange(t, "run/r1", "run_started", "driven", workflow.Body{Head: &workflow.Head{ID: "r1"}}),
		runChange(t, "run/r1/code", "started", "RUNNING", step(workflow.Value{Attempts: 1}, nil)),
		runChange(t, "run/r1/code", "failed_tries_left", "PENDING",
			step(workflow.Value{Attempts: 1, LastError: "it \x1b[2Jbroke", RetryAt: at.Add(time.Second)}, nil)),
		runChange(t, "run/r1/code", "started", "RUNNING", step(workflow.Value{Attempts: 2, Iteration: 1}, nil)),
		runChange(t, "run/r1/code", "reported", "COMPLETED",
			step(workflow.Value{StartedAt: at, EndedAt: at.Add(3 * time.Second)},
				&workflow.Facts{Artifacts: []string{"a", "b", "c", "d"}})),
		runChange(t, "run/r1/review", "gate_failed", "COMPLETED", step(workflow.Value{LastError: "Gate failure: found P0 issues"}, nil)),
		runChange(t, "run/r1", "looped_back", "PENDING",
			workflow.Body{Reset: &workflow.Reset{
				Gate: "review", Target: "code",
				Moves: []workflow.Move{{Step: "code"}, {Step: "review"}},
			}}),
		runChange(t, "run/r1/review", "reported_asking", "WAITING_ON_HUMAN", step(workflow.Value{}, nil)),
		runChange(t, "run/r1", "run_cancelled", "cancelled", workflow.Body{Head: &workflow.Head{By: "ann", Why: "enough"}}),
		{Entity: "run/r1/code", Data: api.Raw("garbage")},
	} {
		if err := f.Change(ch); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for l := range strings.Lines(out.String()) {
		got = append(got, strings.TrimRight(l[len("15:04:05  "):], "\n"))
	}
	want := []string{
		"code    began",
		"code    failed (attempt 1), retried in 1 s: it ␛[2Jbroke",
		"code    began (attempt 2, iteration 2)",
		"code    completed in 3 s  a, b, c and 1 more",
		"review  completed: Gate failure: found P0 issues",
		"review  sends the run back to code; 2 steps are done again",
		"review  waits for a person: fairlead approve r1 review (or reject)",
		"        cancelled by ann: enough",
	}
	if !slices.Equal(got, want) {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// DESIGN, Contracts: the exit code says how a run ended.
func TestRunExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status string
		asked  int
		code   int
		says   string
	}{
		{"completed", 0, cli.ExitDone, ""},
		{"failed", 0, cli.ExitFailed, "code: it broke (and 1 more steps)"},
		{"waiting", 0, cli.ExitWaits, "it waits for review: people are asked"},
		{"waiting", 1, cli.ExitCancelled, "is paused; continue it with `fairlead run resume r1`"},
		{"cancelled", 2, cli.ExitCancelled, "was cancelled: enough"},
	} {
		view := view.RunView{ID: "r1", Status: c.status, Why: "enough", Waits: []string{"review: people are asked"}, Steps: []view.StepView{
			{ID: "code", Status: "FAILED", LastError: "it\nbroke"}, {ID: "docs", Status: "FAILED"},
		}}
		err := (&runs.Follower{Asked: c.asked}).Ending(view)
		if cli.CodeOf(err) != c.code {
			t.Errorf("%s: exit code %d, want %d", c.status, cli.CodeOf(err), c.code)
		}
		if err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.status, err, c.says)
		}
	}
	fault := cli.Faulty(&api.Problem{Status: 422, Errors: []api.Fault{{Location: "flow.yaml:3:7", Message: "there is no step buidl"}}})
	if cli.CodeOf(fault) != cli.ExitUsage || fault.Error() != "flow.yaml:3:7: there is no step buidl" {
		t.Errorf("a workflow with faults: %d, %v", cli.CodeOf(fault), fault)
	}
}

// A picture fits its terminal, however many steps there are, and what an agent says in it is
// text.
func TestRunPicture(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	shown := view.RunView{
		ID: "r1", Workflow: "big", Status: "running", CreatedAt: now.Add(-time.Minute),
		Counts: view.Counts{Completed: 500},
	}
	for i := range 1000 {
		s := view.StepView{ID: strings.Repeat("s", i%60+1), Status: "PENDING", WaitsFor: "it needs \x1b[31m others"}
		if i < 500 {
			s.Status = "COMPLETED"
		}
		if i == 500 {
			began := now.Add(-time.Second)
			s = view.StepView{ID: "here", Status: "RUNNING", StartedAt: &began, Attempts: 2}
		}
		shown.Steps = append(shown.Steps, s)
	}
	a := &cli.App{Out: &bytes.Buffer{}}
	lines := runs.Picture(a, shown, runs.Spoken{Step: "here", Text: "one\ntwo\x1b[2J\nthree\n"}, []string{"a note"}, 60, 20, now)
	text := strings.Join(lines, "\n")
	if len(lines) > 20 || !strings.Contains(text, "> here") || !strings.Contains(text, "running 1 s  attempt 2") ||
		!strings.Contains(text, "three") {
		t.Errorf("%d lines:\n%s", len(lines), text)
	}
	for _, l := range lines {
		if n := len([]rune(l)); n > 60 || strings.ContainsRune(l, '\x1b') {
			t.Errorf("%d characters: %q", n, l)
		}
	}
}
