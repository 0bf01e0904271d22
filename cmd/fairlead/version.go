package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
)

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "It prints the version of Fairlead and of Go, and the platform.",
		Example: "  fairlead version --json",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return a.PrintVersion() },
	}
}
