package status

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
)

// channelEvidence is one fact about an agent's participation in channels.
type channelEvidence struct {
	at   time.Time
	text string
}

// channelEvidenceOf reports an agent's state in each of its channels, and what its session answers.
// It runs in the loop.
func channelEvidenceOf(t *team.Team, a *team.Agent) (list []channelEvidence) {
	name := channel.AgentID(a.Name)
	for _, id := range t.ChannelsOf(a.Name) {
		c := t.Channels.ByID[channel.ChannelID(id)]
		state := t.Channels.StateOf(name, channel.ChannelID(id))
		one := channelEvidence{text: fmt.Sprintf("in #%s it is %s", id, state)}
		switch at := slices.Index(c.Queue(), name); {
		case c.Head.Holder == name:
			one.at = c.Head.Lease.Since
			one.text += fmt.Sprintf(": it has turn %d", c.Head.Turn)
			if why := c.Head.Lease.Why; why != "" {
				one.text += ", and waits: " + clip.Text(why, turns.WhyShownMax)
			} else if why := turns.AnsweredWords(t, id); why != "" {
				one.text += "; " + why
			}
		case at == 0:
			one.text += ": next in the queue"
		case at > 0:
			one.text += fmt.Sprintf(": behind %d in the queue", at)
		}
		list = append(list, one)
	}
	if s := a.Session; s.AnswerPending() {
		delivery := s.Delivery
		one := channelEvidence{
			at:   delivery.Begun,
			text: fmt.Sprintf("session %s answers turn %d in #%s", s.ID, delivery.Token.Turn, delivery.Token.Channel),
		}
		switch {
		case team.IsLeadToken(delivery.Token) && !delivery.Confirmed:
			one.text = fmt.Sprintf("session %s is being started: %s", s.ID, turns.LeadWords(delivery.Do))
		case team.IsLeadToken(delivery.Token):
			one.text = fmt.Sprintf("session %s answers what it was told: %s", s.ID, turns.LeadWords(delivery.Do))
		case !delivery.Confirmed:
			one.text = fmt.Sprintf("session %s is being started for #%s", s.ID, delivery.Token.Channel)
		case delivery.Re != 0:
			one.text = fmt.Sprintf("session %s answers message %d in #%s, which needs no turn", s.ID, delivery.Re, delivery.Token.Channel)
		}
		list = append(list, one)
	}
	return list
}
