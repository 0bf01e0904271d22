package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
)

// Channels has the requests about the channels: their entries, and what a person says or orders in them.
type Channels struct{ client *Client }

// List returns all channels, sorted by name.
func (c Channels) List(ctx context.Context) (api.Channels, error) {
	return Get[api.Channels](ctx, c.client, "/channels", nil)
}

// Show returns one channel. For an unknown name the error is a *Problem with status 404 and the
// known names.
func (c Channels) Show(ctx context.Context, name string) (view.ChannelView, error) {
	return Get[view.ChannelView](ctx, c.client, channelPath(name, ""), nil)
}

// Entries returns a part of a channel's entries, oldest first. Limit 0 means the server's
// default.
func (c Channels) Entries(ctx context.Context, name string, q view.EntryQuery) (view.ChannelPage, error) {
	return Get[view.ChannelPage](ctx, c.client, channelPath(name, "/entries"), queryOf(q))
}

// Say sends a person's message to a channel; an empty mode means the channel's default. It returns
// when the message is durable. The error is a *Refused if the state does not allow it.
func (c Channels) Say(ctx context.Context, channel, text, mode string) (view.Spoken, error) {
	return Post[view.Spoken](ctx, c.client, channelPath(channel, "/messages"), api.SayBody{Text: text, Mode: mode})
}

// Grant gives an agent the turn. With now, also if another agent has it.
func (c Channels) Grant(ctx context.Context, channel, agent string, now bool) (api.ChannelOrdered, error) {
	return Post[api.ChannelOrdered](ctx, c.client, channelPath(channel, "/grant"), api.GrantBody{Agent: agent, Now: now})
}

// Skip ends a turn; 0 means the current turn.
func (c Channels) Skip(ctx context.Context, channel string, turn uint64) (api.ChannelOrdered, error) {
	return Post[api.ChannelOrdered](ctx, c.client, channelPath(channel, "/skip"), api.SkipBody{Turn: turn})
}

// Override ends a wait: the turn continues or is forfeited.
func (c Channels) Override(ctx context.Context, channel string, goOn bool) (api.ChannelOrdered, error) {
	return Post[api.ChannelOrdered](ctx, c.client, channelPath(channel, "/override"), api.OverrideBody{GoOn: goOn})
}

// Assign adds an agent to a channel.
func (c Channels) Assign(ctx context.Context, channel, agent string) (api.ChannelOrdered, error) {
	return Post[api.ChannelOrdered](ctx, c.client, channelPath(channel, "/members"), api.MemberBody{Agent: agent})
}

// Unassign removes an agent from a channel.
func (c Channels) Unassign(ctx context.Context, channel, agent string) (api.ChannelOrdered, error) {
	return call[api.ChannelOrdered](ctx, c.client, http.MethodDelete, channelPath(channel, "/members/"+url.PathEscape(agent)), nil, nil)
}

// Disable gives an agent no turns until Enable.
func (c Channels) Disable(ctx context.Context, agent string) (api.Commanded, error) {
	return Post[api.Commanded](ctx, c.client, agentPath(agent, "/disable"), api.EmptyBody{})
}

// Enable lets an agent get turns again.
func (c Channels) Enable(ctx context.Context, agent string) (api.Commanded, error) {
	return Post[api.Commanded](ctx, c.client, agentPath(agent, "/enable"), api.EmptyBody{})
}

func channelPath(name, rest string) string { return "/channels/" + url.PathEscape(name) + rest }

func agentPath(name, rest string) string { return "/agents/" + url.PathEscape(name) + rest }
