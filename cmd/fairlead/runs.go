package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/runfile"
	"github.com/fairlead-dev/fairlead/view"
)

func (a *app) runListVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the runs of workflows, the newest first",
		Long:    "It prints a line for each run: its workflow, its status, and how many of its steps are done.",
		Example: "  fairlead run list",
		Args:    args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listRuns(cmd.Context()) },
	}
}

func (a *app) runShowVerb() *cobra.Command {
	return &cobra.Command{
		Use:               "show RUN",
		Short:             "Show the steps of a run, and what each one waits for",
		Long:              "It prints each step with its status, its attempts, and where its report and its log are.",
		Example:           "  fairlead run show 20260801-101500-build",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE:              func(cmd *cobra.Command, words []string) error { return a.showRun(cmd.Context(), words[0]) },
	}
}

// listed is what `fairlead run list --json` prints.
type listed struct {
	Runs   []view.RunView `json:"runs"`
	Faults []string       `json:"faults,omitempty"` // files that could not be read
	Live   bool           `json:"live"`             // from a daemon; otherwise from the journal and from files
}

func (a *app) listRuns(ctx context.Context) error {
	all, err := a.allRuns(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(all)
	}
	for _, fault := range all.Faults {
		fmt.Fprintln(a.err, "fairlead: "+plain(fault))
	}
	if len(all.Runs) == 0 {
		_, err := fmt.Fprintln(a.out, "no runs; start one with `fairlead run FILE`")
		return err
	}
	table := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "RUN\tWORKFLOW\tSTATUS\tSTEPS\tCHANGED\tREMARKS")
	for _, r := range all.Runs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s ago\t%s\n", plain(r.ID), line(r.Workflow, stepWidth), r.Status, counted(r.Counts), ago(max(0, time.Since(r.UpdatedAt))), runRemarks(r))
	}
	return table.Flush()
}

// allRuns asks the daemon, or reads the journal.
func (a *app) allRuns(ctx context.Context) (_ listed, err error) {
	client, err := a.dialToRead(ctx)
	if none := (*apiclient.NoDaemon)(nil); errors.As(err, &none) {
		return withForeign(a.dir, nil), nil // no daemon has ever run here
	}
	if err != nil {
		return listed{}, err
	}
	defer func() { err = cmpErr(err, client.Close()) }()
	runs, err := client.Runs(ctx)
	if err != nil || client.offline != nil {
		return withForeign(a.dir, runs), err
	}
	return listed{Runs: append([]view.RunView{}, runs...), Live: true}, nil
}

// withForeign adds the runs that other programs left as files, the newest first.
func withForeign(dir string, runs []view.RunView) listed {
	foreign, faults := foreignRuns(dir, runs)
	for i := range foreign {
		foreign[i].Steps = nil
	}
	all := append(append([]view.RunView{}, runs...), foreign...)
	slices.SortStableFunc(all, func(x, y view.RunView) int { return y.UpdatedAt.Compare(x.UpdatedAt) })
	return listed{Runs: all, Faults: faults}
}

// counted is how far a run is, in a few characters.
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

// remarkWidth is what of a reason stands in a table.
const remarkWidth = 80

func runRemarks(r view.RunView) string {
	switch {
	case len(r.Waits) > 0:
		return line(r.Waits[0], remarkWidth)
	case r.Why != "":
		return line(r.Why, remarkWidth)
	default:
		return ""
	}
}

func (a *app) showRun(ctx context.Context, id string) error {
	view, err := a.oneRun(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(view)
	}
	return a.printRun(view)
}

func (a *app) oneRun(ctx context.Context, id string) (_ view.RunView, err error) {
	client, err := a.dialToRead(ctx)
	if none := (*apiclient.NoDaemon)(nil); errors.As(err, &none) {
		return foreignRun(a.dir, id)
	}
	if err != nil {
		return view.RunView{}, err
	}
	defer func() { err = cmpErr(err, client.Close()) }()
	view, err := client.Run(ctx, id)
	if err != nil && client.offline != nil {
		if foreign, ferr := foreignRun(a.dir, id); ferr == nil {
			return foreign, nil
		}
	}
	return view, err
}

// foreignRun is a run that another program left as a file.
func foreignRun(dir, id string) (view.RunView, error) {
	state, err := readRun(dir, id)
	if err != nil {
		return view.RunView{}, err
	}
	return fileView(state), nil
}

