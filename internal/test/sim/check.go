package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Promise is one property that must always hold.
type Promise struct {
	Name string `json:"name"`
	Says string `json:"says"`
	From string `json:"from"` // its source: a row of the specification or a heading of the design
}

// The promises. Their checkers below look at stored changes and at the effects of the engine. They
// use no transition table.
var (
	durableFirst = Promise{"durable-first", "no answer, notice, start or write happens before the append", "X2"}
	startedOnce  = Promise{
		"started-once", "a session is started only once, and an adopted session is not started again",
		"J1, C15; design: the shim",
	}
	oneSession       = Promise{"one-session", "an agent has one session at a time", "J1"}
	startedJournaled = Promise{
		"started-is-journaled",
		"every process that was started is in the journal, and every session that runs in the journal was started", "X2, J1",
	}
	onceIsOnce  = Promise{"once-is-once", "a one-shot run is exactly one session", "C8, C9, C15"}
	nothingLost = Promise{"command-kept", "an order that was confirmed is in the journal", "X2"}
	foreignKept = Promise{"foreign-write-kept", "another program's write is in the journal before it is overwritten", "X3"}
	pauseHolds  = Promise{
		"pause-holds", "a paused agent is never started, also not by recovery",
		"C6, C15; design: intent is safe",
	}
	holdHolds       = Promise{"hold-holds", "no session starts while the team is held or stops", "X8, C14"}
	replayIsLive    = Promise{"replay-is-live", "a replay of the journal gives the state that the engine has", "X1"}
	fileIsTrue      = Promise{"file-is-projection", "in the end every file agrees with the journal", "X3"}
	extraSurvives   = Promise{"unknown-fields-survive", "unknown fields stay in the file", "X7"}
	limitHolds      = Promise{"limits-hold", "no session starts over a limit, and a session that is too long is ended", "X9, C17"}
	noStrays        = Promise{"no-strays", "no unknown process is left", "design: no strays"}
	countedOnce     = Promise{"counted-once", "usage that an agent reports is counted once", "X9"}
	errorsReported  = Promise{"errors-are-reported", "every error is reported in a log or in an answer", "style: three kinds of wrong"}
	fenceHolds      = Promise{"fence-holds", "an engine that was overtaken changes nothing and stops", "design: the shim, the journal"}
	watchersInOrder = Promise{"watchers-in-order", "a watcher receives each change once and in order", "X2"}
	desiredObeyed   = Promise{
		"desired-state-is-obeyed", "in the end the newest desired state applies and the agent follows it",
		"C2 to C10",
	}
	ackAfterEnd = Promise{"ack-after-end", "an exit is acknowledged only when it is in the journal", "design: the shim"}
	foreignLoop = Promise{
		"foreign-loop",
		"for an agent that runs its own loop, Fairlead writes the desired state and never the current state", "seed 000; C22",
	}
	noPanic              = Promise{"no-panic", "no order of events makes the loop panic", "style: three kinds of wrong"}
	channelSessionWanted = Promise{
		"channel-session-is-wanted", "a session for channels starts only for a pending action",
		"J2; issue: channels",
	}
	oneSpeaker   = Promise{"one-speaker", "at most one agent has the turn in a channel", "seed 003; T4"}
	inputOnce    = Promise{"delivered-once", "an action is written to an agent's input once", "issue: channels; T4"}
	deliveredAll = Promise{"all-delivered", "a turn delivers every message that the agent has not received, and none twice", "T4"}
	saidOnce     = Promise{"said-once", "each message is in the journal once, in the order of its speaker", "X2; issue: channels"}
	messageKept  = Promise{"message-kept", "a person's message is delivered and answered, or still open", "M1 to M6"}
	fenceOfTurns = Promise{
		"fence-of-turns", "a message without the turn changes nothing, and no agent ends another agent's turn",
		"T7; issue: channels",
	}
	turnComes = Promise{
		"turn-comes", "a queued participant with something to answer gets a turn, and every turn ends",
		"T4, T9, T13",
	}
	aliveByReport = Promise{"alive-by-report", "a member is alive only by a report of the current lead session", "seed 001; P2 to P6"}
	memberKept    = Promise{
		"no-member-lost", "no member is deleted or replaced; an expired member stays expired; each has its own seat",
		"X5; P1, P7, P10, P11",
	}
	reportApplied = Promise{"report-is-applied", "a report of the lead about its crew is applied once", "P2 to P5; X2"}
	summonWanted  = Promise{
		"summon-is-wanted",
		"a summon, a wake and a lead session begin by a person's order, and a person can end the session", "P1, P3, P8; X8, X9",
	}
	summonEnds   = Promise{"summon-ends", "a summon or a wake ends, and a placeholder gets an identity or expires", "P7, P8"}
	payloadRight = Promise{
		"payload-is-right", "a member that wakes receives its soul and its own messages; no other member does",
		"P8; seed 001",
	}
	statusAsked      = Promise{"status-is-asked", "a lead that outlived an engine is asked once for the status of its crew", "P6"}
	questionAnswered = Promise{
		"question-is-answered",
		"a question is stored once and answered once; the answer reaches the agent, or the question ends with its session",
		"Q1 to Q6; issue: permission requests",
	}
	deniedCounted  = Promise{"denied-is-counted", "denied calls are counted and are in the session's result", "issue: permission requests"}
	rateLimitHolds = Promise{
		"rate-limit-holds", "an agent starts no session during a rate limit of its provider, and may start after it",
		"X9; R1, R2",
	}
	becomesIdle = Promise{"becomes-idle", "a session that is asked to end ends, and the engine becomes idle", "C14"}
)

