package adapter

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// Verb is the first argument of a process that is an adapter.
const Verb = "__agent"

// Protocol implements the protocol of one kind of program. Every driver behind an adapter has one.
type Protocol interface {
	// Name is the driver's name in fairlead.yaml, and the first argument after Verb.
	Name() string

	// Play runs one session with a program, from its start to its terminal event, which it returns and
	// does not report itself. It must always keep reading stage.Orders, return soon after stage.Stop is
	// closed, and return immediately when ctx is done. It may leave children running: they are ended
	// after the terminal event was reported.
	Play(ctx context.Context, part Part, stage *Stage) driver.Stop
}

// Part describes the agent and the session that is run. The prompt is the first order.
type Part struct {
	Kind    string // the driver: acp, claude, codex
	Name    string // of the agent
	Session string // session ID, such as coder-17
	What    driver.Kind
	Attempt int // from 1

	Command []string // the program and its arguments
	Dir     string   // absolute working directory
	Resume  string   // the program's conversation ID to resume; empty: a new conversation
	Model   string   // empty: the program's default
	Mode    string   // in the program's words; empty: the mode that asks for permission
	MCP     driver.MCP
	Walled  bool // this process is inside a wall: driver.VariableWall
}

// TakesPrompts reports whether further prompts may follow after the first answer. If not, the session ends
// with the first answer.
func (p Part) TakesPrompts() bool { return p.What == driver.Turn || p.What == driver.Lead }

// The exit codes of an adapter. They are informational: only the terminal event decides.
const (
	codeFailed     = 1
	codeFaulty     = 2   // faulty command line
	codeCancelled  = 130 // by an order
	codeTerminated = 143 // by SIGTERM
)

const (
	// stopGrace is how long Play may take to return after SIGTERM. It is shorter than the time after
	// which a shim kills (10 s by default), so that the terminal event can be reported.
	stopGrace = 6 * time.Second

	// leaveGrace is how long Play may take to return after its context is done.
	leaveGrace = time.Second
)

// The environment variables that give the adapter, and any agent, access to the team's tools.
const (
	VariableMCPURL   = driver.VariableMCPURL
	VariableMCPToken = driver.VariableMCPToken
	VariableMCPStdio = driver.VariableMCPStdio
)

// Intercept runs an adapter and exits if this process was started as one; otherwise it returns. Call
// it first in main and in TestMain, with all protocols.
func Intercept(protocols ...Protocol) {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		os.Exit(Main(os.Args[2:], protocols...))
	}
}

// Main runs the process of an adapter. It returns the exit code.
//
//	KIND --name NAME --session ID --for KIND --attempt N [--resume ID] [--model M] [--mode M] -- COMMAND…
func Main(args []string, protocols ...Protocol) int {
	hearing, deaf := context.WithCancel(context.Background())
	defer deaf()
	out := speech.NewWriter(watchedOutput{os.Stdout, deaf})
	part, err := parseArgs(args)
	if err == nil {
		part.Dir, err = os.Getwd()
	}
	i := slices.IndexFunc(protocols, func(p Protocol) bool { return p.Name() == part.Kind })
	if err == nil && i < 0 {
		err = fmt.Errorf("this build has no protocol %q", part.Kind)
	}
	if err != nil {
		out.Tell(driver.Fact{Kind: driver.Faulted, Text: err.Error()})
		out.Tell(speech.Ended(driver.Stop{
			Reason: ReasonFailed,
			Detail: "the adapter was started with wrong arguments; this is a bug in Fairlead",
		}))
		return codeFaulty
	}
	part.MCP, part.Walled = mcpFrom(os.Getenv), os.Getenv(driver.VariableWall) != ""
	out.Hide(part.MCP.Token)

	stop, orders := signals(), make(chan speech.Order)
	go speech.ReadOrders(os.Stdin, orders, func(err error) {
		out.Tell(driver.Fact{Kind: driver.Faulted, Text: err.Error()})
	})
	stage := NewStage(out, part.Dir, os.Environ())
	stage.Orders, stage.Stop = orders, stop
	return code(Perform(hearing, protocols[i], part, stage))
}

