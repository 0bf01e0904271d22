package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// simCommand tells callers of the former `fairlead sim` where the simulator is now.
func simCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:                "sim",
		Short:              "Moved: the simulator is a test command in Fairlead's source",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("the simulator is not part of this program any more; in a clone of Fairlead's source run: go run ./internal/test/sim/cmd/sim --seed N")
		},
	}
}
