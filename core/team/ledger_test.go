package team

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/session"
)

// ledger is an independent record of the team. It uses none of the tables. It counts what was
// opened, started, requested and used, and checks what must not happen.
type ledger struct {
	open     map[string]string                  // agent → its open session
	obeys    map[string]uint64                  // session → number of the desired state that it was opened for
	begun    map[string]map[uint64]int          // agent → number of a desired state → processes started for it
	used     map[string]map[string]change.Usage // agent → day → reported usage, each report once
	reports  map[string]map[int64]bool          // session → offsets of its reports
	stamps   map[string]time.Time               // agent → last timestamp of its file
	files    map[string]control.File            // agent → content of its file under that timestamp
	ids      map[string]bool                    // all sessions so far
	sessions map[string][]control.Outcome       // agent → ends of its sessions, in order
}

func newLedger() *ledger {
	return &ledger{
		open: map[string]string{}, obeys: map[string]uint64{}, begun: map[string]map[uint64]int{},
		used: map[string]map[string]change.Usage{}, reports: map[string]map[int64]bool{}, stamps: map[string]time.Time{},
		files: map[string]control.File{}, ids: map[string]bool{}, sessions: map[string][]control.Outcome{},
	}
}

// judge checks a change before it is applied.
func (l *ledger) judge(w *world, ch change.Change, ev Event) {
	note(ch)
	what := ev.What
	kind, name, found := strings.Cut(ch.Entity, "/")
	if !found || ch.Row == "" || ch.Trigger == "" || (ch.From == "" || ch.To == "") && ch.Machine != "turn" && ch.Entity != crew.WordsEntity ||
		!ch.At.Equal(w.at) || ch.Actor != ev.Actor && kind != "dispatch" {
		w.t.Fatalf("an incomplete change: %+v", ch)
	}
	if ch.Body == nil {
		w.t.Fatalf("a change without a body: %+v", ch)
	}
	if kind == "run" || ch.Entity == poolEntity {
		l.judgeRun(w, ch)
		return
	}
	_, isTurn := ch.Body.(*channel.Set)
	if isTurn {
		w.words.judge(w, ch, ev)
	}
	if want := map[string]string{
		"turn": "turn", "channel": map[bool]string{true: "turn", false: "team"}[isTurn],
		"control": "control", "session": "session", "crew": "crew", "dispatch": "dispatch", "agent": "team", "team": "team",
		"question": "question", "host": "host",
	}[kind]; ch.Machine != want {
		w.t.Fatalf("a change of %s by the machine %s", ch.Entity, ch.Machine)
	}
	name, slot, _ := strings.Cut(name, "/")
	a := w.team.Agents[name]
	switch s := ch.Body.(type) {
	case *control.Body:
		l.desired(w, a, ch, what)
	case *Session:
		if a.Waits() && ch.Trigger == string(session.Opened) { // R1
			w.t.Fatalf("%s begins, but %s", s.ID, a.LimitedWhy())
		}
		l.session(w, a, ch, slot)
		// after a rate limit the work may be done later
		if s.Outcome == control.RateLimited || s.Outcome == control.Anew {
			if n, obeys := l.obeys[s.ID]; obeys && s.For == ForControl && l.begun[name] != nil { // a step follows no desired state
				l.begun[name][n]--
			}
			if s.servesDispatch() {
				delete(w.folders.begun, w.workID(s.For))
			}
		}
	}
}

// desired checks changes of the desired state. Without a request, only a row with a reason may
// change it, and a one-shot is not lost before a process began for it.
func (l *ledger) desired(w *world, a *Agent, ch change.Change, what any) {
	was, is := a.Control.Value, change.As[control.Body](ch.Body).Value
	if is.Desired.N == was.Desired.N {
		if is.Desired != was.Desired {
			w.t.Fatalf("%s: two desired states have the same number: %+v, %+v", ch.Trigger, was.Desired, is.Desired)
		}
		return
	}
	switch what.(type) {
	case control.Commanded, control.FileRead, control.FileGone, control.FileBroken:
		return // it was requested
	}
	answered := was.Desired.N == was.Acked
	switch ch.Row {
	case "C8", "C9", "C20", "C15":
		if !answered {
			w.t.Fatalf("%s: desired state %d of %s was overwritten at the end of a session for desired state %d", ch.Row, was.Desired.N,
				a.Name, was.Acked)
		}
		if ch.Row != "C20" && l.begun[a.Name][was.Acked] == 0 {
			w.t.Fatalf("%s: desired state %d of %s is spent although no process began for it", ch.Row, was.Acked, a.Name)
		}
	case "C16", "C17":
	case "F1":
		if was.State != control.Foreign {
			w.t.Fatalf("the desired state of a foreign loop is spent for %s, which is not foreign", a.Name)
		}
	default:
		w.t.Fatalf("%s: row %s overwrites desired state %d of %s", ch.Trigger, ch.Row, was.Desired.N, a.Name)
	}
	if is.Desired.By != control.ByFairlead || is.Desired.State != control.WordPause || is.Desired.Note == "" {
		w.t.Fatalf("%s: a desired state without an author: %+v", ch.Row, is.Desired)
	}
	if ch.Row == "C17" && !strings.HasPrefix(is.Desired.Note, "limit reached: ") {
		w.t.Fatalf("a limit without a name: %q", is.Desired.Note)
	}
}

