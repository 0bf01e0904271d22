package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/view"
)

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
	h, err := helmToPrune(ctx, a)
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

// helmToPrune is takeHelm without starting anything. Without a daemon, an interrupted run would
// continue as soon as a process opens the journal, which pruning must not cause.
func helmToPrune(ctx context.Context, a *cli.App) (*Helm, error) {
	client, err := a.DialToRead(ctx)
	var none *apiclient.NoDaemon
	var runs []view.RunView
	switch {
	case err == nil:
		defer client.Close() // takeHelm makes its own client
		if client.Offline == nil {
			return takeHelm(ctx, a)
		}
		if runs, err = client.Runs.List(ctx); err != nil {
			return nil, err
		}
	case !errors.As(err, &none):
		return nil, err
	}
	for _, run := range withForeign(a.Dir, runs).Runs {
		if run.Counts.Running > 0 {
			id := cli.Plain(run.ID)
			return nil, &cli.Coded{Code: cli.ExitRefused, Err: fmt.Errorf("run %s was interrupted, and would continue: first `fairlead run resume %s`, or `fairlead run cancel %s`", id, id, id)}
		}
	}
	return takeHelm(ctx, a)
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
