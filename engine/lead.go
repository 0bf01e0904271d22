package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/prompt"
	"github.com/fairlead-dev/fairlead/team"
)

// The lead of the team is told what the crew asks for in its own session, in the way in which an
// agent is told what its channels ask for: one thing at a time, each once.

// errNobodyLeft says that an errand is about nobody any more: whoever was to be woken is awake.
var errNobodyLeft = errors.New("nobody is left whom it is about")

// configureLead adds what the configuration says of the team that sleeps and wakes.
func configureLead(c *team.Configured, conf *config.Config) {
	if conf.Team.Lead == "" {
		return // whoever has no lead has no change in the journal for it
	}
	c.Lead = crew.LeadConfigured{
		Agent: conf.Team.Lead, Size: conf.Team.Size, StatusMax: conf.Team.StatusTimeout, HatchMax: conf.Team.HatchTimeout,
	}
}

// mayTellLead refuses what people ask of a lead that cannot be told anything: the team would wait
// for what nobody hears. It runs in the loop.
func (e *Engine) mayTellLead(what any) error {
	var row string
	switch what.(type) {
	case crew.SummonAsked:
		row = "P1"
	case crew.WakeAsked:
		row = "P8"
	default:
		return nil
	}
	m := e.members[e.State().Crew.Lead.Agent]
	if m == nil || e.joins(m) || driver.HearsAs(m.driver, known(*m.conf), driver.Lead) {
		return nil // or the team says why not
	}
	if err := m.driver.Check(known(*m.conf)); err != nil {
		return &machine.Refusal{
			Subject: m.conf.Name, Event: "lead_the_team", State: "driver " + m.conf.Driver, Row: row,
			Reason: "it cannot be started: " + err.Error(),
		}
	}
	return &machine.Refusal{
		Subject: m.conf.Name, Event: "lead_the_team", State: "driver " + m.conf.Driver, Row: row,
		Reason: "it is told nothing while it runs, so that it cannot lead the team; name an agent as team.lead in fairlead.yaml that takes input, or give this one a driver or a script that does, and restart",
	}
}

// crewHooks are what the crew's controller does in the loop.
func (e *Engine) crewHooks() loop.Hooks {
	return loop.Hooks{
		Check:    e.mayTellLead,
		Appended: e.crew.note,
		Note:     e.leadMoved,
		Next:     func() time.Time { return e.State().Crew.Deadline() },
		Due:      func(time.Time) []loop.Request { return e.leadDue() },
		Settled:  func(stopping bool) bool { return !stopping || e.documentsSettled() },
	}
}

// leadMoved marks the lead if a change may ask something of it, and says whether the change was about
// the crew.
func (e *Engine) leadMoved(ch team.Change, t *loop.Touched) bool {
	crew, lead := ch.Body.Presence, e.State().Crew.Lead.Agent
	if lead != "" && (crew != nil && crew.Words == nil || ch.Body.Team != nil) { // the end of a hold
		t.Agent(lead)
	}
	return crew != nil
}

// leadPrompt is an errand of the lead in words, as it is to be told now; who turned out to be
// awake meanwhile is left out. atStart: the session begins with it, so nobody is awake in it.
func (e *Engine) leadPrompt(ctx context.Context, todo channel.Todo, atStart bool) (string, error) {
	var ask crew.Ask
	var docs []*crew.Document // never changed, only replaced
	still, lead := false, ""
	if err := e.View(ctx, func(t *team.Team) {
		if ask, still = t.AskOf(todo); !still {
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
		return "", errOvertaken
	case ask.Do == crew.TellStatus:
		return prompt.ForStatus(), nil
	case ask.Do == crew.TellSummon:
		return prompt.ForSummon(ask.Seats, lead), nil
	case ask.Do == crew.TellRegister:
		return prompt.ForRegistration(ask.Seats, ask.Names), nil
	case ask.Do != crew.TellWake:
		panic("engine: the lead is told no such thing: " + string(ask.Do))
	case len(docs) == 0:
		return "", errNobodyLeft
	}
	wakes := make([]prompt.Sleeper, 0, len(docs))
	for _, doc := range docs {
		messages, leftOut, err := e.messagesFor(ctx, doc.LastSession, doc.Name)
		if err != nil {
			return "", fmt.Errorf("read what %s said before: %w", doc.Name, err)
		}
		wakes = append(wakes, prompt.Sleeper{Document: doc, Messages: messages, LeftOut: leftOut})
	}
	return prompt.ForWake(wakes, wakeTranscriptMax), nil
}

// wakeTranscriptMax is how much of what an agent said it is handed when it wakes (SPEC P8).
const wakeTranscriptMax = 32 << 10

// leadTold acknowledges an errand of the lead that needed nothing written.
func (e *Engine) leadTold(ctx context.Context, m *member, n uint64) error {
	_, err := e.Do(ctx, loop.Request{Event: loop.EventBy(byShim, "", crew.AskTold{N: n}), Agent: m.conf.Name, Look: e.untell(m)})
	if loop.IsAnswer(err) {
		return nil
	}
	return err
}

// leadWords say what the lead is to be told.
func leadWords(do channel.Errand) string {
	switch crew.Errand(do) {
	case crew.TellSummon:
		return "it leads the team, and is to summon it"
	case crew.TellWake:
		return "it leads the team, and is to wake it"
	case crew.TellRegister:
		return "it leads the team, and is to register somebody whom it listed"
	default:
		return "it leads the team, and is to be asked who is awake"
	}
}

// leadDue are the timers of the team that have run out.
func (e *Engine) leadDue() []loop.Request {
	if at := e.State().Crew.Deadline(); at.IsZero() || e.Now().Before(at) {
		return nil
	}
	return []loop.Request{{Event: loop.EventBy(byTimer, "", crew.TimerFired{})}}
}