// broken records that a promise does not hold; the first one is the result of the day. The caller
// holds the lock.
func (w checks) broken(p Promise, format string, args ...any) {
	if w.failure == nil {
		w.failure = &Failure{Promise: p, Why: fmt.Sprintf(format, args...)}
	}
	w.notef("BROKEN %s: "+format, append([]any{p.Name}, args...)...)
}

func (w checks) check(p Promise, holds bool, format string, args ...any) {
	if !holds {
		w.broken(p, format, args...)
	}
}

// checkStored checks a stored change before it is applied.
func (w checks) checkStored(l *engineRun, ch change.Change) {
	name := afterSlash(ch.Entity)
	if ch.Trigger != "daemon_started" {
		w.check(fenceHolds, l.epoch == w.truth.Epoch, "engine %d of epoch %d wrote %s after epoch %d had begun", l.n, l.epoch, ch.Entity,
			w.truth.Epoch)
	}
	a := w.truth.Agents[name]
	if name == outsider && ch.Trigger == "file_malformed" {
		w.check(foreignLoop, change.As[control.Body](ch.Body).Value.Reported == a.Control.Reported,
			"the file of %s became malformed, and its last report %q was lost", name, a.Control.Reported)
	}
	s := change.As[team.Session](ch.Body)
	if s == nil {
		return
	}
	if s.Phase == session.Open && ch.From == string(session.None) {
		w.check(oneSession, a.Session == nil, "%s was opened while another session was open", s.ID)
	}
	real := w.sessions[s.ID]
	w.check(startedJournaled, s.Phase != session.Running || real != nil, "%s runs in the journal, but was never started", s.ID)
	if s.Phase != session.None {
		return
	}
	switch {
	case s.Outcome == control.Withdrawn || s.Outcome == control.CannotStart:
		w.check(startedJournaled, real == nil, "%s ended without a start in the journal (%s), but was started", s.ID, s.Outcome)
	case s.Outcome == control.Lost:
		w.check(noStrays, real == nil || real.isOver(), "%s is lost in the journal, but runs", s.ID)
	case real == nil:
		w.broken(startedJournaled, "%s ended in the journal (%s), but was never started", s.ID, s.Outcome)
	default:
		w.check(noStrays, real.isOver(), "%s ended in the journal (%s), but runs", s.ID, s.Outcome)
		w.check(countedOnce, w.counted[s.ID] == real.reportedTokens, "%s reported %d tokens, but %d were counted", s.ID,
			real.reportedTokens, w.counted[s.ID])
	}
}

