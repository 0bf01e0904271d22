package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// bodies are the bodies of a team's changes. Exactly one is set of each change.
var bodies = change.Bodies{
	&Session{}, &Used{}, &AgentSet{}, &TeamSet{}, &QueueSet{}, &NoteSet{}, &RunLeft{}, &ChannelConfig{},
	&Delivery{}, &DispatchSet{}, &Limited{}, &Conversation{}, &Says{}, &TellsSet{}, &Contacts{},
	&control.Body{}, &channel.Set{}, &workflow.Body{}, &task.Body{}, &crew.Body{}, &question.Body{}, &notice.Record{}, &host.Body{},
}

// BodyOf reads the body of a change from the journal.
func BodyOf(data []byte) (change.Body, error) { return bodies.Decode(data) }

// JSONKey of each body is its key in the journal.
func (*Session) JSONKey() string       { return "session" } // the session's new state; phase none: it has ended
func (*Used) JSONKey() string          { return "used" }
func (*AgentSet) JSONKey() string      { return "agent" }
func (*TeamSet) JSONKey() string       { return "team" }
func (*QueueSet) JSONKey() string      { return "queue" }
func (*NoteSet) JSONKey() string       { return "note" }
func (*RunLeft) JSONKey() string       { return "left" }
func (*ChannelConfig) JSONKey() string { return "channel_config" } // the channel's configuration in fairlead.yaml
func (*Delivery) JSONKey() string      { return "delivery" }       // what the agent's session was told last
func (*DispatchSet) JSONKey() string   { return "dispatch" }
func (*Limited) JSONKey() string       { return "limited" }
func (*Conversation) JSONKey() string  { return "conversation" } // of the agent's session, with the program's name for it
func (*Says) JSONKey() string          { return "says" }         // the agent's own status
func (*TellsSet) JSONKey() string      { return "tells" }        // what the agent is still to be told
func (*Contacts) JSONKey() string      { return "contacts" }     // hosts of the network that the agent reached, or was refused

// Used is an agent's report of its usage.
type Used struct {
	Session string     `json:"session"`
	Offset  int64      `json:"offset"`
	Usage   DayUsage   `json:"usage"`
	Models  []DayUsage `json:"models,omitempty"`          // the parts of Usage whose model was reported
	Context int        `json:"context_percent,omitempty"` // 0: no news
	Stop    *Stop      `json:"stop,omitempty"`

	RepoDay  string    `json:"repo_day,omitempty"` // for RunUsage; empty: it is of no run's step
	RepoEnds time.Time `json:"repo_day_ends,omitzero"`

	RateLimit *RateLimit `json:"rate_limit,omitempty"`
	Provider  *Provider  `json:"provider,omitempty"` // without a code: it answers again

	// Of a session for channels: when its answer ended, and what Delivery.Held is now.
	Over time.Time `json:"over,omitzero"`
	Held string    `json:"held,omitempty"`
}

// AgentSet is the new configuration of an agent.
type AgentSet struct {
	Settings Settings `json:"settings"`
	Removed  bool     `json:"removed,omitempty"`
}

// TeamSet is the new state of the team.
type TeamSet struct {
	Hold      Hold        `json:"hold,omitzero"`
	Stopping  bool        `json:"stopping,omitempty"`
	Epoch     uint64      `json:"epoch,omitempty"`
	BootID    string      `json:"boot_id,omitempty"`
	Limits    Limits      `json:"limits,omitzero"`
	Places    int         `json:"places,omitempty"` // of the worker pool
	Leader    string      `json:"leader,omitempty"` // the host that leads, if another one can, too
	Root      string      `json:"root,omitempty"`   // the folder of the repository on that host, if it is known
	Config    string      `json:"config,omitempty"` // the identity of its fairlead.yaml, if another host can lead, too
	Governing ConfigState `json:"governing,omitzero"`
}

// QueueSet is the new queue for a slot.
type QueueSet struct {
	Requests []Request `json:"requests,omitempty"`
}

// NoteSet is the new state of a run outside of its machine.
type NoteSet struct {
	Settings RunSettings `json:"settings"`
	Waived   string      `json:"waived,omitempty"`
	LookAt   time.Time   `json:"look_at,omitzero"`
	Warned   Warned      `json:"warned,omitzero"`   // zero: unchanged
	Here     bool        `json:"here,omitempty"`    // its newest files are on the machine that leads, or are given up
	Changes  uint64      `json:"changes,omitempty"` // of a recalled run, before it was archived: copies of that time do not count as new
}

