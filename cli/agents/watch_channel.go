package agents

import (
	"context"
	"fmt"
	"strings"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
	"github.com/fairlead-dev/fairlead/controller/sessions"
)

// WatchNamed shows the agent or the channel with a name.
func WatchNamed(ctx context.Context, a *cli.App, client *cli.Reader, name string, opts channels.Watched) error {
	channel, sure := strings.CutPrefix(name, "#")
	if _, _, isStep := sessions.StepParts(name); isStep && !sure { // it cannot be a channel's name
		if step, ok := sessionOwner(ctx, client.Client, name); ok {
			return watchSession(ctx, a, client.Client, step, name)
		}
	}
	_, err := client.Channels.Show(ctx, channel)
	if sure || err == nil && !agentToo(ctx, a, client.Client, name) {
		if err != nil {
			return err
		}
		return channels.WatchChannel(ctx, a, client, channel, opts)
	}
	if err != nil && !cli.Unknown(err) {
		return err
	}
	if opts != (channels.Watched{Last: cli.WatchLast}) {
		return &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("%s is not a channel; --no-follow, --moves and --last are for channels only", cli.Line(name, cli.ErrorWidth))}
	}
	if agent, ok := sessionOwner(ctx, client.Client, name); ok {
		return watchSession(ctx, a, client.Client, agent, name)
	}
	if client.Offline != nil {
		return client.Offline
	}
	return watchAgent(ctx, a, client.Client, name)
}

// agentToo reports whether a channel's name is also an agent's; the agent is shown then.
func agentToo(ctx context.Context, a *cli.App, client *apiclient.Client, name string) bool {
	if _, err := client.Why(ctx, name); err != nil {
		return false
	}
	if !a.JSON {
		fmt.Fprintf(a.Err, "an agent and a channel have this name; this is the agent, for the channel use `fairlead watch '#%s'`\n", cli.Plain(name))
	}
	return true
}
