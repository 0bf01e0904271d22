package main

import (
	"bytes"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/claudehook"
	_ "github.com/fairlead-dev/fairlead/claudehook/branch" // hooks are run there
	"github.com/fairlead-dev/fairlead/cli"
)

func hookCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "hook EVENT",
		Hidden: true, // programs call it
		Short:  "Answer a hook of Claude Code",
		Long: `` + "`fairlead claude install`" + ` makes Claude Code call it. It reads the event as JSON on standard input and
answers in the form that Claude Code documents. In a conversation that was started by
/agent-state-machine it records what happens, denies what the state does not permit, and blocks (exit
code 2) if it cannot decide. Elsewhere it prints nothing. It needs no daemon. Unknown events are
ignored.`,
		Example: "  fairlead hook PreToolUse < event.json",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, words []string) error {
			var said bytes.Buffer
			code := claudehook.Main(words[0], a.In, a.Out, &said)
			if code == 0 {
				return nil
			}
			return &cli.Coded{Code: code, Err: errors.New(strings.TrimPrefix(strings.TrimSpace(said.String()), "fairlead: "))}
		},
	}
}
