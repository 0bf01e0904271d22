package turns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// Requests of agents about channels. A foreign agent joins only this way: it reports that it is
// ready and alive, fetches its actions, and sends its text with the number of its turn.

// Joins reports whether an agent is foreign, so that it joins by itself.
func (c *Controller) Joins(m *sessions.Slot) bool { return m.Conf.Loop == config.LoopForeign }

// ByAgent is the actor of an agent's own request.
func ByAgent(name string) change.Actor { return change.Actor{Kind: "agent", ID: name} }

// asAgent submits a request of an agent. Every request of a foreign agent is a sign of life.
func (c *Controller) asAgent(ctx context.Context, agent, text string, what channel.Input) (uint64, error) {
	return c.loop.Do(ctx, c.agentActs(agent, text, what))
}

func (c *Controller) agentActs(agent, text string, what channel.Input) loop.Request {
	ev := loop.EventBy(ByAgent(agent), "", what)
	ev.Text = text
	return loop.Request{Event: ev, Look: func(*team.Team) { c.lives(agent) }}
}

// lives records a sign of life; it runs in the loop.
func (c *Controller) lives(agent string) {
	if m := c.sessions.Slots[agent]; m != nil && c.Joins(m) {
		c.Participant(m).beat = c.loop.Now()
	}
}

// joining refuses requests that only a foreign agent may make; it runs in the loop.
func (c *Controller) joining(agent, event string) error {
	m := c.sessions.Slots[agent]
	switch is := c.loop.State().Channels.Agents[channel.AgentID(agent)]; {
	case m == nil:
		return &team.Unknown{What: "agent", Name: agent, Known: c.loop.State().Names()}
	case !c.Joins(m):
		return &table.Refusal{
			Subject: agent, Event: event, State: "run by fairlead", Row: "J3",
			Reason: "it is connected while fairlead can start it, and receives its turns in its own session; give it `loop: foreign` to have it join by itself",
		}
	case is == nil:
		return &table.Refusal{
			Subject: agent, Event: event, State: "in no channel", Row: "T1",
			Reason: "there are no channels; add one to fairlead.yaml and restart",
		}
	}
	return nil
}

// foreign submits a request that only a foreign agent may make.
func (c *Controller) foreign(ctx context.Context, agent, event string, what channel.Input) (uint64, error) {
	var no error
	if err := c.loop.View(ctx, func(*team.Team) { no = c.joining(agent, event) }); err != nil {
		return 0, err
	}
	if no != nil {
		return 0, no
	}
	return c.asAgent(ctx, agent, "", what)
}

// AgentReady connects a foreign agent (T1, T18). Other agents are refused.
func (c *Controller) AgentReady(ctx context.Context, agent string) (uint64, error) {
	return c.foreign(ctx, agent, "ready", channel.AgentConnected{Agent: channel.AgentID(agent)})
}

// AgentLeft disconnects a foreign agent (T3, T6, T11).
func (c *Controller) AgentLeft(ctx context.Context, agent string) (uint64, error) {
	return c.foreign(ctx, agent, "leave",
		channel.AgentGone{Agent: channel.AgentID(agent), How: channel.Disconnected, Why: "the agent said that it leaves"})
}

// AgentBeat is a heartbeat, due every 10 seconds; three missed ones are T11. It is kept only in
// memory.
func (c *Controller) AgentBeat(ctx context.Context, agent string) error {
	var no error
	err := c.loop.View(ctx, func(t *team.Team) {
		if no = c.joining(agent, "heartbeat"); no != nil {
			return
		}
		if !t.Channels.Agents[channel.AgentID(agent)].Connected {
			no = &table.Refusal{
				Subject: agent, Event: "heartbeat", State: string(channel.Offline), Row: "T1",
				Reason: "it is not connected; report that it is ready first", Takes: []string{"ready"},
			}
			return
		}
		c.lives(agent)
	})
	if err != nil {
		return err
	}
	return no
}

const (
	actionWaitMax   = time.Minute       // a longer wait looks like a lost request
	actionBeatEvery = channel.BeatEvery // waiting for actions is a sign of life
	actionsMax      = 64                // per answer; the rest follows in the next one
)