// RunLeft is a run that is removed from the value, with its progress.
type RunLeft struct {
	Status workflow.Status `json:"status"`
}

// Apply performs a change. It panics for an unknown change, which is a bug, because continuing would corrupt the state.
func (t *Team) Apply(ch change.Change) {
	if set, is := ch.Body.(*TeamSet); is {
		t.setTeamTo(set)
		return
	}
	if strings.HasPrefix(ch.Entity, runPrefix) {
		t.applyRun(ch)
		return
	}
	name := AgentOf(ch.Entity)
	switch body := ch.Body.(type) {
	case *channel.Set:
		t.Channels.Apply(ch)
	case *crew.Body:
		t.Crew.Apply(ch)
	case *DispatchSet:
		t.applyDispatch(name, body)
	case *question.Body:
		t.applyQuestion(ch, body.Question)
	case *Limited:
		limited := *body
		t.Agents[name].Limited = &limited
	case *Conversation:
		t.Agents[name].keepConversation(*body)
	case *Says:
		says := *body
		t.Agents[name].Says = &says
	case *Contacts:
		t.Agents[name].Contacts = ContactsWith(t.Agents[name].Contacts, body.Hosts)
	case *TellsSet:
		t.Agents[name].Tells, t.Agents[name].LastTell = body.Tells, body.Last
	case *notice.Record:
		put(&t.Notices, name, *body)
		t.forgetNotices()
	case *host.Body:
		t.Hosts.Apply(ch)
		t.noteFrom(body.Lease)
	case *ChannelConfig:
		put(&t.ChannelConfigs, name, *body)
	case *Delivery:
		t.Agents[name].setDelivery(*body)
	case *QueueSet:
		if ch.Entity == poolEntity {
			t.Pool.Queue = body.Requests
			return
		}
		t.Agents[name].Queue = body.Requests
	case *AgentSet:
		a := t.Agents[name]
		if a == nil {
			a = &Agent{Name: name, Control: control.Control{Name: name, Value: control.Value{State: control.Absent}}}
			t.Agents[name] = a
		}
		a.Settings, a.Removed = body.Settings, body.Removed
		a.Control.Policy = a.Settings.Policy
	case *control.Body:
		t.Agents[name].setControl(ch, body)
	case *Session:
		t.Agents[name].setSession(*body)
	case *Used:
		t.Usage = t.Usage.On(body.Usage.Day).Plus(body.Usage)
		t.useRun(t.Agents[name].use(*body), *body)
	default:
		panic(fmt.Sprintf("team: a change of %s by row %s says nothing", ch.Entity, ch.Row))
	}
}

// applyRun performs a change of a run, of one of its steps, or of a step's own session.
func (t *Team) applyRun(ch change.Change) {
	key := nameOf(ch.Entity)
	id, _, _ := strings.Cut(key, "/")
	switch body := ch.Body.(type) {
	case *workflow.Body:
		r := t.Runs[id]
		if r == nil {
			r = &workflow.Run{}
			put(&t.Runs, id, r)
			drop(&t.Archive, id)
		}
		r.Apply(ch)
		if t.Leader != "" && ch.To != string(workflow.Running) {
			note := t.Notes[id]
			note.Changes++
			put(&t.Notes, id, note)
		}
	case *task.Body:
		t.applyTask(id, ch)
	case *Session:
		t.Pool.Queue = withoutRequest(t.Pool.Queue, body)
		if body.Phase == session.None {
			drop(&t.Pool.Sessions, key)
			return
		}
		put(&t.Pool.Sessions, key, body)
	case *Used:
		a := t.stepSlot(key)
		forWhom := a.use(*body)
		t.Pool.Sessions[key] = a.Session
		t.Usage = t.Usage.On(body.Usage.Day).Plus(body.Usage)
		t.useRun(forWhom, *body)
	case *NoteSet:
		note := t.Notes[id]
		note.Settings, note.Waived, note.LookAt = body.Settings, body.Waived, body.LookAt
		note.Changes += body.Changes
		note.Warned = cmp.Or(body.Warned, note.Warned)
		if body.Here {
			note.Away = ""
		}
		put(&t.Notes, id, note)
	case *RunLeft:
		drop(&t.Runs, id)
		drop(&t.Notes, id)
		drop(&t.Tasks, id)
		put(&t.Archive, id, ch.At)
	default:
		panic(fmt.Sprintf("team: a change of %s by row %s says nothing", ch.Entity, ch.Row))
	}
}

