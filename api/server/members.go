package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/view"
)

const (
	// agentPollsMax bounds the long polls of one agent: one that waits, and a few of which
	// nobody has noticed yet that their other end is gone.
	agentPollsMax = 4

	// pollsMax bounds those of all: they and all streams fit into the connections of a door.
	pollsMax = 1000
)

type actionsIn struct {
	Name string `path:"name" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" example:"coder" doc:"The agent"`
	Wait string `query:"wait" maxLength:"8" pattern:"^[0-9]{1,5}(s|ms)$" example:"30s" doc:"How long to wait for one where there is none: 60s at most, not at all where it is left out"`
}

type confirmIn struct {
	Name string `path:"name" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" example:"coder" doc:"The agent"`
	Body api.ConfirmBody
}

type saidIn struct {
	Channel string `path:"channel" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" example:"reviews" doc:"The channel"`
	Body    api.SaidBody
}

type turnIn struct {
	Channel string `path:"channel" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" example:"reviews" doc:"The channel"`
	Body    api.TurnBody
}

type waitIn struct {
	Channel string `path:"channel" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" example:"reviews" doc:"The channel"`
	Body    api.WaitBody
}

// memberRoutes are the routes by which agents take part in channels themselves. An agent in a
// session of ours uses them in its own name; a foreign one is somebody with the token.
func memberRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"join-turns", post, "/agents/{name}/ready", "As an agent: I am there",
			"Of an agent with `loop: foreign` (T1). It is queued wherever somebody assigned it while it was away, and has to send heartbeats from now on. Saying it again does no harm.",
			answer((*Server).ready),
		},
		{
			"send-heartbeat", post, "/agents/{name}/heartbeat", "As an agent: I live",
			"Every `heartbeat_ms`; after `missed_max` of them missed it is OFFLINE and its turn is over (T11). Whatever else it asks in its own name is a heartbeat too, and so is a request that waits for actions.",
			answer((*Server).heartbeat),
		},
		{
			"leave-turns", post, "/agents/{name}/leave", "As an agent: I go",
			"It leaves every queue, and its turn goes to the next (T3, T6, T11). When it comes back, people assign it again.",
			answer((*Server).left),
		},
		{
			"fetch-actions", get, "/agents/{name}/actions", "As an agent: fetch my actions",
			"In this order; an action stays in the list until the agent confirms it (`actions/done`), also across a crash of either side: whoever keeps the last `key` does nothing twice. `tell_turn`: it has the turn in `channel`, and `text` is what it is to be told, ready for a model. `tell_message`: a person's message in the middle of that, or to all. `tell_aside`: answer this person, without a turn, with `re`. `tell_go_on`: its turn goes on. `stop_work`: stop what you are saying. With `wait` the answer comes when there is one, or empty after that time.",
			polled((*Server).actions),
		},
		{
			"confirm-action", post, "/agents/{name}/actions/done", "As an agent: that action is done",
			"Of telling: the agent has the text. Of `stop_work`: it has stopped. One that is not in the list any more does no harm.",
			answer((*Server).confirmAction),
		},
		{
			"say-turn", post, "/channels/{channel}/said", "As an agent: I say",
			"Under the number of its turn; with `complete` the turn is over. What is said without the turn, or too late, is kept, shown as late, and moves nothing.",
			answer((*Server).said),
		},
		{
			"pass-turn", post, "/channels/{channel}/pass", "As an agent: I pass",
			"The next gets the turn and nothing is posted (T22).",
			answer((*Server).pass),
		},
		{
			"ask-wait", post, "/channels/{channel}/wait", "As an agent: I have to wait",
			"The turn pauses and the channel waits, for as long as its wait timeout says (T10).",
			answer((*Server).wait),
		},
		{
			"resume-turn", post, "/channels/{channel}/go-on", "As an agent: I go on",
			"The wait is over; the turn has what time it had left (T12).",
			answer((*Server).goesOn),
		},
	}
}

func (s *Server) ready(ctx context.Context, in *ableIn) (*api.Joined, error) {
	if err := mayActAs(ctx, "ready", in.Name); err != nil {
		return nil, err
	}
	seq, err := s.engine.AgentReady(ctx, in.Name)
	return &api.Joined{Seq: seq, HeartbeatMS: channel.BeatEvery.Milliseconds(), MissedMax: channel.BeatsMissedMax}, err
}

func (s *Server) heartbeat(ctx context.Context, in *ableIn) (*api.Beaten, error) {
	if err := mayActAs(ctx, "heartbeat", in.Name); err != nil {
		return nil, err
	}
	return &api.Beaten{HeartbeatMS: channel.BeatEvery.Milliseconds()}, s.engine.AgentBeat(ctx, in.Name)
}

func (s *Server) left(ctx context.Context, in *ableIn) (*api.Ordered, error) {
	if err := mayActAs(ctx, "leave", in.Name); err != nil {
		return nil, err
	}
	seq, err := s.engine.AgentLeft(ctx, in.Name)
	return &api.Ordered{Seq: seq}, err
}

