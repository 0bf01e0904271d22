package agents

import (
	"context"
	"fmt"
	"strings"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
)

// WatchNamed shows an agent or a channel, whichever has the name.
func WatchNamed(ctx context.Context, a *cli.App, client *cli.Reader, name string, opts channels.Watched) error {
	channel, sure := strings.CutPrefix(name, "#")
	_, err := client.Channel(ctx, channel)
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
		return &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("%s is no channel: --no-follow, --moves and --last are for channels", cli.Line(name, cli.ErrorWidth))}
	}
	if agent, ok := sessionOwner(ctx, a, client.Client, name); ok {
		return watchSession(ctx, a, client.Client, agent, name)
	}
	if client.Offline != nil {
		return client.Offline
	}
	return watchAgent(ctx, a, client.Client, name)
}

// agentToo says whether a channel's name is an agent's too; the agent is then meant.
func agentToo(ctx context.Context, a *cli.App, client *apiclient.Client, name string) bool {
	if _, err := client.Why(ctx, name); err != nil {
		return false
	}
	if !a.JSON {
		fmt.Fprintf(a.Err, "there is an agent and a channel of that name, and this is the agent; the channel is `fairlead watch '#%s'`\n", cli.Plain(name))
	}
	return true
}
