package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/spf13/cobra"
)

// What the exit codes mean. Scripts rely on them.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitRefused   = 3
	exitWaits     = 4 // on a human
	exitCancelled = 5
	exitNoDaemon  = 6
)

// coded is an error that knows its exit code.
type coded struct {
	code int
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// errSaid is a no whose words stand on standard output already: they were what was asked for.
var errSaid = errors.New("no, as standard output says")

// usage says what was wrong with how a verb was called, and how it is called.
func usage(cmd *cobra.Command, err error) error {
	return &coded{exitUsage, fmt.Errorf("%w\nusage: %s\nmore: %s --help", err, cmd.UseLine(), cmd.CommandPath())}
}

// args wraps a check of a verb's arguments, so that a wrong call has the right code and words.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, words []string) error {
		if err := check(cmd, words); err != nil {
			return usage(cmd, miscounted(cmd, words, err))
		}
		return nil
	}
}

// miscounted says in our words what cobra counts; other faults of words have their own.
func miscounted(cmd *cobra.Command, words []string, err error) error {
	said := err.Error()
	if !strings.HasPrefix(said, "accepts ") && !strings.HasPrefix(said, "requires ") && !strings.HasPrefix(said, "unknown command ") {
		return err
	}
	_, takes, names := strings.Cut(cmd.Use, " ")
	switch {
	case !names:
		return fmt.Errorf("%s takes no names; leave %q out", cmd.CommandPath(), words[0])
	case len(words) == 0:
		return fmt.Errorf("%s wants %s", cmd.CommandPath(), takes)
	default:
		return fmt.Errorf("%s wants %s, and was given %q", cmd.CommandPath(), takes, words)
	}
}

// codeOf is the exit code that an error asks for.
func codeOf(err error) int {
	var known *coded
	var refusal *machine.Refusal
	var refused *apiclient.Refused
	var none *apiclient.NoDaemon
	var problem *api.Problem
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &known):
		return known.code
	case errors.As(err, &refusal), errors.As(err, &refused):
		return exitRefused
	case errors.As(err, &none):
		return exitNoDaemon
	case errors.As(err, &problem) && problem.Status == http.StatusNotFound:
		return exitUsage // a name that nobody has
	case errors.Is(err, context.Canceled):
		return exitCancelled
	default:
		return exitFailed
	}
}

// words is an error for people. A refusal is shortened to its reason: which event met which state,
// and the id of the rule, are shown with --verbose.
func (a *app) words(err error) string {
	text := err.Error()
	if a.verbose {
		return text
	}
	for _, no := range refusals(err) {
		text = strings.ReplaceAll(text, no.Error(), refusalWords(no))
	}
	return text
}

// refusalWords is a refusal without the names that only the state machines have.
func refusalWords(no *machine.Refusal) string {
	state := strings.ReplaceAll(no.State, "_", " ")
	switch {
	case no.Reason == "":
		return no.Subject + ": this is not possible while it is " + state
	case strings.Contains(no.State, " "): // a sentence, and no state's name
		return no.Subject + ": " + no.Reason + " (" + no.State + ")"
	default:
		return no.Subject + ": " + no.Reason
	}
}

// refusals are all refusals that an error is made of.
func refusals(err error) []*machine.Refusal {
	var found []*machine.Refusal
	if no, ok := err.(*machine.Refusal); ok { //nolint:errorlint // each node is looked at
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

// report says what went wrong, to people or to programs, and gives the exit code.
func (a *app) report(err error) int {
	code := codeOf(err)
	if err == nil || errors.Is(err, errSaid) {
		return code
	}
	if !a.json {
		fmt.Fprintln(a.err, "fairlead: "+plain(a.words(err)))
		return code
	}
	answer := map[string]any{"error": err.Error(), "code": code}
	var refused *apiclient.Refused
	if errors.As(err, &refused) {
		answer["refusal"] = refused.Refusal
	}
	text, jerr := json.Marshal(answer)
	if jerr != nil {
		panic("fairlead: an error that is no text: " + jerr.Error())
	}
	fmt.Fprintln(a.err, string(text))
	return code
}
