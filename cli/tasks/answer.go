package tasks

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
)

// answered prints the answer to an order about a task: as JSON, or in words.
func answered(a *cli.App, id string, done any, err error, words func() string) error {
	if p, is := errors.AsType[*api.Problem](err); is && p.Status == http.StatusNotFound {
		return unknown(id)
	}
	if err != nil {
		return cli.Faulty(err)
	}
	if a.JSON {
		return a.PrintJSON(done)
	}
	_, err = fmt.Fprintln(a.Out, words())
	return err
}
