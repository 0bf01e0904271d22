package team

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/table"
)

// SleepAsked ends the lead session: the crew sleeps until it is woken.
type SleepAsked struct{}

// IsLead reports whether this is a lead session.
func (s *Session) IsLead() bool { return s != nil && s.For == ForLead }

// crewNow returns what the crew's decisions may depend on besides the crew.
func (d *decision) crewNow() crew.Now {
	now := crew.Now{At: d.ev.At, Held: d.team.held() || d.team.Stopping}
	if a := d.team.Agents[d.team.Crew.Lead.Agent]; a != nil {
		now.Limit = d.team.OverLimit(a, d.ev.At)
	}
	return now
}

// crew decides a crew input. Its changes apply to later decisions of the same event.
func (d *decision) crew(in crew.Input) error {
	if err := d.mayLead(in); err != nil {
		return err
	}
	if err := d.leadHeard(in); err != nil {
		return err
	}
	changes, err := d.team.Crew.Decide(in, d.crewNow())
	if err != nil || len(changes) == 0 {
		return err
	}
	d.take(changes)
	next := *d.team
	next.Crew.Docs = maps.Clone(next.Crew.Docs)
	for _, ch := range changes {
		next.Crew.Apply(ch)
	}
	d.team = &next
	return nil
}

// mayLead refuses requests for a lead that cannot receive anything.
func (d *decision) mayLead(in crew.Input) error {
	about := in.Subject()
	if !about.Starts {
		return nil
	}
	name := d.team.Crew.Lead.Agent
	a, is := d.team.Agents[name], d.team.Channels.Agents[channel.AgentID(name)]
	var reason, state string
	switch {
	case name == "":
		return nil // package crew refuses it
	case a == nil || a.Removed:
		reason, state = "it is not an agent of fairlead.yaml", "removed"
	case a.Settings.Policy.Foreign:
		reason, state = "it runs its own loop, so Fairlead cannot start it or send it anything", "foreign"
	case is != nil && is.Disabled:
		reason, state = "it is disabled; enable it first", "disabled"
	case a.Session.IsLead() && (a.Session.Ending != "" || a.Session.Stop != nil): // a new action would be lost with the session
		reason, state = "its lead session is ending; try again when it has ended", "ending"
	default:
		return nil
	}
	return &table.Refusal{
		Subject: name, Event: "lead_the_team", State: state, Row: crew.LeadTable[crew.Idle][about.Event].ID, Reason: reason,
	}
}

// leadAgent returns the lead, if it exists.
func (t *Team) leadAgent() *Agent { return t.Agents[t.Crew.Lead.Agent] }

// leadActions returns the lead's pending actions, in the form of channel actions.
func (t *Team) leadActions(agent string) (actions []channel.Action) {
	lead := &t.Crew.Lead
	if lead.Agent != agent {
		return nil
	}
	for _, ask := range lead.Actions {
		actions = append(actions, channel.Action{
			Key: fmt.Sprintf("%s//%s/%d", ask.Do, agent, ask.N), Do: channel.ActionKind(ask.Do), N: ask.N,
			Token: channel.Token{Agent: channel.AgentID(agent)},
		})
	}
	return actions
}

// LeadAction returns the crew action for a channel action; false: it belongs to a channel, or is no
// longer wanted.
func (t *Team) LeadAction(action channel.Action) (crew.Action, bool) {
	if !IsLeadToken(action.Token) {
		return crew.Action{}, false
	}
	return t.Crew.Lead.ActionOf(action.N)
}

// IsLeadToken reports whether a token belongs to the lead's own actions and to no channel.
func IsLeadToken(token channel.Token) bool { return token.Channel == "" }

// nextOfLead returns the next event for the lead; nil: none.
func (t *Team) nextOfLead(a *Agent, at time.Time) any {
	lead, s := &t.Crew.Lead, a.Session
	if s.IsLead() {
		if end := t.leadIdleReason(a, at); s.Phase == session.Running && s.Ending == "" && !s.AnswerPending() && end != (ending{}) {
			return endSession{end}
		}
		return nil
	}
	if lead.Agent != a.Name || len(lead.Actions) == 0 {
		return nil
	}
	switch may, why := t.mayRunSession(a, at); {
	case a.Settings.Policy.Foreign: // the agent became foreign: Fairlead cannot start it any more
		return crew.LeadEnded{Session: lead.Session, Why: foreignWords}
	case may && !isIn(a.Queue, ForLead):
		return openLeadSession{}
	case !may && !t.held() || t.Stopping:
		return crew.LeadEnded{Session: lead.Session, Why: why}
	}
	return nil
}

// leadIdleReason returns why an idle lead session ends; the zero value: it stays.
func (t *Team) leadIdleReason(a *Agent, at time.Time) ending {
	is := t.Channels.Agents[channel.AgentID(a.Name)]
	switch limit := t.OverLimit(a, at); {
	case t.Stopping:
		return ending{reason: EndShutdown}
	case a.Removed, a.Settings.Policy.Foreign, t.Crew.Lead.Agent != a.Name:
		return ending{reason: EndNotLead}
	case is != nil && is.Disabled:
		return ending{reason: EndDisabled}
	case limit != "":
		return ending{EndLimit, limit}
	}
	return ending{}
}

// mayTakeLead reports whether a request for the lead's session is still valid, or why not.
func (t *Team) mayTakeLead(a *Agent, at time.Time) (ok bool, why string) {
	if ok, why = t.mayRunSession(a, at); !ok && !t.Hold.On && !t.Stopping {
		return false, why
	}
	return t.leadActionWanted(a, "")
}

