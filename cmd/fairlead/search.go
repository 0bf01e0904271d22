package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/search"
)

func searchCommand(a *app) *cobra.Command {
	var q api.SearchQuery
	var since string
	cmd := &cobra.Command{
		Use:   "search WORD...",
		Short: "Find what was said, done, asked and changed",
		Long: `It searches the output of all sessions, channels, lead sessions, questions, runs, tasks, dispatches and the
history, the newest first. All words must occur in one passage; "quoted words" must follow each other.
Case and accents do not matter. A word with three characters or more also finds longer words that begin
with it; a shorter one finds only itself. Chinese, Japanese and Korean need no spaces.

The daemon keeps the index, a few seconds behind. Without a daemon the command reads the index as it
is and says how old it is. Nothing found is exit code 0.`,
		Example: `  fairlead search retry upload
  fairlead search '"connection reset"' --agent coder --since 7d
  fairlead search timeout --kind channel,question --json`,
		Args: func(cmd *cobra.Command, words []string) error {
			if strings.TrimSpace(strings.Join(words, " ")) == "" {
				return cli.Usage(cmd, errors.New("nothing to search: name at least one word"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			var err error
			if q.Since, _, err = cli.SpanOf(since, "", time.Now()); err != nil {
				return cli.Usage(cmd, err)
			}
			q.Text = strings.Join(words, " ")
			return a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
				return search.Print(ctx, a.App, client, q)
			})(cmd, words)
		},
	}
	cmd.Flags().StringSliceVar(&q.Kinds, "kind", nil, "only output, channel, crew, question, run, task, dispatch or history; several with commas")
	cmd.Flags().StringVar(&q.Agent, "agent", "", "only what concerns this agent")
	cmd.Flags().StringVar(&since, "since", "", "only what is not older: 90m, 7d, 2026-11-25, or a date and a time")
	cmd.Flags().IntVar(&q.Limit, "limit", 20, "the number of results, 100 at most")
	return cmd
}
