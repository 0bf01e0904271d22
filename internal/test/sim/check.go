package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// Promise is one thing that must hold, whatever happens.
type Promise struct {
	Name string `json:"name"`
	Says string `json:"says"`
	From string `json:"from"` // where it is written: a row of the specification, or a heading of the design
}

// The promises, each with its checker below. They look at what was stored and at what is
// done, and at no table.
var (
	durableFirst    = Promise{"durable-first", "no answer, notice, start or write precedes the append", "X2"}
	startedOnce     = Promise{"started-once", "a session is started only once, and an adopted session is not started again", "J1, C15; design: the shim"}
	oneSession      = Promise{"one-session", "an agent has one session at a time", "J1"}
	startedKnown    = Promise{"started-is-journaled", "what was started is in the journal, and what is in the journal as begun was started", "X2, J1"}
	onceIsOnce      = Promise{"once-is-once", "a one-shot is one session", "C8, C9, C15"}
	nothingLost     = Promise{"command-kept", "an order that was answered is in the journal", "X2"}
	foreignKept     = Promise{"foreign-write-kept", "another program's write is in the journal before it is overwritten", "X3"}
	pauseHolds      = Promise{"pause-holds", "a paused agent is never started, not by recovery either", "C6, C15; design: intent is safe"}
	holdHolds       = Promise{"hold-holds", "nothing starts while the team is held or stops", "X8, C14"}
	replayIsLive    = Promise{"replay-is-live", "the journal tells the team that the engine has", "X1"}
	fileIsTrue      = Promise{"file-is-projection", "in the end every file says what the journal says", "X3"}
	extraSurvives   = Promise{"unknown-fields-survive", "unknown fields stay in the file", "X7"}
	limitHolds      = Promise{"limits-hold", "nothing starts over a limit, and a session that is too long is ended", "X9, C17"}
	noStrays        = Promise{"no-strays", "no unknown process is left", "design: no strays"}
	countedOnce     = Promise{"counted-once", "what an agent says it used is counted once", "X9"}
	errorsSaid      = Promise{"errors-are-said", "what goes wrong is said, in a log or in an answer", "style: three kinds of wrong"}
	fenceHolds      = Promise{"fence-holds", "an engine that was overtaken changes nothing more, and stops", "design: the shim, the journal"}
	watchersInOrder = Promise{"watchers-in-order", "who watches is told each change once, and in order", "X2"}
	wishObeyed      = Promise{"wish-is-obeyed", "in the end the newest desired state holds, and is obeyed", "C2 to C10"}
	ackAfterEnd     = Promise{"ack-after-end", "an exit is given up only when it is in the journal", "design: the shim"}
	foreignLoop     = Promise{"foreign-loop", "of an agent that runs its own loop we write what is wanted, and never what is", "seed 000; C22"}
	noPanic         = Promise{"no-panic", "no order of events brings the loop down", "style: three kinds of wrong"}
	talkWanted      = Promise{"talk-is-wanted", "a session for channels is started when there is something to tell", "J2; issue: channels"}
	oneSpeaker      = Promise{"one-speaker", "in a channel one agent at most has the turn", "seed 003; T4"}
	toldOnce        = Promise{"told-once", "what an agent is to be told is put into its input once", "issue: channels; T4"}
	givenAll        = Promise{"given-all", "with its turn an agent is given all that it has not, and nothing twice", "T4"}
	saidOnce        = Promise{"said-once", "what is said in a channel is in the journal once, in its order", "X2; issue: channels"}
	messageKept     = Promise{"message-kept", "what a person said is delivered and answered, or still open", "M1 to M6"}
	fenceOfTurns    = Promise{"fence-of-turns", "a message without the turn changes nothing, and no agent ends another agent's turn", "T7; issue: channels"}
	turnComes       = Promise{"turn-comes", "a queued participant with something to answer gets a turn, and every turn ends", "T4, T9, T13"}
	leadAlone       = Promise{"lead-alone", "a member is alive only by a report of the current lead session", "seed 001; P2 to P6"}
	nobodyLost      = Promise{"nobody-lost", "no member is deleted or replaced; an expired one stays expired; each has its own seat", "X5; P1, P7, P10, P11"}
	reportTaken     = Promise{"report-is-taken", "what the lead says of its team is taken in once", "P2 to P5; X2"}
	ceremonyWanted  = Promise{"summon-is-wanted", "a summon, a wake and a lead session begin when a person says so, and end when he does", "P1, P3, P8; X8, X9"}
	ceremonyEnds    = Promise{"summon-ends", "a summon or a wake comes to an end, and so does a placeholder", "P7, P8"}
	payloadRight    = Promise{"payload-is-right", "a member that is not awake receives its soul and its own messages; no other member does", "P8; seed 001"}
	statusAsked     = Promise{"status-is-asked", "a lead that outlived an engine is asked who is awake, once", "P6"}
	askedIsTold     = Promise{"asked-is-told", "a question is stored once, answered once, and its answer is told to who asked; or it is taken back with him", "Q1 to Q6; issue: permission requests"}
	deniedCounted   = Promise{"denied-is-counted", "what a session was denied is counted, and is in its result", "issue: permission requests"}
	providerWaits   = Promise{"provider-waits", "nothing of an agent starts while its provider takes nothing, and something may when it does", "X9; R1, R2"}
	comesToRest     = Promise{"comes-to-rest", "a session that is asked to end ends, and leaves no request waiting", "C14"}
)