// checkStart runs when an engine asks the host to start a process. The stored changes must allow
// the start.
func (w checks) checkStart(l *engineRun, id string) {
	name := agentIn(id)
	a := w.truth.Agents[name]
	switch {
	case l.dead || w.truth.Epoch != l.epoch:
		return // the engine was overtaken; the host or its next append will refuse it
	case a == nil || a.Session == nil || a.Session.ID != id:
		w.broken(durableFirst, "%s is about to start, but the journal has no such open session", id)
		return
	}
	if found, terminated := l.found[id]; terminated && found != sessionhost.NeverStarted {
		w.broken(startedOnce, "%s is about to be started by engine %d, although its adoption found it %s", id, l.n, found)
	}
	w.check(rateLimitHolds, a.Limited == nil || !w.now().Before(a.Limited.Until), "%s is about to start during its rate limit %v", id,
		a.Limited)
	w.check(holdHolds, !w.truth.Hold.On, "%s is about to start while the team is held", id)
	w.check(holdHolds, !w.truth.Stopping, "%s is about to start while fairlead stops", id)
	if limit := w.conf.Agents[w.index(name)].Limits.CostPerDayUSD; limit > 0 && a.Usage.Day == w.now().Format(time.DateOnly) {
		w.check(limitHolds, a.Usage.CostUSD < limit, "%s is about to start, but %.2f of %.2f USD are used up", id, a.Usage.CostUSD, limit)
	}
	if a.Session.ServesChannels() {
		w.checkChannelStart(a)
		return
	}
	desired := a.Control.Desired.State
	wants := desired == control.WordContinuous || desired == control.WordRunOnce || desired == control.WordRunCleanup
	w.check(pauseHolds, wants, "%s is about to start, but the desired state is %q", id, desired)
	if s := l.read[name]; s != nil && s.foreign && s.note != "" {
		state, whole := s.state()
		taken := w.noted[s.note] || w.noted[fmt.Sprintf("write-%d", s.n)]
		w.check(pauseHolds, !whole || taken,
			"%s is about to start, but the desired state %q (%s), which engine %d has read in the file, is not in the journal", id, s.note,
			state.DesiredState, l.n)
	}
	w.checkFileRead(l, name, id)
}

// checkChannelStart checks that a session for channels starts with an action that is still pending.
func (w checks) checkChannelStart(a *team.Agent) {
	s := a.Session
	w.check(foreignLoop, a.Name != outsider, "%s starts a program for a foreign agent", s.ID)
	w.check(summonWanted, !s.IsLead() || w.crew.ordered, "%s is about to start, but no person ordered it", s.ID)
	w.check(channelSessionWanted, s.Delivery != nil && channelWorld(w).actionByKey(a.Name, s.Delivery.Key).known,
		"%s is about to start, but its action is no longer pending: %+v", s.ID, s.Delivery)
}

// checkFileRead checks that the engine has read the agent's file before it starts a session: a
// desired state that was in the file before the session was opened must be in the journal. If the
// simulation made the read fail, the desired state in the journal applies.
func (w checks) checkFileRead(l *engineRun, name, id string) {
	s := w.files[name].now
	if s == nil || !s.foreign || s.note == "" || !s.since.Before(w.openedAt[id]) {
		return
	}
	for _, fault := range l.faults {
		if strings.HasSuffix(fault, ": read "+name) {
			return
		}
	}
	state, whole := s.state()
	taken := w.noted[s.note] || w.noted[fmt.Sprintf("write-%d", s.n)]
	w.check(pauseHolds, !whole || taken,
		"%s is about to start, but the desired state %q (%s), which was in the file before it was opened, is not in the journal", id,
		s.note, state.DesiredState)
}

