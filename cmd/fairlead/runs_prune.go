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

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/view"
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
		Short: "Archive old runs: by age, by number, or both",
		Long: `It moves the folders of completed runs from .agents/runs to .agents/archive/runs. --older-than
selects runs that have not changed for that long, --keep all but that many of the newest; with
both flags a run must match both. Nothing is deleted without --delete. Failed and cancelled runs
stay in place without --all. A run that is not over is never moved.
` + "`fairlead run resume RUN`" + ` brings an archived run back.`,
		Example: `  fairlead run prune --older-than 30d --dry-run
  fairlead run prune --keep 20`,
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
	cmd.Flags().BoolVar(&opts.all, "all", false, "also runs that have failed or were cancelled")
	return cmd
}

// pruned is one run that was put away, or is left and why.
type pruned struct {
	runs.PrunedRun
	Deleted bool `json:"deleted,omitempty"` // after it was archived, since somebody said so
}

func (a *app) prune(ctx context.Context, o pruneOptions) error {
	h, err := a.helmToPrune(ctx)
	if err != nil {
		return err
	}
	did, err := h.PruneRuns(ctx, o.keep, time.Duration(o.older), o.all, o.dryRun)
	if err = errors.Join(err, h.leave(ctx, a, err == nil)); err != nil {
		return err
	}
	done := []pruned{}
	for _, one := range did {
		p := pruned{PrunedRun: one}
		if o.delete && one.Did == runs.RunWasArchived && one.To != "" {
			if p.Deleted = true; !o.dryRun {
				if err := a.deleteArchived(one.To); err != nil {
					return err
				}
			}
		}
		done = append(done, p)
	}
	if a.json {
		return a.printJSON(map[string]any{"runs": done, "dry_run": o.dryRun})
	}
	return a.printPruned(done, o.dryRun)
}

// helmToPrune is takeHelm where nothing begins by it. Without a daemon a run that was
// interrupted at work would go on with whoever opens the journal, and somebody who tidies up
// does not want that.
func (a *app) helmToPrune(ctx context.Context) (*helm, error) {
	client, err := a.dialToRead(ctx)
	var none *apiclient.NoDaemon
	var runs []view.RunView
	switch {
	case err == nil:
		defer client.Close() // takeHelm makes one of its own
		if client.offline == nil {
			return a.takeHelm(ctx)
		}
		if runs, err = client.Runs(ctx); err != nil {
			return nil, err
		}
	case !errors.As(err, &none):
		return nil, err
	}
	for _, run := range withForeign(a.dir, runs).Runs {
		if run.Counts.Running > 0 {
			id := plain(run.ID)
			return nil, &coded{exitRefused, fmt.Errorf("run %s was interrupted, and would continue: first `fairlead run resume %s`, or `fairlead run cancel %s`", id, id, id)}
		}
	}
	return a.takeHelm(ctx)
}

// deleteArchived deletes what was archived just now, and nothing that is elsewhere.
func (a *app) deleteArchived(path string) error {
	root, err := os.OpenRoot(filepath.Join(a.dir, ".agents", "archive"))
	if err != nil {
		return fmt.Errorf("delete %s: %w; it is archived", path, err)
	}
	defer root.Close()
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.dir, path)
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

func (a *app) printPruned(done []pruned, dryRun bool) error {
	counts := map[string]int{}
	for _, p := range done {
		text := p.Did
		switch {
		case p.Deleted:
			text = "deleted"
		case p.Did == runs.RunWasKept:
			text = a.paint(dim, text) + ": " + plain(p.Why)
		case p.To != "":
			text += ": " + plain(p.To)
		}
		if p.WorktreeRef != "" {
			text += "; its worktree is kept under " + plain(p.WorktreeRef)
		}
		did := p.Did
		if p.Deleted {
			did = "deleted"
		}
		counts[did]++
		fmt.Fprintf(a.out, "%s  %s\n", plain(p.ID), text)
	}
	said := fmt.Sprintf("%d archived, %d deleted, %d kept", counts[runs.RunWasArchived], counts["deleted"], counts[runs.RunWasKept])
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
