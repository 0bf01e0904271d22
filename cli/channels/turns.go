package channels

import (
	"fmt"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
)

// Ordered prints a channel's state after an order.
func Ordered(a *cli.App, done api.ChannelOrdered, err error) error {
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(done)
	}
	_, err = fmt.Fprintf(a.Out, "%s: %s\n", cli.Plain(done.Channel.Name), standing(done.Channel))
	return err
}
