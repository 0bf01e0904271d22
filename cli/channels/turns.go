package channels

import (
	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
)

// Ordered prints a channel's state after an order.
func Ordered(a *cli.App, done api.ChannelOrdered, err error) error {
	if err != nil {
		return err
	}
	return a.Say(done, "%s: %s", cli.Plain(done.Channel.Name), standing(done.Channel))
}
