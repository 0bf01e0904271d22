package team

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

const folderPrefix = "dispatch/"

// Dispatch is a dispatch folder (seed 002), as far as its history was read. The folder is
// authoritative, because hooks decide on it even without a daemon. The team has what it needs to run
// its agents, and the journal has the history.
type Dispatch struct {
	Name  string                        `json:"name"`
	Path  string                        `json:"path"`
	Read  int64                         `json:"read,omitempty"` // bytes of its history that are in the journal
	Gone  bool                          `json:"gone,omitempty"` // it no longer exists
	State dispatch.Dispatch             `json:"session,omitzero"`
	Ends  map[string]DispatchSessionEnd `json:"ends,omitempty"` // by work: how its session ended, until the folder says the same
}

// DispatchSessionEnd is how a session for a dispatch folder ended.
type DispatchSessionEnd struct {
	Agent   string          `json:"agent"`
	Session string          `json:"session,omitempty"` // the session whose output is the result
	Outcome control.Outcome `json:"outcome"`
	Why     string          `json:"why,omitempty"`
}

// DispatchSeen is the content of a folder's history from an offset on. It is recorded without a
// check: its author decided under the folder's lock.
type DispatchSeen struct {
	Name, Path string
	From, To   int64
	Lines      []DispatchEntry
	Anew       bool // the folder was replaced by another one and is read from its beginning
}

// DispatchEntry is one change of a dispatch, with its offset and author.
type DispatchEntry struct {
	End    int64
	Change change.Change // its Body is a dispatch.Body
}

// DispatchGone is a folder that no longer exists, or has no history.
type DispatchGone struct{ Name string }

// DispatchSet is a change of a dispatch folder.
type DispatchSet struct {
	Path string              `json:"path,omitempty"`
	Read int64               `json:"read,omitempty"` // offset after its line
	Anew bool                `json:"anew,omitempty"`
	Gone bool                `json:"gone,omitempty"`
	At   time.Time           `json:"at,omitzero"` // the time in its own line
	Body *dispatch.Body      `json:"body,omitempty"`
	Work string              `json:"work,omitempty"` // with End: the work whose session ended
	End  *DispatchSessionEnd `json:"end,omitempty"`
}

// Actions for a dispatch folder.
const (
	TellFolder   ActionKind = "tell_folder"   // how a work ended
	AnswerFolder ActionKind = "answer_folder" // the answer for which no agent is needed
)

// wordsKept is how much of each text the journal stores with the history; dialogue.md has the
// complete text.
const wordsKept = 500

// due finds pending work.
func (f *Dispatch) due(key string) (dispatch.Action, bool) {
	if f == nil || f.Gone {
		return dispatch.Action{}, false
	}
	for _, w := range f.State.Due() {
		if w.Key() == key {
			return w, true
		}
	}
	return dispatch.Action{}, false
}

// servesDispatch reports whether a session works for a dispatch folder.
func (s *Session) servesDispatch() bool {
	if s == nil {
		return false
	}
	_, _, ok := DispatchActionOf(s.For)
	return ok
}

// DispatchActions returns the pending notifications for a folder.
func (t *Team) DispatchActions(name string, at time.Time) (actions []Action) {
	f := t.Dispatches[name]
	if f == nil || f.Gone || f.State.Host != dispatch.Fairlead {
		return nil
	}
	if _, ok := f.State.Answer(); ok {
		return []Action{{Key: fmt.Sprintf("answer/%s/%d", name, f.State.Line), Do: AnswerFolder, Folder: name}}
	}
	for _, key := range slices.Sorted(maps.Keys(f.Ends)) {
		end := f.Ends[key]
		actions = append(actions,
			Action{Key: "told/" + ForDispatch(name, key).String(), Do: TellFolder, Agent: end.Agent, Folder: name, Work: key, End: end})
	}
	for _, w := range f.State.Due() {
		key := w.Key()
		if _, ended := f.Ends[key]; ended || t.hasSessionFor(w.Agent, ForDispatch(name, key)) {
			continue
		}
		if why := t.cannotServe(w.Agent, at); why != "" {
			end := DispatchSessionEnd{Agent: w.Agent, Outcome: control.CannotStart, Why: why}
			actions = append(actions,
				Action{Key: "told/" + ForDispatch(name, key).String(), Do: TellFolder, Agent: w.Agent, Folder: name, Work: key, End: end})
		}
	}
	return actions
}

// hasSessionFor reports whether an agent has a session for this purpose.
func (t *Team) hasSessionFor(agent string, forWhom Purpose) bool {
	a := t.Agents[agent]
	return a != nil && a.Session != nil && a.Session.For == forWhom
}