// broken notes a promise that does not hold; the caller holds the lock. The first counts.
func (w *world) broken(p Promise, format string, args ...any) {
	if w.failure == nil {
		w.failure = &Failure{Promise: p, Why: fmt.Sprintf(format, args...)}
	}
	w.came("BROKEN %s: "+format, append([]any{p.Name}, args...)...)
}

func (w *world) check(p Promise, holds bool, format string, args ...any) {
	if !holds {
		w.broken(p, format, args...)
	}
}

// checkStored looks at a change on its way into our team.
func (w *world) checkStored(l *life, ch team.Change) {
	name := afterSlash(ch.Entity)
	if ch.Trigger != "daemon_started" {
		w.check(fenceHolds, l.epoch == w.truth.Epoch, "engine %d of epoch %d wrote %s, and epoch %d has begun", l.n, l.epoch, ch.Entity, w.truth.Epoch)
	}
	a := w.truth.Agents[name]
	if name == outsider && ch.Trigger == "file_malformed" {
		w.check(foreignLoop, ch.Body.Control.Value.Reported == a.Control.Reported, "the file of %s is spoiled, and what it said last, %q, is forgotten", name, a.Control.Reported)
	}
	s := ch.Body.Session
	if s == nil {
		return
	}
	if s.Phase == session.Open && ch.From == string(session.None) {
		w.check(oneSession, a.Session == nil, "%s was opened beside another session", s.ID)
	}
	real := w.sessions[s.ID]
	w.check(startedKnown, s.Phase != session.Running || real != nil, "%s is said to run, and was never started", s.ID)
	if s.Phase != session.None {
		return
	}
	switch {
	case s.Outcome == control.Withdrawn || s.Outcome == control.CannotStart:
		w.check(startedKnown, real == nil, "%s is said to have come to nothing (%s), and was started", s.ID, s.Outcome)
	case s.Outcome == control.Lost:
		w.check(noStrays, real == nil || real.isOver(), "%s is said to be lost, and runs", s.ID)
	case real == nil:
		w.broken(startedKnown, "%s is said to have ended (%s), and was never started", s.ID, s.Outcome)
	default:
		w.check(noStrays, real.isOver(), "%s is said to have ended (%s), and runs", s.ID, s.Outcome)
		w.check(countedOnce, w.counted[s.ID] == real.spoken, "%s said that it used %d tokens, and %d were counted", s.ID, real.spoken, w.counted[s.ID])
	}
}

// checkStart is asked when an engine asks for a process: what it knows by now must allow it.
func (w *world) checkStart(l *life, id string) {
	name := agentIn(id)
	a := w.truth.Agents[name]
	switch {
	case l.dead || w.truth.Epoch != l.epoch:
		return // it is overtaken, and no session could be told yet; the host refuses it, or its next append is
	case a == nil || a.Session == nil || a.Session.ID != id:
		w.broken(durableFirst, "%s is to be started, and no open session of that name is stored", id)
		return
	}
	if found, asked := l.found[id]; asked && found != seam.NeverStarted {
		w.broken(startedOnce, "%s is to be started by engine %d, which was told that it is %s", id, l.n, found)
	}
	w.check(providerWaits, a.Limited == nil || !w.now().Before(a.Limited.Until), "%s is to be started, and its provider takes nothing until %v", id, a.Limited)
	w.check(holdHolds, !w.truth.Hold.On, "%s is to be started, and the team is held", id)
	w.check(holdHolds, !w.truth.Stopping, "%s is to be started, and fairlead stops", id)
	if limit := w.conf.Agents[w.index(name)].Limits.CostPerDayUSD; limit > 0 && a.Usage.Day == w.now().Format(time.DateOnly) {
		w.check(limitHolds, a.Usage.CostUSD < limit, "%s is to be started, and %.2f of %.2f is used up", id, a.Usage.CostUSD, limit)
	}
	if a.Session.ServesChannels() {
		w.checkTalk(a)
		return
	}
	wish := a.Control.Desired.State
	wants := wish == control.WordContinuous || wish == control.WordRunOnce || wish == control.WordRunCleanup
	w.check(pauseHolds, wants, "%s is to be started, and what is wanted is %q", id, wish)
	if s := l.read[name]; s != nil && s.foreign && s.note != "" {
		state, whole := s.state()
		taken := w.noted[s.note] || w.noted[fmt.Sprintf("write-%d", s.n)]
		w.check(pauseHolds, !whole || taken, "%s is to be started, but the desired state %q (%s), which engine %d has read in the file, is not in the journal", id, s.note, state.DesiredState, l.n)
	}
	w.checkLooked(l, name, id)
}

