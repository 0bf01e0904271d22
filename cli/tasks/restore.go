package tasks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Restore makes a task's folder again from a snapshot; at is its number, 0 the newest one. A task that was dropped goes on from the state
// that it had.
func Restore(ctx context.Context, a *cli.App, id string, at int) error {
	if at < 0 {
		return &cli.Coded{Code: cli.ExitUsage, Err: errors.New("--at: snapshots are numbered from 1")}
	}
	t, err := Open(a, id)
	if err != nil {
		return err
	}
	dropped, err := wasDropped(ctx, a, id)
	if err != nil {
		return err
	}
	if dropped && at == 0 && t.There() == nil {
		return goOn(ctx, a, id)
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
	if err := t.Prepare(ctx, a.Err); err != nil || !dropped {
		return err
	}
	return goOn(ctx, a, id)
}

// wasDropped reports whether a task is dropped. Without a daemon it is read from the journal.
func wasDropped(ctx context.Context, a *cli.App, id string) (dropped bool, err error) {
	client, err := a.DialToRead(ctx)
	if none := (*apiclient.NoDaemon)(nil); errors.As(err, &none) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	r, err := client.Runs.Show(ctx, id)
	var p *api.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound { // it is archived
		return false, nil
	}
	if err != nil || r.Task == nil {
		return false, err
	}
	return r.Stage == string(workflow.Stopped), nil
}

// goOn continues a task that was dropped, from the state that it had. One that was approved is shown again: dropping it took that back.
func goOn(ctx context.Context, a *cli.App, id string) error {
	name := cli.Plain(id)
	client, err := a.Dial()
	if none := (*apiclient.NoDaemon)(nil); errors.As(err, &none) {
		_, err := fmt.Fprintf(a.Out, "it is still dropped, because no daemon runs here: after `fairlead up`, `fairlead task restore %s` continues it\n", name)
		return err
	} else if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Runs.Resume(ctx, id, view.RunFlags{}); err != nil {
		return cli.Faulty(err)
	}
	_, err = fmt.Fprintf(a.Out, "task %s goes on from where it was dropped; `fairlead tasks` shows it\n", name)
	return err
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
