package agents

import (
	"context"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/view"
)

// toldWords says when an agent reads what it was told.
var toldWords = map[string]string{
	view.TellAtOnce:      "gets it at once: before its next step, or after its answer if that was the last one",
	view.TellAfterAnswer: "gets it when its answer is over, in the same task",
	view.TellNextSession: "gets it at the start of its next session",
}

// Tell tells the agent of a running session something.
func Tell(ctx context.Context, a *cli.App, client *apiclient.Client, target, text string) error {
	told, err := client.Tell(ctx, target, text)
	if err != nil {
		return cli.Faulty(err)
	}
	return a.Say(told, "%s (%s) %s", cli.Plain(told.Agent), cli.Plain(told.Session), toldWords[told.When])
}
