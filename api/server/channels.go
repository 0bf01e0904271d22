package server

import (
	"context"
	"net/http"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/app"
)

type entriesIn struct {
	ChannelPath
	view.EntryQuery
}

type memberIn struct {
	ChannelPath
	Agent string `path:"agent" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" example:"coder" doc:"Who leaves"`
}

// channelRoutes returns the routes about channels for people and their programs.
func channelRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"list-channels", get, "/channels", "The channels",
			"For each channel: the agent that has the turn, until when, and the next agent.",
			asOf(answer(handleChannels)),
		},
		{
			"get-channel", get, "/channels/{channel}", "One channel",
			"Follow `/events?entity=channel/NAME` for changes; `deadline` is when the current time limit ends.",
			asOf(answer(handleChannel)),
		},
		{
			"read-channel", get, "/channels/{channel}/entries", "Read the entries of a channel",
			"Oldest first: messages, announcements, warnings and, with `moves`, changes of agents' states. A page can be shorter than its limit if texts are long; `more` says whether entries are left. To follow a channel, request the entries `after` the last `seq` that you have each time `/events?entity=channel/NAME` reports a change.",
			asOf(answer(handleEntries)),
		},
		{
			"say-message", post, "/channels/{channel}/messages", "Send a message to a channel",
			"`queue`: it is delivered when the turn ends. `inject`: it is delivered at once to the agent that has the turn. `interrupt`: the turn pauses until the person has an answer. `parallel`: it is delivered to all agents at once. The request returns when the message is durable; its `state` in `/entries` is queued, delivered, answered or lapsed.",
			created(answer(handleSay)),
		},
		{
			"grant-turn", post, "/channels/{channel}/grant", "Give an agent the turn",
			"Refused while another agent has the turn, unless `now` is set. Both agents go to the end of the rotation when their turns are over.",
			orderChannel("grant",
				func(ctx context.Context, e *app.App, by change.Actor, in *forChannel[api.GrantBody]) (uint64, error) {
					return e.Channels.Grant(ctx, by, in.Channel, in.Body.Agent, in.Body.Now)
				}),
		},
		{
			"skip-turn", post, "/channels/{channel}/skip", "End the current turn",
			"The next agent in the rotation gets the turn. With `turn`, only that turn is ended: if it has ended meanwhile, later turns are not affected.",
			orderChannel("skip",
				func(ctx context.Context, e *app.App, by change.Actor, in *forChannel[*api.SkipBody]) (uint64, error) {
					return e.Channels.Skip(ctx, by, in.Channel, or(in.Body).Turn)
				}),
		},
		{
			"override-wait", post, "/channels/{channel}/override", "End a wait",
			"The waiting agent continues or forfeits the turn.",
			orderChannel("override",
				func(ctx context.Context, e *app.App, by change.Actor, in *forChannel[api.OverrideBody]) (uint64, error) {
					return e.Channels.Override(ctx, by, in.Channel, in.Body.GoOn)
				}),
		},
		{
			"assign-agent", post, "/channels/{channel}/members", "Let an agent join a channel",
			"It joins at the end of the queue. An agent that is offline is queued when it connects.",
			orderChannel("assign",
				func(ctx context.Context, e *app.App, by change.Actor, in *forChannel[api.MemberBody]) (uint64, error) {
					return e.Channels.Assign(ctx, by, in.Channel, in.Body.Agent)
				}),
		},
		{
			"remove-agent", http.MethodDelete, "/channels/{channel}/members/{agent}", "Let an agent leave a channel",
			"Its place in other channels does not change.",
			orderChannel("remove", func(ctx context.Context, e *app.App, by change.Actor, in *memberIn) (uint64, error) {
				return e.Channels.Unassign(ctx, by, in.Channel, in.Agent)
			}),
		},
		{
			"disable-agent", post, "/agents/{name}/disable", "Give an agent no turns",
			"The agent leaves every queue and is OFFLINE until it is enabled (T20).",
			able("disable", func(e *app.App) namedOrder { return e.Channels.Disable }),
		},
		{
			"enable-agent", post, "/agents/{name}/enable", "Give an agent turns again",
			"The agent is queued in each channel that it was assigned to meanwhile, and IDLE in the others (T21).",
			able("enable", func(e *app.App) namedOrder { return e.Channels.Enable }),
		},
	}
}

