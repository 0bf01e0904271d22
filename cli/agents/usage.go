package agents

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/read/view"
)

// PrintGroups prints usage that is summed up by one thing, and the total.
func PrintGroups(a *cli.App, g view.UsageGroups) error {
	if len(g.Rows) == 0 {
		_, err := fmt.Fprintln(a.Out, "no agent has reported any usage yet")
		return err
	}
	head, name := strings.ToUpper(g.By), func(r view.UsageRow) string { return cli.Plain(r.Day + r.Agent) }
	switch g.By {
	case "task":
		head, name = "TASK\tTEXT OR WORKFLOW", runOf
	case "model":
		name = modelOf
	}
	last := len(g.Rows)
	return printUses(a.Out, head, append(g.Rows, g.Total), func(r view.UsageRow) string {
		if last--; last < 0 {
			return "total" + strings.Repeat("\t", strings.Count(head, "\t"))
		}
		return name(r)
	})
}

func runOf(r view.UsageRow) string {
	return cli.Plain(r.Run) + "\t" + cli.Line(cmp.Or(r.Title, r.Workflow), cli.StepWidth) + archivedMark(r)
}

func modelOf(r view.UsageRow) string {
	if r.Model == "" {
		return "not reported"
	}
	return cli.Line(r.Model, cli.StepWidth)
}

// PrintUsage prints usage by agent, day, run and model.
func PrintUsage(a *cli.App, used view.UsageTable, archived bool) error {
	more := ""
	if !archived && used.Archived > 0 {
		more = cli.HowMany(used.Archived, "archived run is", "archived runs are") + " not shown; `fairlead usage --archived` does\n"
	}
	if len(used.Agents)+len(used.Days)+len(used.Runs) == 0 {
		_, err := fmt.Fprintln(a.Out, "no agent has reported any usage yet")
		if err == nil {
			_, err = io.WriteString(a.Out, more)
		}
		return err
	}
	parts := []struct {
		head string
		rows []view.UsageRow
		name func(view.UsageRow) string
	}{
		{"AGENT", used.Agents, func(r view.UsageRow) string { return cli.Plain(r.Agent) }},
		{"DAY\tAGENT", used.Days, func(r view.UsageRow) string { return cli.Plain(r.Day) + "\t" + cli.Plain(r.Agent) }},
		{"RUN\tWORKFLOW", used.Runs, func(r view.UsageRow) string {
			return runOf(r)
		}},
		{"MODEL", used.Models, modelOf},
	}
	shown := false
	for _, part := range parts {
		if len(part.rows) == 0 {
			continue
		}
		if shown {
			fmt.Fprintln(a.Out)
		}
		shown = true
		if err := printUses(a.Out, part.head, part.rows, part.name); err != nil {
			return err
		}
	}
	_, err := io.WriteString(a.Out, more)
	return err
}

// notReported stands for a number that no agent has reported. Zero would say that nothing was used.
const notReported = "–"

func archivedMark(r view.UsageRow) string {
	if r.Archived {
		return " (archived)"
	}
	return ""
}

func printUses(out io.Writer, head string, rows []view.UsageRow, name func(view.UsageRow) string) error {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, head+"\tSESSIONS\tTOKENS IN\tOUT\tCOST")
	for _, r := range rows {
		sessions := fmt.Sprint(r.Sessions)
		if r.Sessions == 0 {
			sessions = notReported
		}
		in, out := fmt.Sprint(r.InputTokens), fmt.Sprint(r.OutputTokens)
		if r.InputTokens == 0 && r.OutputTokens == 0 {
			in, out = notReported, notReported
		}
		cost := notReported
		if r.CostUSD > 0 {
			cost = cli.Money(r.CostUSD)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", name(r), sessions, in, out, cost)
	}
	return table.Flush()
}
