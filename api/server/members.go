package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/read/view"
)

const (
	// agentPollsMax bounds the long polls of one agent: one that waits, and a few whose client has gone
	// without being noticed yet.
	agentPollsMax = 4

	// pollsMax bounds the long polls of all agents: together with all streams they fit into one
	// listener's connections.
	pollsMax = 1000
)

type actionsIn struct {
	AgentPath
	Wait string `query:"wait" maxLength:"8" pattern:"^[0-9]{1,5}(s|ms)$" example:"30s" doc:"How long to wait if there is none: at most 60s; without it, the answer comes at once"`
}

// memberRoutes are the routes by which agents take part in channels. An agent in a Fairlead session
// uses them in its own name; a foreign agent is a caller with the token.
func memberRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"join-turns", post, "/agents/{name}/ready", "As an agent: join",
			"For an agent with `loop: foreign` (T1). The agent is queued in each channel that it was assigned to while it was away, and must send heartbeats from now on. Repeating the request is harmless.",
			answer(handleReady),
		},
		{
			"send-heartbeat", post, "/agents/{name}/heartbeat", "As an agent: send a heartbeat",
			"Send one every `heartbeat_ms`. After `missed_max` missed heartbeats the agent is OFFLINE and its turn is over (T11). Each other request in the agent's own name counts as a heartbeat, and so does a request that waits for actions.",
			answer(handleHeartbeat),
		},
		{
			"leave-turns", post, "/agents/{name}/leave", "As an agent: leave",
			"The agent leaves every queue, and its turn passes to the next agent (T3, T6, T11). When it returns, people must assign it again.",
			ordered(
				func(by caller.Identity, in *ableIn) error { return by.MayActAs("leave", in.Name) },
				func(ctx context.Context, e *app.App, _ change.Actor, in *ableIn) (uint64, error) {
					return e.Channels.AgentLeft(ctx, in.Name)
				},
			),
		},
		{
			"fetch-actions", get, "/agents/{name}/actions", "As an agent: fetch actions",
			"In this order. An action stays in the list until the agent has confirmed it (`actions/done`), also across a crash of either side; an agent that remembers the last `key` does nothing twice. `tell_turn`: the agent has the turn in `channel`, and `text` is the prompt for its model. `tell_message`: a message of a person during the turn, or to all agents. `tell_aside`: answer this person with `re`, without a turn. `tell_go_on`: the agent's turn continues. `stop_work`: stop speaking. With `wait` the answer comes as soon as there is an action, or empty after that time.",
			polled(handleActions),
		},
		{
			"confirm-action", post, "/agents/{name}/actions/done", "As an agent: confirm an action",
			"For a text: the agent has received it. For `stop_work`: it has stopped. Confirming an action that is no longer in the list is harmless.",
			ordered(
				func(by caller.Identity, in *forAgent[api.ConfirmBody]) error { return by.MayActAs("done", in.Name) },
				func(ctx context.Context, e *app.App, _ change.Actor, in *forAgent[api.ConfirmBody]) (uint64, error) {
					return e.Channels.AgentConfirm(ctx, in.Name, in.Body.Key)
				},
			),
		},
		{
			"say-turn", post, "/channels/{channel}/said", "As an agent: say something",
			"With the number of the agent's turn; `complete` ends the turn. A message without the turn, or after its end, is kept and shown as late, and changes no state.",
			answer(handleSaid),
		},
		{
			"pass-turn", post, "/channels/{channel}/pass", "As an agent: pass the turn",
			"The next agent gets the turn, and no message is posted (T22).",
			ordered(
				func(by caller.Identity, in *forChannel[api.TurnBody]) error {
					return by.MayActAs("pass", in.Body.Agent)
				},
				func(ctx context.Context, e *app.App, _ change.Actor, in *forChannel[api.TurnBody]) (uint64, error) {
					return e.Channels.AgentPass(ctx, in.Channel, in.Body.Agent, in.Body.Turn)
				},
			),
		},
		{
			"ask-wait", post, "/channels/{channel}/wait", "As an agent: wait",
			"The turn pauses and the channel waits, at most for its wait timeout (T10).",
			ordered(
				func(by caller.Identity, in *forChannel[api.WaitBody]) error {
					return by.MayActAs("wait", in.Body.Agent)
				},
				func(ctx context.Context, e *app.App, _ change.Actor, in *forChannel[api.WaitBody]) (uint64, error) {
					return e.Channels.AgentWait(ctx, in.Channel, in.Body.Agent, in.Body.Turn, in.Body.Why)
				},
			),
		},
		{
			"resume-turn", post, "/channels/{channel}/go-on", "As an agent: resume the turn",
			"The wait is over; the turn continues with the time that it had left (T12).",
			ordered(
				func(by caller.Identity, in *forChannel[api.TurnBody]) error {
					return by.MayActAs("go_on", in.Body.Agent)
				},
				func(ctx context.Context, e *app.App, _ change.Actor, in *forChannel[api.TurnBody]) (uint64, error) {
					return e.Channels.AgentGoesOn(ctx, in.Channel, in.Body.Agent, in.Body.Turn)
				},
			),
		},
	}
}

