package team

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/table"
)

// Unknown is the error for an unknown name. Like a refusal, it is an answer and not a failure.
type Unknown struct {
	What, Name string
	Known      []string
}

func (u *Unknown) Error() string {
	switch {
	case len(u.Known) == 0 && u.What == ofTheTeam:
		return fmt.Sprintf("no %s is called %q: the crew was never summoned; `fairlead crew summon` begins", u.What, u.Name)
	case len(u.Known) == 0 && u.What == "run":
		return fmt.Sprintf("no run is called %q: there are none; `fairlead run` starts one", u.Name)
	case len(u.Known) == 0 && u.What == "session":
		return fmt.Sprintf("no session is called %q; `fairlead why AGENT` and `fairlead run show RUN` list sessions", u.Name)
	case len(u.Known) == 0 && (u.What == "agent" || u.What == "channel" || u.What == "target of notices"):
		return fmt.Sprintf("no %s is called %q: there are none; add it to fairlead.yaml, then run `fairlead reload`", u.What, u.Name)
	case len(u.Known) == 0:
		return fmt.Sprintf("no %s is called %q: there are none", u.What, u.Name)
	}
	text := fmt.Sprintf("no %s is called %q; there are: %s", u.What, u.Name, strings.Join(u.Known, ", "))
	if u.What == "agent" {
		text += "; if it is new in fairlead.yaml, run `fairlead reload`"
	}
	return text
}

// Decide returns the changes that follow from an event. It changes nothing: apply the changes. No
// changes and no error mean that the event has no effect.
func (t *Team) Decide(ev Event) ([]change.Change, error) {
	ev.At = ev.At.UTC().Round(0) // as it will be decoded from the journal
	d := &decision{team: t, ev: ev}
	var err error
	switch what := ev.What.(type) { // what is not about one agent
	case Configured:
		d.configure(what)
		if err = d.configureChannels(what); err == nil {
			err = d.crew(what.Lead)
		}
	case channel.Input:
		err = d.channels(what)
	case crew.Input:
		err = d.crew(what)
	case question.Input:
		err = d.questions(what)
	case host.Input:
		err = d.decideHost(what)
	case notice.Sent:
		d.noticeSent(what)
	case DispatchSeen:
		err = d.dispatchSeen(what)
	case DispatchGone:
		err = d.dispatchGone(what.Name)
	case SleepAsked:
		err = d.sleep()
	case DaemonStarted:
		d.setTeam("E1", "daemon_started", func(s *TeamSet) {
			s.Epoch, s.BootID, s.Stopping = s.Epoch+1+what.Skip, what.BootID, false
			s.Leader, s.Root, s.Config = what.Leader, what.Root, what.Config
		})
		err = d.crew(crew.DaemonStarted{})
	case ConfigEvent:
		if next, row, trigger := t.Governing.decide(what, t.governed(), ev.At); row != "" {
			d.setTeam(row, trigger, func(s *TeamSet) { s.Governing = next })
		}
	case HoldAsked:
		d.setHold(Hold{On: true, By: ev.Actor.ID, Note: what.Note, At: ev.At}, "hold_asked", control.Held{})
	case ReleaseAsked:
		d.setHold(Hold{}, "release_asked", control.Released{})
	case StopAsked:
		d.stop(what)
	default:
		a, known := t.Agents[ev.Agent]
		_, ofQueue := what.(moveQueue)
		switch {
		case ev.Run != "":
			err = d.run()
		case ofQueue && ev.Agent == "":
			err = d.moveQueue(t.pool())
		case known:
			err = d.one(a)
		default:
			err = &Unknown{What: "agent", Name: ev.Agent, Known: t.Names()}
		}
	}
	if err != nil {
		return nil, err
	}
	return d.changes, nil
}

// decision collects the changes of one event. Agents that it affects are copies with the changes so far
// applied, so that each decision sees the results of earlier ones.
type decision struct {
	team    *Team
	ev      Event
	changes []change.Change
	agent   Agent // the copy that one decides on
}

func (d *decision) add(entity, kind, row, from, to, trigger string, body change.Body) change.Change {
	ch := change.Change{
		Machine: kind, Entity: entity, Row: row, From: from, To: to, Trigger: trigger,
		At: d.ev.At, Actor: d.ev.Actor, Body: body,
	}
	d.changes = append(d.changes, ch)
	return ch
}

// take adds the changes of a machine.
func (d *decision) take(changes []change.Change) {
	for i := range changes {
		changes[i].Actor = d.ev.Actor
	}
	d.changes = append(d.changes, changes...)
}

