package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/workspace"
)

func (a *app) downVerb() *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the daemon; sessions finish first",
		Long: `It asks the daemon to stop and waits until it has ended. Running sessions finish, and no new session
starts. Each agent_state.json then says pause; the desired states are kept for the next
` + "`fairlead up`" + `. --now ends the sessions with all their processes; a conversation that this cuts off
continues with the next ` + "`fairlead up`" + ` (` + "`resume`" + ` in fairlead.yaml). Ctrl-C ends only the waiting.`,
		Example: `  fairlead down
  fairlead down --now`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.down(cmd.Context(), now) },
	}
	cmd.Flags().BoolVar(&now, "now", false, "end sessions instead of letting them finish")
	return cmd
}

func (a *app) down(ctx context.Context, now bool) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	client, err := a.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Down(ctx, now); err != nil {
		return err
	}
	said := ""
	for {
		view, err := client.Team(ctx)
		if err != nil {
			break // it does not answer any more
		}
		var open []string
		for _, agent := range view.Agents {
			if agent.Session != nil {
				open = append(open, agent.Session.ID)
			}
		}
		if text := strings.Join(open, ", "); text != said && text != "" && !a.json {
			fmt.Fprintf(a.err, downWords(now), text)
			said = text
		}
		if err := pause(ctx, downPoll); err != nil {
			return &coded{exitCancelled, errors.New("not waiting any longer; fairlead still stops as soon as its sessions have finished")}
		}
	}
	if err := a.untilGone(ctx); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]bool{"down": true})
	}
	fmt.Fprintln(a.out, "fairlead is down; what was wanted is kept for the next `fairlead up`")
	return nil
}

// downWords say what is waited for, and a way to be quicker where there is one.
func downWords(now bool) string {
	if now {
		return "ending %s\n"
	}
	return "waiting for %s to finish; `fairlead down --now` ends them\n"
}

// downPoll is how often the daemon is asked whether it is still there: it cannot tell us that it is not.
const downPoll = 50 * time.Millisecond

// untilGone waits until the workspace is free, so that `fairlead up` can follow at once.
func (a *app) untilGone(ctx context.Context) error {
	for {
		if free, err := workspace.Free(a.dir); free || err != nil {
			return err
		}
		if err := pause(ctx, downPoll); err != nil {
			return err
		}
	}
}

// pause waits, unless somebody has had enough.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