func handleReady(ctx context.Context, s *Server, in *ableIn) (*api.Joined, error) {
	if err := identity(ctx).MayActAs("ready", in.Name); err != nil {
		return nil, err
	}
	seq, err := s.engine.Channels.AgentReady(ctx, in.Name)
	return &api.Joined{Seq: seq, HeartbeatMS: channel.BeatEvery.Milliseconds(), MissedMax: channel.BeatsMissedMax}, err
}

func handleHeartbeat(ctx context.Context, s *Server, in *ableIn) (*api.Beaten, error) {
	if err := identity(ctx).MayActAs("heartbeat", in.Name); err != nil {
		return nil, err
	}
	return &api.Beaten{HeartbeatMS: channel.BeatEvery.Milliseconds()}, s.engine.Channels.AgentBeat(ctx, in.Name)
}

// handleActions waits for actions of an agent. It ends when the client is gone or the daemon stops.
func handleActions(ctx context.Context, s *Server, in *actionsIn) (*api.Actions, error) {
	if err := identity(ctx).MayActAs("actions", in.Name); err != nil {
		return nil, err
	}
	wait, err := waitOf(in.Wait)
	if err != nil {
		return nil, err
	}
	if err := s.polls.enter(in.Name); err != nil {
		return nil, err
	}
	defer s.polls.leave(in.Name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel)
	defer stop()
	list, err := s.engine.Channels.AgentActions(ctx, in.Name, wait)
	if err != nil && s.ctx.Err() != nil {
		err = loop.ErrClosed
	}
	all := &api.Actions{Actions: some(fitActions(list))}
	return all, err
}

// waitOf parses how long a poll may wait; the route has checked the pattern.
func waitOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait > api.PollMax {
		p := api.NewProblem(http.StatusUnprocessableEntity, "wait is at most %s; repeat the request after that", api.PollMax)
		p.Errors = []api.Fault{{Message: "more than " + api.PollMax.String(), Location: "query.wait", Value: api.Shorten(text)}}
		return 0, p
	}
	return wait, nil
}

func handleSaid(ctx context.Context, s *Server, in *forChannel[api.SaidBody]) (*api.Ordered, error) {
	b := in.Body
	if err := identity(ctx).MayActAs("said", b.Agent); err != nil {
		return nil, err
	}
	if b.Text == "" && !b.Complete && !b.Ended {
		p := api.NewProblem(http.StatusUnprocessableEntity, "the request is empty: give text, complete or ended")
		p.Errors = []api.Fault{{Message: "text is empty, and neither complete nor ended is given", Location: "body.text"}}
		return nil, p
	}
	seq, err := s.engine.Channels.AgentSaid(ctx, view.Speech{
		Channel: in.Channel, Agent: b.Agent, Turn: b.Turn, Re: b.Re, Text: b.Text, Complete: b.Complete, Ended: b.Ended,
	})
	return &api.Ordered{Seq: seq}, err
}

// polled is a route whose answer may wait as long as a poll: longer than the server allows for other
// requests.
func polled[In, Out any](do func(context.Context, *Server, *In) (*Out, error)) adder {
	add := answerWithin(api.PollMax+api.AnswerMax, do)
	return func(s *Server, h huma.API, op huma.Operation) {
		op.Middlewares = append(op.Middlewares, func(hc huma.Context, next func(huma.Context)) {
			_, w := humago.Unwrap(hc)
			rc := http.NewResponseController(w)
			_ = rc.SetReadDeadline(time.Time{}) // if it cannot be set, the server's own limit applies and the client repeats the request
			_ = rc.SetWriteDeadline(time.Now().Add(api.PollMax + s.waits.answer))
			next(hc)
		})
		add(s, h, op)
	}
}

// polls are the waiting long polls by agent.
type polls struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// enter counts a poll, or refuses it if there are too many. The names come from callers; there are
// never more of them than polls.
func (p *polls) enter(agent string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.of[agent] >= agentPollsMax:
		return api.NewProblem(http.StatusTooManyRequests, "%d requests already wait for actions of %s; end some of them, one is enough",
			agentPollsMax, agent)
	case p.all >= pollsMax:
		return api.NewProblem(http.StatusServiceUnavailable,
			"%d requests already wait for actions, which is the limit; ask without wait, or later", pollsMax)
	}
	if p.of == nil {
		p.of = map[string]int{}
	}
	p.all++
	p.of[agent]++
	return nil
}

func (p *polls) leave(agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.of[agent]--; p.of[agent] == 0 {
		delete(p.of, agent)
	}
}
