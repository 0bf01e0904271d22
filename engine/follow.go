package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
)

// follow listens to a session until it is over, and says how it ended. The session itself
// goes on when we stop listening: what was not journaled is heard again.
func (e *Engine) follow(ctx context.Context, m *member, s team.Session, proc Process, atStart bool) {
	kept := e.keepLog(m, s, proc)
	ear := &ear{e: e, m: m, s: s, proc: proc}
	if s.Talks() {
		if ear.talk = e.talksFrom(ctx, m, s, proc); ear.talk == nil {
			return
		}
		defer e.setVoice(s.ID, nil)
		if s.Leads() {
			ear.lead, ear.talk.leads = newLeadEar(), true
		}
	}
	if _, _, works := team.WorkOf(s.For); works {
		if ear.work = e.worksFrom(ctx, m, s, proc); ear.work != nil {
			ear.lead = earFor(delegateMarkers)
		}
	}
	if err := ear.listen(ctx); err != nil {
		return
	}
	select {
	case <-proc.Done():
	case <-ctx.Done():
		return
	}
	ending, err := proc.Ended(ctx)
	if err != nil {
		if ctx.Err() != nil || e.fenced(err) {
			return
		}
		ending = Ending{Lost: true, Why: err.Error()}
	}
	what := team.SessionEnded{Session: s.ID, Bytes: ending.Bytes, AtStart: atStart}
	what.Outcome, what.Why = judge(m, s, ending, ear.stop)
	switch {
	case what.Outcome != control.RateLimited:
	case notResumed(s, ear.stop): // it is done again, at once
		what.Until, what.Why = ending.Exit.At, notResumedWords(s.Launch)
	case ear.limit != nil:
		what.Until, what.Why = ear.limit.Until, cmp.Or(ear.limit.Why, what.Why)
	}
	if what.Outcome == control.Failed && ear.stop != nil && ear.stop.Reason == driver.ReasonNotSignedIn {
		what.ForGood = true
		what.Why = "its provider refuses it: " + driver.SignIn(m.conf.Driver, m.conf.Command) + ", then order it again; it says: " + what.Why
	}
	if !e.answersTold(ctx, m) {
		return
	}
	denied, err := e.deniedWords(ctx, m, s.ID)
	if err != nil {
		return
	}
	past := ear.past.words()
	if past != "" {
		e.log.Warn("an agent did not ask for what its rules deny; see what its program may do by itself", "agent", m.conf.Name, "session", s.ID, "what", past)
	}
	what.Why = joined(what.Why, denied, past)
	if !ear.work.over(ctx, &what) {
		return
	}
	if run, step, isStep := team.StepOf(s.For); isStep {
		if !e.stepOver(ctx, m, s, run, workflow.StepID(step), &what, kept) {
			return
		}
		if what.Report != nil { // its logs are what people see of a step that went well
			logs := &what.Report.Report.Logs
			for _, line := range []string{past, denied} {
				if line != "" {
					*logs = append((*logs)[:len(*logs):len(*logs)], line)
				}
			}
		}
	}
	if !e.sessionEnded(ctx, m, what, byShim) {
		return
	}
	if err := proc.Ack(ctx); err != nil && ctx.Err() == nil && !e.fenced(err) {
		e.log.Warn("a shim was not told that its exit is in the journal", "session", s.ID, "error", err)
	}
	e.setProc(s.ID, nil)
	_ = proc.Close() // nothing is left to lose on it
}

// judge asks the driver what an ending means.
func judge(m *member, s team.Session, ending Ending, stop *driver.Stop) (control.Outcome, string) {
	if ending.Lost {
		return control.Lost, ending.Why
	}
	verdict := m.driver.Outcome(sessionFor(m, s), ending.Exit, stop)
	why := verdict.Why
	if ending.Cut > 0 {
		why = fmt.Sprintf("%d bytes of its output were lost, since the disk took no more; %s", ending.Cut, why)
	}
	switch {
	case verdict.OK:
		return control.OK, why
	case stop != nil && !stop.OK && stop.Reason == driver.ReasonRateLimited, notResumed(s, stop):
		return control.RateLimited, why
	default:
		return control.Failed, why
	}
}

// notResumed says whether a session came to nothing since its conversation could not be gone on with. One
// that began anew cannot have: it would be started again for ever, and no failure be counted.
func notResumed(s team.Session, stop *driver.Stop) bool {
	return stop != nil && !stop.OK && (stop.Reason == driver.ReasonNotResumed || stop.Reason == driver.ReasonHeldElsewhere) && s.Launch != nil && s.Launch.Resume != ""
}

func notResumedWords(launch *team.LaunchRecord) string {
	id := "that it was to go on with"
	if launch != nil && launch.Resume != "" {
		id = launch.Resume
	}
	return "its program does not know the conversation " + id + " any more; a new one is begun"
}

// deniedWords says what a session asked for and was not allowed; empty: nothing. A result that came of
// it must not look like one that did not.
func (e *Engine) deniedWords(ctx context.Context, m *member, session string) (text string, err error) {
	err = e.View(ctx, func(t *team.Team) {
		if s := m.sitting(t); s != nil && s.ID == session {
			text = deniedOf(s)
		}
	})
	return text, err
}

// joined puts sentences beside each other that are there.
func joined(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), "; ")
}

const (
	oneDenied  = "1 call was denied: "
	someDenied = " calls were denied: "
)

// DeniedIn finds among a step's logs what its agent was denied, or did not ask for; empty: nothing. It
// stands there last, behind what the agent logged itself.
func DeniedIn(logs []string) string {
	var found []string
	for _, line := range logs[max(0, len(logs)-2):] {
		n, _, many := strings.Cut(line, someDenied)
		if _, err := strconv.Atoi(n); many && err == nil || strings.HasPrefix(line, oneDenied) || strings.HasPrefix(line, notAsked) {
			found = append(found, line)
		}
	}
	return joined(found...)
}

func deniedOf(s *team.Session) string {
	if s.Denied == 0 {
		return ""
	}
	text := oneDenied
	if s.Denied > 1 {
		text = strconv.Itoa(s.Denied) + someDenied
	}
	text += strings.Join(s.DeniedWhat, "; ")
	if more := s.Denied - len(s.DeniedWhat); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// letGo closes a conversation that has said its last word. A program that stays all the
// same is ended after its grace: some ignore the end of their input.
func (e *Engine) letGo(ctx context.Context, m *member, id string, proc Process) {
	e.closeInput(ctx, m, id, proc, m.conf.Grace)
}

func (e *Engine) closeInput(ctx context.Context, m *member, id string, proc Process, patience time.Duration) {
	// An agent that takes no input, or is gone, has nothing to close.
	_ = proc.CloseInput(ctx)
	grace := time.NewTimer(patience)
	defer grace.Stop()
	select {
	case <-proc.Done():
	case <-ctx.Done():
	case <-grace.C:
		e.end(ctx, m, id, m.conf.Grace)
	}
}
