package repositories

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
)

const textMax = 200 // characters of a name, a folder or a reason

// Print prints a line for each repository, and then what is wrong with sockets that do not answer.
func Print(a *cli.App, all api.Repositories) error {
	good, bad := 0, []api.Repository{}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, r := range all.Repositories {
		if r.Problem != "" {
			bad = append(bad, r)
			continue
		}
		if good++; good == 1 {
			fmt.Fprintln(w, "NAME\tNEEDS YOU\tWORKING\tAGENTS\tPAGE\tFOLDER")
		}
		var more []string
		if r.Here {
			more = append(more, "here")
		}
		if r.Hold {
			more = append(more, "held")
		}
		if r.Stopping {
			more = append(more, "stopping")
		}
		folder := cli.Line(r.Dir, textMax)
		if len(more) > 0 {
			folder += " (" + strings.Join(more, ", ") + ")"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\n", cli.Line(r.Name, textMax), r.NeedsYou, r.Working, r.Agents, cli.Line(r.Address, textMax),
			folder)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if good == 0 {
		fmt.Fprintln(a.Out, "no Fairlead daemon of yours runs; `fairlead up` starts one in a repository")
	}
	for _, r := range bad {
		fmt.Fprintf(a.Out, "%s: %s\n", r.ID, cli.Line(r.Detail, textMax))
	}
	if all.More > 0 {
		fmt.Fprintf(a.Out, "%d more sockets were not asked, because that is the limit\n", all.More)
	}
	return nil
}