// one decides an event about one agent.
func (d *decision) one(member *Agent) error {
	a := &d.agent
	member.slotOf(d.ev.What, a)
	switch what := d.ev.What.(type) {
	case control.Commanded:
		if a.Removed && what.Desired != control.WordPause {
			return d.refuseRemoved(a, what)
		}
		return d.control(a, what)
	case control.FileRead, control.FileGone, control.FileBroken, control.Started:
		return d.control(a, what.(control.Input))
	case Shell:
		d.add("agent/"+a.Name, "team", "E7", "configured", "configured", string(what),
			&AgentSet{Settings: a.Settings, Removed: a.Removed})
		return nil
	case ConversationNamed:
		return d.conversationNamed(a, what)
	case StatusSaid:
		return d.statusSaid(a, what)
	case HostsContacted:
		return d.hostsContacted(a, what)
	case PersonWrote:
		return d.personWrote(a, what)
	case TellGiven:
		return d.tellGiven(a, what)
	case LimitLifted:
		return d.lift(a)
	case EndAsked:
		return d.endAsked(a)
	case Delivered:
		return d.delivered(a, what)
	case openChannelSession:
		return d.openChannelSession(a)
	case openLeadSession:
		return d.lead(a)
	case openDispatchSession:
		return d.openDispatchSession(a, what)
	case endSession:
		return d.endSession(a, what.why, false)
	case TimerFired:
		return d.timer(a)
	case moveQueue:
		return d.moveQueue(a)
	default:
		return d.ofSession(a)
	}
}

// ofSession decides an event about a session of an agent, or of the worker pool.
func (d *decision) ofSession(a *Agent) error {
	switch what := d.ev.What.(type) {
	case SessionStarted:
		if err := d.sessionStarted(a, what); err != nil || !a.Session.ServesChannels() {
			return err
		}
		return d.channelSessionSeen(a, a.Session, what.Input, false)
	case TokenGiven:
		return d.tokenGiven(a, what)
	case PlaceAsked:
		return d.placed(a, what)
	case SessionAdopted:
		return d.adopted(a, what)
	case SessionReported:
		return d.reported(a, what)
	case SessionEnded:
		return d.sessionEnded(a, what)
	default:
		panic(fmt.Sprintf("team: no such event: %T", what))
	}
}

func (d *decision) refuseRemoved(a *Agent, what control.Commanded) error {
	return &table.Refusal{
		Subject: a.Name, Event: "wanted_" + what.Desired, State: "removed", Row: "E3",
		Reason: "it is no longer configured; add it to fairlead.yaml and restart", Takes: []string{"wanted_pause"},
	}
}

// control decides a control input and executes its changes: the session to open or end is the
// agent's, not the machine's (J1).
func (d *decision) control(a *Agent, in control.Input) error {
	now := control.Now{At: d.ev.At, Held: d.team.held(), Stopping: d.team.Stopping || a.Removed, OverLimit: d.team.OverLimit(a, d.ev.At)}
	order := a.Control.Desired
	during := d.team.duringSession(in)
	if now.InSession = during != nil; now.InSession {
		now.Asked = d.team.Questions.Of(during.ID,
			question.OrderAsk(a.Name, in.(control.FileRead).Desired,
				order.N)) != nil //nolint:forcetypeassert // a session ran when it was written
	}
	changes, err := a.Control.Decide(in, now)
	if err != nil {
		return err
	}
	for _, ch := range changes {
		body := change.As[control.Body](ch.Body)
		if !body.Value.Stamp.Equal(a.Control.Stamp) && body.Value.State != control.Foreign && d.team.Render != nil {
			next := control.Control{Value: body.Value}
			body.Sum = d.team.Render(next.File(d.team.Hold.On))
		}
		d.take([]change.Change{ch})
		a.Control.Apply(ch) // identities of files do not affect decisions
		if kind := control.Opens(ch); kind != "" {
			if a.Session == nil && !a.full() && len(a.Queue) == 0 && !a.Waits() { // J1
				err = d.openSession(a, Session{Kind: kind, For: ForControl})
			} else {
				err = d.request(a, Request{For: ForControl, Kind: kind, At: d.ev.At})
			}
			if err != nil {
				return err
			}
		}
		if control.Ends(ch) && a.Session != nil && a.Session.For == ForControl {
			if err := d.endSession(a, ending{EndLimit, body.Value.Limit}, false); err != nil {
				return err
			}
		}
		if ch.Trigger == string(control.RaiseAsked) {
			return d.questioned(question.OrderByFile(a.Name, during.ID, body.Overtaken.State, order.State, order.N))
		}
	}
	if in.Subject().Starts && a.Control.Desired.N > order.N && len(d.team.Questions.Open(a.Name)) > 0 {
		return d.questioned(question.Overtake{Agent: a.Name})
	}
	return nil
}