// Perform runs a session to its end, even if Play fails or panics: it reports the terminal event,
// ends the children and returns the terminal event.
func Perform(ctx context.Context, p Protocol, part Part, stage *Stage) driver.Stop {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	played := make(chan driver.Stop, 1)
	go func() {
		broken := driver.Stop{Reason: ReasonFailed, Detail: "the adapter did not end; this is a bug in Fairlead"}
		defer func() {
			if v := recover(); v != nil {
				broken.Detail = fmt.Sprintf("the adapter broke: %v; this is a bug in Fairlead", v)
				stage.Out.Say(driver.Said, printedByUs, string(debug.Stack()))
			}
			played <- broken
		}()
		broken = p.Play(ctx, part, stage)
	}()
	stop := await(ctx, cancel, played, stage.Stop)
	if stop.Reason == ReasonFailed && stage.stopping() {
		// A signal usually goes to the whole process tree, so the program may have ended before the adapter.
		stop = driver.Stop{Reason: ReasonTerminated, Detail: strings.TrimSuffix("asked to stop by a signal: "+stop.Detail, ": ")}
	}
	if stop.Reason == "" {
		stop.Reason = ReasonCompleted
		if !stop.OK {
			stop.Reason = ReasonFailed
		}
	}
	stage.Out.Tell(speech.Ended(stop))
	stage.end()
	return stop
}

// await waits until Play returns, and enforces the time limits after a stop.
func await(ctx context.Context, cancel func(), played <-chan driver.Stop, stop <-chan struct{}) driver.Stop {
	gone := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case s := <-played:
			return s
		case <-stop:
			stop, late = nil, time.After(stopGrace)
		case <-gone:
			gone, late = nil, time.After(leaveGrace)
		case <-late:
			if gone == nil {
				return driver.Stop{Reason: ReasonTerminated, Detail: "asked to stop; the program's conversation is unchanged"}
			}
			cancel()
		}
	}
}

// signals returns a channel that is closed when this process is asked to stop.
func signals() <-chan struct{} {
	stop, asked := make(chan struct{}), make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	// With a handler, writing to a closed pipe returns an error and does not end this process. Use
	// Notify, not Ignore: the program would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		<-asked
		close(stop)
	}()
	return stop
}

// watchedOutput wraps standard output. A write error means that the shim no longer reads, so the session ends.
type watchedOutput struct {
	out  io.Writer
	deaf func()
}

func (e watchedOutput) Write(b []byte) (int, error) {
	n, err := e.out.Write(b)
	if err != nil {
		e.deaf()
	}
	return n, err
}

func code(stop driver.Stop) int {
	switch {
	case stop.OK:
		return 0
	case stop.Reason == ReasonCancelled:
		return codeCancelled
	case stop.Reason == ReasonTerminated:
		return codeTerminated
	}
	return codeFailed
}

func parseArgs(args []string) (part Part, err error) {
	if len(args) == 0 {
		return part, errors.New("start an adapter: name the kind of program first")
	}
	part.Kind = args[0]
	flags := flag.NewFlagSet(Verb, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&part.Name, "name", "", "")
	flags.StringVar(&part.Session, "session", "", "")
	flags.IntVar(&part.Attempt, "attempt", 1, "")
	what := flags.String("for", string(driver.Work), "")
	flags.StringVar(&part.Resume, "resume", "", "")
	flags.StringVar(&part.Model, "model", "", "")
	flags.StringVar(&part.Mode, "mode", "", "")
	if err := flags.Parse(args[1:]); err != nil {
		return part, fmt.Errorf("start an adapter: %w", err)
	}
	part.What, part.Command = driver.Kind(*what), flags.Args()
	switch {
	case len(part.Command) == 0:
		return part, errors.New("start an adapter: name the program after --")
	case !filepath.IsAbs(part.Command[0]):
		return part, fmt.Errorf("start an adapter: the program %q is not an absolute path", part.Command[0])
	}
	return part, nil
}