// session records the sessions of an agent, one for each slot (J1). slot is empty for slot 0.
func (l *ledger) session(w *world, a *Agent, ch change.Change, slot string) {
	s, seat := change.As[Session](ch.Body), a.Name
	if slot != "" {
		seat += "/" + slot
	}
	if want := strings.TrimPrefix(fmt.Sprint("/", s.Slot), "/0"); strings.TrimPrefix(seat, a.Name) != want {
		w.t.Fatalf("%s is in slot %d, but its entity is %s", s.ID, s.Slot, ch.Entity)
	}
	switch {
	case ch.Trigger == "opened":
		l.sits(w, s)
		if l.open[seat] != "" || l.ids[s.ID] {
			w.t.Fatalf("%s is opened while %q is open", s.ID, l.open[seat])
		}
		l.instance(w, a, s)
		l.open[seat], l.ids[s.ID] = s.ID, true
		l.obeys[s.ID] = a.Control.Acked
	case l.open[seat] != s.ID:
		w.t.Fatalf("%s of %s, but open is %q", ch.Trigger, s.ID, l.open[seat])
	case ch.To == "none":
		l.open[seat] = ""
		l.sessions[a.Name] = append(l.sessions[a.Name], s.Outcome)
	}
	if ch.Trigger == "opened" {
		l.mayOpen(w, a.Name, s)
	}
}

// instance checks a session that is opened. The agent has at most as many sessions as instances.
// Above slot 0 there are only steps of runs with their own folder, and each run has one session.
func (l *ledger) instance(w *world, a *Agent, s *Session) {
	most, open := max(1, w.conf.Agents[a.Name].Instances), 0
	for seat, id := range l.open {
		if id != "" && (seat == a.Name || strings.HasPrefix(seat, a.Name+"/")) {
			open++
		}
	}
	if open >= most || s.Slot >= most {
		w.t.Fatalf("%s is opened in slot %d although %d of %d sessions are open", s.ID, s.Slot, open, most)
	}
	busy := map[string]bool{}
	for _, other := range a.Sessions() {
		busy[other.For.Run] = other.For.Kind == PurposeStep
	}
	for _, c := range a.Queue {
		if c.For == s.For {
			break
		}
		earlier := c.For.Kind == PurposeStep && w.team.Notes[c.For.Run].Settings.OwnFolder
		if earlier && !busy[c.For.Run] || !earlier && s.Slot == 0 {
			w.t.Fatalf("%s for %s is opened in slot %d, but %s was before it in the queue", s.ID, s.For, s.Slot, c.For)
		}
	}
	run, _, isStep := StepOf(s.For)
	own := isStep && w.team.Notes[run].Settings.OwnFolder
	if s.Slot > 0 && !own {
		w.t.Fatalf("%s for %s is opened in slot %d", s.ID, s.For, s.Slot)
	}
	for _, other := range a.Sessions() {
		if is, _, ok := StepOf(other.For); ok && own && is == run {
			w.t.Fatalf("%s is opened in the folder of %s", s.ID, other.ID)
		}
	}
}

// mayOpen checks X8, X9, C14 and the configuration. The change is part of a batch; the changes
// before it in the batch, such as a release, are applied already.
func (l *ledger) mayOpen(w *world, name string, s *Session) {
	_, configured := w.conf.Agents[name]
	switch {
	case w.team.Hold.On:
		w.t.Fatalf("%s is opened while the team is held", s.ID)
	case w.team.Stopping:
		w.t.Fatalf("%s is opened while Fairlead stops", s.ID)
	case !configured || w.team.Agents[name].Removed:
		w.t.Fatalf("%s is opened for an agent that is no longer configured", s.ID)
	}
	if over := l.over(w, name); over != "" && s.For == ForControl { // a step begins and fails at once with the limit's name
		w.t.Fatalf("%s is opened over %s", s.ID, over)
	}
}

