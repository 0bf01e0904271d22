package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/workspace"
)

// Down stops the daemon; now ends running sessions.
func Down(ctx context.Context, a *cli.App, now bool) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	client, err := a.Dial()
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Down(ctx, now); err != nil {
		return err
	}
	said := ""
	for {
		view, err := client.Agents(ctx)
		if err != nil {
			break // the daemon no longer answers
		}
		var open []string
		for _, agent := range view.Agents {
			for _, s := range agent.Sessions {
				open = append(open, s.ID)
			}
		}
		if text := strings.Join(open, ", "); text != said && text != "" && !a.JSON {
			fmt.Fprintf(a.Err, DownWords(now), text)
			said = text
		}
		if err := cli.Pause(ctx, cli.DownPoll); err != nil {
			return &cli.Coded{Code: cli.ExitCancelled, Err: errors.New("not waiting any longer; fairlead still stops as soon as its sessions have finished")}
		}
	}
	if err := untilGone(ctx, a); err != nil {
		return err
	}
	return a.Say(map[string]bool{"down": true}, "fairlead is down; desired states are kept for the next `fairlead up`")
}

// DownWords says what is waited for, and how to avoid waiting.
func DownWords(now bool) string {
	if now {
		return "ending %s\n"
	}
	return "waiting for %s to finish; `fairlead down --now` ends them\n"
}

// untilGone waits until the workspace is free, so that `fairlead up` can follow at once.
func untilGone(ctx context.Context, a *cli.App) error {
	for {
		if free, err := workspace.Free(a.Dir); free || err != nil {
			return err
		}
		if err := cli.Pause(ctx, cli.DownPoll); err != nil {
			return err
		}
	}
}
