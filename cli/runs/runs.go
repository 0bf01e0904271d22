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
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
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
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s ago\t%s\n", cli.Plain(r.ID), cli.Line(r.Workflow, cli.StepWidth), r.Status,
			counted(r.Counts), cli.Ago(max(0, time.Since(r.UpdatedAt))), runRemarks(r))
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
	fmt.Fprintf(a.Out, "%s  %s  %s  %s\n", a.Paint(cli.Bold, cli.Plain(view.ID)), cli.Line(view.Workflow, cli.StepWidth), view.Status,
		counted(view.Counts))
	for _, wait := range view.Waits {
		fmt.Fprintln(a.Out, "waits: "+cli.Line(wait, cli.ErrorWidth))
	}
	if view.Why != "" {
		fmt.Fprintf(a.Out, "%s by %s: %s\n", view.Stage, cli.Line(view.By, cli.StepWidth), cli.Line(view.Why, cli.ErrorWidth))
	}
	if view.Limit != "" {
		fmt.Fprintln(a.Out, "warning: "+cli.Line(view.Limit, cli.ErrorWidth))
	}
	printEdited(a, view)
	if end := worktreeEnd(view); end != "" {
		fmt.Fprintf(a.Out, "worktree: %s: %s\n", cli.Plain(view.Worktree), cli.Line(end, cli.ErrorWidth))
	}
	if view.CostUSD > 0 {
		fmt.Fprintf(a.Out, "cost: %s\n", cli.Money(view.CostUSD))
	}
	table := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "\nSTEP\tSTATUS\tTRIES\tROUND\tTOOK\tREMARKS")
	for _, s := range view.Steps {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\n", cli.Line(s.ID, cli.StepWidth), s.Status, s.Attempts, s.Iteration+1,
			cli.OrDash(strings.TrimSpace(spent(s, time.Now()))), stepRemarks(s))
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
		if s.Cut != "" {
			fmt.Fprintln(a.Out, "  cut     "+cli.Line(s.Cut, cli.ErrorWidth))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Metrics)) {
			fmt.Fprintf(a.Out, "  measure %s = %s\n", cli.Line(name, 60), cli.Line(s.Metrics[name], 60))
		}
		if s.Answer != nil {
			fmt.Fprintln(a.Out, "  answer  "+cli.Line(s.Answer.Words, cli.ErrorWidth))
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

// printEdited prints the outcome of an edit of run_state.json.
func printEdited(a *cli.App, view view.RunView) {
	if view.StateEdited != "" {
		fmt.Fprintf(a.Out, "run_state.json was edited: %s\n", cli.Line(view.StateEdited, cli.ErrorWidth))
	}
}

// worktreeEnd is the outcome for a run's worktree. What is read from the journal alone does not have it.
func worktreeEnd(view view.RunView) string {
	if view.WorktreeEnd == "" && view.Worktree != "" && !view.WorktreeBusy && !cli.Exists(view.Worktree) {
		return "removed"
	}
	return view.WorktreeEnd
}

func stepRemarks(s view.StepView) string {
	switch {
	case s.BadInput != "":
		return "the answer was not valid: " + cli.Line(s.BadInput, cli.RemarkWidth)
	case s.Status == string(workflow.Pending) && s.WaitsFor != "":
		return cli.Line(s.WaitsFor, cli.RemarkWidth)
	case s.LastError != "":
		return cli.Line(s.LastError, cli.RemarkWidth)
	case s.Status == string(workflow.Waiting) && s.ManualInputPath == "":
		return "waits for a person"
	case s.Status == string(workflow.Waiting):
		return "waits for an answer at " + cli.Plain(s.ManualInputPath)
	default:
		return ""
	}
}

// RunFolder is the folder of a run's files (seed 004, File Location).
func RunFolder(repo, id string) string { return filepath.Join(repo, ".agents", "runs", id) }

// RunFiles reads every run state below a repository, the newest first. Files that cannot be read are
// returned as faults.
func RunFiles(repo string) (found []runstate.RunState, faults []string) {
	entries, err := os.ReadDir(filepath.Join(repo, ".agents", "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []string{fmt.Sprintf("look for runs: %v", err)}
	}
	for _, entry := range entries {
		if !entry.IsDir() || !cli.Exists(filepath.Join(RunFolder(repo, entry.Name()), runstate.RunStateName)) {
			continue
		}
		state, err := readRun(repo, entry.Name())
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		found = append(found, state)
	}
	slices.SortStableFunc(found, func(x, y runstate.RunState) int { return y.Updated().Compare(x.Updated()) })
	return found, faults
}

// readRun reads the state of one run from its file.
func readRun(repo, id string) (runstate.RunState, error) {
	state, err := runstate.ReadRunState(filepath.Join(RunFolder(repo, filepath.Base(id)), runstate.RunStateName))
	if errors.Is(err, fs.ErrNotExist) || id != filepath.Base(id) {
		err = &cli.Coded{
			Code: cli.ExitUsage,
			Err: fmt.Errorf("there is no run %q in %s; `fairlead run list` lists them", cli.Line(id, cli.StepWidth),
				filepath.Join(repo, ".agents", "runs")),
		}
	}
	return state, err
}

// NewestRun is the run that changed last (SPEC W12: --start-at-step without --run-id).
func NewestRun(repo string) (string, error) {
	found, _ := RunFiles(repo) // a run that cannot be read cannot be resumed either
	if len(found) == 0 {
		return "", &cli.Coded{
			Code: cli.ExitUsage,
			Err: fmt.Errorf("--start-at-step resumes an earlier run, and there is none in %s; leave it out to start a new one",
				filepath.Join(repo, ".agents", "runs")),
		}
	}
	return found[0].RunID, nil
}

// fileView is a run according to another program's file. The file does not say whether the run was
// cancelled, nor whether that program still works on it.
func fileView(s runstate.RunState) view.RunView {
	r := runstate.RunFound(s)
	shown := view.RunOf(r)
	shown.StateFile = filepath.Join(RunFolder(s.RepoDir, s.RunID), runstate.RunStateName)
	shown.Stage, shown.Waits = "", []string{}
	for i := range s.Steps {
		one := view.StepOf(r, i)
		one.Needs = []string{}
		if gate := s.Steps[i].BlockedByLoop; gate != nil {
			one.BlockedBy = *gate
		}
		if one.Status == runstate.StepFailed && shown.Why == "" && one.LastError != "" {
			shown.Why = one.ID + ": " + one.LastError
		}
		shown.Steps = append(shown.Steps, one)
	}
	return shown
}

// foreignRuns are runs that other programs left as files, and that the journal does not have. faults
// are files that cannot be read.
func foreignRuns(dir string, known []view.RunView) (found []view.RunView, faults []string) {
	files, faults := RunFiles(dir)
	for _, r := range files {
		if !slices.ContainsFunc(known, func(v view.RunView) bool { return v.ID == r.RunID }) {
			found = append(found, fileView(r))
		}
	}
	return found, faults
}

// PruneOptions are the flags of `run prune`.
type PruneOptions struct {
	Older               cli.Days
	Keep                int
	DryRun, Delete, All bool
}

// pruned is one run that was archived, or kept with a reason.
type pruned struct {
	runs.PrunedRun
	Deleted bool `json:"deleted,omitempty"` // after it was archived, on request
}

// Prune archives finished runs.
func Prune(ctx context.Context, a *cli.App, o PruneOptions) error {
	h, err := connectToPrune(ctx, a)
	if err != nil {
		return err
	}
	did, err := h.Runs.Prune(ctx, o.Keep, time.Duration(o.Older), o.All, o.DryRun)
	if err = errors.Join(err, h.leave(ctx, a, err == nil)); err != nil {
		return err
	}
	done := []pruned{}
	for _, one := range did {
		p := pruned{PrunedRun: one}
		if o.Delete && one.Did == runs.RunWasArchived && one.To != "" {
			if p.Deleted = true; !o.DryRun {
				if err := DeleteArchived(a, one.To); err != nil {
					return err
				}
			}
		}
		done = append(done, p)
	}
	return a.Show(map[string]any{"runs": done, "dry_run": o.DryRun}, func() error { return printPruned(a, done, o.DryRun) })
}

// connectToPrune is connect without starting anything. Without a daemon, an interrupted run would
// continue as soon as a process opens the journal, which pruning must not cause.
func connectToPrune(ctx context.Context, a *cli.App) (*Connection, error) {
	client, err := a.DialToRead(ctx)
	var runs []view.RunView
	switch {
	case err == nil:
		defer client.Close() // connect makes its own client
		if client.Offline == nil {
			return connect(ctx, a)
		}
		if runs, err = client.Runs.List(ctx); err != nil {
			return nil, err
		}
	case !errors.As(err, new(*apiclient.NoDaemon)):
		return nil, err
	}
	for _, run := range withForeign(a.Dir, runs).Runs {
		if run.Counts.Running > 0 {
			id := cli.Plain(run.ID)
			return nil, &cli.Coded{
				Code: cli.ExitRefused,
				Err: fmt.Errorf("run %s was interrupted, and would continue: first `fairlead run resume %s`, or `fairlead run cancel %s`",
					id, id, id),
			}
		}
	}
	return connect(ctx, a)
}

// DeleteArchived deletes a run that was archived just now, and nothing elsewhere.
func DeleteArchived(a *cli.App, path string) error {
	root, err := os.OpenRoot(filepath.Join(a.Dir, ".agents", "archive"))
	if err != nil {
		return fmt.Errorf("delete %s: %w; it is archived", path, err)
	}
	defer root.Close()
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Dir, path)
	}
	name, err := filepath.Rel(root.Name(), path)
	if err == nil {
		err = root.RemoveAll(name)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w; what is left of it is archived", path, err)
	}
	return nil
}

func printPruned(a *cli.App, done []pruned, dryRun bool) error {
	counts := map[string]int{}
	for _, p := range done {
		text := p.Did
		switch {
		case p.Deleted:
			text = "deleted"
		case p.Did == runs.RunWasKept:
			text = a.Paint(cli.Dim, text) + ": " + cli.Plain(p.Why)
		case p.To != "":
			text += ": " + cli.Plain(p.To)
		}
		if p.WorktreeRef != "" {
			text += "; its worktree is kept under " + cli.Plain(p.WorktreeRef)
		}
		did := p.Did
		if p.Deleted {
			did = "deleted"
		}
		counts[did]++
		fmt.Fprintf(a.Out, "%s  %s\n", cli.Plain(p.ID), text)
	}
	said := fmt.Sprintf("%d archived, %d deleted, %d kept", counts[runs.RunWasArchived], counts["deleted"], counts[runs.RunWasKept])
	if dryRun {
		said += "; this was a dry run, nothing was changed"
	}
	_, err := fmt.Fprintln(a.Out, said)
	return err
}
