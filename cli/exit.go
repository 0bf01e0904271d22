package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/internal/encode"
)

// The meanings of the exit codes. Scripts rely on them.
const (
	ExitDone      = 0
	ExitFailed    = 1
	ExitUsage     = 2
	ExitRefused   = 3
	ExitWaits     = 4 // on a human
	ExitCancelled = 5
	ExitNoDaemon  = 6
)

// Coded is an error that knows its exit code.
type Coded struct {
	Code int
	Err  error
}

func (c *Coded) Error() string { return c.Err.Error() }
func (c *Coded) Unwrap() error { return c.Err }

// ErrSaid is a failure whose text was already printed to standard output.
var ErrSaid = errors.New("no, as standard output says")

// Usage is an error about how a command was called; it shows the command's usage.
func Usage(cmd *cobra.Command, err error) error {
	return &Coded{Code: ExitUsage, Err: fmt.Errorf("%w\nusage: %s\nmore: %s --help", err, cmd.UseLine(), cmd.CommandPath())}
}

// Args wraps an argument check of a command, so that its errors have the right code and text.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, words []string) error {
		if err := check(cmd, words); err != nil {
			return Usage(cmd, miscounted(cmd, words, err))
		}
		return nil
	}
}

// miscounted replaces cobra's text about the number of arguments; other errors are unchanged.
func miscounted(cmd *cobra.Command, words []string, err error) error {
	said := err.Error()
	if !strings.HasPrefix(said, "accepts ") && !strings.HasPrefix(said, "requires ") && !strings.HasPrefix(said, "unknown command ") {
		return err
	}
	_, takes, names := strings.Cut(cmd.Use, " ")
	switch {
	case !names:
		return fmt.Errorf("%s takes no arguments; leave out %q", cmd.CommandPath(), words[0])
	case len(words) == 0:
		return fmt.Errorf("%s needs %s", cmd.CommandPath(), takes)
	default:
		return fmt.Errorf("%s needs %s, not %q", cmd.CommandPath(), takes, words)
	}
}

// CodeOf is the exit code that an error asks for.
func CodeOf(err error) int {
	var known *Coded
	var problem *api.Problem
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &known):
		return known.Code
	case errors.As(err, new(*table.Refusal)), errors.As(err, new(*apiclient.Refused)):
		return ExitRefused
	case errors.As(err, new(*apiclient.NoDaemon)), errors.As(err, new(*apiclient.Silent)), errors.As(err, new(*apiclient.NoAnswer)),
		errors.As(err, new(*NoLeader)):
		return ExitNoDaemon
	case errors.As(err, &problem) && problem.Status == http.StatusNotFound:
		return ExitUsage // an unknown name
	case errors.Is(err, context.Canceled):
		return ExitCancelled
	default:
		return ExitFailed
	}
}

// words is an error for people. A refusal is shortened to its reason; the event, the state and the
// row id are shown with --verbose.
func (a *App) words(err error) string {
	text := err.Error()
	if a.Verbose {
		return text
	}
	for _, no := range refusals(err) {
		text = strings.ReplaceAll(text, no.Error(), refusalWords(no))
	}
	return text
}

// refusalWords is a refusal without the internal names of the state machines.
func refusalWords(no *table.Refusal) string {
	state := strings.ReplaceAll(no.State, "_", " ")
	switch {
	case no.Reason == "":
		return no.Subject + ": this is not possible while it is " + state
	case strings.Contains(no.State, " "): // a sentence, not a state's name
		return no.Subject + ": " + no.Reason + " (" + no.State + ")"
	default:
		return no.Subject + ": " + no.Reason
	}
}

// refusals are all refusals that an error is made of.
func refusals(err error) []*table.Refusal {
	var found []*table.Refusal
	if no, ok := err.(*table.Refusal); ok { //nolint:errorlint // each node is looked at
		found = append(found, no)
	}
	if no, ok := err.(*apiclient.Refused); ok { //nolint:errorlint // each node is looked at
		found = append(found, &no.Refusal)
	}
	switch wrapping := err.(type) { //nolint:errorlint // each node is looked at
	case interface{ Unwrap() error }:
		if below := wrapping.Unwrap(); below != nil {
			found = append(found, refusals(below)...)
		}
	case interface{ Unwrap() []error }:
		for _, below := range wrapping.Unwrap() {
			found = append(found, refusals(below)...)
		}
	}
	return found
}

// Report prints an error, for people or programs, and returns the exit code.
func (a *App) Report(err error) int {
	code := CodeOf(err)
	if err == nil || errors.Is(err, ErrSaid) {
		return code
	}
	if !a.JSON {
		fmt.Fprintln(a.Err, "fairlead: "+Plain(a.words(err)))
		return code
	}
	answer := map[string]any{"error": err.Error(), "code": code}
	if refused, ok := errors.AsType[*apiclient.Refused](err); ok {
		answer["refusal"] = refused.Refusal
	}
	fmt.Fprintln(a.Err, string(encode.Shown(encode.JSON(answer))))
	return code
}

// Faulty gives the error for an invalid workflow its exit code, and prints each fault on its own
// line, whether the file was read here or by a daemon.
func Faulty(err error) error {
	if _, ok := errors.AsType[*runstate.FileFaults](err); ok {
		return &Coded{Code: ExitUsage, Err: err}
	}
	var p *api.Problem
	if !errors.As(err, &p) || p.Status != http.StatusUnprocessableEntity {
		return err
	}
	if len(p.Errors) == 0 {
		return &Coded{Code: ExitUsage, Err: err}
	}
	var lines []string
	for _, fault := range p.Errors {
		text := fault.Message
		if fault.Location != "" {
			text = fault.Location + ": " + text
		}
		lines = append(lines, text)
	}
	return &Coded{Code: ExitUsage, Err: errors.New(strings.Join(lines, "\n"))}
}

// Unknown reports that there is nothing with that name.
func Unknown(err error) bool {
	var problem *api.Problem
	return errors.As(err, &problem) && problem.Status == http.StatusNotFound
}
