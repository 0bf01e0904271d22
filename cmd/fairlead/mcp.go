package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api/mcp"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/version"
)

// What a session of fairlead has in its environment, so that its program finds the tools of its team.
const (
	mcpURLVar   = "FAIRLEAD_MCP_URL"
	mcpTokenVar = "FAIRLEAD_MCP_TOKEN" //nolint:gosec // the name of a variable
)

func mcpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "mcp",
		Hidden: true, // programs call it
		Short:  "Serve the team's tools to a program over standard input and output",
		Long: `It speaks the Model Context Protocol and passes on what the daemon offers at /mcp, for programs that
cannot use HTTP. It first asks the daemon of this workspace, so that a restarted daemon is found
again; a session that Fairlead started also has an address and a token in its environment. See
doc/mcp.md.`,
		Example: "  fairlead mcp",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bridge := &mcp.Bridge{Dir: a.Dir, URL: os.Getenv(mcpURLVar), Token: os.Getenv(mcpTokenVar), Version: version.String()}
			return bridge.Run(cmd.Context(), io.NopCloser(a.In), nopCloser{a.Out})
		},
	}
}

// nopCloser is a stream that its owner closes elsewhere.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
