package configure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config/edit"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// Options are the flags of `fairlead agent`.
type Options struct {
	Yes, DryRun, Test bool

	Reload func(context.Context, *cli.App, api.ReloadBody) error // makes a running daemon load the file
}

// Do makes a change of one agent for a person at a terminal: it prints the diff, asks, writes, and lets a running
// daemon load the file. form edits the present entry, which is empty for a new agent.
func Do(ctx context.Context, a *cli.App, op edit.Op, name string, form func(*edit.Agent) error, opts Options) error {
	dir, err := filepath.EvalSymlinks(a.Dir) // as shims name it
	if err != nil {
		return fmt.Errorf("find the workspace: %w", err)
	}
	is := shim.Here(dir)
	if err := (caller.Identity{Session: is.Session, Foreign: is.Foreign, Unknown: is.Unseen}).MayConfigure(string(op)); err != nil {
		return err
	}
	e := &Editor{Dir: a.Dir, Lookup: os.LookupEnv}
	change := &api.AgentChange{Op: string(op), Name: name}
	if op == edit.Edit {
		entry, err := e.Entry(ctx, name)
		if err != nil {
			return listed(err)
		}
		change.Agent = entry.Agent
	}
	if form != nil {
		if err := form(&change.Agent); err != nil {
			return err
		}
	}
	client, err := a.Dial()
	if err != nil && !errors.As(err, new(*apiclient.NoDaemon)) {
		return err
	}
	if err == nil {
		defer client.Close()
		e.Sessions = func(ctx context.Context, agent string) []string { return openSessions(ctx, client, agent) }
	}
	if opts.Test {
		return test(ctx, a, e, change)
	}
	p, err := e.Preview(ctx, change)
	if err != nil {
		return listed(err)
	}
	if a.JSON && (opts.DryRun || !opts.Yes) {
		return a.PrintJSON(p)
	}
	if !a.JSON {
		printPreview(a, p)
	}
	if p.Diff == "" || opts.DryRun {
		return nil
	}
	if !opts.Yes {
		if err := a.Confirm("Write this to fairlead.yaml?", "nothing was written",
			"pass --yes to write without a question, or --dry-run to see the change only"); err != nil {
			return err
		}
	}
	change.Sum = p.Sum
	done, err := e.Write(ctx, change)
	if err != nil {
		return listed(err)
	}
	if client != nil {
		return opts.Reload(ctx, a, e.confirms)
	}
	return a.Say(done, "wrote fairlead.yaml; no daemon runs, so the next `fairlead up` loads it")
}

func openSessions(ctx context.Context, client *apiclient.Client, agent string) (ids []string) {
	team, err := client.Agents(ctx)
	if err != nil {
		return nil // it is only a note
	}
	for _, one := range team.Agents {
		if one.Name == agent {
			for _, s := range one.Sessions {
				ids = append(ids, s.ID)
			}
		}
	}
	return ids
}

func printPreview(a *cli.App, p *api.AgentPreview) {
	if p.Diff == "" {
		fmt.Fprintln(a.Out, "fairlead.yaml has no changes")
	}
	for line := range strings.Lines(p.Diff) {
		line = cli.Plain(strings.TrimSuffix(line, "\n"))
		switch {
		case strings.HasPrefix(line, "+"):
			line = a.Paint(cli.Green, line)
		case strings.HasPrefix(line, "-"):
			line = a.Paint(cli.Red, line)
		}
		fmt.Fprintln(a.Out, line)
	}
	for _, note := range p.Notes {
		fmt.Fprintln(a.Out, cli.Plain(note))
	}
}

func test(ctx context.Context, a *cli.App, e *Editor, change *api.AgentChange) error {
	result, err := e.Test(ctx, change)
	if err != nil {
		return listed(err)
	}
	if a.JSON {
		err = a.PrintJSON(result)
	} else {
		for _, f := range result.Findings {
			fmt.Fprintln(a.Out, cli.Plain(f.What))
			if f.Do != "" {
				fmt.Fprintln(a.Out, "  "+cli.Plain(f.Do))
			}
		}
	}
	if err == nil && !result.OK {
		err = &cli.Coded{Code: cli.ExitFailed, Err: errors.New("the program cannot be used so; nothing was written")}
	}
	return err
}

// listed names every fault of a problem on a line of its own.
func listed(err error) error {
	var p *api.Problem
	if !errors.As(err, &p) || len(p.Errors) == 0 {
		return err
	}
	lines := []string{"fairlead.yaml would have faults, so nothing was written:"}
	for _, f := range p.Errors {
		lines = append(lines, "  "+f.Location+": "+f.Message)
	}
	return &cli.Coded{Code: cli.ExitFailed, Err: errors.New(cli.Plain(strings.Join(lines, "\n")))}
}
