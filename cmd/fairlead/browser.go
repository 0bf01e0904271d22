package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/workspace"
)

// openBrowser shows a page to who sits here. Where nobody does, the address was printed.
func openBrowser(url string) {
	name, words := "xdg-open", []string{url}
	if runtime.GOOS == "darwin" {
		name = "open"
	} else if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	cmd := exec.Command(name, words...) //nolint:gosec // our own address
	if err := cmd.Start(); err != nil {
		return
	}
	go func() { _ = cmd.Wait() }() // how the browser fared is its own affair
}

func (a *app) openVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "open",
		Short:   "Open Mission Control in a browser, and print its address",
		Long:    "The address contains the token of this workspace, so do not share it.",
		Example: "  fairlead open",
		Args:    args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			if _, err := client.Status(ctx); err != nil {
				return err
			}
			found, err := workspace.FindDaemon(a.dir)
			if err != nil {
				return fmt.Errorf("find the daemon's address: %w", err)
			}
			token, err := os.ReadFile(a.dir + "/.fairlead/token")
			if err != nil {
				return fmt.Errorf("read the token: %w", err)
			}
			url := found.Address + "/?token=" + string(token[:len(token)-1])
			if a.json {
				return a.printJSON(map[string]string{"url": url})
			}
			fmt.Fprintln(a.out, url)
			openBrowser(url)
			return nil
		}),
	}
}