// useRun adds a session's usage to the run that it works for.
func (t *Team) useRun(forWhom Purpose, used Used) {
	id, _, ok := StepOf(forWhom)
	if !ok {
		return
	}
	note := t.Notes[id]
	note.Usage = note.Usage.On(used.Usage.Day).Plus(used.Usage)
	note.Total = note.Total.Plus(used.Usage.Usage)
	put(&t.Notes, id, note)
	if r := t.Runs[id]; r != nil {
		put(&t.RunUsage, r.RepoDir, RepoDay{DayUsage: t.RunUsage[r.RepoDir].On(used.RepoDay).Plus(used.Usage), Ends: used.RepoEnds})
	}
}

func (a *Agent) setControl(ch change.Change, set *control.Body) {
	a.Control.Apply(ch)
	if set.Seen != "" && set.Seen != a.LastForeign {
		a.remember(a.LastForeign)
		a.LastForeign = set.Seen
	}
	a.remember(set.Swapped)
	if set.Sum != "" {
		a.OwnSums = append(a.OwnSums, set.Sum) // appends copy, because a copy of the agent may share the old slice
		a.OwnSums = a.OwnSums[max(0, len(a.OwnSums)-sumsMax):]
	}
}

func (a *Agent) remember(ident string) {
	if ident == "" || slices.Contains(a.EarlierForeign, ident) {
		return
	}
	a.EarlierForeign = append(a.EarlierForeign[:len(a.EarlierForeign):len(a.EarlierForeign)], ident)
	if len(a.EarlierForeign) > seenMax {
		a.EarlierForeign = a.EarlierForeign[len(a.EarlierForeign)-seenMax:]
	}
}

func (a *Agent) setSession(s Session) {
	if s.N > a.Opened && a.step() == "" {
		a.Days = addToDays(a.Days, DayUsage{Day: dayOf(s.OpenedAt), Sessions: 1})
	}
	a.Opened = max(a.Opened, s.N)
	a.Queue = withoutRequest(a.Queue, &s)
	if s.Phase != session.None {
		if s.Phase == session.Running && len(s.FirstTells) > 0 {
			a.Tells = a.without(s.FirstTells)
		}
		a.setOpen(s.Slot, &s)
		return
	}
	a.setOpen(s.Slot, nil)
	a.Past = append(a.Past[:len(a.Past):len(a.Past)], s)
	if most := pastMax * a.instances(); len(a.Past) > most {
		a.Past = a.Past[len(a.Past)-most:]
	}
}

// use adds a report to the agent and to its session, and returns what that session is for.
func (a *Agent) use(used Used) Purpose {
	a.Usage = a.Usage.On(used.Usage.Day).Plus(used.Usage)
	if a.Days = addToDays(a.Days, used.Usage); len(used.Models) > 0 {
		a.Models = AddModels(a.Models, used.Models, a.Days[len(a.Days)-1].Day, a.Days[0].Day)
	}
	s := *cmp.Or(a.Open(used.Session), a.Session)
	s.Offset = used.Offset
	s.Usage = s.Usage.Plus(used.Usage.Usage)
	s.Context = cmp.Or(used.Context, s.Context)
	if s.Delivery != nil && (!used.Over.IsZero() || s.Delivery.Held != used.Held) {
		delivery := *s.Delivery
		delivery.Held = used.Held
		if !used.Over.IsZero() {
			delivery.Over = used.Over
		}
		s.Delivery = &delivery
	}
	if used.Stop != nil {
		s.Stop = used.Stop
	}
	if used.RateLimit != nil {
		s.RateLimit = used.RateLimit
	}
	if used.Provider != nil {
		s.Provider = used.Provider.Standing()
	}
	a.setOpen(s.Slot, &s)
	return s.For
}

// nameOf returns the part of an entity after its machine.
func nameOf(entity string) string {
	for i := range len(entity) {
		if entity[i] == '/' {
			return entity[i+1:]
		}
	}
	return entity
}