// leadActionWanted reports whether any action, or a certain one, is pending for the lead.
func (t *Team) leadActionWanted(a *Agent, key string) (ok bool, why string) {
	for _, action := range t.leadActions(a.Name) {
		if key == "" || action.Key == key {
			return !a.Settings.Policy.Foreign, foreignWords
		}
	}
	return false, "the action is no longer pending"
}

// lead opens a session for the lead's pending action, or queues a request for one (J1).
func (d *decision) lead(a *Agent) error {
	actions := d.team.leadActions(a.Name)
	switch {
	case len(actions) == 0:
		return nil
	case d.team.slotFree(a) && len(a.Queue) == 0 && !d.team.turnNow(d.ev.At).Held:
		return d.openLead(a, actions[0])
	}
	return d.request(a, Request{For: ForLead, Kind: control.Lead, At: d.ev.At})
}

func (d *decision) openLead(a *Agent, action channel.Action) error {
	delivery := DeliveryOf(action)
	return d.openSession(a, Session{Kind: control.Lead, For: ForLead, Delivery: &delivery, UUID: d.leadUUID(sessionID(a.Name, a.Opened+1))})
}

// leadUUID returns the name of a lead session in documents. A crew's documents may move to other
// machines whose sessions have the same IDs, so the name includes this machine and this start.
func (d *decision) leadUUID(id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "lead session %s %s %d %d", id, d.team.BootID, d.team.Epoch, d.ev.At.UnixNano()))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8: custom
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// leadSeen records that the process of a lead session is alive.
func (d *decision) leadSeen(a *Agent, s *Session, adopted bool) error {
	if d.team.Crew.Lead.Agent != a.Name {
		return nil // it no longer leads, and is asked to end
	}
	return d.crew(crew.LeadBegan{Session: s.ID, UUID: s.UUID, Adopted: adopted})
}

// leadHeard makes the session of a marker the lead's session, if it is an ordinary one of the lead and no lead
// session is open.
func (d *decision) leadHeard(in crew.Input) error {
	about, a := in.Subject(), d.team.leadAgent()
	marker := about.Event == crew.ReportedAll || about.Event == crew.NewRegistered
	if !marker || a == nil || d.team.Crew.Lead.Session != "" || a.Session == nil || a.Session.ID != about.Session ||
		a.Session.Phase != session.Running {
		return nil
	}
	return d.crew(crew.LeadHeard{Session: about.Session, UUID: d.leadUUID(about.Session)})
}

// leadOver records how a session ended that led the crew. A withdrawn one may still begin.
func (d *decision) leadOver(s *Session) error {
	if s.Outcome == control.Withdrawn {
		return nil
	}
	if s.Outcome == control.Anew {
		return d.crew(crew.LeadLost{Session: s.ID, Why: cmp.Or(s.Why, "its program has lost the conversation; a new one begins")})
	}
	if !s.IsLead() {
		return d.crew(crew.LeadLost{Session: s.ID})
	}
	return d.crew(crew.LeadEnded{Session: s.ID, Why: cmp.Or(s.Why, "it ended by itself")})
}

// leadDelivered reports a delivered action to its source.
func (d *decision) leadDelivered(delivery Delivery) error {
	if IsLeadToken(delivery.Token) {
		return d.crew(crew.ActionReceived{N: delivery.N})
	}
	return d.channels(channel.ActionConfirmed{Token: delivery.Token, Do: delivery.Do, N: delivery.N})
}

// sleep ends the lead session and cancels a pending one.
func (d *decision) sleep() error {
	lead := &d.team.Crew.Lead
	why := ending{EndSleep, cmp.Or(d.ev.Actor.ID, d.ev.Actor.Kind)}
	a := d.team.leadAgent()
	switch {
	case lead.Agent == "" || a == nil:
		return &table.Refusal{
			Subject: "the team", Event: "sleep_asked", State: "without a lead", Row: "P3",
			Reason: "the team has no lead; name an agent as team.lead in fairlead.yaml and restart",
		}
	case a.Session.IsLead() && a.Session.Phase == session.Open:
		if err := d.crew(crew.LeadEnded{Session: lead.Session, Why: why.words()}); err != nil {
			return err
		}
		fallthrough
	case a.Session.IsLead():
		next := *a
		return d.endSession(&next, why, false)
	default: // it may report in an ordinary session, which goes on
		return d.crew(crew.LeadEnded{Session: lead.Session, Why: why.words()})
	}
}

// LeadWaits describes what prevents the lead from receiving its next action; empty: nothing.
func (t *Team) LeadWaits(at time.Time) string {
	a := t.leadAgent()
	if a == nil || len(t.Crew.Lead.Actions) == 0 || a.Session.IsLead() {
		return ""
	}
	if ok, why := t.mayRunSession(a, at); !ok {
		return why
	}
	return behind(a.Queue, ForLead, sessionLabel(a.Session))
}

// ofTheTeam is the noun for members of the crew in messages.
const ofTheTeam = "agent of the team"

// FindDocument finds a document by ID or name.
func (t *Team) FindDocument(name string) (*crew.Document, error) {
	doc, err := t.Crew.ByName(name)
	if !errors.Is(err, crew.ErrNoSuchAgent) {
		return doc, err
	}
	var known []string
	for _, doc := range t.Crew.InOrder() {
		if doc.Visible() {
			known = append(known, cmp.Or(doc.Name, string(doc.ID)))
		}
	}
	return nil, &Unknown{What: ofTheTeam, Name: name, Known: known}
}
