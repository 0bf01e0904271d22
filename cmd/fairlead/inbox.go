package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/engine"
)

func (a *app) inboxVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "inbox",
		Short: "Show everything that waits for a person, the oldest first",
		Long: `Each question with what the step has made, what its answer has to look like, and how to give
it: with ` + "`fairlead approve`" + ` or ` + "`fairlead reject`" + `, in Mission Control, or as a file.`,
		Args: args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *api.Client, _ []string) error {
			items, err := client.Inbox(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"items": append([]engine.InboxItem{}, items...)})
			}
			return a.printInbox(items)
		}),
	}
}

// inboxLines is how much of what a step said is shown of it.
const inboxLines = 3

func (a *app) printInbox(items []engine.InboxItem) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(a.out, "nothing waits for you")
		return err
	}
	for i, item := range items {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		run, step := plain(item.Run), plain(item.Step)
		fmt.Fprintf(a.out, "%s  %s of run %s, %s ago\n", a.paint(bold, step), line(item.Workflow, stepWidth), run, ago(max(0, time.Since(item.Since))))
		if item.BadInput != "" {
			fmt.Fprintln(a.out, "  "+a.paint(yellow, "the last answer was not valid: ")+line(item.BadInput, errorWidth))
		}
		if len(item.Artifacts) > 0 {
			fmt.Fprintln(a.out, "  made    "+line(strings.Join(item.Artifacts, ", "), errorWidth))
		}
		for _, log := range item.Logs[max(0, len(item.Logs)-inboxLines):] {
			fmt.Fprintln(a.out, "  says    "+line(log, errorWidth))
		}
		if item.InputSchema != "" {
			fmt.Fprintln(a.out, "  wants   "+line(item.InputSchema, errorWidth))
		}
		fmt.Fprintf(a.out, "  answer  fairlead approve %s %s\n", run, step)
		fmt.Fprintln(a.out, "  or put  "+plain(item.Path))
	}
	return nil
}