// over returns the daily limit that is used up by the ledger's own sums.
func (l *ledger) over(w *world, name string) string {
	day := w.at.Format(time.DateOnly)
	own, limits := l.used[name][day], Limits{}
	if a := w.team.Agents[name]; a != nil {
		limits = a.Settings.Limits
	}
	if limits.TokensPerDay > 0 && own.InputTokens+own.OutputTokens >= limits.TokensPerDay {
		return "its tokens"
	}
	if limits.CostPerDayUSD > 0 && own.CostUSD >= limits.CostPerDayUSD {
		return "its cost"
	}
	total := 0.0
	for _, days := range l.used {
		total += days[day].CostUSD
	}
	if all := w.team.Limits.CostPerDayUSD; all > 0 && total >= all {
		return "the team's cost"
	}
	return ""
}

// started checks a process when it starts.
func (l *ledger) started(w *world, action Action) {
	if _, _, isStep := StepOf(action.Session.For); isStep {
		l.stepStarted(w, action)
		return
	}
	if action.Session.servesDispatch() {
		w.folders.started(w, action)
		return
	}
	a := w.team.Agents[action.Agent]
	c := a.Control
	over := l.over(w, a.Name)
	switch {
	case w.team.Hold.On, w.team.Stopping, a.Removed, over != "":
		w.t.Fatalf("%s is started: hold %v, stopping %v, removed %v, over %q", action.Session.ID, w.team.Hold.On, w.team.Stopping,
			a.Removed, over)
	case action.Session.Kind == control.Program:
	case action.Session.ServesChannels():
		if !slices.ContainsFunc(w.team.AgentChannelActions(a.Name, w.at),
			func(t channel.Action) bool { return t.Key == action.Session.Delivery.Key }) {
			w.t.Fatalf("%s is started with %s, which is no pending action", action.Session.ID, action.Session.Delivery.Key)
		}
	case c.Desired.State == control.WordPause || c.Desired.Unknown:
		w.t.Fatalf("%s is started, but the newest desired state is %q", action.Session.ID, c.Desired.State)
	case action.Session.Kind == control.Cleanup && c.Desired.State == control.WordRunOnce,
		action.Session.Kind == control.Work && c.Desired.State == control.WordRunCleanup:
		w.t.Fatalf("%s is a %s, but the desired state is %s", action.Session.ID, action.Session.Kind, c.Desired.State)
	default:
		if l.begun[a.Name] == nil {
			l.begun[a.Name] = map[uint64]int{}
		}
		n := l.obeys[action.Session.ID]
		l.begun[a.Name][n]++
		oneShot := c.State == control.RunOnce || c.State == control.RunCleanup
		if oneShot && l.begun[a.Name][n] > 1 {
			w.t.Fatalf("%s: one-shot %d of %s begins %d times", action.Session.ID, n, a.Name, l.begun[a.Name][n])
		}
	}
}

// report counts a report once, independent of the team.
func (l *ledger) report(name string, at time.Time, what SessionReported) {
	if l.reports[what.Session] == nil {
		l.reports[what.Session] = map[int64]bool{}
	}
	if l.reports[what.Session][what.Offset] {
		return
	}
	l.reports[what.Session][what.Offset] = true
	if l.used[name] == nil {
		l.used[name] = map[string]change.Usage{}
	}
	day := at.Format(time.DateOnly)
	sum := l.used[name][day]
	sum.InputTokens += what.Usage.InputTokens
	sum.OutputTokens += what.Usage.OutputTokens
	sum.CostUSD += what.Usage.CostUSD
	l.used[name][day] = sum
}

// check checks the invariants after every event.
func (l *ledger) check(w *world) {
	keys := map[string]bool{}
	var total change.Usage
	day := w.at.Format(time.DateOnly)
	for _, name := range w.team.Names() {
		a := w.team.Agents[name]
		l.checkSeat(w, a)
		l.checkFile(w, a)
		if len(a.OwnSums) > 16 || len(a.Past) > 20*4 {
			w.t.Fatalf("%s keeps %d identities and %d sessions", name, len(a.OwnSums), len(a.Past))
		}
		for action := range w.team.Actions(a) {
			if keys[action.Key] {
				w.t.Fatalf("two actions have the key %s", action.Key)
			}
			keys[action.Key] = true
		}
		if got, want := a.Usage, l.used[name][day]; a.Usage.Day == day &&
			(got.InputTokens != want.InputTokens || got.OutputTokens != want.OutputTokens || got.CostUSD != want.CostUSD) {
			w.t.Fatalf("%s reported usage of %+v today, but the team counts %+v", name, want, got)
		}
		total = total.Plus(l.used[name][day])
	}
	l.checkRuns(w)
	total = total.Plus(l.used[""][day]) // in the worker pool
	if w.team.Usage.Day == day && (w.team.Usage.CostUSD != total.CostUSD || w.team.Usage.InputTokens != total.InputTokens) {
		w.t.Fatalf("the team used %+v today, but counts %+v", total, w.team.Usage)
	}
}

