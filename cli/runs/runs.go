package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/runfile"
	"github.com/fairlead-dev/fairlead/view"
)

// Listed is what `fairlead run list --json` prints.
type Listed struct {
	Runs   []view.RunView `json:"runs"`
	Faults []string       `json:"faults,omitempty"` // files that could not be read
	Live   bool           `json:"live"`             // from a daemon; otherwise from the journal and from files
}

// ListRuns prints a line for each run.
func ListRuns(ctx context.Context, a *cli.App) error {
	all, err := allRuns(ctx, a)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(all)
	}
	for _, fault := range all.Faults {
		fmt.Fprintln(a.Err, "fairlead: "+cli.Plain(fault))
	}
	if len(all.Runs) == 0 {
		_, err := fmt.Fprintln(a.Out, "no runs; start one with `fairlead run FILE`")
		return err
	}
	table := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "RUN\tWORKFLOW\tSTATUS\tSTEPS\tCHANGED\tREMARKS")
	for _, r := range all.Runs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s ago\t%s\n", cli.Plain(r.ID), cli.Line(r.Workflow, cli.StepWidth), r.Status, counted(r.Counts), cli.Ago(max(0, time.Since(r.UpdatedAt))), runRemarks(r))
	}
	return table.Flush()
}

// allRuns asks the daemon, or reads the journal.
func allRuns(ctx context.Context, a *cli.App) (_ Listed, err error) {
	client, err := a.DialToRead(ctx)
	if none := (*apiclient.NoDaemon)(nil); errors.As(err, &none) {
		return withForeign(a.Dir, nil), nil // no daemon has ever run here
	}
	if err != nil {
		return Listed{}, err
	}
	defer func() { err = cmp.Or(err, client.Close()) }()
	runs, err := client.Runs.List(ctx)
	if err != nil || client.Offline != nil {
		return withForeign(a.Dir, runs), err
	}
	return Listed{Runs: append([]view.RunView{}, runs...), Live: true}, nil
}

// withForeign adds the runs that other programs left as files, the newest first.
func withForeign(dir string, runs []view.RunView) Listed {
	foreign, faults := foreignRuns(dir, runs)
	for i := range foreign {
		foreign[i].Steps = nil
	}
	all := append(append([]view.RunView{}, runs...), foreign...)
	slices.SortStableFunc(all, func(x, y view.RunView) int { return y.UpdatedAt.Compare(x.UpdatedAt) })
	return Listed{Runs: all, Faults: faults}
}

// counted is a run's progress, in a few characters.
func counted(c view.Counts) string {
	all := c.Pending + c.Running + c.Waiting + c.Completed + c.Failed + c.Skipped
	text := fmt.Sprintf("%d/%d", c.Completed+c.Skipped, all)
	for _, part := range []struct {
		n    int
		word string
	}{{c.Running, "running"}, {c.Waiting, "waiting"}, {c.Failed, "failed"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	return text
}

func runRemarks(r view.RunView) string {
	switch {
	case len(r.Waits) > 0:
		return cli.Line(r.Waits[0], cli.RemarkWidth)
	case r.Why != "":
		return cli.Line(r.Why, cli.RemarkWidth)
	default:
		return ""
	}
}

// ShowRun prints one run with its steps.
func ShowRun(ctx context.Context, a *cli.App, id string) error {
	view, err := oneRun(ctx, a, id)
	if err != nil {
		return err
	}
	return a.Show(view, func() error { return printRun(a, view) })
}

func oneRun(ctx context.Context, a *cli.App, id string) (_ view.RunView, err error) {
	client, err := a.DialToRead(ctx)
	if none := (*apiclient.NoDaemon)(nil); errors.As(err, &none) {
		return foreignRun(a.Dir, id)
	}
	if err != nil {
		return view.RunView{}, err
	}
	defer func() { err = cmp.Or(err, client.Close()) }()
	view, err := client.Runs.Show(ctx, id)
	if err != nil && client.Offline != nil {
		if foreign, ferr := foreignRun(a.Dir, id); ferr == nil {
			return foreign, nil
		}
	}
	return view, err
}

// foreignRun reads a run that another program left as a file.
func foreignRun(dir, id string) (view.RunView, error) {
	state, err := readRun(dir, id)
	if err != nil {
		return view.RunView{}, err
	}
	return fileView(state), nil
}

func printRun(a *cli.App, view view.RunView) error {
	fmt.Fprintf(a.Out, "%s  %s  %s  %s\n", a.Paint(cli.Bold, cli.Plain(view.ID)), cli.Line(view.Workflow, cli.StepWidth), view.Status, counted(view.Counts))
	for _, wait := range view.Waits {
		fmt.Fprintln(a.Out, "waits: "+cli.Line(wait, cli.ErrorWidth))
	}
	if view.Why != "" {
		fmt.Fprintf(a.Out, "%s by %s: %s\n", view.Stage, cli.Line(view.By, cli.StepWidth), cli.Line(view.Why, cli.ErrorWidth))
	}
	if view.CostUSD > 0 {
		fmt.Fprintf(a.Out, "cost: %s\n", cli.Money(view.CostUSD))
	}
	table := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "\nSTEP\tSTATUS\tTRIES\tROUND\tTOOK\tREMARKS")
	for _, s := range view.Steps {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\n", cli.Line(s.ID, cli.StepWidth), s.Status, s.Attempts, s.Iteration+1, cli.OrDash(strings.TrimSpace(spent(s, time.Now()))), stepRemarks(s))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, s := range view.Steps {
		if len(s.Artifacts) == 0 && s.LogPath == "" && len(s.Metrics) == 0 {
			continue
		}
		fmt.Fprintln(a.Out, "\n"+a.Paint(cli.Bold, cli.Plain(s.ID)))
		if len(s.Artifacts) > 0 {
			fmt.Fprintln(a.Out, "  made    "+cli.Line(strings.Join(s.Artifacts, ", "), cli.ErrorWidth))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Metrics)) {
			fmt.Fprintf(a.Out, "  measure %s = %s\n", cli.Line(name, 60), cli.Line(s.Metrics[name], 60))
		}
		if s.ReportPath != "" {
			fmt.Fprintln(a.Out, "  report  "+cli.Plain(s.ReportPath))
		}
		if s.LogPath != "" {
			fmt.Fprintln(a.Out, "  log     "+cli.Plain(s.LogPath))
		}
	}
	fmt.Fprintln(a.Out, "\nstate: "+cli.Plain(view.StateFile))
	return nil
}

