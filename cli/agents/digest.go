package agents

import (
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/view"
)

// linesFirst is how many lines are printed without --verbose.
const linesFirst = 12

// PrintDigest prints what happened since a person looked last.
func PrintDigest(a *cli.App, d view.Digest) error {
	if len(d.Lines) == 0 {
		_, err := fmt.Fprintf(a.Out, "nothing happened in the last %s\n", cli.Ago(d.Until.Sub(d.Since)))
		return err
	}
	fmt.Fprintln(a.Out, a.Paint(cli.Bold, "in the last "+cli.Ago(d.Until.Sub(d.Since)))+digestSums(d))
	if n := len(d.Lines) - linesFirst; n > 0 && !a.Verbose {
		d.Lines, d.More = d.Lines[:linesFirst], d.More+n
	}
	for _, l := range d.Lines {
		fmt.Fprintf(a.Out, "  %s  %-8s  %s\n", l.At.Local().Format("15:04"), cli.Plain(l.Kind), cli.Line(l.Text, cli.ErrorWidth))
	}
	if d.More > 0 {
		fmt.Fprintf(a.Out, "  and %d more; `fairlead events --since %s` lists all\n", d.More, d.Since.UTC().Format(time.RFC3339))
	}
	if d.Cut {
		fmt.Fprintln(a.Err, "fairlead: the journal has more changes since then than a digest reads; answers, sessions and cost are those of the newest 100,000")
	}
	return nil
}

func digestSums(d view.Digest) string {
	var parts []string
	if d.CostUSD > 0 {
		parts = append(parts, "it cost "+cli.Money(d.CostUSD))
	} else if d.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens were used", d.Tokens))
	}
	if d.Landed > 0 {
		parts = append(parts, cli.HowMany(d.Landed, "task landed", "tasks landed")+" with "+cli.HowMany(d.Files, "changed file", "changed files"))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}