// checkTalk: a session for channels is started with something that is still to be told.
func (w *world) checkTalk(a *team.Agent) {
	s := a.Session
	w.check(foreignLoop, a.Name != outsider, "%s is started for an agent that comes by itself", s.ID)
	w.check(ceremonyWanted, !s.IsLead() || w.crew.begun, "%s is to be started, but no order requires it", s.ID)
	w.check(talkWanted, s.Delivery != nil && w.named(a.Name, s.Delivery.Key).known, "%s is to be started, and what it is to be told is over: %+v", s.ID, s.Delivery)
}

// checkLooked: a desired state that was in the file before the session was opened has been read
// before its process is requested, whether or not a change was reported. If the read was made to
// fail, the desired state in the journal applies.
func (w *world) checkLooked(l *life, name, id string) {
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
	w.check(pauseHolds, !whole || taken, "%s is to be started, but the desired state %q (%s), which was in the file before it was opened, is not in the journal", id, s.note, state.DesiredState)
}

// checkStarted is asked when a process begins.
func (w *world) checkStarted(id string) {
	name := agentIn(id)
	for other, s := range w.sessions {
		w.check(oneSession, agentIn(other) != name || s.isOver(), "%s is started beside %s, which runs", id, other)
	}
	wish := w.wishOf[id]
	a := w.truth.Agents[name]
	if a != nil && !a.Session.ServesChannels() && (a.Control.State == control.RunOnce || a.Control.State == control.RunCleanup) {
		key := fmt.Sprintf("%s desired state %d", name, wish)
		w.oneShots[key]++
		w.check(onceIsOnce, w.oneShots[key] == 1, "%s is session number %d of one one-shot (%s)", id, w.oneShots[key], key)
	}
}

// checkAck is asked when an exit is to be given up.
func (w *world) checkAck(id string) {
	a := w.truth.Agents[agentIn(id)]
	w.check(ackAfterEnd, a.Session == nil || a.Session.ID != id, "the exit of %s is acknowledged, and its end is not stored", id)
}

// checkWrite is asked when a file is to be written.
func (w *world) checkWrite(agent string, content []byte) {
	a := w.truth.Agents[agent]
	if agent == outsider { // the rest of the content is its own: there is no sum of it
		state, err := agentfile.Parse(content)
		is := a.Control.File(w.truth.Hold.On)
		w.check(durableFirst, err == nil && state.DesiredState == is.Desired && state.SetBy == is.By && state.Note == is.Note,
			"%s is to be put into the file of %s, and %s (%q) is what is stored", content, agent, is.Desired, is.Note)
		return
	}
	w.check(durableFirst, a != nil && a.WroteSum(string(file.SumOf(content))), "the file of %s is to be written, and what it is to say is not stored: %s", agent, content)
}

// checkAnswered is asked when an order is answered with yes.
func (w *world) checkAnswered(order, note string, seq uint64) {
	w.check(durableFirst, seq <= w.head, "%s was answered with change %d, and %d is the last that is stored", order, seq, w.head)
	w.check(nothingLost, note == "" || w.noted[note], "%s was answered, and is not stored", order)
	w.answered = append(w.answered, note)
}