// configure compares the configuration with the known agents. Removed agents stay known and start
// nothing.
func (d *decision) configure(conf Configured) {
	if conf.Limits != d.team.Limits || conf.Places != d.team.Pool.Places {
		d.setTeam("E2", "configured", func(s *TeamSet) { s.Limits, s.Places = conf.Limits, conf.Places })
	}
	for _, name := range slices.Sorted(maps.Keys(conf.Agents)) {
		settings := conf.Agents[name]
		switch a := d.team.Agents[name]; {
		case a == nil:
			d.setAgent(name, "none", "configured", "agent_added", AgentSet{Settings: settings})
		case a.Removed:
			d.setAgent(name, "removed", "configured", "agent_added_again", AgentSet{Settings: settings})
		case a.Settings != settings:
			d.setAgent(name, "configured", "configured", "agent_configured", AgentSet{Settings: settings})
		}
	}
	for _, name := range d.team.Names() {
		a := d.team.Agents[name]
		if _, ok := conf.Agents[name]; !ok && !a.Removed {
			d.setAgent(name, "configured", "removed", "agent_removed", AgentSet{Settings: a.Settings, Removed: true})
			d.removed(*a)
		}
	}
	for _, name := range d.team.Names() {
		a := *d.team.Agents[name]
		settings, ok := conf.Agents[name]
		if wanted := ok && settings.Policy.Foreign && settings.Policy.Program; a.Session != nil && a.Session.Kind == control.Program &&
			!wanted {
			d.mustEnd(&a, ending{reason: EndUnconfigured}, false)
		}
	}
}

// removed stops the retries of a removed agent.
func (d *decision) removed(a Agent) {
	a.Removed = true
	if err := d.control(&a, control.Stopping{}); err != nil {
		panic("team: what comes to rest may not be refused: " + err.Error())
	}
}

func (d *decision) setAgent(name, from, to, trigger string, set AgentSet) {
	d.add("agent/"+name, "team", "E3", from, to, trigger, &set)
}

func (d *decision) setTeam(row, trigger string, edit func(*TeamSet)) {
	t := d.team
	set := TeamSet{
		Hold: t.Hold, Stopping: t.Stopping, Epoch: t.Epoch, BootID: t.BootID, Limits: t.Limits, Places: t.Pool.Places,
		Leader: t.Leader, Root: t.Root, Config: t.Config, Governing: t.Governing,
	}
	from := set.word()
	edit(&set)
	d.add("team/team", "team", row, from, set.word(), trigger, &set)
}

// word returns the team's state in one word.
func (s *TeamSet) word() string {
	switch {
	case s.Stopping:
		return "stopping"
	case s.Hold.On:
		return "held"
	default:
		return "open"
	}
}

// everybody decides the same input for all agents, on a modified copy of the team.
func (d *decision) everybody(edit func(*Team), in control.Input) {
	next := *d.team
	edit(&next)
	d.team = &next
	for _, name := range next.Names() {
		a := *next.Agents[name]
		if err := d.control(&a, in); err != nil {
			panic("team: what reaches everybody may not be refused: " + err.Error())
		}
	}
}

// setHold sets or lifts the hold of the team, and tells all agents.
func (d *decision) setHold(to Hold, trigger string, in control.Input) {
	if d.team.Hold.On == to.On {
		return
	}
	d.setTeam("X8", trigger, func(s *TeamSet) { s.Hold = to })
	d.everybody(func(t *Team) { t.Hold = to }, in)
}

// stop lets sessions finish; a second request, or an immediate one, ends them (C14). A foreign
// loop's program never finishes by itself, so it is ended immediately.
func (d *decision) stop(what StopAsked) {
	if !d.team.Stopping {
		d.setTeam("C14", "stop_asked", func(s *TeamSet) { s.Stopping = true })
		d.everybody(func(t *Team) { t.Stopping = true }, control.Stopping{})
	}
	for _, name := range d.team.Names() {
		a := *d.team.Agents[name]
		for _, s := range a.Sessions() {
			if what.Now || s.Kind == control.Program {
				d.mustEnd(a.at(s.Slot), ending{reason: EndShutdown}, what.Now)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.team.Pool.Sessions)) {
		if what.Now {
			d.mustEnd(d.team.stepSlot(key), ending{reason: EndShutdown}, true)
		}
	}
}

func (d *decision) mustEnd(a *Agent, why ending, now bool) {
	if err := d.endSession(a, why, now); err != nil {
		panic("team: an open session can always be asked to end: " + err.Error())
	}
}

// look finds a rule for the agent's session.
func (d *decision) look(a *Agent, event session.Event) (table.Rule[session.Phase, session.Act], error) {
	return session.Table.Look("session of "+a.Name, a.phase(), event)
}
