package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
)

// reading is a command that only reads.
func (a *app) reading(do func(ctx context.Context, r *cli.Reader, words []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) (err error) {
		r, err := a.DialToRead(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, r.Close()) }()
		return do(cmd.Context(), r, words)
	}
}
