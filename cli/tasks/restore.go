package tasks

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/git/task"
)

// Restore makes a task's folder again from a snapshot; at is its number, 0 the newest one.
func Restore(ctx context.Context, a *cli.App, id string, at int) error {
	if at < 0 {
		return &cli.Coded{Code: cli.ExitUsage, Err: errors.New("--at: snapshots are numbered from 1")}
	}
	t, err := Open(a, id)
	if err != nil {
		return err
	}
	from, err := t.Restore(ctx, at)
	if blocked := (*task.Blocked)(nil); errors.As(err, &blocked) {
		return &cli.Coded{Code: cli.ExitRefused, Err: err}
	}
	if err != nil {
		return err
	}
	name := "what was kept"
	if from.N > 0 {
		name = fmt.Sprintf("snapshot %d", from.N)
	}
	if _, err := fmt.Fprintf(a.Out, "task %s has its folder again, from %s: %s\n", cli.Plain(id), name, cli.Plain(t.Tree)); err != nil {
		return err
	}
	if err := endsLeft(&t); err != nil {
		return err
	}
	return t.Prepare(ctx, a.Err)
}

// Snapshots lists the snapshots of a task.
func Snapshots(ctx context.Context, a *cli.App, id string) error {
	t, err := Open(a, id)
	if err != nil {
		return err
	}
	all, err := t.Snapshots(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		list := []map[string]any{}
		for _, k := range all {
			list = append(list, map[string]any{"n": k.N, "commit": k.Commit, "at": k.At.UTC().Format(time.RFC3339)})
		}
		return a.PrintJSON(map[string]any{"snapshots": list})
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(a.Out, "nothing of task %s was kept yet\n", cli.Plain(id))
		return err
	}
	table := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "N\tCOMMIT\tMADE")
	for _, k := range all {
		fmt.Fprintf(table, "%d\t%.12s\t%s ago\n", k.N, k.Commit, cli.Ago(max(0, time.Since(k.At))))
	}
	return table.Flush()
}
