package server

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/read/view"
)

// What programs ask and the command line does not.

// second is an answer that only tells whether it is one.
func second[T any](_ T, err error) error { return err }

func actionsOf(ctx context.Context, c *client.Client, agent string, wait time.Duration) ([]view.ActionView, error) {
	query := url.Values{"wait": {strconv.FormatInt(min(wait, api.PollMax).Milliseconds(), 10) + "ms"}}
	all, err := client.Get[api.Actions](ctx, c, "/agents/"+agent+"/actions", query)
	return all.Actions, err
}

func speak(ctx context.Context, c *client.Client, s view.Speech) (api.Ordered, error) {
	return client.Post[api.Ordered](ctx, c, "/channels/"+s.Channel+"/said", api.SaidBody{
		Agent: s.Agent, Turn: s.Turn, Re: s.Re, Text: s.Text, Complete: s.Complete, Ended: s.Ended,
	})
}

func talkOf(ctx context.Context, c *client.Client, dispatch string, n int) (api.DispatchDialogue, error) {
	return client.Get[api.DispatchDialogue](ctx, c, "/dispatch/"+dispatch+"/conversations/"+strconv.Itoa(n), nil)
}

// plainText asks for an answer that is not JSON.
func plainText(ctx context.Context, c *client.Client, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://fairlead"+api.Base+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Transport{DialContext: c.DialContext, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", client.ReadProblem(resp)
	}
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}
