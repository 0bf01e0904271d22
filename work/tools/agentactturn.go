package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// ActSpoken is the state of something that an agent said.
type ActSpoken struct {
	Channel string `json:"channel"`
	Turn    uint64 `json:"turn"`
	Message uint64 `json:"message,omitempty"` // its number in the channel
}

// ActEnded is the end of a turn.
type ActEnded struct {
	Channel string `json:"channel"`
	Turn    uint64 `json:"turn"`
	Over    bool   `json:"over"`           // at once; else with the answer that is under way
	Next    string `json:"next,omitempty"` // who has the turn now
}

// ActSay posts text in a channel, in the agent's turn there. Without the turn it is kept, marked
// late, and refused (N3).
func (c *Controller) ActSay(ctx context.Context, caller AgentCaller, channelName, text string) (ActSpoken, error) {
	h, err := c.actsIn(ctx, caller, channelName, "say")
	if err != nil {
		if channelName == "" {
			return ActSpoken{}, err
		}
		return ActSpoken{},
			c.lateWords(ctx, caller, channel.Token{Channel: channel.ChannelID(channelName), Agent: channel.AgentID(caller.Agent)}, text,
				false, err)
	}
	if h.late {
		return ActSpoken{}, c.lateWords(ctx, caller, h.token, text, false, lateCall(h, "say"))
	}
	c.wordsFirst(ctx, caller, "say")
	return c.post(ctx, caller, h, text)
}

// actsIn is turnOf, from outside the loop.
func (c *Controller) actsIn(ctx context.Context, caller AgentCaller, channel, event string) (h holding, err error) {
	if looked := c.loop.View(ctx, func(t *team.Team) { h, err = c.turnOf(t, caller, channel, event) }); looked != nil {
		return h, looked
	}
	return h, err
}

// lateCall refuses an act in a turn that is over.
func lateCall(h holding, event string) error {
	return &table.Refusal{
		Subject: string(h.token.Agent) + " in #" + string(h.token.Channel), Event: event, State: string(h.state), Row: "N3",
		Reason: fmt.Sprintf("turn %d is over; what comes after it is kept, marked late, and moves nothing. End your answer: you are told when it is your turn again", h.token.Turn),
	}
}

// lateWords keeps what was said without the turn, as late, and gives the refusal back.
func (c *Controller) lateWords(ctx context.Context, caller AgentCaller, token channel.Token, text string, complete bool,
	no error,
) error {
	if !loop.IsAnswer(no) {
		return no
	}
	is := false
	if err := c.loop.View(ctx, func(t *team.Team) { is = memberOf(t, caller.Agent, string(token.Channel)) }); err != nil || !is {
		return no
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if c.channels.CheckRoom(ctx, view.Speech{Channel: string(token.Channel), Agent: caller.Agent}, len(text)) != nil {
		return no
	}
	if _, err := c.act(ctx, caller, text, channel.Said{Token: token, Bytes: len(text), Complete: complete}, nil); err != nil &&
		!loop.IsAnswer(err) {
		return err
	}
	return no
}

// post posts a message in a turn that was checked. An agent that speaks stops waiting.
func (c *Controller) post(ctx context.Context, caller AgentCaller, h holding, text string) (ActSpoken, error) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	spoken := ActSpoken{Channel: string(h.token.Channel), Turn: h.token.Turn}
	if err := c.channels.CheckRoom(ctx, view.Speech{Channel: spoken.Channel, Agent: caller.Agent}, len(text)); err != nil {
		return spoken, err
	}
	ev := loop.EventBy(byCaller(caller), "", channel.Said{Token: h.token, Bytes: len(text)})
	ev.Text = text
	events := []team.Event{*ev}
	if h.state == channel.Waiting && !h.lease.Stopped {
		events = append([]team.Event{*loop.EventBy(byCaller(caller), "", channel.WaitOver{Token: h.token})}, events...)
	}
	late := false
	_, err := c.loop.Do(ctx, loop.Request{Derive: loop.Report(events...), Found: func(changes []change.Change) {
		for i := range changes {
			late = late || changes[i].Trigger == string(channel.SaidLate)
			if set := change.As[channel.Set](changes[i].Body); set != nil && set.Body.Post != nil {
				spoken.Message = set.Body.Post.N
			}
		}
	}, Look: func(*team.Team) { c.goesOnItself(&h) }})
	if err != nil && !loop.IsAnswer(err) {
		return ActSpoken{}, err // Found may still run
	}
	if err == nil && late {
		h.late = true
		err = lateCall(h, "say")
	}
	return spoken, err
}

// goesOnItself notes, in the loop, that the agent need not be told that its turn goes on.
func (c *Controller) goesOnItself(h *holding) { c.channels.Participant(h.m).Resumed = h.token }

// ActTurnComplete ends the agent's turn (T7, T8), with a last message where there is one. What it
// still says in the answer that is under way belongs to the turn. From an agent that does not hold
// the turn it is recorded as late, changes nothing, and is refused (N3).
func (c *Controller) ActTurnComplete(ctx context.Context, caller AgentCaller, channel, message string) (ActEnded, error) {
	h, err := c.actsIn(ctx, caller, channel, "turn_complete")
	if err == nil && h.late {
		err = c.lateWords(ctx, caller, h.token, message, true, lateCall(h, "turn_complete"))
	}
	if err != nil {
		return ActEnded{}, err
	}
	if message = strings.TrimSpace(message); message != "" {
		c.wordsFirst(ctx, caller, "turn_complete")
		if _, err := c.post(ctx, caller, h, message); err != nil {
			return ActEnded{}, err
		}
	}
	return c.finish(ctx, caller, h, false)
}

// ActPass gives the turn on, and posts nothing (T22).
func (c *Controller) ActPass(ctx context.Context, caller AgentCaller, channel string) (ActEnded, error) {
	h, err := c.actsIn(ctx, caller, channel, "pass")
	if err == nil && h.late {
		err = lateCall(h, "pass")
	}
	if err != nil {
		return ActEnded{}, err
	}
	return c.finish(ctx, caller, h, true)
}

// finish ends a turn: with the answer that is under way, or, where there is none, at once.
func (c *Controller) finish(ctx context.Context, caller AgentCaller, h holding, pass bool) (ActEnded, error) {
	ended := ActEnded{Channel: string(h.token.Channel), Turn: h.token.Turn}
	event := "turn_complete"
	var now channel.Input = channel.Said{Token: h.token, Complete: true}
	if pass {
		event, now = "pass", channel.PassAsked{Token: h.token}
	}
	look := func(t *team.Team) {
		ch := t.Channels.ByID[h.token.Channel]
		if ended.Over = ch == nil || ch.Head.Turn != h.token.Turn || ch.Head.Holder == ""; ended.Over && ch != nil {
			ended.Next = string(ch.Head.Holder)
		}
		_, s, err := c.acting(t, caller)
		h.mid = err == nil && s.AnswerPending() && s.Delivery.Token == h.token
	}
	if h.mid {
		if _, err := c.act(ctx, caller, "", channel.FinishAsked{Token: h.token, Pass: pass}, look); err != nil && !loop.IsAnswer(err) {
			return ActEnded{}, err // look may still run
		} else if err != nil || ended.Over || h.mid {
			return ended, err
		} // else the end of the answer was heard meanwhile, and does not come again
	}
	late, err := c.act(ctx, caller, "", now, look)
	if err != nil && !loop.IsAnswer(err) {
		return ActEnded{}, err // look may still run
	}
	if err == nil && late {
		err = lateCall(h, event)
	}
	return ended, err
}
