package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
)

// What a session of fairlead has in its environment, so that its program finds the tools of its team.
const (
	mcpURLVar   = "FAIRLEAD_MCP_URL"
	mcpTokenVar = "FAIRLEAD_MCP_TOKEN" //nolint:gosec // the name of a variable
)

func (a *app) mcpVerb() *cobra.Command {
	return &cobra.Command{
		Use:    "mcp",
		Hidden: true, // programs call it
		Short:  "Give a program the tools of its team, over standard input and output",
		Long: `Speaks the Model Context Protocol on standard input and output, for programs that know no other
way: it passes on what the daemon offers at /mcp. A session that fairlead started has what is
needed in its environment (` + mcpTokenVar + `, ` + mcpURLVar + `); the daemon of --dir is
asked first, so that one that was started again is found again.

A program that speaks MCP over HTTP needs nothing of this: see doc/mcp.md.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bridge := &api.Bridge{Dir: a.dir, URL: os.Getenv(mcpURLVar), Token: os.Getenv(mcpTokenVar), Version: version()}
			return bridge.Run(cmd.Context(), io.NopCloser(a.in), nopCloser{a.out})
		},
	}
}

// nopCloser is a stream that somebody else closes.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