func stepRemarks(s view.StepView) string {
	switch {
	case s.BadInput != "":
		return "the answer was not valid: " + cli.Line(s.BadInput, cli.RemarkWidth)
	case s.Status == string(workflow.Pending) && s.WaitsFor != "":
		return cli.Line(s.WaitsFor, cli.RemarkWidth)
	case s.LastError != "":
		return cli.Line(s.LastError, cli.RemarkWidth)
	case s.Status == string(workflow.Waiting):
		return "waits for an answer at " + cli.Plain(s.ManualInputPath)
	default:
		return ""
	}
}

// RunFolder is the folder of a run's files (seed 004, File Location).
func RunFolder(repo, id string) string { return filepath.Join(repo, ".agents", "runs", id) }

// runStateMost bounds what is read of a run state, which another program may have written; package
// runfile has the same limit.
const runStateMost = 64 << 20

// RunFiles reads every run state below a repository, the newest first. Files that cannot be read are
// returned as faults.
func RunFiles(repo string) (found []runfile.RunState, faults []string) {
	entries, err := os.ReadDir(filepath.Join(repo, ".agents", "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []string{fmt.Sprintf("look for runs: %v", err)}
	}
	for _, entry := range entries {
		if !entry.IsDir() || !cli.Exists(filepath.Join(RunFolder(repo, entry.Name()), runfile.RunStateName)) {
			continue
		}
		state, err := readRun(repo, entry.Name())
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		found = append(found, state)
	}
	slices.SortStableFunc(found, func(x, y runfile.RunState) int { return cmp.Compare(stamp(y.UpdatedAt), stamp(x.UpdatedAt)) })
	return found, faults
}

// stamp is a time of a file, for comparisons; an invalid time counts as the oldest.
func stamp(text string) int64 {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0
	}
	return at.UnixMicro()
}

// readRun reads the state of one run from its file.
func readRun(repo, id string) (runfile.RunState, error) {
	path := filepath.Join(RunFolder(repo, filepath.Base(id)), runfile.RunStateName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || id != filepath.Base(id):
		return runfile.RunState{}, &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("there is no run %q in %s; `fairlead run list` lists them", cli.Line(id, cli.StepWidth), filepath.Join(repo, ".agents", "runs"))}
	case err != nil:
		return runfile.RunState{}, fmt.Errorf("read run %s: %w", id, err)
	case !info.Mode().IsRegular() || info.Size() > runStateMost:
		return runfile.RunState{}, fmt.Errorf("%s is not a file of at most %d MiB", path, runStateMost>>20)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return runfile.RunState{}, fmt.Errorf("read run %s: %w", id, err)
	}
	state, err := runfile.ParseRunState(text)
	if err != nil {
		return runfile.RunState{}, fmt.Errorf("%s: %w", path, err)
	}
	return state, nil
}

// NewestRun is the run that changed last (SPEC W12: --start-at-step without --run-id).
func NewestRun(repo string) (string, error) {
	found, _ := RunFiles(repo) // a run that cannot be read cannot be resumed either
	if len(found) == 0 {
		return "", &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("--start-at-step resumes an earlier run, and there is none in %s; leave it out to start a new one", filepath.Join(repo, ".agents", "runs"))}
	}
	return found[0].RunID, nil
}
