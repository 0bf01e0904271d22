package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
)

func (a *app) routeVerb(path *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "route TEXT...",
		Short: "Show which agent's description fits an input, and why",
		Long: `It ranks the agents of the open dispatch; if none is open, the agents that a new dispatch would have.
It changes nothing. Words that an input and a description share count; rare words count more.
If no agent reaches the threshold, MAIN keeps the input. As TEXT - reads standard input.`,
		Example: `  fairlead dispatch route "optimize the SQL query"`,
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			text, err := a.spoken(words)
			if err != nil {
				return usage(cmd, err)
			}
			is, _, err := a.sessionOrNew(*path)
			if err != nil {
				return err
			}
			ranking, err := a.ranked(is, text)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(ranking)
			}
			return a.printRanking(ranking, len(is.Agents))
		},
	}
	oldPath(cmd, path)
	return cmd
}

// sessionOrNew is the session that is meant, or the one that would be begun now: its folder is
// nil then, and it has agents and nothing else.
func (a *app) sessionOrNew(path string) (dispatch.Dispatch, *dispatchfolder.Folder, error) {
	if path == "" {
		folder, err := dispatchfolder.Current(a.dir)
		if err != nil {
			return dispatch.Dispatch{}, nil, err
		}
		if folder == nil {
			conf, err := a.maybeConfig()
			if err != nil {
				return dispatch.Dispatch{}, nil, err
			}
			agents, _, err := a.describedAgents(conf)
			return dispatch.Dispatch{Setup: dispatch.Setup{Mode: dispatch.Orchestrator, Agents: agents}}, nil, err
		}
	}
	found, err := a.session(path)
	return found.is, found.Folder, err
}

func (a *app) printRanking(r policy.Ranking, agents int) error {
	if agents == 0 {
		_, err := fmt.Fprintln(a.out, "nobody is described: no agent in .claude/agents, and none with a description in fairlead.yaml")
		return err
	}
	if len(r.Scores) > 0 {
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "AGENT\tSCORE\tBY")
		for _, c := range r.Scores {
			terms := make([]string, len(c.Terms))
			for i, t := range c.Terms {
				terms[i] = fmt.Sprintf("%q %.2f", t.Word, t.Score)
			}
			fmt.Fprintf(w, "%s\t%.2f\t%s\n", line(c.Name, summaryWidth), c.Score, line(strings.Join(terms, " + "), summaryWidth))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	text := "MAIN keeps it: " + line(r.Reason, errorWidth)
	if r.Best != "" {
		text = dispatch.Arrow(dispatch.Main, r.Best) + "  # " + line(r.Reason, errorWidth)
	}
	_, err := fmt.Fprintln(a.out, plain(text))
	return err
}
