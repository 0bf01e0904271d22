package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli/probe"
)

// probeFlags make doctor the process that probes. People have no use for them.
func (a *app) probeFlags(cmd *cobra.Command) {
	probes := cmd.Flags().Bool("probe", false, "")
	apart := cmd.Flags().Bool("apart", false, "")
	for _, name := range []string{"probe", "apart"} {
		if err := cmd.Flags().MarkHidden(name); err != nil {
			panic("doctor: " + err.Error())
		}
	}
	verb := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		if *probes {
			return probe.Here(cmd.Context(), a.App, *apart)
		}
		return verb(cmd, words)
	}
}
