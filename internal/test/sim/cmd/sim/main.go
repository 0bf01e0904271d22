// Command sim plays simulated days of a team and reports every broken promise.
//
//	go run ./internal/test/sim/cmd/sim --seed 7          one day, with its trace
//	go run ./internal/test/sim/cmd/sim --seed 1 --runs 500   500 days; prints only days that fail
//
// A seed fixes everything that happens in a day: orders, writes by other programs,
// crashes, faults and a second engine. The journal is in memory and time is simulated,
// so nothing outside of the process changes. A day that breaks a promise is shortened
// before it is printed. The exit code is 0 when every promise held, 1 when one was
// broken, and 2 for wrong usage.
//
// The one promise: a day that fails is printed with its seed and a trace that
// reproduces the failure.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/sim"
)

type options struct {
	seed, runs uint64
	steps      int
	json       bool
}

func main() {
	var opts options
	flags := flag.NewFlagSet("sim", flag.ExitOnError) // exits with code 2 for wrong usage
	flags.Uint64Var(&opts.seed, "seed", 0, "the seed of the day; with --runs the first seed")
	flags.Uint64Var(&opts.runs, "runs", 1, "number of days; each day uses the next seed")
	flags.IntVar(&opts.steps, "steps", sim.StepsDefault, "number of things that happen in a day")
	flags.BoolVar(&opts.json, "json", false, "print one JSON value for each day")
	_ = flags.Parse(os.Args[1:]) // ExitOnError: Parse does not return an error
	if opts.steps < 1 || opts.runs < 1 || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "sim: --steps and --runs take numbers from 1 on, and there are no other arguments")
		os.Exit(2)
	}
	if err := run(opts, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

func run(opts options, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "fairlead-sim-")
	if err != nil {
		return fmt.Errorf("create the temporary workspace folder: %w", err)
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
		if err := printDay(out, r, opts.json); err != nil {
			return err
		}
	}
	if broken > 0 {
		return fmt.Errorf("%d of %d days broke a promise", broken, opts.runs)
	}
	if opts.runs > 1 && !opts.json {
		fmt.Fprintf(out, "%d days from seed %d on: every promise held\n", opts.runs, opts.seed)
	}
	return nil
}

func printDay(out io.Writer, r sim.Result, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	for _, s := range r.Trace {
		fmt.Fprintf(out, "%4d %12v  %s\n", s.N, time.Duration(s.AtMS)*time.Millisecond, s.Act)
		for _, effect := range s.Effects {
			fmt.Fprintf(out, "%18s  %s\n", "", effect)
		}
	}
	if r.Failure == nil {
		fmt.Fprintf(out, "seed %d: every promise held: %d changes, %d sessions, %d engines\n", r.Seed, r.Changes, r.Starts, r.Engines)
		return nil
	}
	fmt.Fprintf(out, "seed %d: %v\n", r.Seed, r.Failure)
	return nil
}
