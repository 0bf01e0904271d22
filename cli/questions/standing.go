package questions

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/view"
)

// PrintStanding prints the saved answers.
func PrintStanding(a *cli.App, list []view.StandingView) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.Out, "no saved answers; save one with `fairlead answer ID yes --for session` or `--for always`")
		return err
	}
	table := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSAYS\tAGENT\tFOR\tTOOL\tCALL\tBY\tSINCE")
	for _, s := range list {
		says, until := "no", "always"
		if s.Allow {
			says = "yes"
		}
		if s.Session != "" {
			until = cli.Plain(s.Session)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s ago\n", s.ID, says, cli.Plain(s.Agent), until, cli.OrDash(cli.Line(s.Tool, 30)), cli.Line(cli.CallWords(s.Call), 60), cli.Line(s.By, 30), cli.Ago(max(0, time.Since(s.At))))
	}
	return table.Flush()
}
