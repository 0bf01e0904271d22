package dispatch

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/rank"
)

// SessionOrNew returns the named session, or a session as it would start now: it then has agents and
// no folder (nil).
func SessionOrNew(a *cli.App, path string) (dispatchfolder.Found, error) {
	if path == "" {
		folder, err := dispatchfolder.Current(a.Dir)
		if err != nil {
			return dispatchfolder.Found{}, err
		}
		if folder == nil {
			orders, err := Orders(a)
			if err != nil {
				return dispatchfolder.Found{}, err
			}
			is, err := orders.NewDispatch()
			return dispatchfolder.Found{Session: is}, err
		}
	}
	return Session(a, path)
}

// PrintRanking prints which agents match an input, best first, with the terms that matched.
func PrintRanking(a *cli.App, r rank.Ranking, agents int) error {
	if agents == 0 {
		_, err := fmt.Fprintln(a.Out, "no agent is described: none in .claude/agents, and none with a description in fairlead.yaml")
		return err
	}
	if len(r.Scores) > 0 {
		w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "AGENT\tSCORE\tBY")
		for _, c := range r.Scores {
			terms := make([]string, len(c.Terms))
			for i, t := range c.Terms {
				terms[i] = fmt.Sprintf("%q %.2f", t.Word, t.Score)
			}
			fmt.Fprintf(w, "%s\t%.2f\t%s\n", cli.Line(c.Name, cli.SummaryWidth), c.Score, cli.Line(strings.Join(terms, " + "), cli.SummaryWidth))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(a.Out)
	}
	text := "MAIN keeps it: " + cli.Line(r.Reason, cli.ErrorWidth)
	if r.Best != "" {
		text = dispatch.Arrow(dispatch.Main, r.Best) + "  # " + cli.Line(r.Reason, cli.ErrorWidth)
	}
	_, err := fmt.Fprintln(a.Out, cli.Plain(text))
	return err
}
