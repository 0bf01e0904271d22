package turns

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/prompts"
)

// message is an action with the loop's data that its text needs, except the messages' texts.
type message struct {
	todo     channel.Action
	told     prompts.TurnInput
	deadline time.Time // of the requested answer; zero: none
}

// messageFor runs in the loop.
func (c *Controller) messageFor(todo channel.Action, http bool) message {
	token := todo.Token
	if team.IsLeadToken(token) {
		return message{todo: todo} // the text is made when it is written
	}
	ch := c.loop.State().Channels.ByID[token.Channel]
	plan := message{todo: todo, told: prompts.TurnInput{
		Channel: string(token.Channel), Agent: string(token.Agent), Turn: token.Turn, Holder: string(ch.Head.Holder), HTTP: http,
		Members: MembersOf(ch, c.loop.State().ChannelConfigs[string(token.Channel)].Agents), LeftOut: todo.Given.LeftOut,
	}}
	full := ch.Settings.DefaultTimeout
	if a := c.loop.State().Channels.Agents[token.Agent]; a != nil && a.Timeout > 0 {
		full = a.Timeout
	}
	switch todo.Do {
	case channel.TellTurn:
		plan.told.Waits, plan.deadline = full, ch.Head.Lease.Ends
	case channel.TellGoOn:
		if ends := ch.Head.Lease.Ends; !ends.IsZero() {
			plan.told.Waits, plan.deadline = max(ends.Sub(c.loop.Now()), time.Second), ends
		}
	case channel.TellAside:
		plan.told.Waits, plan.deadline = full, deadlineOf(ch)
	case channel.TellMessage, channel.StopWork:
	}
	return plan
}

// numbers lists the messages that an action delivers.
func (p *message) numbers() []uint64 {
	switch p.todo.Do {
	case channel.TellAside, channel.TellMessage:
		return []uint64{p.todo.N}
	case channel.TellTurn:
		g := p.todo.Given
		list := slices.Clone(g.Also)
		for n := g.From; n <= g.To; n++ {
			list = append(list, n)
		}
		return slices.DeleteFunc(list, func(n uint64) bool { return slices.Contains(g.But, n) })
	default:
		return nil
	}
}

// prompt returns the text of an action and the messages in it.
func (c *Controller) prompt(ctx context.Context, p *message) (string, []view.ChannelEntry, error) {
	said := []view.ChannelEntry{}
	if numbers := p.numbers(); len(numbers) > 0 {
		all, err := c.Messages(ctx, p.told.Channel, numbers)
		if err != nil {
			return "", nil, err
		}
		for _, one := range all {
			if human := one.Kind == string(channel.OfHuman); !human && one.By == p.told.Agent {
				continue // an agent does not receive its own messages
			}
			said = append(said, one)
		}
	}
	for _, one := range said {
		p.told.Said = append(p.told.Said, prompts.TurnLine{
			N: one.N, By: one.By, Human: one.Kind == string(channel.OfHuman), Late: one.Kind == string(channel.OfLate), Text: one.Text,
		})
	}
	switch p.todo.Do {
	case channel.TellTurn:
		return prompts.ForTurn(p.told), said, nil
	case channel.TellAside:
		return prompts.ForAside(p.told), said, nil
	case channel.TellMessage:
		return prompts.ForMessage(p.told), said, nil
	case channel.TellGoOn:
		return prompts.ToContinue(p.told), said, nil
	default:
		return fmt.Sprintf("Channel %s: stop what you are doing there. It is no longer needed.\n", p.told.Channel), said, nil
	}
}

// FirstPrompt returns the first prompt of a session for channels.
func (c *Controller) FirstPrompt(ctx context.Context, s team.Session) (string, error) {
	if delivery := s.Delivery; team.IsLeadToken(delivery.Token) {
		return c.crew.LeadPrompt(ctx, channel.Action{Key: delivery.Key, Do: delivery.Do, Token: delivery.Token, N: delivery.N}, true)
	}
	var plan *message
	if err := c.loop.View(ctx, func(t *team.Team) {
		for _, todo := range t.AgentChannelActions(string(s.Delivery.Token.Agent), c.loop.Now()) {
			if todo.Key == s.Delivery.Key {
				is := c.messageFor(todo, false)
				plan = &is
			}
		}
	}); err != nil {
		return "", err
	}
	if plan == nil {
		return "", sessions.ErrNotAsked
	}
	text, _, err := c.prompt(ctx, plan)
	return text, err
}