// AgentActions returns what an agent is to be told now, stops first. If there is nothing, it waits,
// at most a minute. Actions are returned again until AgentConfirm.
func (c *Controller) AgentActions(ctx context.Context, agent string, wait time.Duration) ([]view.ActionView, error) {
	until := time.NewTimer(min(max(wait, 0), actionWaitMax))
	defer until.Stop()
	for {
		var no error
		var next *actionWait
		if err := c.loop.View(ctx, func(t *team.Team) {
			if no = c.joining(agent, "actions"); no == nil {
				c.lives(agent)
				next = c.waitFor(agent, t.AgentChannelActions(agent, c.loop.Now()))
			}
		}); err != nil {
			return nil, err
		}
		if no != nil {
			return nil, no
		}
		select { // also for a request that does not wait
		case <-next.found:
			return c.actionViews(ctx, next.plans)
		default:
		}
		select {
		case <-next.found:
			return c.actionViews(ctx, next.plans)
		case <-time.After(actionBeatEvery):
		case <-until.C:
			return []view.ActionView{}, nil
		case <-c.loop.Quit():
			return nil, c.loop.Closed()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// actionWait is what requests for an agent's actions wait for. Only the loop's goroutine makes and fills it.
type actionWait struct {
	found chan struct{} // closed when there are plans, which do not change afterwards
	plans []message
}

// waitFor returns what a request for an agent's actions waits for: if there is something to do now, it is filled already.
func (c *Controller) waitFor(agent string, todo []channel.Action) *actionWait {
	wait := c.waits[agent]
	if wait == nil {
		wait = &actionWait{found: make(chan struct{})}
		c.waits[agent] = wait
	}
	c.fillWait(agent, todo)
	return wait
}

// fillWait gives actions to the requests that wait for them. They are planned here, because a request that asked the
// loop for them would wait for it twice.
func (c *Controller) fillWait(agent string, todo []channel.Action) {
	wait := c.waits[agent]
	if wait == nil || len(todo) == 0 {
		return
	}
	for _, one := range todo[:min(len(todo), actionsMax)] {
		wait.plans = append(wait.plans, c.messageFor(one, true))
	}
	close(wait.found)
	delete(c.waits, agent)
}

func (c *Controller) actionViews(ctx context.Context, plans []message) ([]view.ActionView, error) {
	views := make([]view.ActionView, 0, len(plans))
	for _, plan := range plans { // a copy, because other requests may have the same plans
		text, messages, err := c.prompt(ctx, &plan)
		if err != nil {
			return nil, err
		}
		todo := &plan.todo
		view := view.ActionView{
			Key: todo.Key, Do: string(todo.Do), Channel: string(todo.Token.Channel), Agent: string(todo.Token.Agent), Turn: todo.Token.Turn,
			N: todo.N, Text: text, Messages: messages, LeftOut: todo.Given.LeftOut, Deadline: view.Moment(plan.deadline),
		}
		if todo.Do == channel.TellAside || todo.Do == channel.TellMessage {
			view.Message = todo.N
		}
		views = append(views, view)
	}
	return views, nil
}

// AgentConfirm acknowledges an action by its key. A key that is no longer due changes nothing.
func (c *Controller) AgentConfirm(ctx context.Context, agent, key string) (uint64, error) {
	todo, ok := team.ActionOf(key)
	if !ok || string(todo.Token.Agent) != agent {
		return 0, &team.Unknown{What: "action", Name: clip.Text(key, loop.ActorBytesMax)}
	}
	var unknown error
	if err := c.loop.View(ctx, func(t *team.Team) {
		if t.Channels.Agents[channel.AgentID(agent)] == nil {
			unknown = &team.Unknown{What: "agent", Name: agent, Known: t.Names()}
		}
		for _, one := range t.ChannelActions(string(todo.Token.Channel), c.loop.Now()) {
			if one.Key == key {
				todo = one
			}
		}
	}); err != nil || unknown != nil {
		return 0, cmp.Or(err, unknown)
	}
	return c.asAgent(ctx, agent, "", channel.ActionConfirmed{Token: todo.Token, Do: todo.Do, N: todo.N})
}

// AgentSaid records an agent's text, the end of its turn or answer, or both. Text without the turn
// is kept and marked late.
func (c *Controller) AgentSaid(ctx context.Context, s view.Speech) (uint64, error) {
	text := strings.ToValidUTF8(s.Text, "\uFFFD")
	// SPEC: the marker counts at the end of a message, however the message was sent
	if said, word := Ending([]byte(text), false); word == marker.TurnComplete && s.Turn != 0 {
		text, s.Complete = said, true
	}
	said := c.agentActs(s.Agent, text, channel.Said{
		Token: token(s.Channel, s.Agent, s.Turn), Bytes: len(text), Complete: s.Complete, Ended: s.Ended, Re: s.Re,
	})
	said.First = func() error { return c.checkRoom(s, len(text)) }
	return c.loop.Do(ctx, said)
}

// spokenBytes counts an agent's text in a channel since the last change of turn there.
type spokenBytes struct {
	turn  uint64
	bytes int
}

// CheckRoom refuses text above the limit of one turn, since the journal keeps it permanently. The
// end of a turn or answer is always accepted.
func (c *Controller) CheckRoom(ctx context.Context, s view.Speech, bytes int) error {
	var full error
	err := c.loop.View(ctx, func(*team.Team) { full = c.checkRoom(s, bytes) })
	return cmp.Or(err, full)
}

// checkRoom is CheckRoom in the loop.
func (c *Controller) checkRoom(s view.Speech, bytes int) error {
	m, ch := c.sessions.Slots[s.Agent], c.loop.State().Channels.ByID[channel.ChannelID(s.Channel)]
	if bytes == 0 || m == nil || ch == nil {
		return nil // an unknown agent or channel is refused elsewhere
	}
	if c.Participant(m).said == nil {
		c.Participant(m).said = map[string]spokenBytes{}
	}
	was := c.Participant(m).said[s.Channel]
	if was.turn != ch.Head.Turn {
		was = spokenBytes{turn: ch.Head.Turn}
	}
	if was.bytes += bytes; was.bytes > AnswerBytesMax {
		return &table.Refusal{
			Subject: s.Agent + " in #" + s.Channel, Event: "said",
			State:  string(c.loop.State().Channels.StateOf(channel.AgentID(s.Agent), channel.ChannelID(s.Channel))),
			Reason: fmt.Sprintf("it has said %d bytes since the last change of turn here, and the limit is %d; put more into a file and name it, or complete the turn without text", was.bytes-bytes, AnswerBytesMax),
		}
	}
	c.Participant(m).said[s.Channel] = was
	return nil
}

// AgentPass is T22.
func (c *Controller) AgentPass(ctx context.Context, channelName, agent string, number uint64) (uint64, error) {
	return c.asAgent(ctx, agent, "", channel.PassAsked{Token: token(channelName, agent, number)})
}

// AgentWait is T10.
func (c *Controller) AgentWait(ctx context.Context, channelName, agent string, number uint64, why string) (uint64, error) {
	return c.asAgent(ctx, agent, "", channel.WaitAskedFor{Token: token(channelName, agent, number), Why: why})
}

// AgentGoesOn is T12. The agent that says so needs no notification of it.
func (c *Controller) AgentGoesOn(ctx context.Context, channelName, agent string, number uint64) (uint64, error) {
	is := token(channelName, agent, number)
	seq, err := c.asAgent(ctx, agent, "", channel.WaitOver{Token: is})
	if err != nil {
		return 0, err
	}
	var goOn []channel.Action
	if err := c.loop.View(ctx, func(t *team.Team) {
		goOn = slices.DeleteFunc(t.ChannelActions(channelName, c.loop.Now()),
			func(todo channel.Action) bool { return todo.Do != channel.TellGoOn || todo.Token != is })
	}); err != nil || len(goOn) == 0 {
		return seq, err
	}
	return c.asAgent(ctx, agent, "", channel.ActionConfirmed{Token: is, Do: channel.TellGoOn, N: goOn[0].N})
}

func token(channelName, agent string, number uint64) channel.Token {
	return channel.Token{Channel: channel.ChannelID(channelName), Agent: channel.AgentID(agent), Turn: number}
}
