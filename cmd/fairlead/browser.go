package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
)

func openCommand(a *app) *cobra.Command {
	var code, list bool
	var revoke string
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Open Mission Control in a browser and sign it in, or list and sign out browsers",
		Long: `The address that is opened contains a login code. The code is valid once and for 30 seconds; the page exchanges it
for a secret of its own and stays signed in until you revoke that with --revoke. With --code the code is printed to
be typed into the page, on a phone for example; the phone needs a tunnel to the port, or a proxy whose origin is
named under origins in fairlead.yaml.`,
		Example: "  fairlead open\n  fairlead open --code\n  fairlead open --list\n  fairlead open --revoke l3",
		Args:    cli.Args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			switch {
			case list:
				return listLogins(ctx, a, client)
			case revoke != "":
				if _, err := client.Logins.Revoke(ctx, revoke); err != nil {
					return err
				}
				return a.Say(map[string]string{"revoked": revoke}, "%s is signed out", revoke)
			}
			issued, err := client.Logins.NewCode(ctx)
			if err != nil {
				return err
			}
			page := client.Daemon().Address + "/"
			url := daemon.SignInURL(page, issued.Code)
			if a.JSON {
				return a.PrintJSON(map[string]any{"url": url, "page": page, "origins": append([]string{}, client.Daemon().Origins...), "code": issued.Code, "expires_at": issued.ExpiresAt})
			}
			if code {
				for _, origin := range client.Daemon().Origins {
					page += " or " + origin + "/"
				}
				_, err := fmt.Fprintf(a.Out, "%s\nopen %s and enter this code within 30 seconds; it is valid once\n", issued.Code, page)
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s\nthis address is valid once and for 30 seconds; then the page is at %s\n", url, page)
			daemon.OpenBrowser(url)
			return err
		}),
	}
	cmd.Flags().BoolVar(&code, "code", false, "print a login code to type, and open nothing")
	cmd.Flags().BoolVar(&list, "list", false, "list the browsers that are signed in")
	cmd.Flags().StringVar(&revoke, "revoke", "", "sign the browser with this `ID` out")
	cmd.MarkFlagsMutuallyExclusive("code", "list", "revoke")
	return cmd
}

// listLogins prints the browsers that are signed in.
func listLogins(ctx context.Context, a *app, client *apiclient.Client) error {
	all, err := client.Logins.List(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"logins": all})
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.Out, "no browser is signed in; `fairlead open` signs one in")
		return err
	}
	for _, l := range all {
		fmt.Fprintf(a.Out, "%-5s used %s ago, signed in %s  %s\n", l.ID, cli.Ago(time.Since(l.UsedAt)), l.CreatedAt.Local().Format(time.DateTime), cli.Line(l.Name, 80))
	}
	return nil
}
