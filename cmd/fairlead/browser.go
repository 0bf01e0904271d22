package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/workspace"
)

func openCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "open",
		Short:   "Open Mission Control in a browser, and print its address",
		Long:    "The address contains the token of this workspace, so do not share it.",
		Example: "  fairlead open",
		Args:    cli.Args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			if _, err := client.Status(ctx); err != nil {
				return err
			}
			found, err := workspace.FindDaemon(a.Dir)
			if err != nil {
				return fmt.Errorf("find the daemon's address: %w", err)
			}
			token, err := os.ReadFile(a.Dir + "/.fairlead/token")
			if err != nil {
				return fmt.Errorf("read the token: %w", err)
			}
			url := found.Address + "/?token=" + string(token[:len(token)-1])
			if a.JSON {
				return a.PrintJSON(map[string]string{"url": url})
			}
			fmt.Fprintln(a.Out, url)
			daemon.OpenBrowser(url)
			return nil
		}),
	}
}
