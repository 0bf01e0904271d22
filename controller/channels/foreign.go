package channels

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/marker"
	"github.com/fairlead-dev/fairlead/team"
)

// What agents do for themselves in channels. A foreign one joins in this way alone: it says that
// it is ready and that it lives, fetches what it is to be told, and says what it says under the
// number of its turn.

// joins says whether an agent joins by itself.
func (e *Controller) Joins(m *sessions.Slot) bool { return m.Conf.Loop == config.LoopForeign }

// byAgent is an agent that acts for itself.
func ByAgent(name string) seam.Actor { return seam.Actor{Kind: "agent", ID: name} }

// asAgent has what an agent does for itself decided. Whatever a foreign one does is a sign of life.
func (e *Controller) asAgent(ctx context.Context, agent, text string, what channel.Input) (uint64, error) {
	return e.Do(ctx, e.agentActs(agent, text, what))
}

func (e *Controller) agentActs(agent, text string, what channel.Input) loop.Request {
	ev := loop.EventBy(ByAgent(agent), "", what)
	ev.Text = text
	return loop.Request{Event: ev, Look: func(*team.Team) { e.lives(agent) }}
}

// lives notes a sign of life; it runs in the loop.
func (e *Controller) lives(agent string) {
	if m := e.sessions.Slots[agent]; m != nil && e.Joins(m) {
		e.PartOf(m).beat = e.Now()
	}
}

// joining refuses what only an agent may do that joins by itself; it runs in the loop.
func (e *Controller) joining(agent, event string) error {
	m := e.sessions.Slots[agent]
	switch is := e.State().Channels.Agents[channel.AgentID(agent)]; {
	case m == nil:
		return &team.Unknown{What: "agent", Name: agent, Known: e.State().Names()}
	case !e.Joins(m):
		return &machine.Refusal{
			Subject: agent, Event: event, State: "run by fairlead", Row: "J3",
			Reason: "it is connected while fairlead can start it, and is told its turns in its own session; give it `loop: foreign` to have it join by itself",
		}
	case is == nil:
		return &machine.Refusal{
			Subject: agent, Event: event, State: "in no channel", Row: "T1",
			Reason: "there are no channels; add one to fairlead.yaml and restart",
		}
	}
	return nil
}

// foreign has something decided that only a foreign agent may do.
func (e *Controller) foreign(ctx context.Context, agent, event string, what channel.Input) (uint64, error) {
	var no error
	if err := e.View(ctx, func(*team.Team) { no = e.joining(agent, event) }); err != nil {
		return 0, err
	}
	if no != nil {
		return 0, no
	}
	return e.asAgent(ctx, agent, "", what)
}

// AgentReady is T1, T18 of an agent that joins by itself. Others are refused.
func (e *Controller) AgentReady(ctx context.Context, agent string) (uint64, error) {
	return e.foreign(ctx, agent, "ready", channel.AgentConnected{Agent: channel.AgentID(agent)})
}

// AgentLeft is T3, T6, T11 of one.
func (e *Controller) AgentLeft(ctx context.Context, agent string) (uint64, error) {
	return e.foreign(ctx, agent, "leave", channel.AgentGone{Agent: channel.AgentID(agent), How: channel.Disconnected, Why: "it said that it leaves"})
}

// AgentBeat is a heartbeat: every 10 seconds, three missed are T11. It is kept in memory alone.
func (e *Controller) AgentBeat(ctx context.Context, agent string) error {
	var no error
	err := e.View(ctx, func(t *team.Team) {
		if no = e.joining(agent, "heartbeat"); no != nil {
			return
		}
		if !t.Channels.Agents[channel.AgentID(agent)].Connected {
			no = &machine.Refusal{Subject: agent, Event: "heartbeat", State: string(channel.Offline), Row: "T1", Reason: "it is not connected; say that it is ready first", Takes: []string{"ready"}}
			return
		}
		e.lives(agent)
	})
	if err != nil {
		return err
	}
	return no
}

