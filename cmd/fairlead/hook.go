package main

import (
	"bytes"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/claudehook"
)

func (a *app) hookVerb() *cobra.Command {
	return &cobra.Command{
		Use:    "hook EVENT",
		Hidden: true, // programs call it
		Short:  "Answer a hook of Claude Code, as `fairlead claude install` has it ask",
		Long: `Reads the event as JSON on standard input, and answers in the form that Claude Code documents.
The events are ` + strings.Join(claudehook.Names(), ", ") + `; others are passed over.

In a session that was begun by /agent-state-machine it records what happens, denies what the
state does not permit, and blocks (exit code 2) where it cannot decide. Outside of one it says
nothing. No daemon is needed.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, words []string) error {
			var said bytes.Buffer
			code := claudehook.Run(words[0], a.in, a.out, &said)
			if code == 0 {
				return nil
			}
			return &coded{code, errors.New(strings.TrimPrefix(strings.TrimSpace(said.String()), "fairlead: "))}
		},
	}
}
