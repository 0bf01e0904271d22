package script

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// Verb is the first argument of a process that plays a script.
const Verb = "__script"

// Intercept plays a script and exits if this process was started to do so; otherwise it returns.
// Call it first in main, and in TestMain.
func Intercept() {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		os.Exit(Main(os.Args[2:]))
	}
}

// Main runs the process of a script agent: it plays a file in the current folder, with this
// process's standard input and output, and returns the exit code.
//
//	FILE [--name NAME] [--session ID] [--attempt N] [--cleanup-session | --turn-session | --lead-session] [--prompt TEXT | --told]
//
// With --told, the prompt is the first line on standard input, an Order of type start. It comes with
// the start of the process, so it cannot be typed twice.
func Main(args []string) int {
	out := speech.NewWriter(os.Stdout)
	part, file, told, err := arguments(args)
	if err != nil {
		return refuse(out, err)
	}
	program, err := Load(file)
	if err != nil {
		return refuse(out, err)
	}
	stop := make(chan struct{})
	terminated := make(chan os.Signal, 1)
	// The runtime never reports a deadlock for a process that listens for a signal.
	signal.Notify(terminated, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-terminated
		close(stop)
	}()
	orders := make(chan speech.Order)
	go speech.ReadOrders(os.Stdin, orders, func(err error) {
		out.Tell(driver.Fact{Kind: driver.Faulted, Text: err.Error()})
	})
	if told {
		select {
		case o := <-orders: // its zero value if there will be no orders
			part.Prompt, part.taken = o.Text, o.End
		case <-stop:
		}
	}
	end := Play(context.Background(), program, part, Stage{Out: os.Stdout, Orders: orders, Stop: stop})
	if end.Signal != "" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
	return max(end.Code, 0)
}

func arguments(args []string) (part Part, file string, told bool, err error) {
	part.Kind = driver.Work
	flags := flag.NewFlagSet("script", flag.ContinueOnError)
	flags.SetOutput(discard{})
	flags.StringVar(&part.Name, "name", "script", "")
	flags.StringVar(&part.Session, "session", "script-1", "")
	flags.IntVar(&part.Attempt, "attempt", 1, "")
	flags.StringVar(&part.Prompt, "prompt", "", "")
	flags.BoolVar(&told, "told", false, "")
	cleanup := flags.Bool("cleanup-session", false, "")
	turn := flags.Bool("turn-session", false, "")
	lead := flags.Bool("lead-session", false, "")
	if len(args) > 0 {
		file = args[0]
		err = flags.Parse(args[1:])
	}
	switch {
	case err != nil:
		err = fmt.Errorf("play a script: %w", err)
	case file == "" || flags.NArg() > 0:
		err = errors.New("play a script: name one file, then flags")
	}
	switch {
	case *cleanup:
		part.Kind = driver.Cleanup
	case *turn:
		part.Kind = driver.Turn
	case *lead:
		part.Kind = driver.Lead
	}
	return part, file, told, err
}

// refuse reports why a script cannot be played, in the place of its output.
func refuse(out *speech.Writer, err error) int {
	out.Say(driver.Faulted, "", err.Error())
	out.Tell(speech.Ended(driver.Stop{Reason: "failed", Detail: "the script was not played"}))
	return CodeFaulty
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
