package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	controller "github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/offline"
	"github.com/fairlead-dev/fairlead/config"
	inmemory "github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"
)

// planned is what `fairlead up --plan --json` prints.
type planned struct {
	view.Plan
	Daemon *workspace.Daemon `json:"daemon"` // the one that runs here; nil: none
	Strays []shim.Process    `json:"strays"` // left behind by sessions that are over; the start ends them
}

// Plan prints what `up` would do, and changes nothing.
func Plan(ctx context.Context, a *cli.App) error {
	if is, err := IsHost(a); err != nil {
		return err
	} else if is {
		return errOfHost
	}
	_, source, err := settled(ctx, a, "")
	if err != nil {
		return err
	}
	conf := source.Conf
	said := planned{Plan: view.Plan{Lines: []view.PlanLine{}}, Strays: []shim.Process{}}
	client, err := a.Dial()
	switch {
	case err == nil:
		defer client.Close()
		daemon := client.Daemon()
		said.Daemon = &daemon
		return printPlan(a, said)
	case !errors.As(err, new(*apiclient.NoDaemon)):
		return fmt.Errorf("a daemon runs but does not answer, so the plan is not known: %w; see `fairlead doctor`", err)
	}
	if cli.IsLocked(filepath.Join(a.Dir, ".fairlead", "lock")) {
		return fmt.Errorf("another fairlead holds %s and does not answer yet: it is starting or stopping; ask again, or see `fairlead doctor`", a.Dir)
	}
	if said.Plan, err = DryRun(ctx, a, conf); err != nil {
		return err
	}
	strays, err := shim.Strays(a.Dir)
	if err != nil {
		return err
	}
	said.Strays = append(said.Strays, strays...)
	return printPlan(a, said)
}

// DryRun runs the recovery on a copy of the journal.
func DryRun(ctx context.Context, a *cli.App, conf *config.Config) (view.Plan, error) {
	if err := mayOpen(&Daemon{Conf: conf}); err != nil { // after its start this machine may lead, or not
		return view.Plan{}, err
	}
	j, done, err := offline.Journal(ctx, a.Dir)
	switch {
	case errors.Is(err, offline.ErrNoJournal): // no daemon has run here: the history is empty
		j = inmemory.New()
		done = j.Close
	case err != nil:
		return view.Plan{}, err
	}
	plan, err := controller.DryRun(ctx, outside.Options{
		Name: filepath.Base(conf.Dir), Config: conf, Journal: j, Drivers: cli.Drivers(),
		Lookup: os.LookupEnv, BootID: workspace.BootID(), Log: slog.New(slog.DiscardHandler),
	}, controller.DiskObserver{Folder: filepath.Join(a.Dir, ".fairlead", "sessions")})
	return plan, errors.Join(err, done())
}

// printPlan prints the plan for people or programs.
func printPlan(a *cli.App, said planned) error {
	if a.JSON {
		return a.PrintJSON(said)
	}
	if d := said.Daemon; d != nil {
		_, err := fmt.Fprintf(a.Out, "fairlead runs here already, as process %d (%s): there is nothing to recover; see `fairlead ps`\n",
			d.PID, d.Address)
		return err
	}
	if said.Rebooted {
		fmt.Fprintln(a.Out, "the machine has restarted since the last daemon ran, so no earlier process can be alive")
	}
	if said.Hold {
		fmt.Fprintln(a.Out, a.Paint(cli.Yellow, "the team is held")+": nothing new starts until `fairlead unhold`")
	}
	quiet := 0
	for _, l := range said.Lines {
		if l.Quiet() {
			quiet++
		}
		fmt.Fprintln(a.Out, cli.Line(l.String(), planWidth))
		for _, piece := range l.Why {
			mark := "+"
			if !piece.Holds {
				mark = "!"
			}
			fmt.Fprintf(a.Out, "  %s %-7s %8s  %s\n", mark, piece.Source, cli.Ago(time.Duration(piece.AgeMS)*time.Millisecond),
				cli.Line(piece.What, planWidth))
		}
	}
	for _, p := range said.Strays {
		fmt.Fprintf(a.Out, "process %d (%s): end it; session %s left it running\n", p.PID, cli.Line(p.Command, 40),
			cli.Line(p.Session, 100))
	}
	verdict := "nothing was changed; `fairlead up` does this"
	if quiet == len(said.Lines) && len(said.Strays) == 0 {
		verdict = "there is nothing to recover"
	}
	_, err := fmt.Fprintln(a.Out, a.Paint(cli.Dim, verdict))
	return err
}

// planWidth is the maximum length of a line of a plan: a note can be long.
const planWidth = 400

// recoveryLog is the daemon's log. Lines about recovery are also printed for the person who started
// it, at any log level.
type recoveryLog struct {
	slog.Handler
	app *cli.App
}

// Enabled lets the lines about recovery through.
func (l recoveryLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || l.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l recoveryLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == controller.RecoveryPlan {
		r.Attrs(func(attr slog.Attr) bool {
			fmt.Fprintln(l.app.Err, "fairlead: "+cli.Line(attr.Value.String(), planWidth))
			return true
		})
		return nil
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l recoveryLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return recoveryLog{l.Handler.WithAttrs(attrs), l.app}
}

// WithGroup implements slog.Handler.
func (l recoveryLog) WithGroup(name string) slog.Handler {
	return recoveryLog{l.Handler.WithGroup(name), l.app}
}