// actions waits for what an agent is to do. It ends when the client goes or the daemon does.
func (s *Server) actions(ctx context.Context, in *actionsIn) (*api.Actions, error) {
	if err := mayActAs(ctx, "actions", in.Name); err != nil {
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
	list, err := s.engine.AgentActions(ctx, in.Name, wait)
	if err != nil && s.ctx.Err() != nil {
		err = loop.ErrClosed
	}
	all := &api.Actions{Actions: some(fitActions(list))}
	if ctx.Value(formerKey{}) == "/agents/{name}/errands" {
		all.Errands = all.Actions
	}
	return all, err
}

// waitOf is how long a poll may wait; its pattern is the route's.
func waitOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait > api.PollMax {
		p := api.NewProblem(http.StatusUnprocessableEntity, "wait is at most %s; ask again after that", api.PollMax)
		p.Errors = []api.Fault{{Message: "more than " + api.PollMax.String(), Location: "query.wait", Value: api.Shorten(text)}}
		return 0, p
	}
	return wait, nil
}

func (s *Server) confirmAction(ctx context.Context, in *confirmIn) (*api.Ordered, error) {
	if err := mayActAs(ctx, "done", in.Name); err != nil {
		return nil, err
	}
	seq, err := s.engine.AgentConfirm(ctx, in.Name, in.Body.Key)
	return &api.Ordered{Seq: seq}, err
}

func (s *Server) said(ctx context.Context, in *saidIn) (*api.Ordered, error) {
	b := in.Body
	if err := mayActAs(ctx, "said", b.Agent); err != nil {
		return nil, err
	}
	if b.Text == "" && !b.Complete && !b.Ended {
		p := api.NewProblem(http.StatusUnprocessableEntity, "nothing is said: give text, complete or ended")
		p.Errors = []api.Fault{{Message: "it is empty, and neither complete nor ended is given", Location: "body.text"}}
		return nil, p
	}
	seq, err := s.engine.AgentSaid(ctx, view.Speech{
		Channel: in.Channel, Agent: b.Agent, Turn: b.Turn, Re: b.Re, Text: b.Text, Complete: b.Complete, Ended: b.Ended,
	})
	return &api.Ordered{Seq: seq}, err
}

func (s *Server) pass(ctx context.Context, in *turnIn) (*api.Ordered, error) {
	if err := mayActAs(ctx, "pass", in.Body.Agent); err != nil {
		return nil, err
	}
	seq, err := s.engine.AgentPass(ctx, in.Channel, in.Body.Agent, in.Body.Turn)
	return &api.Ordered{Seq: seq}, err
}

func (s *Server) wait(ctx context.Context, in *waitIn) (*api.Ordered, error) {
	if err := mayActAs(ctx, "wait", in.Body.Agent); err != nil {
		return nil, err
	}
	seq, err := s.engine.AgentWait(ctx, in.Channel, in.Body.Agent, in.Body.Turn, in.Body.Why)
	return &api.Ordered{Seq: seq}, err
}

func (s *Server) goesOn(ctx context.Context, in *turnIn) (*api.Ordered, error) {
	if err := mayActAs(ctx, "go_on", in.Body.Agent); err != nil {
		return nil, err
	}
	seq, err := s.engine.AgentGoesOn(ctx, in.Channel, in.Body.Agent, in.Body.Turn)
	return &api.Ordered{Seq: seq}, err
}

// polled is a route whose answer may wait for as long as a poll does: longer than the server
// gives to a request that only asks.
func polled[In, Out any](do func(*Server, context.Context, *In) (*Out, error)) adder {
	add := answerWithin(api.PollMax+api.AnswerMax, do)
	return func(s *Server, h huma.API, op huma.Operation) {
		op.Middlewares = append(op.Middlewares, func(hc huma.Context, next func(huma.Context)) {
			_, w := humago.Unwrap(hc)
			rc := http.NewResponseController(w)
			_ = rc.SetReadDeadline(time.Time{}) // where it cannot be set, the server's own limit holds: it asks again
			_ = rc.SetWriteDeadline(time.Now().Add(api.PollMax + s.waits.answer))
			next(hc)
		})
		add(s, h, op)
	}
}

// polls are the long polls that wait, by agent.
type polls struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// enter counts a poll, or says that there are too many. The names are whoever asks's: there
// are never more of them than polls.
func (p *polls) enter(agent string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.of[agent] >= agentPollsMax:
		return api.NewProblem(http.StatusTooManyRequests, "%d requests wait for actions of %s already; one is enough, end the others", agentPollsMax, agent)
	case p.all >= pollsMax:
		return api.NewProblem(http.StatusServiceUnavailable, "%d requests wait for actions already, and more are not served; ask without wait, or later", pollsMax)
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
