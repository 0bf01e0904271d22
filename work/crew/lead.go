package crew

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/prompts"
)

// configureLead adds what the configuration says of the team that sleeps and wakes.
func ConfigureLead(c *team.Configured, conf *config.Config) {
	if conf.Team.Lead == "" {
		return // a workspace without a lead gets no change in its journal
	}
	c.Lead = crew.LeadConfigured{
		Agent: conf.Team.Lead, Size: conf.Team.Size, StatusMax: conf.Team.StatusTimeout, HatchMax: conf.Team.HatchTimeout,
	}
}

// CrewHooks are what the crew's controller does in the loop.
func (c *Controller) CrewHooks() loop.Hooks {
	return loop.Hooks{
		OnBatch: func(changes []change.Change, first uint64, t *loop.Touched) {
			c.CrewState.note(changes, first)
			lead := c.loop.State().Crew.Lead.Agent
			if lead != "" && slices.ContainsFunc(changes, concernsLead) {
				t.Agent(lead)
			}
		},
		Next:    func() time.Time { return c.loop.State().Crew.Deadline() },
		Due:     func(time.Time) []loop.Request { return c.leadDue() },
		Settled: func(stopping bool) bool { return !stopping || c.documentsSettled() },
	}
}

// concernsLead reports whether the lead may have an action after a change: of the crew, or of the hold.
func concernsLead(ch change.Change) bool {
	set := change.As[crew.Body](ch.Body)
	return set != nil && set.Words == nil || change.As[team.TeamSet](ch.Body) != nil
}

// tellLead submits a person's request for the lead. If the lead cannot receive input, the request would wait forever, so it
// is refused; row is the rule that the refusal names.
func (c *Controller) tellLead(ctx context.Context, by change.Actor, what any, row string) (uint64, error) {
	return c.loop.Do(ctx, loop.Request{First: func() error { return c.mayTellLead(row) }, Event: loop.EventBy(by, "", what)})
}

func (c *Controller) mayTellLead(row string) error {
	m := c.sessions.Slots[c.loop.State().Crew.Lead.Agent]
	if m == nil || m.Conf.Loop == config.LoopForeign || m.Driver.Capabilities(sessions.Known(*m.Conf), driver.Lead).Prompts {
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

// ErrNoRecipient means that an action concerns no crew member any more: all that were to be woken
// are awake.
var ErrNoRecipient = errors.New("the action concerns no crew member any more")

// LeadPrompt renders an action of the lead as text for its session. It omits members that have
// become awake meanwhile. atStart: the session begins with this text, so no member is awake in it. The error is
// sessions.ErrNotAsked if the action is not due.
func (c *Controller) LeadPrompt(ctx context.Context, todo channel.Action, atStart bool) (string, error) {
	var ask crew.Action
	var docs []*crew.Document // never changed, only replaced
	still, lead := false, ""
	if err := c.loop.View(ctx, func(t *team.Team) {
		if ask, still = t.LeadAction(todo); !still {
			return
		}
		lead = t.Crew.Lead.Agent
		for _, id := range ask.Docs {
			if doc := t.Crew.Docs[id]; doc != nil && doc.Visible() && (atStart || doc.Status != crew.Alive) {
				docs = append(docs, doc)
			}
		}
	}); err != nil {
		return "", err
	}
	switch {
	case !still:
		return "", sessions.ErrNotAsked
	case ask.Do == crew.TellStatus:
		return prompts.ForStatus(), nil
	case ask.Do == crew.TellSummon:
		return prompts.ForSummon(ask.Seats, lead), nil
	case ask.Do == crew.TellRegister:
		return prompts.ForRegistration(ask.Seats, ask.Names), nil
	case ask.Do != crew.TellWake:
		panic("engine: the lead is told no such thing: " + string(ask.Do))
	case len(docs) == 0:
		return "", ErrNoRecipient
	}
	wakes := make([]prompts.Sleeper, 0, len(docs))
	for _, doc := range docs {
		messages, leftOut, err := c.MessagesFor(ctx, doc.LastSession, doc.Name)
		if err != nil {
			return "", fmt.Errorf("read what %s said before: %w", doc.Name, err)
		}
		wakes = append(wakes, prompts.Sleeper{Document: doc, Messages: messages, LeftOut: leftOut})
	}
	return prompts.ForWake(wakes, wakeTranscriptMax), nil
}

// wakeTranscriptMax is how much of what an agent said it is handed when it wakes (SPEC P8).
const wakeTranscriptMax = 32 << 10

// leadDue are the timers of the team that have run out.
func (c *Controller) leadDue() []loop.Request {
	if at := c.loop.State().Crew.Deadline(); at.IsZero() || c.loop.Now().Before(at) {
		return nil
	}
	return []loop.Request{{Event: loop.EventBy(sessions.ByTimer, "", crew.TimerFired{})}}
}