// checkStarted runs when a process starts.
func (w checks) checkStarted(id string) {
	name := agentIn(id)
	for other, s := range w.sessions {
		w.check(oneSession, agentIn(other) != name || s.isOver(), "%s starts while %s runs", id, other)
	}
	desired := w.desiredOf[id]
	a := w.truth.Agents[name]
	if a != nil && !a.Session.ServesChannels() && (a.Control.State == control.RunOnce || a.Control.State == control.RunCleanup) {
		key := fmt.Sprintf("%s desired state %d", name, desired)
		w.oneShots[key]++
		w.check(onceIsOnce, w.oneShots[key] == 1, "%s is session number %d of a single one-shot run (%s)", id, w.oneShots[key], key)
	}
}

// checkAck runs when an engine acknowledges an exit.
func (w checks) checkAck(id string) {
	a := w.truth.Agents[agentIn(id)]
	w.check(ackAfterEnd, a.Session == nil || a.Session.ID != id, "the exit of %s is acknowledged before its end is stored", id)
}

// checkWrite runs before a state file is written.
func (w checks) checkWrite(agent string, content []byte) {
	a := w.truth.Agents[agent]
	if agent == outsider { // the foreign loop owns the rest of the content, so it has no known checksum
		state, err := agentstate.Parse(content)
		is := a.Control.File(w.truth.Hold.On)
		w.check(durableFirst, err == nil && state.DesiredState == is.Desired && state.SetBy == is.By && state.Note == is.Note,
			"%s is about to be written into the file of %s, but %s (%q) is stored", content, agent, is.Desired, is.Note)
		return
	}
	w.check(durableFirst, a != nil && a.WroteSum(string(file.SumOf(content))),
		"the file of %s is about to be written, but its content is not stored: %s", agent, content)
}

// checkAnswered runs when an order of a person succeeds.
func (w checks) checkAnswered(order, note string, seq uint64) {
	w.check(durableFirst, seq <= w.head, "%s was confirmed with change %d, but the last stored change is %d", order, seq, w.head)
	w.check(nothingLost, note == "" || w.noted[note], "%s was confirmed and is not stored", order)
	w.acknowledged = append(w.acknowledged, note)
}

// checkCalm runs when one engine is ready and has had nothing to do for a moment.
func (w checks) checkCalm(l *engineRun, view view.TeamView) {
	w.check(replayIsLive, view.Head == w.head && view.Hold == w.truth.Hold.On,
		"engine %d is at change %d (held %v), the journal at %d (held %v)", l.n, view.Head, view.Hold, w.head, w.truth.Hold.On)
	for _, seen := range view.Agents {
		a := w.truth.Agents[seen.Name]
		is := a.Control.File(w.truth.Hold.On)
		if is.Current == "" {
			is.Current = "unknown" // the agent has not reported its state
		}
		id, told := "", ""
		if a.Session != nil {
			id = a.Session.ID
		}
		if seen.Session != nil {
			told = seen.Session.ID
		}
		w.check(replayIsLive, seen.DesiredState == is.Desired && seen.CurrentState == is.Current && seen.Note == is.Note && id == told,
			"engine %d shows %s as %s/%s %q %s, but the journal says %s/%s %q %s", l.n, seen.Name, seen.DesiredState, seen.CurrentState,
			seen.Note, told, is.Desired, is.Current, is.Note, id)
		w.checkFile(a, is)
		w.checkObeyed(a)
	}
	channelWorld(w).checkChannelsSettled()
	fileWorld(w).checkQuestions()
	for _, id := range w.running() {
		a := w.truth.Agents[agentIn(id)]
		w.check(noStrays, a.Session != nil && a.Session.ID == id, "%s runs and is not in the journal", id)
	}
	w.checkSaid(l)
}