// cannotServe returns why an agent will never do a work of a dispatch; empty: it can.
func (t *Team) cannotServe(agent string, at time.Time) string {
	a := t.Agents[agent]
	switch {
	case a == nil:
		return agent +
			" is described in .claude/agents but is not an agent of fairlead.yaml, so Fairlead cannot start it; add it under agents with a driver"
	case a.Removed:
		return agent + " is no longer configured"
	case a.Settings.Policy.Foreign:
		return agent + " runs its own loop, so Fairlead cannot start it"
	}
	if is := t.Channels.Agents[channel.AgentID(agent)]; is != nil && is.Disabled {
		return agent + " is disabled; enable it first"
	}
	if limit := t.OverLimit(a, at); limit != "" {
		return limitWords + limit
	}
	return ""
}

// dispatchOverWords is why a session is asked to end whose result is no longer needed.
const dispatchOverWords = "the conversation that it was for is over"

// nextOfDispatches returns the next event for an agent with work in dispatch folders; nil: none.
func (t *Team) nextOfDispatches(a *Agent, at time.Time) any {
	if s := a.Session; s.servesDispatch() && s.Ending == "" && s.Phase == session.Running {
		if !t.wanted(s) {
			return endSession{ending{reason: EndConversation}}
		}
		if limit := t.OverLimit(a, at); limit != "" {
			return endSession{ending{EndLimit, limit}}
		}
	}
	if len(t.Dispatches) == 0 || t.cannotServe(a.Name, at) != "" {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(t.Dispatches)) {
		f := t.Dispatches[name]
		if f.Gone {
			continue
		}
		for _, w := range f.State.Due() {
			key := w.Key()
			_, ended := f.Ends[key]
			if w.Agent == a.Name && !ended && !isIn(a.Queue, ForDispatch(name, key)) && !t.hasSessionFor(a.Name, ForDispatch(name, key)) {
				return openDispatchSession{name, key}
			}
		}
	}
	return nil
}

// wanted reports whether the folder still waits for the result of a session.
func (t *Team) wanted(s *Session) bool {
	folder, w, _ := DispatchActionOf(s.For)
	f := t.Dispatches[folder]
	return f != nil && !f.Gone && f.State.Host == dispatch.Fairlead && f.State.Wanted(w) &&
		(s.Folder.IsZero() || s.Folder.Equal(f.State.Began))
}

// openDispatchSession opens a session, or queues a request (J1).
func (d *decision) openDispatchSession(a *Agent, due openDispatchSession) error {
	forWhom := ForDispatch(due.folder, due.key)
	if d.team.slotFree(a) && len(a.Queue) == 0 && !d.team.held() && !d.team.Stopping {
		return d.openSession(a, Session{Kind: control.Work, For: forWhom})
	}
	return d.request(a, Request{For: forWhom, Kind: control.Work, At: d.ev.At})
}

// mayServeDispatch reports whether a request for a dispatch folder is still valid, or why not. While
// the team is held, the request stays in the queue (X8).
func (t *Team) mayServeDispatch(a *Agent, forWhom Purpose, at time.Time) (ok bool, why string) {
	if why := t.cannotServe(a.Name, at); why != "" {
		return false, why
	}
	folder, w, _ := DispatchActionOf(forWhom)
	if w, due := t.Dispatches[folder].due(w.Key()); !due || w.Agent != a.Name { // the folder may have been replaced by another one
		return false, "the conversation goes on without it"
	}
	if _, ended := t.Dispatches[folder].Ends[w.Key()]; ended {
		return false, "it has been done"
	}
	return true, ""
}

// dispatchSessionEnded keeps how a session ended until the folder knows it. One that never began may
// still begin.
func (d *decision) dispatchSessionEnded(a *Agent, s *Session) error {
	folder, w, _ := DispatchActionOf(s.For)
	f := d.team.Dispatches[folder]
	if s.Outcome == control.Withdrawn || s.Outcome == control.RateLimited || s.Outcome == control.Anew || !d.team.wanted(s) {
		return nil
	}
	end := DispatchSessionEnd{Agent: a.Name, Session: s.ID, Outcome: s.Outcome, Why: s.Why}
	d.dispatchChange(folder, "J1", f.State.State(), f.State.State(), "session_ended", DispatchSet{Work: w.Key(), End: &end})
	return nil
}