func (a *app) printRun(view view.RunView) error {
	fmt.Fprintf(a.out, "%s  %s  %s  %s\n", a.paint(bold, plain(view.ID)), line(view.Workflow, stepWidth), view.Status, counted(view.Counts))
	for _, wait := range view.Waits {
		fmt.Fprintln(a.out, "waits: "+line(wait, errorWidth))
	}
	if view.Why != "" {
		fmt.Fprintf(a.out, "%s by %s: %s\n", view.Stage, line(view.By, stepWidth), line(view.Why, errorWidth))
	}
	if view.CostUSD > 0 {
		fmt.Fprintf(a.out, "cost today: $%.2f\n", view.CostUSD)
	}
	table := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "\nSTEP\tSTATUS\tTRIES\tROUND\tTOOK\tREMARKS")
	for _, s := range view.Steps {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\n", line(s.ID, stepWidth), s.Status, s.Attempts, s.Iteration+1, orDash(strings.TrimSpace(spent(s, time.Now()))), stepRemarks(s))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, s := range view.Steps {
		if len(s.Artifacts) == 0 && s.LogPath == "" && len(s.Metrics) == 0 {
			continue
		}
		fmt.Fprintln(a.out, "\n"+a.paint(bold, plain(s.ID)))
		if len(s.Artifacts) > 0 {
			fmt.Fprintln(a.out, "  made    "+line(strings.Join(s.Artifacts, ", "), errorWidth))
		}
		for _, name := range slices.Sorted(mapKeys(s.Metrics)) {
			fmt.Fprintf(a.out, "  measure %s = %s\n", line(name, 60), line(s.Metrics[name], 60))
		}
		if s.ReportPath != "" {
			fmt.Fprintln(a.out, "  report  "+plain(s.ReportPath))
		}
		if s.LogPath != "" {
			fmt.Fprintln(a.out, "  log     "+plain(s.LogPath))
		}
	}
	fmt.Fprintln(a.out, "\nstate: "+plain(view.StateFile))
	return nil
}

func stepRemarks(s view.StepView) string {
	switch {
	case s.BadInput != "":
		return "the answer was not valid: " + line(s.BadInput, remarkWidth)
	case s.Status == string(workflow.Pending) && s.WaitsFor != "":
		return line(s.WaitsFor, remarkWidth)
	case s.LastError != "":
		return line(s.LastError, remarkWidth)
	case s.Status == string(workflow.Waiting):
		return "waits for an answer at " + plain(s.ManualInputPath)
	default:
		return ""
	}
}

// runFolder is where a run keeps its files (seed 004, File Location).
func runFolder(repo, id string) string { return filepath.Join(repo, ".agents", "runs", id) }

// runStateMost bounds what is read of a file that anybody may have written; as much as
// runfile takes.
const runStateMost = 64 << 20

// runFiles reads every run state below a repository, the newest first. What cannot be read
// is told, and is no run.
func runFiles(repo string) (found []runfile.RunState, faults []string) {
	entries, err := os.ReadDir(filepath.Join(repo, ".agents", "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []string{fmt.Sprintf("look for runs: %v", err)}
	}
	for _, entry := range entries {
		if !entry.IsDir() || !exists(filepath.Join(runFolder(repo, entry.Name()), runfile.RunStateName)) {
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

// stamp is a time of a file, to be compared; what is none is the oldest.
func stamp(text string) int64 {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0
	}
	return at.UnixMicro()
}

// readRun reads the state of one run from its file.
func readRun(repo, id string) (runfile.RunState, error) {
	path := filepath.Join(runFolder(repo, filepath.Base(id)), runfile.RunStateName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || id != filepath.Base(id):
		return runfile.RunState{}, &coded{exitUsage, fmt.Errorf("there is no run %q in %s; `fairlead run list` lists them", line(id, stepWidth), filepath.Join(repo, ".agents", "runs"))}
	case err != nil:
		return runfile.RunState{}, fmt.Errorf("read run %s: %w", id, err)
	case !info.Mode().IsRegular() || info.Size() > runStateMost:
		return runfile.RunState{}, fmt.Errorf("%s is no file of at most %d MiB", path, runStateMost>>20)
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

// newestRun is the run that changed last (SPEC W12: --start-at-step without --run-id).
func newestRun(repo string) (string, error) {
	found, _ := runFiles(repo) // what cannot be read cannot go on either
	if len(found) == 0 {
		return "", &coded{exitUsage, fmt.Errorf("--start-at-step goes on with an earlier run, and there is none in %s; leave it out to begin one", filepath.Join(repo, ".agents", "runs"))}
	}
	return found[0].RunID, nil
}

// completeRuns offers the runs that have files.
func (a *app) completeRuns(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if a.place(nil) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, _ := runFiles(a.dir)
	var names []string
	for _, r := range found {
		names = append(names, plain(r.RunID)+"\t"+line(r.WorkflowName, stepWidth))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