const (
	errandWaitMax   = time.Minute       // a request that waits longer looks like one that was forgotten
	errandBeatEvery = channel.BeatEvery // who waits for errands lives
	errandsMax      = 64                // of one answer; what follows comes with the next
)

// AgentErrands is what an agent is to be told now, what stops it first. Where there is nothing
// it waits for that, at most a minute. What was given stays until AgentTold.
func (e *Controller) AgentErrands(ctx context.Context, agent string, wait time.Duration) ([]view.ErrandView, error) {
	until := time.NewTimer(min(max(wait, 0), errandWaitMax))
	defer until.Stop()
	for {
		var plans []tell
		var no error
		var waits <-chan struct{}
		if err := e.View(ctx, func(t *team.Team) {
			if no = e.joining(agent, "errands"); no != nil {
				return
			}
			e.lives(agent)
			waits = e.waitFor(agent)
			for _, todo := range t.AgentChannelActions(agent, e.Now()) {
				if len(plans) < errandsMax {
					plans = append(plans, e.telling(todo, true))
				}
			}
		}); err != nil {
			return nil, err
		}
		if no != nil || len(plans) > 0 {
			return e.errandViews(ctx, plans, no)
		}
		select {
		case <-waits:
		case <-time.After(errandBeatEvery):
		case <-until.C:
			return []view.ErrandView{}, nil
		case <-e.Quit():
			return nil, e.Closed()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// waitFor is closed when there may be something new for an agent.
func (e *Controller) waitFor(agent string) <-chan struct{} {
	e.talkMu.Lock()
	defer e.talkMu.Unlock()
	if e.waits[agent] == nil {
		e.waits[agent] = make(chan struct{})
	}
	return e.waits[agent]
}

// rouse wakes whoever waits for an agent's errands.
func (e *Controller) rouse(agent string) {
	e.talkMu.Lock()
	defer e.talkMu.Unlock()
	if waits := e.waits[agent]; waits != nil {
		close(waits)
		delete(e.waits, agent)
	}
}

func (e *Controller) errandViews(ctx context.Context, plans []tell, no error) ([]view.ErrandView, error) {
	if no != nil {
		return nil, no
	}
	views := make([]view.ErrandView, 0, len(plans))
	for i := range plans {
		text, messages, err := e.prompt(ctx, &plans[i])
		if err != nil {
			return nil, err
		}
		todo := &plans[i].todo
		view := view.ErrandView{
			Key: todo.Key, Do: string(todo.Do), Channel: string(todo.Token.Channel), Agent: string(todo.Token.Agent), Turn: todo.Token.Turn,
			N: todo.N, Text: text, Messages: messages, LeftOut: todo.Given.LeftOut, Deadline: view.Moment(plans[i].deadline),
		}
		if todo.Do == channel.TellAside || todo.Do == channel.TellMessage {
			view.Message = todo.N
		}
		views = append(views, view)
	}
	return views, nil
}

// AgentTold acknowledges an errand by its key. One that is not asked for any more changes nothing.
func (e *Controller) AgentTold(ctx context.Context, agent, key string) (uint64, error) {
	todo, ok := team.ActionOf(key)
	if !ok || string(todo.Token.Agent) != agent {
		return 0, &team.Unknown{What: "errand", Name: loop.CutText(key, loop.ActorBytesMax)}
	}
	var unknown error
	if err := e.View(ctx, func(t *team.Team) {
		if t.Channels.Agents[channel.AgentID(agent)] == nil {
			unknown = &team.Unknown{What: "agent", Name: agent, Known: t.Names()}
		}
		for _, one := range t.ChannelActions(string(todo.Token.Channel), e.Now()) {
			if one.Key == key {
				todo = one
			}
		}
	}); err != nil || unknown != nil {
		return 0, cmp.Or(err, unknown)
	}
	return e.asAgent(ctx, agent, "", channel.Told{Token: todo.Token, Do: todo.Do, N: todo.N})
}

// AgentSaid is text of an agent, the end of its turn or answer, or both. What is said without the
// turn is kept and marked late.
func (e *Controller) AgentSaid(ctx context.Context, s view.Speech) (uint64, error) {
	text := strings.ToValidUTF8(s.Text, "\uFFFD")
	if said, word := Ending([]byte(text), false); word == marker.TurnComplete && s.Turn != 0 { // SPEC: it counts at the end of a message, however that came
		text, s.Complete = said, true
	}
	said := e.agentActs(s.Agent, text, channel.Said{
		Token: token(s.Channel, s.Agent, s.Turn), Bytes: len(text), Complete: s.Complete, Ended: s.Ended, Re: s.Re,
	})
	said.First = func() error { return e.room(s, len(text)) }
	return e.Do(ctx, said)
}

// flood is how much an agent has said for itself in a channel since the turn there changed last.
type flood struct {
	turn  uint64
	bytes int
}

// roomFor refuses text beyond what one turn may have: the journal is kept for ever. The end of a
// turn, or of an answer, is always taken.
func (e *Controller) RoomFor(ctx context.Context, s view.Speech, bytes int) error {
	var full error
	err := e.View(ctx, func(*team.Team) { full = e.room(s, bytes) })
	return cmp.Or(err, full)
}

// room is roomFor in the loop.
func (e *Controller) room(s view.Speech, bytes int) error {
	m, c := e.sessions.Slots[s.Agent], e.State().Channels.ByID[channel.ChannelID(s.Channel)]
	if bytes == 0 || m == nil || c == nil {
		return nil // who is not known is refused in other words
	}
	if e.PartOf(m).said == nil {
		e.PartOf(m).said = map[string]flood{}
	}
	was := e.PartOf(m).said[s.Channel]
	if was.turn != c.Head.Turn {
		was = flood{turn: c.Head.Turn}
	}
	if was.bytes += bytes; was.bytes > AnswerBytesMax {
		return &machine.Refusal{
			Subject: s.Agent + " in #" + s.Channel, Event: "said", State: string(e.State().Channels.StateOf(channel.AgentID(s.Agent), channel.ChannelID(s.Channel))),
			Reason: fmt.Sprintf("it has said %d bytes since the turn changed here, and %d are the most; put more into a file and name it, or complete the turn without text", was.bytes-bytes, AnswerBytesMax),
		}
	}
	e.PartOf(m).said[s.Channel] = was
	return nil
}

// AgentPass is T22.
func (e *Controller) AgentPass(ctx context.Context, channelName, agent string, number uint64) (uint64, error) {
	return e.asAgent(ctx, agent, "", channel.PassAsked{Token: token(channelName, agent, number)})
}

// AgentWait is T10.
func (e *Controller) AgentWait(ctx context.Context, channelName, agent string, number uint64, why string) (uint64, error) {
	return e.asAgent(ctx, agent, "", channel.WaitAskedFor{Token: token(channelName, agent, number), Why: why})
}

// AgentGoesOn is T12. Who says so need not be told it.
func (e *Controller) AgentGoesOn(ctx context.Context, channelName, agent string, number uint64) (uint64, error) {
	is := token(channelName, agent, number)
	seq, err := e.asAgent(ctx, agent, "", channel.WaitOver{Token: is})
	if err != nil {
		return 0, err
	}
	var goOn []channel.Action
	if err := e.View(ctx, func(t *team.Team) {
		goOn = slices.DeleteFunc(t.ChannelActions(channelName, e.Now()), func(todo channel.Action) bool { return todo.Do != channel.TellGoOn || todo.Token != is })
	}); err != nil || len(goOn) == 0 {
		return seq, err
	}
	return e.asAgent(ctx, agent, "", channel.Told{Token: is, Do: channel.TellGoOn, N: goOn[0].N})
}

func token(channelName, agent string, number uint64) channel.Token {
	return channel.Token{Channel: channel.ChannelID(channelName), Agent: channel.AgentID(agent), Turn: number}
}