// checkFile compares one state file with the state in the journal.
func (w checks) checkFile(a *team.Agent, is control.File) {
	f := w.files[a.Name]
	state, whole := f.now.state()
	if a.Name == outsider {
		fileWorld(w).checkForeignFile(a, is)
		return
	}
	w.check(fileIsTrue, whole && state.DesiredState == is.Desired && state.CurrentState == is.Current && state.Note == is.Note,
		"the file of %s says %s/%s %q, but the journal %s/%s %q", a.Name, state.DesiredState, state.CurrentState, state.Note, is.Desired,
		is.Current, is.Note)
	if f.extra != "" && whole {
		kept := extraOf(f.now)
		w.check(extraSurvives, kept == f.extra, "the file of %s has the unknown fields %s, want %s", a.Name, kept, f.extra)
	}
	if f.now != nil && f.now.foreign && f.now.note != "" && whole {
		w.mustBeStored[f.now.note] = storedLater{agent: a.Name, ident: fmt.Sprintf("write-%d", f.now.n)}
	}
}

// checkObeyed checks that an agent which should work and may work does so, and that no session runs
// longer than its limit.
func (w checks) checkObeyed(a *team.Agent) {
	word := a.Control.Desired.State
	wants := word == control.WordContinuous || word == control.WordRunOnce || word == control.WordRunCleanup
	if wants && a.Control.State == control.Resting && !a.Session.ServesChannels() && !w.truth.Hold.On && !w.truth.Stopping {
		w.broken(desiredObeyed, "%s has the desired state %s and may run, but is idle", a.Name, word)
	}
	if s := a.Session; s != nil {
		w.check(startedJournaled, w.sessions[s.ID] != nil, "%s is open (%s) and was never started, although nothing is left to do", s.ID,
			s.Phase)
		limit := w.conf.Agents[w.index(a.Name)].Limits.Session
		since := s.StartedAt
		if s.ServesChannels() { // in a session for channels the limit applies to each answer
			since = s.Delivery.Begun
		}
		late := limit > 0 && s.Phase == session.Running && w.now().After(since.Add(limit+calmFor)) &&
			(!s.ServesChannels() || s.AnswerPending())
		w.check(limitHolds, !late || s.Ending != "", "%s has run since %v, longer than its limit of %v, and was not asked to end", s.ID,
			s.StartedAt, limit)
	}
}

// checkSaid checks that the first fault of each kind is in the log, in an answer or in a notice.
func (w checks) checkSaid(l *engineRun) {
	said := l.log.String()
	if l.err != nil {
		said += l.err.Error()
	}
	first := map[string]bool{}
	for _, fault := range l.faults {
		_, what, _ := strings.Cut(fault, ": ")
		of := kind(what)
		// if the last read fails, the desired state in the journal applies; a failed append stops the engine
		if of == "read" || of == "append" {
			continue
		}
		if first[of+afterSpace(what)] {
			continue
		}
		first[of+afterSpace(what)] = true
		w.check(errorsReported, strings.Contains(said, what) || w.journalSays(fault), "the fault %q was not reported", fault)
	}
}

func afterSpace(s string) string {
	_, rest, _ := strings.Cut(s, " ")
	return rest
}

func (w checks) journalSays(fault string) bool {
	for _, a := range w.truth.Agents {
		if strings.Contains(a.Control.Desired.Note, fault) {
			return true
		}
		for _, s := range a.Past {
			if strings.Contains(s.Why, fault) {
				return true
			}
		}
	}
	return false
}

// checkForeignStored checks that the content which Fairlead replaced in files, and their current
// content, is in the journal.
func (w checks) checkForeignStored() {
	for note, o := range w.mustBeStored {
		if w.noted[note] || w.noted[o.ident] {
			continue
		}
		w.broken(foreignKept, "the desired state %q was in the file of %s and was overwritten by Fairlead, but it is not in the journal",
			note, o.agent)
	}
	for _, note := range w.acknowledged {
		w.check(nothingLost, note == "" || w.noted[note], "the order %q was confirmed and is not in the journal", note)
	}
}
