package questions

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/view"
)

// NoticeTargets prints the receivers of notices.
func NoticeTargets(ctx context.Context, a *cli.App, client *apiclient.Client) error {
	targets, err := client.NoticeTargets(ctx)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(map[string]any{"targets": append([]view.NoticeTarget{}, targets...)})
	case len(targets) == 0:
		_, err := fmt.Fprintln(a.Out, "no receiver is configured; add a target below notify.targets in fairlead.yaml, then run `fairlead reload`")
		return err
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TARGET\tKIND\tSTATE\tWAITING\tLAST HOUR\tQUIET\tEVENTS")
	for i := range targets {
		t := &targets[i]
		sent := fmt.Sprintf("%d of %d", t.LastHour, t.PerHour)
		if t.Counted > 0 {
			sent += fmt.Sprintf(", %d left out", t.Counted)
		}
		quiet := t.Quiet
		if quiet == "" {
			quiet = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", cli.Plain(t.Name), cli.Plain(t.Kind), t.State, t.Waiting, sent, cli.Plain(quiet), strings.Join(t.Events, " "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range targets {
		if t := &targets[i]; t.State == "failing" {
			fmt.Fprintf(a.Out, "%s: %s\n", cli.Plain(t.Name), FailingWords(t))
		}
	}
	return nil
}

// FailingWords says why a target cannot be reached.
func FailingWords(t *view.NoticeTarget) string {
	text := "notices cannot be delivered"
	if t.Since != nil {
		text += " since " + t.Since.UTC().Format(time.DateTime) + "Z"
	}
	return text + ": " + cli.Plain(t.Cause) + "; " + cli.Plain(t.WayOut)
}

// TestNotice sends a test notice to one target, or to all, and prints the result.
func TestNotice(ctx context.Context, a *cli.App, client *apiclient.Client, target string) error {
	done, err := client.TestNotice(ctx, target)
	if err != nil {
		return cli.Faulty(err)
	}
	failed := 0
	for _, t := range done {
		if !t.Delivered {
			failed++
		}
	}
	if a.JSON {
		err = a.PrintJSON(map[string]any{"tests": done})
	} else {
		for _, t := range done {
			line := fmt.Sprintf("%s (%s): delivered", cli.Plain(t.Target), cli.Plain(t.Kind))
			if !t.Delivered {
				line = fmt.Sprintf("%s (%s): not delivered: %s; %s", cli.Plain(t.Target), cli.Plain(t.Kind), cli.Plain(t.Cause), cli.Plain(t.WayOut))
			}
			fmt.Fprintln(a.Out, line)
		}
	}
	if err == nil && failed > 0 {
		err = &cli.Coded{Code: cli.ExitFailed, Err: fmt.Errorf("%d of %d test notices were not delivered", failed, len(done))}
	}
	return err
}