func (l *ledger) checkSeat(w *world, a *Agent) {
	c := a.Control
	working := c.State == control.Continuous || c.State == control.RunOnce || c.State == control.RunCleanup
	program := c.State == control.Foreign && c.Running
	own := a.Session
	if own != nil && own.For != ForControl {
		own = nil
	}
	inLine := 0
	for _, c := range a.Queue {
		if c.For == ForControl {
			inLine++
		}
	}
	switch {
	case inLine > 1 || inLine == 1 && own != nil:
		w.t.Fatalf("%s is in the queue %d times, with the session %+v", a.Name, inLine, own)
	case (own != nil || inLine == 1) != (working || program):
		w.t.Fatalf("%s is %s (program running: %v), with the session %+v and %d requests in the queue", a.Name, c.State, c.Running, own,
			inLine)
	case own != nil && (own.Kind == control.Program) != program:
		w.t.Fatalf("%s is %s, but its session is a %s", a.Name, c.State, own.Kind)
	case !a.Waits() && !w.starting && !w.team.Hold.On && !w.team.Stopping && !w.team.Channels.Agents[channel.AgentID(a.Name)].Disabled &&
		l.couldBegin(w, a) != nil:
		w.t.Fatalf("a slot of %s is free (%+v, %+v), but the queue has %+v", a.Name, a.Session, a.Extra, *l.couldBegin(w, a))
	case len(a.Extra) != l.inExtra(a.Name):
		w.t.Fatalf("%s: %v are open, but its sessions are %+v", a.Name, l.open, a.Extra)
	case (a.Session == nil) != (l.open[a.Name] == "") || (a.Session != nil && a.Session.ID != l.open[a.Name]):
		w.t.Fatalf("%s: %q is open, but its session is %+v", a.Name, l.open[a.Name], a.Session)
	}
	for id, p := range w.procs {
		if p.alive && p.agent == a.Name && a.Open(id) == nil {
			w.t.Fatalf("the process of %s runs, but the session of %s is %+v", id, a.Name, a.Session)
		}
	}
}

// couldBegin returns a request that has no reason to wait, or nil.
func (l *ledger) couldBegin(w *world, a *Agent) *Request {
	most, open, busy := max(1, a.Settings.Instances), 0, map[string]bool{}
	for _, s := range append([]*Session{a.Session}, slices.Collect(maps.Values(a.Extra))...) {
		if s != nil {
			open++
			busy[s.For.Run] = s.For.Kind == PurposeStep
		}
	}
	for i, c := range a.Queue {
		own := c.For.Kind == PurposeStep && w.team.Notes[c.For.Run].Settings.OwnFolder
		if open < most && (!own && a.Session == nil || own && !busy[c.For.Run]) {
			return &a.Queue[i]
		}
	}
	return nil
}

// inExtra counts the open sessions of an agent above slot 0.
func (l *ledger) inExtra(agent string) (n int) {
	for seat, id := range l.open {
		if id != "" && strings.HasPrefix(seat, agent+"/") {
			n++
		}
	}
	return n
}

// checkFile checks J5, and that the file has the current state, with a timestamp that increases
// with each change of its content (C22, X3).
func (l *ledger) checkFile(w *world, a *Agent) {
	c, f := a.Control, w.team.File(a)
	if c.State == control.Foreign || c.State == control.Absent {
		delete(l.stamps, a.Name)
		return
	}
	current := map[control.State]string{
		control.Resting: "pause", control.Continuous: "continuous", control.BackingOff: "continuous",
		control.RunOnce: "run_once", control.RunCleanup: "run_cleanup",
	}[c.State]
	wanted := c.Desired.State
	if c.Desired.N == 0 {
		wanted = control.WordPause
	}
	by := c.Desired.By
	if by == control.ByFairlead {
		by = "agent" // the file of seed 000 knows people and the agent's side
	}
	if f.Current != current || f.Desired != wanted || f.Note != c.Desired.Note || f.By != by {
		w.t.Fatalf("%s is %s with the desired state %+v, but its file says %+v", a.Name, c.State, c.Desired, f)
	}
	if last, ok := l.stamps[a.Name]; ok && f != l.files[a.Name] && !f.Stamp.After(last) {
		w.t.Fatalf("%s: the file changed, with the timestamp %s after %s", a.Name, f.Stamp, last)
	}
	l.stamps[a.Name], l.files[a.Name] = f.Stamp, f
	if !f.Stamp.IsZero() && !a.WroteSum(identity(f)) {
		w.t.Fatalf("%s: its own projection would count as another program's: %s", a.Name, fmt.Sprint(f))
	}
}