// dispatchSeen records what was read of a folder's history.
func (d *decision) dispatchSeen(what DispatchSeen) error {
	f := d.team.Dispatches[what.Name]
	switch {
	case what.Name == "" || strings.ContainsRune(what.Name, '/'):
		return &table.Refusal{
			Subject: what.Name, Event: "folder_seen", State: "none", Row: "D1",
			Reason: "a session folder has a name without /",
		}
	case f == nil && what.From != 0, f != nil && !what.Anew && f.Read != what.From:
		return nil // it was read before, or must be read from another offset
	}
	if f != nil && f.Gone && len(what.Lines) == 0 {
		d.dispatchChange(what.Name, "X5", f.State.State(), f.State.State(), "folder_back", DispatchSet{Path: what.Path, Read: f.Read})
		return nil
	}
	actor := d.ev.Actor
	for i := range what.Lines {
		line := &what.Lines[i]
		set := DispatchSet{Read: line.End, At: line.Change.At, Body: journaled(change.As[dispatch.Body](line.Change.Body))}
		if i == 0 {
			set.Anew = what.Anew
		}
		if f == nil && i == 0 || set.Anew {
			set.Path = what.Path
		}
		d.ev.Actor = line.Change.Actor
		d.dispatchChange(what.Name, line.Change.Row, cmp.Or(line.Change.From, string(dispatch.None)), line.Change.To,
			line.Change.Trigger, set)
	}
	d.ev.Actor = actor
	return nil
}

// journaled returns a body with shortened texts, so that the journal does not grow with the
// conversations; dialogue.md has the complete texts.
func journaled(of *dispatch.Body) *dispatch.Body {
	body := *of
	body.Trigger = ""
	body.Entries = slices.Clone(body.Entries)
	for i := range body.Entries {
		e := &body.Entries[i]
		e.Text, e.More = clip.Text(e.Text, wordsKept), clip.Text(e.More, wordsKept)
	}
	if body.Setup != nil {
		setup := *body.Setup
		setup.Agents = slices.Clone(setup.Agents)
		for i := range setup.Agents {
			setup.Agents[i].Text = clip.Text(setup.Agents[i].Text, wordsKept)
		}
		body.Setup = &setup
	}
	if body.Reply != nil {
		reply := *body.Reply
		reply.Text = clip.Text(reply.Text, wordsKept)
		body.Reply = &reply
	}
	return &body
}

func (d *decision) dispatchGone(name string) error {
	f := d.team.Dispatches[name]
	if f == nil || f.Gone {
		return nil
	}
	d.dispatchChange(name, "X5", f.State.State(), f.State.State(), "folder_gone", DispatchSet{Gone: true, Read: f.Read})
	return nil
}

// dispatchChange adds a change of a folder and applies it for later decisions of the same event.
func (d *decision) dispatchChange(name, row, from, to, trigger string, set DispatchSet) {
	d.add(folderPrefix+name, "dispatch", row, from, to, trigger, &set)
	next := *d.team
	next.Dispatches = maps.Clone(next.Dispatches)
	next.applyDispatch(name, &set)
	d.team = &next
}

// applyDispatch performs a change of a folder on a copy, because callers may hold the old one.
func (t *Team) applyDispatch(name string, set *DispatchSet) {
	f := Dispatch{Name: name}
	if is := t.Dispatches[name]; is != nil && !set.Anew {
		f = *is
	}
	f.Ends = maps.Clone(f.Ends)
	f.Path = cmp.Or(set.Path, f.Path)
	switch {
	case set.End != nil:
		put(&f.Ends, set.Work, *set.End)
	case set.Gone:
		f.Gone, f.Ends = true, nil
	default:
		f.Gone = false
		f.Read = set.Read
		if set.Body != nil {
			f.State.Apply(change.Change{Body: set.Body})
		}
		for key := range f.Ends {
			if w, ok := dispatch.ActionOf(key); !ok || !f.State.Wanted(w) {
				drop(&f.Ends, key)
			}
		}
	}
	if t.Dispatches == nil {
		t.Dispatches = map[string]*Dispatch{}
	}
	t.Dispatches[name] = &f
}

// DispatchWaits describes what prevents a work of a dispatch from starting; empty: nothing, or it
// has started.
func (t *Team) DispatchWaits(folder, key string, at time.Time) string {
	w, due := t.Dispatches[folder].due(key)
	if !due {
		return ""
	}
	if why := t.cannotServe(w.Agent, at); why != "" {
		return why
	}
	a := t.Agents[w.Agent]
	if ok, why := t.mayRunSession(a, at); !ok {
		return why
	}
	return behind(a.Queue, ForDispatch(folder, key), a.taken())
}
