package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api/repos"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/repositories"
)

func reposCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "repos",
		Short: "List all repositories in which a daemon of yours runs, with what needs you",
		Long: `A line for each daemon of yours, found by its socket: how many things need you, how many agents work, and where
its page is. It works in any folder. A socket whose process does not answer, or answers as no Fairlead does, is listed
below with the reason. At most 50 are asked. ` + "`fairlead open --dir FOLDER`" + ` opens the page of one.`,
		Example: "  fairlead repos\n  fairlead repos --json\n  fairlead open --dir ~/src/harbour-api",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			here, err := filepath.EvalSymlinks(a.Dir)
			if err != nil {
				here = a.Dir
			}
			all := repos.List(cmd.Context(), here)
			return a.Show(all, func() error { return repositories.Print(a.App, all) })
		},
	}
}