// checkCalm is asked when one engine is ready, all that it wanted to do is done, and a
// moment has passed.
func (w *world) checkCalm(l *life, view view.TeamView) {
	w.check(replayIsLive, view.Head == w.head && view.Hold == w.truth.Hold.On, "engine %d is at change %d (held %v), the journal at %d (held %v)", l.n, view.Head, view.Hold, w.head, w.truth.Hold.On)
	for _, seen := range view.Agents {
		a := w.truth.Agents[seen.Name]
		is := a.Control.File(w.truth.Hold.On)
		if is.Current == "" {
			is.Current = "unknown" // no report yet
		}
		id, told := "", ""
		if a.Session != nil {
			id = a.Session.ID
		}
		if seen.Session != nil {
			told = seen.Session.ID
		}
		w.check(replayIsLive, seen.DesiredState == is.Desired && seen.CurrentState == is.Current && seen.Note == is.Note && id == told,
			"engine %d shows %s as %s/%s %q %s, the journal tells %s/%s %q %s", l.n, seen.Name, seen.DesiredState, seen.CurrentState, seen.Note, told, is.Desired, is.Current, is.Note, id)
		w.checkFile(a, is)
		w.checkIdle(a)
	}
	w.checkTalks()
	w.checkQuestions()
	for _, id := range w.running() {
		a := w.truth.Agents[agentIn(id)]
		w.check(noStrays, a.Session != nil && a.Session.ID == id, "%s runs, and the journal does not know it", id)
	}
	w.checkSaid(l)
}

// checkFile compares one file with what it is to say.
func (w *world) checkFile(a *team.Agent, is control.File) {
	f := w.files[a.Name]
	state, whole := f.now.state()
	if a.Name == outsider {
		w.checkForeignFile(a, is)
		return
	}
	w.check(fileIsTrue, whole && state.DesiredState == is.Desired && state.CurrentState == is.Current && state.Note == is.Note,
		"the file of %s says %s/%s %q, the journal %s/%s %q", a.Name, state.DesiredState, state.CurrentState, state.Note, is.Desired, is.Current, is.Note)
	if f.extra != "" && whole {
		kept := extraOf(f.now)
		w.check(extraSurvives, kept == f.extra, "the file of %s holds %s in fields of others, who wrote %s", a.Name, kept, f.extra)
	}
	if f.now != nil && f.now.foreign && f.now.note != "" && whole {
		w.owed[f.now.note] = owed{agent: a.Name, ident: fmt.Sprintf("write-%d", f.now.n)}
	}
}

// checkIdle: who is wanted to work and may, works; and not for longer than it may.
func (w *world) checkIdle(a *team.Agent) {
	word := a.Control.Desired.State
	wants := word == control.WordContinuous || word == control.WordRunOnce || word == control.WordRunCleanup
	if wants && a.Control.State == control.Resting && !a.Session.ServesChannels() && !w.truth.Hold.On && !w.truth.Stopping {
		w.broken(wishObeyed, "%s is wanted to be %s, nothing speaks against it, and it rests", a.Name, word)
	}
	if s := a.Session; s != nil {
		w.check(startedKnown, w.sessions[s.ID] != nil, "%s is open (%s), everything was done, and it was never started", s.ID, s.Phase)
		limit := w.conf.Agents[w.index(a.Name)].Limits.Session
		since := s.StartedAt
		if s.ServesChannels() { // each answer for itself
			since = s.Delivery.Begun
		}
		late := limit > 0 && s.Phase == session.Running && w.now().After(since.Add(limit+calmFor)) && (!s.ServesChannels() || s.AnswerPending())
		w.check(limitHolds, !late || s.Ending != "", "%s runs since %v, may run for %v, and was not told to end", s.ID, s.StartedAt, limit)
	}
}

// checkSaid: the first fault of each kind is in the log, or in an answer or notice.
func (w *world) checkSaid(l *life) {
	said := l.log.String()
	if l.err != nil {
		said += l.err.Error()
	}
	first := map[string]bool{}
	for _, fault := range l.faults {
		_, what, _ := strings.Cut(fault, ": ")
		of := kind(what)
		if of == "read" || of == "append" { // a last read that fails keeps the desired state; a failed append stops the engine
			continue
		}
		if first[of+agentOrAll(what)] {
			continue
		}
		first[of+agentOrAll(what)] = true
		w.check(errorsSaid, strings.Contains(said, what) || w.journalSays(fault), "%q was said nowhere", fault)
	}
}

// agentOrAll is whom a fault is about.
func agentOrAll(what string) string { return afterSpace(what) }

func afterSpace(s string) string {
	_, rest, _ := strings.Cut(s, " ")
	return rest
}

func (w *world) journalSays(fault string) bool {
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

// checkOwed: content that Fairlead removed from the files, and the current content, is in the
// journal.
func (w *world) checkOwed() {
	for note, o := range w.owed {
		if w.noted[note] || w.noted[o.ident] {
			continue
		}
		w.broken(foreignKept, "the desired state %q was in the file of %s and was overwritten by Fairlead, but it is not in the journal", note, o.agent)
	}
	for _, note := range w.answered {
		w.check(nothingLost, note == "" || w.noted[note], "the order %q was answered, and is not in the journal", note)
	}
}
