package crew

import (
	"context"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
)

// Crew returns the members and their states. With all it includes expired members. Unknown fields of
// documents are left out.
func (c *Controller) Crew(ctx context.Context, all bool) (view.CrewView, error) {
	var view view.CrewView
	err := c.loop.View(ctx, func(t *team.Team) { view = c.crewView(t, all) })
	return view, err
}

// Document returns one member with its unknown fields, by ID or by name. The error is a
// *team.Unknown if no member matches, and a *machine.Refusal if two match.
func (c *Controller) Document(ctx context.Context, name string) (view.DocumentView, error) {
	var shown view.DocumentView
	var answer error
	if err := c.loop.View(ctx, func(t *team.Team) {
		var doc *crew.Document
		if doc, answer = t.FindDocument(name); answer == nil {
			shown = view.ViewDocument(doc)
		}
	}); err != nil {
		return view.DocumentView{}, err
	}
	return shown, answer
}

// crewView runs in the loop.
func (c *Controller) crewView(t *team.Team, all bool) view.CrewView {
	crew := &t.Crew
	shown := view.CrewView{
		Button: string(crew.Button()), Agents: []view.DocumentView{}, Lead: c.leadView(t), Size: crew.Lead.Size,
		Notices: make([]view.NoticeView, 0, len(crew.Notices)), Head: c.loop.Head(),
	}
	if crew.Lead.InProgress() {
		shown.InProgress = string(crew.Lead.Stage)
	}
	for _, doc := range crew.InOrder() {
		if doc.Visible() || all {
			one := view.ViewDocument(doc)
			one.Extra = nil
			shown.Agents = append(shown.Agents, one)
		}
	}
	for _, n := range crew.Notices {
		shown.Notices = append(shown.Notices, view.NoticeView{At: n.At, Kind: string(n.Kind), Text: n.Text, Session: n.Session})
	}
	return shown
}

func (c *Controller) leadView(t *team.Team) view.LeadView {
	lead := &t.Crew.Lead
	shown := view.LeadView{Agent: lead.Agent, State: view.LeadAsleep, ReportedAt: view.Moment(lead.Reported), Seat: crew.LeadSeat}
	a := t.Agents[lead.Agent]
	switch {
	case a == nil:
	case a.Session.IsLead():
		shown.Session = a.Session.ID
		switch {
		case a.Session.Phase == session.Open:
			shown.State = view.LeadStarting
		case lead.Session == a.Session.ID && lead.Heard():
			shown.State = view.LeadHeard
		default:
			shown.State = view.LeadUnheard
		}
	case len(lead.Actions) > 0:
		shown.State, shown.Why = view.LeadWaits, t.LeadWaits(c.loop.Now())
	}
	return shown
}

// PresenceOf is the role or state of a configured agent in the crew: the lead, or the state of the
// document with the agent's name.
func (c *Controller) PresenceOf(name string) string {
	members := &c.loop.State().Crew
	if name == members.Lead.Agent {
		return "lead"
	}
	seat, status := crew.SeatMax+1, ""
	for _, doc := range members.Docs { // each visible member has a place in the crew
		if doc.Visible() && doc.Name == name && doc.Seat < seat {
			if seat, status = doc.Seat, string(doc.Status); doc.Status == crew.Alive && c.loop.Now().Sub(doc.LastAliveAt) > crew.AliveMax {
				status = string(crew.Unknown)
			}
		}
	}
	return status
}
