package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/engine"
	"github.com/fairlead-dev/fairlead/interop"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

type pruneOptions struct {
	older               days
	keep                int
	dryRun, delete, all bool
}

func (a *app) pruneVerb() *cobra.Command {
	var opts pruneOptions
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Put old runs away: by age, by number, or both",
		Long: `Moves the folders of completed runs from .agents/runs to .agents/archive. With --older-than
those that have not changed for so long, with --keep all but the newest so many; with both,
what both say. Nothing is deleted unless --delete is given, and a run that has failed, waits or
was interrupted stays where it is unless --all is. A run that is at work is never touched.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.older == 0 && !cmd.Flags().Changed("keep") {
				return usage(cmd, errors.New("which runs? Give --older-than 30d, --keep 20, or both"))
			}
			if opts.keep < 0 {
				return usage(cmd, errors.New("--keep is less than nothing"))
			}
			return a.prune(cmd.Context(), opts)
		},
	}
	cmd.Flags().Var(&opts.older, "older-than", "only runs that have not changed for so long, as 30d or 12h")
	cmd.Flags().IntVar(&opts.keep, "keep", 0, "leave the newest so many where they are")
	cmd.Flags().BoolVar(&opts.dryRun, "dry-run", false, "say what would be done, and do nothing")
	cmd.Flags().BoolVar(&opts.delete, "delete", false, "delete instead of archiving: there is no way back")
	cmd.Flags().BoolVar(&opts.all, "all", false, "also runs that have failed, wait or were interrupted")
	return cmd
}

// pruned is one run that was put away, or is left and why.
type pruned struct {
	RunID string `json:"run_id"`
	Did   string `json:"did"` // archived, deleted or kept
	To    string `json:"to,omitempty"`
	Why   string `json:"why,omitempty"`
}

func (a *app) prune(ctx context.Context, o pruneOptions) error {
	busy, err := a.busyRuns(ctx)
	if err != nil {
		return err
	}
	found, faults := runFiles(a.dir)
	for _, fault := range faults {
		fmt.Fprintln(a.err, "fairlead: left as it is: "+plain(fault))
	}
	done := []pruned{}
	for n, state := range found {
		p := pruned{RunID: state.RunID, Did: "kept", Why: o.keeps(state, n, busy, time.Now())}
		if p.Why == "" {
			if p, err = a.putAway(state, o); err != nil {
				return err
			}
		}
		done = append(done, p)
	}
	if a.json {
		return a.printJSON(map[string]any{"runs": done, "dry_run": o.dryRun})
	}
	return a.printPruned(done, o.dryRun)
}

// keeps says why a run stays where it is; empty: it does not. n is its place among all, the
// newest first.
func (o pruneOptions) keeps(state interop.RunState, n int, busy map[string]bool, now time.Time) string {
	view := fileView(state)
	switch {
	case busy[state.RunID]:
		return "it is at work"
	case view.Counts.Running > 0 && !o.all:
		return "it was interrupted at work; `fairlead resume` goes on"
	case n < o.keep:
		return fmt.Sprintf("it is one of the newest %d", o.keep)
	case o.older > 0 && now.Sub(view.UpdatedAt) < time.Duration(o.older):
		return fmt.Sprintf("it changed %s ago", ago(max(0, now.Sub(view.UpdatedAt))))
	case view.Status != string(workflow.IsCompleted) && !o.all:
		return "it has not completed (" + view.Status + "); --all takes those too"
	}
	return ""
}

// busyRuns are those that a daemon says are at work, or might begin something.
func (a *app) busyRuns(ctx context.Context) (map[string]bool, error) {
	busy := map[string]bool{}
	client, err := a.dial()
	var none *api.NoDaemon
	if errors.As(err, &none) {
		// Nobody answers; but somebody who is just starting must not lose a run under his hands.
		if free, err := engine.Free(a.dir); err != nil || !free {
			return nil, errors.Join(err, errors.New("a fairlead is starting or stopping here; try again when it has"))
		}
		return busy, nil
	}
	if err != nil {
		return nil, err
	}
	defer client.Close()
	runs, err := client.Runs(ctx)
	for _, r := range runs {
		busy[r.ID] = r.Status == string(workflow.IsRunning) || r.Status == string(workflow.IsWaiting)
	}
	return busy, err
}

// putAway archives or deletes one run.
func (a *app) putAway(state interop.RunState, o pruneOptions) (pruned, error) {
	from := runFolder(a.dir, state.RunID)
	p := pruned{RunID: state.RunID, Did: "archived"}
	if info, err := os.Lstat(from); err != nil || !info.IsDir() {
		p.Did, p.Why = "kept", "its folder has another name than the run, or is a link"
		return p, nil
	}
	if o.delete {
		p.Did = "deleted"
		if o.dryRun {
			return p, nil
		}
		if err := os.RemoveAll(from); err != nil {
			return p, fmt.Errorf("delete run %s: %w; the others were not touched", state.RunID, err)
		}
		return p, nil
	}
	p.To = filepath.Join(a.dir, ".agents", "archive", state.RunID)
	for n := 2; exists(p.To); n++ { // a name may have been used again
		p.To = filepath.Join(a.dir, ".agents", "archive", fmt.Sprintf("%s.%d", state.RunID, n))
	}
	if o.dryRun {
		return p, nil
	}
	if err := os.MkdirAll(filepath.Dir(p.To), 0o755); err != nil { //nolint:gosec // as public as its repository
		return p, fmt.Errorf("make the archive: %w", err)
	}
	if err := os.Rename(from, p.To); err != nil {
		return p, fmt.Errorf("archive run %s: %w; the others were not touched", state.RunID, err)
	}
	return p, nil
}

func (a *app) printPruned(done []pruned, dryRun bool) error {
	counts := map[string]int{}
	for _, p := range done {
		counts[p.Did]++
		text := p.Did
		switch {
		case p.Did == "kept":
			text = a.paint(dim, "kept") + ": " + plain(p.Why)
		case p.To != "":
			text += ": " + plain(p.To)
		}
		fmt.Fprintf(a.out, "%s  %s\n", plain(p.RunID), text)
	}
	said := fmt.Sprintf("%d archived, %d deleted, %d kept", counts["archived"], counts["deleted"], counts["kept"])
	if dryRun {
		said += "; this was only said, and nothing done"
	}
	_, err := fmt.Fprintln(a.out, said)
	return err
}

// days is a time that may be given in days, which Go's durations may not.
type days time.Duration

func (d *days) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type is what the help calls it.
func (d *days) Type() string { return "time" }

// daysMost keeps the multiplication from running over.
const daysMost = 100_000

// Set reads it.
func (d *days) Set(text string) error {
	var at time.Duration
	var err error
	if number, ok := strings.CutSuffix(text, "d"); ok {
		var n float64
		if n, err = strconv.ParseFloat(number, 64); err == nil && n < daysMost {
			at = time.Duration(n * float64(24*time.Hour))
		}
	} else {
		at, err = time.ParseDuration(text)
	}
	if err != nil || at <= 0 {
		return errors.New("want a time as in 30d or 12h")
	}
	*d = days(at)
	return nil
}
