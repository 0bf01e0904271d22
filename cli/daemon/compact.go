package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// CompactOptions are the flags of `compact`.
type CompactOptions struct {
	Older  cli.Days
	DryRun bool
}

// compacted is what Compact did, as JSON.
type compacted struct {
	DryRun   bool           `json:"dry_run"`
	Sessions compactedPart  `json:"sessions"` // their output
	Journal  compactedPart  `json:"journal"`  // its changes
	Free     int64          `json:"journal_free_bytes"`
	Disk     workspace.Disk `json:"disk"`

	alone bool // no daemon works here
}

type compactedPart struct {
	Count  uint64 `json:"count"`
	Before int64  `json:"before_bytes"`
	After  int64  `json:"after_bytes"`
}

// Compact compresses the output of sessions that ended, and the changes of the journal, that are older than a time. It
// works on files, in the same way with a daemon and without one.
func Compact(ctx context.Context, a *cli.App, o CompactOptions) error {
	conf, err := a.Load()
	if err != nil {
		return err
	}
	before := time.Now().Add(-time.Duration(o.Older))
	done := compacted{DryRun: o.DryRun}
	failed := compactSessions(ctx, a, &done, before)
	if err := compactJournal(ctx, a, &done, before); err != nil {
		failed = errors.Join(failed, err)
	}
	if done.Disk, err = workspace.MeasureDisk(ctx, a.Dir, conf.Team.DiskBytes); err != nil {
		failed = errors.Join(failed, err)
	}
	if a.JSON {
		return errors.Join(failed, a.PrintJSON(done))
	}
	printCompacted(a, &done, o.Older)
	return failed
}

func compactSessions(ctx context.Context, a *cli.App, done *compacted, before time.Time) (failed error) {
	folder := filepath.Join(a.Dir, ".fairlead", "sessions")
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list the sessions: %w", err)
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return errors.Join(failed, ctx.Err())
		}
		one, err := shim.Compact(ctx, filepath.Join(folder, entry.Name()), before, done.DryRun)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if one.Before > 0 {
			done.Sessions.add(1, one.Before, one.After)
		}
	}
	return failed
}

func compactJournal(ctx context.Context, a *cli.App, done *compacted, before time.Time) (err error) {
	path := filepath.Join(a.Dir, ".fairlead", "journal.db")
	alone, err := workspace.Free(a.Dir)
	if err != nil {
		return err
	}
	if _, missing := os.Stat(path); alone && !done.DryRun && missing == nil {
		space, err := workspace.OpenWorkspace(a.Dir) // so that no daemon starts meanwhile
		if busy := (*workspace.Busy)(nil); errors.As(err, &busy) {
			alone = false
		} else if err != nil {
			return err
		} else {
			defer func() { err = errors.Join(err, space.Close()) }()
		}
	}
	done.alone = alone
	of, err := sqlite.Compact(ctx, path, sqlite.Compacting{Before: before, Dry: done.DryRun, Alone: alone})
	done.Journal.add(of.Changes, of.Before, of.After)
	done.Free = of.Free
	return err
}

func (p *compactedPart) add(count uint64, before, after int64) {
	p.Count, p.Before, p.After = p.Count+count, p.Before+before, p.After+after
}

func printCompacted(a *cli.App, done *compacted, older cli.Days) {
	did, about := "compressed", ""
	if done.DryRun {
		did, about = "would compress", "about "
	}
	say := func(what string, p compactedPart) {
		fmt.Fprintf(a.Out, "%s %s: %s to %s%s\n", did, what, file.Size(p.Before), about, file.Size(p.After))
	}
	if done.Sessions.Count+done.Journal.Count == 0 {
		fmt.Fprintf(a.Out, "nothing to compress: no output and no change is older than %s and not compressed yet\n", older.String())
		fmt.Fprintln(a.Out, done.Disk)
		return
	}
	say("the output of "+cli.HowMany(done.Sessions.Count, "session", "sessions"), done.Sessions)
	say(cli.HowMany(done.Journal.Count, "change", "changes")+" of the journal", done.Journal)
	if done.Free > 0 && !done.alone {
		fmt.Fprintf(a.Out,
			"%s in the journal's file are free for its next changes; `fairlead compact` without a daemon makes the file smaller\n",
			file.Size(done.Free))
	}
	fmt.Fprintln(a.Out, done.Disk)
	if done.DryRun {
		fmt.Fprintln(a.Out, "this was a dry run, nothing was changed")
	}
}

// diskLook is how often the folder is measured: a look at each file in it.
const diskLook = 10 * time.Minute

// watchDisk measures the folder, and says when it comes near its budget.
func (d *Daemon) watchDisk(ctx context.Context) {
	tick := time.NewTicker(diskLook)
	defer tick.Stop()
	for said := 0; ; {
		is, err := workspace.MeasureDisk(ctx, d.Conf.Dir, d.Conf.Team.DiskBytes)
		switch level := is.Level(); {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.log.Warn("the disk that .fairlead takes is not known", "error", err)
		case level > said:
			d.log.Warn(is.String(), "way out", workspace.WayOut)
			fallthrough
		default:
			if said = level; level > 0 {
				d.disk.Store(is.String())
			} else {
				d.disk.Store("")
			}
			select {
			case d.look <- struct{}{}:
			default:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// nearBudget is what notices say about the disk; empty: nothing.
func (d *Daemon) nearBudget() string {
	text, _ := d.disk.Load().(string)
	return text
}

// sayDisk warns a person who has started a daemon in the background, whose log is in a file.
func sayDisk(ctx context.Context, a *cli.App, conf *config.Config) {
	if is, err := workspace.MeasureDisk(ctx, conf.Dir, conf.Team.DiskBytes); err == nil && is.Level() > 0 {
		fmt.Fprintf(a.Err, "fairlead: %s; %s\n", is, workspace.WayOut)
	}
}
