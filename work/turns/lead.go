package turns

import (
	"context"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// The lead receives the crew's actions in its own session, in the same way as an agent receives its
// channels' actions: one at a time, each once.

// LeadWords describe an action for the lead.
func LeadWords(do channel.ActionKind) string {
	switch crew.ActionKind(do) {
	case crew.TellSummon:
		return "it leads the team, and is to summon it"
	case crew.TellWake:
		return "it leads the team, and is to wake it"
	case crew.TellRegister:
		return "it leads the team, and is to register a member that it listed"
	default:
		return "it leads the team, and is to be asked who is awake"
	}
}

// mayTellLead refuses requests for a lead that cannot receive input, because the request would wait
// forever. It runs in the loop.
func (c *Controller) mayTellLead(what any) error {
	var row string
	switch what.(type) {
	case crew.SummonAsked:
		row = "P1"
	case crew.WakeAsked:
		row = "P8"
	default:
		return nil
	}
	m := c.sessions.Slots[c.loop.State().Crew.Lead.Agent]
	if m == nil || c.Joins(m) || m.Driver.Capabilities(sessions.Known(*m.Conf), driver.Lead).Prompts {
		return nil // or the team says why not
	}
	if err := m.Driver.Check(sessions.Known(*m.Conf)); err != nil {
		return &table.Refusal{
			Subject: m.Conf.Name, Event: "lead_the_team", State: "driver " + m.Conf.Driver, Row: row,
			Reason: "it cannot be started: " + err.Error(),
		}
	}
	return &table.Refusal{
		Subject: m.Conf.Name, Event: "lead_the_team", State: "driver " + m.Conf.Driver, Row: row,
		Reason: "it is told nothing while it runs, so that it cannot lead the team; name an agent as team.lead in fairlead.yaml that takes input, or give this one a driver or a script that does, and restart",
	}
}

// confirmLeadAction acknowledges an action of the lead for which no text had to be written.
func (c *Controller) confirmLeadAction(ctx context.Context, m *sessions.Slot, n uint64) error {
	_, err := c.loop.Do(ctx, loop.Request{
		Event: loop.EventBy(sessions.ByShim, "", crew.ActionReceived{N: n}), Agent: m.Conf.Name, Look: c.clearTelling(m),
	})
	if loop.IsAnswer(err) {
		return nil
	}
	return err
}
