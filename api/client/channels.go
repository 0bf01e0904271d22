package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
)

// Channels returns all channels, sorted by name.
func (c *Client) Channels(ctx context.Context) (api.Channels, error) {
	return get[api.Channels](ctx, c, "/channels", nil)
}

// Channel returns one channel. For an unknown name the error is a *Problem with status 404 and the
// known names.
func (c *Client) Channel(ctx context.Context, name string) (view.ChannelView, error) {
	return get[view.ChannelView](ctx, c, channelPath(name, ""), nil)
}

// ChannelEntries returns a part of a channel's entries, oldest first. Limit 0 means the server's
// default.
func (c *Client) ChannelEntries(ctx context.Context, name string, q view.EntryQuery) (view.ChannelPage, error) {
	v := url.Values{}
	for key, seq := range map[string]uint64{"before": q.Before, "after": q.After, "limit": uint64(max(0, q.Limit))} {
		if seq > 0 {
			v.Set(key, strconv.FormatUint(seq, 10))
		}
	}
	if q.Moves {
		v.Set("moves", "true")
	}
	return get[view.ChannelPage](ctx, c, channelPath(name, "/entries"), v)
}

// Say sends a person's message to a channel; an empty mode means the channel's default. It returns
// when the message is durable. The error is a *Refused if the state does not allow it.
func (c *Client) Say(ctx context.Context, channel, text, mode string) (view.Spoken, error) {
	return post[view.Spoken](ctx, c, channelPath(channel, "/messages"), api.SayBody{Text: text, Mode: mode})
}

// Grant gives an agent the turn. With now, also if another agent has it.
func (c *Client) Grant(ctx context.Context, channel, agent string, now bool) (api.ChannelOrdered, error) {
	return post[api.ChannelOrdered](ctx, c, channelPath(channel, "/grant"), api.GrantBody{Agent: agent, Now: now})
}

// Skip ends a turn; 0 means the current turn.
func (c *Client) Skip(ctx context.Context, channel string, turn uint64) (api.ChannelOrdered, error) {
	return post[api.ChannelOrdered](ctx, c, channelPath(channel, "/skip"), api.SkipBody{Turn: turn})
}

// Override ends a wait: the turn continues or is forfeited.
func (c *Client) Override(ctx context.Context, channel string, goOn bool) (api.ChannelOrdered, error) {
	return post[api.ChannelOrdered](ctx, c, channelPath(channel, "/override"), api.OverrideBody{GoOn: goOn})
}

// Assign adds an agent to a channel.
func (c *Client) Assign(ctx context.Context, channel, agent string) (api.ChannelOrdered, error) {
	return post[api.ChannelOrdered](ctx, c, channelPath(channel, "/members"), api.MemberBody{Agent: agent})
}

// Unassign removes an agent from a channel.
func (c *Client) Unassign(ctx context.Context, channel, agent string) (api.ChannelOrdered, error) {
	return call[api.ChannelOrdered](ctx, c, http.MethodDelete, channelPath(channel, "/members/"+url.PathEscape(agent)), nil, nil)
}

// Disable gives an agent no turns until Enable.
func (c *Client) Disable(ctx context.Context, agent string) (api.Commanded, error) {
	return post[api.Commanded](ctx, c, agentPath(agent, "/disable"), api.EmptyBody{})
}

// Enable lets an agent get turns again.
func (c *Client) Enable(ctx context.Context, agent string) (api.Commanded, error) {
	return post[api.Commanded](ctx, c, agentPath(agent, "/enable"), api.EmptyBody{})
}

// AgentReady joins a foreign agent. From then on AgentBeat must be called as often as the answer
// says.
func (c *Client) AgentReady(ctx context.Context, agent string) (api.Joined, error) {
	return post[api.Joined](ctx, c, agentPath(agent, "/ready"), api.EmptyBody{})
}

// AgentBeat sends a foreign agent's heartbeat.
func (c *Client) AgentBeat(ctx context.Context, agent string) error {
	_, err := post[api.Beaten](ctx, c, agentPath(agent, "/heartbeat"), api.EmptyBody{})
	return err
}

// AgentLeft makes a foreign agent leave.
func (c *Client) AgentLeft(ctx context.Context, agent string) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, agentPath(agent, "/leave"), api.EmptyBody{})
}

// AgentActions returns what an agent must do. If there is nothing, the request waits for wait, at
// most one minute.
func (c *Client) AgentActions(ctx context.Context, agent string, wait time.Duration) ([]view.ActionView, error) {
	v := url.Values{}
	if wait > 0 {
		v.Set("wait", strconv.FormatInt(min(wait, api.PollMax).Milliseconds(), 10)+"ms")
	}
	all, err := get[api.Actions](ctx, c, agentPath(agent, "/actions"), v)
	return all.Actions, err
}

// AgentConfirm reports that an action is done.
func (c *Client) AgentConfirm(ctx context.Context, agent, key string) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, agentPath(agent, "/actions/done"), api.ConfirmBody{Key: key})
}

// AgentSaid sends an agent's message to a channel.
func (c *Client) AgentSaid(ctx context.Context, s view.Speech) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, channelPath(s.Channel, "/said"), api.SaidBody{
		Agent: s.Agent, Turn: s.Turn, Re: s.Re, Text: s.Text, Complete: s.Complete, Ended: s.Ended,
	})
}

// AgentPass passes an agent's turn to the next agent.
func (c *Client) AgentPass(ctx context.Context, channel, agent string, turn uint64) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, channelPath(channel, "/pass"), api.TurnBody{Agent: agent, Turn: turn})
}

// AgentWait pauses an agent's turn; why is shown to people.
func (c *Client) AgentWait(ctx context.Context, channel, agent string, turn uint64, why string) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, channelPath(channel, "/wait"), api.WaitBody{Agent: agent, Turn: turn, Why: why})
}

// AgentGoesOn ends an agent's wait.
func (c *Client) AgentGoesOn(ctx context.Context, channel, agent string, turn uint64) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, channelPath(channel, "/go-on"), api.TurnBody{Agent: agent, Turn: turn})
}

func channelPath(name, rest string) string { return "/channels/" + url.PathEscape(name) + rest }

func agentPath(name, rest string) string { return "/agents/" + url.PathEscape(name) + rest }
