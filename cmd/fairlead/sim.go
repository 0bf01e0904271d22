package main

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/internal/test/sim"
)

type simOptions struct {
	seed, runs uint64
	steps      int
}

func (a *app) simVerb() *cobra.Command {
	var opts simOptions
	cmd := &cobra.Command{
		Use:    "sim",
		Hidden: true,
		Short:  "Play a team's day with faults, from a seed, and watch for a broken promise",
		Long: `Plays whole days of a team in this process, with a journal in memory and in played time:
orders, foreign writes, crashes, faults and a second engine, as a seed chooses them. Nothing
outside of the process is touched. One seed prints its trace; many print only what fails,
with the shortest trace that was found for it. Exit code 1 where a promise was broken.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.steps < 1 || opts.runs < 1 {
				return usage(cmd, errors.New("--steps and --runs take numbers from 1 on"))
			}
			return a.sim(opts)
		},
	}
	cmd.Flags().Uint64Var(&opts.seed, "seed", 0, "the day to play; with --runs the first one")
	cmd.Flags().Uint64Var(&opts.runs, "runs", 1, "how many days, each with the next seed")
	cmd.Flags().IntVar(&opts.steps, "steps", sim.StepsDefault, "how many things happen in a day")
	return cmd
}

func (a *app) sim(opts simOptions) (err error) {
	folder, err := os.MkdirTemp("", "fairlead-sim-")
	if err != nil {
		return fmt.Errorf("make a folder that stands for the workspaces: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	broken := uint64(0)
	for i := range opts.runs {
		var r sim.Result
		sim.Play(func(t *testing.T) {
			r = sim.Day(t, folder, opts.seed+i, opts.steps, opts.runs == 1)
			if r.Failure != nil {
				r = sim.Shorten(t, folder, r)
			}
		})
		if r.Failure != nil {
			broken++
		}
		if r.Failure == nil && opts.runs > 1 {
			continue
		}
		if err := a.printDay(r); err != nil {
			return err
		}
	}
	if broken > 0 {
		return fmt.Errorf("%d of %d days broke a promise", broken, opts.runs)
	}
	if opts.runs > 1 && !a.json {
		fmt.Fprintf(a.out, "%d days from seed %d on: every promise held\n", opts.runs, opts.seed)
	}
	return nil
}

func (a *app) printDay(r sim.Result) error {
	if a.json {
		return a.printJSON(r)
	}
	for _, s := range r.Trace {
		fmt.Fprintf(a.out, "%4d %12v  %s\n", s.N, time.Duration(s.AtMS)*time.Millisecond, s.Act)
		for _, came := range s.Came {
			fmt.Fprintf(a.out, "%18s  %s\n", "", came)
		}
	}
	if r.Failure == nil {
		fmt.Fprintf(a.out, "seed %d: every promise held: %d changes, %d sessions, %d engines\n", r.Seed, r.Changes, r.Starts, r.Engines)
		return nil
	}
	fmt.Fprintf(a.out, "seed %d: %v\n", r.Seed, r.Failure)
	return nil
}