func handleChannels(ctx context.Context, s *Server, _ *nothing) (*api.Channels, error) {
	// Read the head before the view: a client that follows from here may see a change twice, but misses
	// none.
	head, _, err := s.engine.Loop.Journal().Head(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.engine.Channels.Channels(ctx)
	for i := range all {
		all[i] = *channelNoNulls(all[i])
	}
	return &api.Channels{Channels: some(all), Head: head}, err
}

func handleChannel(ctx context.Context, s *Server, in *ChannelPath) (*view.ChannelView, error) {
	view, err := s.engine.Channels.Channel(ctx, in.Channel)
	return channelNoNulls(view), err
}

// oneStart refuses two starting points of a page.
func oneStart(before, after uint64) error {
	if before == 0 || after == 0 {
		return nil
	}
	p := api.NewProblem(http.StatusUnprocessableEntity, "before and after are two starting points; give only one")
	p.Errors = []api.Fault{{Message: "cannot be combined with after", Location: "query.before", Value: before}}
	return p
}

func handleEntries(ctx context.Context, s *Server, in *entriesIn) (*view.ChannelPage, error) {
	if err := oneStart(in.Before, in.After); err != nil {
		return nil, err
	}
	page, err := s.engine.Channels.ChannelEntries(ctx, in.Channel, in.EntryQuery)
	page = fitPage(page, in.After == 0)
	page.Entries = some(page.Entries)
	return &page, err
}

func handleSay(ctx context.Context, s *Server, in *forChannel[api.SayBody]) (*view.Spoken, error) {
	if err := identity(ctx).MayOrderChannel("message", "#"+in.Channel); err != nil {
		return nil, err
	}
	spoken, err := s.engine.Channels.Say(ctx, s.actor(ctx), in.Channel, in.Body.Text, in.Body.Mode)
	return &spoken, err
}

// orderChannel is a route by which a person changes a channel.
func orderChannel[In any, P interface {
	*In
	name() string
}](event string, do func(context.Context, *app.App, change.Actor, P) (uint64, error)) adder {
	return answer(func(ctx context.Context, s *Server, in *In) (*api.ChannelOrdered, error) {
		name := P(in).name()
		if err := identity(ctx).MayOrderChannel(event, "#"+name); err != nil {
			return nil, err
		}
		seq, err := do(ctx, s.engine, s.actor(ctx), in)
		if err != nil {
			return nil, err
		}
		view, err := s.engine.Channels.Channel(ctx, name)
		return &api.ChannelOrdered{Seq: seq, Channel: *channelNoNulls(view)}, err
	})
}

// namedOrder is an order about the agent or host of that name. It returns the sequence of its change.
type namedOrder = func(ctx context.Context, by change.Actor, name string) (uint64, error)

// able is a route that disables or enables an agent.
func able(event string, order func(*app.App) namedOrder) adder {
	return answer(func(ctx context.Context, s *Server, in *ableIn) (*api.Commanded, error) {
		if err := identity(ctx).MayOrderChannel(event, in.Name); err != nil {
			return nil, err
		}
		seq, err := order(s.engine)(ctx, s.actor(ctx), in.Name)
		if err != nil {
			return nil, err
		}
		view, err := s.engine.Status.Agent(ctx, in.Name)
		return &api.Commanded{Seq: seq, Agent: view}, err
	})
}

// channelNoNulls replaces null lists in a channel by empty ones.
func channelNoNulls(v view.ChannelView) *view.ChannelView {
	v.Queue, v.Agents, v.Open = some(v.Queue), some(v.Agents), some(v.Open)
	return &v
}
