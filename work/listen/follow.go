package listen

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// Heard is how a session ended, by its process, its driver and its output.
type Heard struct {
	Ended   team.SessionEnded
	Said    []string // the last lines of its output, if they explain a failure
	Refused []string // for people: what it did without asking, and what it was denied
}

// Hear listens to a session until it ends. The session continues if the listener stops, and ok is false then. A later listener reads
// the output that was not journaled.
func (e *Listener) Hear(ctx context.Context, m *sessions.Slot, s team.Session, proc sessionhost.Process, atStart bool,
) (heard Heard, ok bool) {
	hearing := &SessionListener{e: e, m: m, s: s, proc: proc}
	if s.ServesChannels() {
		if hearing.channel = e.channelListenerOf(ctx, m, s, proc); hearing.channel == nil {
			return heard, false
		}
		hearing.channel.leads = s.IsLead()
	}
	if err := e.hearsCrew(ctx, hearing); err != nil {
		return heard, false
	}
	if _, _, works := team.DispatchActionOf(s.For); works {
		if hearing.work = e.worksFrom(ctx, m, s, proc); hearing.work != nil {
			hearing.lead, hearing.crew = earFor(dispatchctl.DelegateMarkers), nil
		}
	}
	if err := hearing.listen(ctx); err != nil {
		return heard, false
	}
	select {
	case <-proc.Done():
	case <-ctx.Done():
		return heard, false
	}
	exit, err := proc.Ended(ctx)
	if err != nil {
		if ctx.Err() != nil || e.sessions.Fenced(err) {
			return heard, false
		}
		exit = session.Exit{Lost: true, Why: err.Error()}
	}
	what := team.SessionEnded{Session: s.ID, Exit: exit, AtStart: atStart}
	verdict := judge(m, s, exit, hearing.stop)
	what.Outcome, what.Why = verdict.outcome, verdict.Why
	if e.judgeAgain(ctx, hearing, &what) != nil {
		return heard, false
	}
	if verdict.Quote {
		heard.Said = lastLines(ctx, proc, exit.SpoolBytes)
	}
	switch {
	case what.Outcome == control.Anew:
		what.Why = sessions.NotResumedWords(s.Launch)
	case what.Outcome != control.RateLimited:
	case hearing.limit != nil:
		what.Until, what.Why = hearing.limit.Until, cmp.Or(hearing.limit.Why, what.Why)
	}
	if what.Outcome == control.Failed && hearing.stop != nil && hearing.stop.Reason == session.ReasonNotSignedIn {
		what.ForGood = true
		what.Why = "its provider refuses it: " + driver.SignIn(m.Conf.Driver, m.Conf.Command) + ", then order it again; it says: " +
			what.Why
	}
	if !e.questions.DeliverAnswers(ctx, m) {
		return heard, false
	}
	denied, err := e.deniedWords(ctx, m, s.ID)
	if err != nil {
		return heard, false
	}
	past := hearing.past.words()
	if past != "" {
		e.log.Warn("an agent did not ask for what its rules deny; see what its program may do by itself", "agent", m.Conf.Name, "session",
			s.ID, "what", past)
	}
	what.Why = sessions.Joined(what.Why, denied, past)
	if !hearing.work.over(ctx, &what) {
		return heard, false
	}
	heard.Ended = what
	heard.Refused = slices.DeleteFunc([]string{past, denied}, func(s string) bool { return s == "" })
	return heard, true
}

// hearsCrew makes the listener find the crew's markers, if this is a session of the lead.
func (e *Listener) hearsCrew(ctx context.Context, hearing *SessionListener) error {
	leads := hearing.s.IsLead()
	err := e.loop.View(ctx, func(t *team.Team) {
		now := hearing.m.Open(t)
		leads = leads || t.Crew.Lead.Agent == hearing.m.Conf.Name && now == t.Agents[hearing.m.Conf.Name].Session
	})
	if err != nil || !leads {
		return err
	}
	hearing.lead = earFor(leadMarkers)
	crew := &crewListener{agent: hearing.m.Conf.Name, session: hearing.s.ID}
	if hearing.channel != nil {
		hearing.channel.crew = crew
	} else {
		hearing.crew = crew
	}
	return nil
}

// verdict is the driver's evaluation of a session, and what it means for the agent.
type verdict struct {
	driver.Outcome
	outcome control.Outcome
}

// judge asks the driver what an exit means.
func judge(m *sessions.Slot, s team.Session, exit session.Exit, stop *driver.Stop) verdict {
	if exit.Lost {
		return verdict{driver.Outcome{Why: exit.Why}, control.Lost}
	}
	is := verdict{m.Driver.Outcome(sessions.SessionFor(m, s), exit, stop), control.Failed}
	if exit.CutBytes > 0 {
		is.Why = fmt.Sprintf("%d bytes of its output were lost, because the disk was full; %s", exit.CutBytes, is.Why)
	}
	switch {
	case is.OK:
		is.outcome = control.OK
	case sessions.NotResumed(s, stop):
		is.outcome = control.Anew
	case stop != nil && !stop.OK && stop.Reason == session.ReasonRateLimited:
		is.outcome = control.RateLimited
	}
	return is
}

// QuoteBytesMax is the most of one line of output that is quoted in a sentence.
const QuoteBytesMax = 300

const (
	quoteLines   = 5       // of the output that explain a failure
	quoteReadMax = 4 << 10 // bytes at the end of the output that are read for them
)

// lastLines returns the last lines that a program printed before it ended. They are untrusted text.
func lastLines(ctx context.Context, proc sessionhost.Process, size int64) (lines []string) {
	from := max(0, size-quoteReadMax)
	for line, err := range driver.ReadLines(ctx, proc, from) {
		if err != nil {
			break // what was read explains enough
		}
		text := strings.TrimSpace(driver.WithoutEscapes(line.Text()))
		if text == "" || from > 0 && line.Start == from { // the first line is not whole
			continue
		}
		lines = append(lines[max(0, len(lines)-quoteLines+1):], text)
	}
	return lines
}

// deniedWords lists the requests of a session that were denied. It is empty if there were none. A
// result produced despite denials must not look like one without.
func (e *Listener) deniedWords(ctx context.Context, m *sessions.Slot, session string) (text string, err error) {
	err = e.loop.View(ctx, func(t *team.Team) {
		if s := m.Open(t); s != nil && s.ID == session {
			text = sessions.DeniedOf(s)
		}
	})
	return text, err
}
