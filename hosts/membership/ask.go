package membership

import (
	"context"
	"fmt"
	"strconv"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// The answers of a person who is asked what to do about a step whose host was lost.
const (
	beginElsewhere = "elsewhere"
	waitForIt      = "wait"
)

// lostBefore is the session before this one in its step that was lost with a host, under on_lost: ask; false: there is none, or its
// host was asked what it left, or is given up.
func lostBefore(t *team.Team, s *team.Session) (m host.Missing, lost bool) {
	for _, name := range t.Hosts.Names() {
		for _, m := range t.Hosts.Hosts[name].Missing {
			if m.OnLost == host.Ask && m.For == s.For.String() {
				return m, true
			}
		}
	}
	return m, false
}

// asking says what a session waits for, because the one before it in its step was lost with its host under on_lost: ask.
type asking struct {
	before host.Missing
	holds  bool               // it may not be placed now
	away   bool               // the host is lost still
	is     *question.Question // nil: no person was asked
}

func askID(m host.Missing) string {
	return "lost/" + m.Session + "/" + strconv.FormatUint(m.Incarnation, 10) + "/" + strconv.FormatUint(m.N, 10)
}

// askingOf is pure, so that it also says when something has changed.
func askingOf(t *team.Team, agent string, s *team.Session) (a asking) {
	if a.before, a.holds = lostBefore(t, s); !a.holds {
		return a
	}
	a.away = t.Hosts.Hosts[a.before.Host].State == host.Lost
	a.is = t.ResumeAnswer(agent, s.ID, askID(a.before), false)
	a.holds = !a.answered() || a.is.Option != beginElsewhere
	return a
}

func (a asking) answered() bool {
	return a.is != nil && (a.is.State == question.Answered || a.is.State == question.Delivered)
}

// why says what the session waits for.
func (a asking) why() string {
	m := a.before
	switch {
	case !a.away:
		return fmt.Sprintf("waits until the leader has fetched what %s left on %s, which is back", m.Session, m.Host)
	case a.answered():
		return fmt.Sprintf("waits for %s, which was lost with %s, as %s decided; `fairlead host remove %s` lets it begin elsewhere", m.Host,
			m.Session, a.is.By, m.Host)
	case a.is == nil:
		return fmt.Sprintf("waits: %s was lost with %s", m.Host, m.Session)
	}
	return fmt.Sprintf("waits for an answer to %s: %s was lost with %s", a.is.ID, m.Host, m.Session)
}

// mayGoOn asks a person whether a step begins elsewhere, if its host was lost with an earlier session of the step and its agent has
// on_lost: ask. That session has ended for certain. The error is a refusal while the step has to wait; moved reports that something has
// changed. A host that is back takes the question back.
func (c *Controller) mayGoOn(ctx context.Context, m *sessions.Slot, s team.Session) (moved func(*team.Team) bool, err error) {
	var now asking
	var open []question.Question // about hosts that are back
	if err := c.loop.View(ctx, func(t *team.Team) {
		now, open = askingOf(t, m.Conf.Name, &s), nil
		for _, q := range t.Questions.Open(m.Conf.Name) {
			if q.Kind == question.HostLost && q.Session == s.ID && (!now.holds || !now.away || q.Ask != askID(now.before)) {
				open = append(open, *q)
			}
		}
	}); err != nil {
		return nil, err
	}
	tell := func(what question.Input) error {
		if _, err := c.loop.Do(ctx, loop.Request{Event: m.Event(byHosts, what)}); err != nil && !loop.IsAnswer(err) {
			return err
		}
		return nil
	}
	for _, q := range open {
		if err := tell(question.TakeBack{ID: q.ID, Why: "the host is back, or is given up"}); err != nil {
			return nil, err
		}
	}
	if now.is != nil && now.is.State == question.Answered {
		if err := tell(question.Hand{ID: now.is.ID}); err != nil {
			return nil, err
		}
	}
	if !now.holds {
		return nil, nil
	}
	if now.is == nil && now.away {
		if err := tell(askAbout(m.Conf.Name, s, now.before)); err != nil {
			return nil, err
		}
		if err := c.loop.View(ctx, func(t *team.Team) { now = askingOf(t, m.Conf.Name, &s) }); err != nil || !now.holds {
			return nil, err
		}
	}
	return func(t *team.Team) bool {
		then := askingOf(t, m.Conf.Name, &s)
		return then.holds != now.holds || then.away != now.away || then.answered() != now.answered() ||
			then.before.Token != now.before.Token
	}, &table.Refusal{Subject: "session " + s.ID, Event: string(host.SessionPlaced), State: "without a host", Row: "H7", Reason: now.why()}
}

// askAbout is the question. It has no time-out: nothing is lost while it waits, and the host may come back.
func askAbout(agent string, s team.Session, m host.Missing) question.Ask {
	run, step, _ := team.StepOf(s.For)
	return question.Ask{Question: question.Question{
		Kind: question.HostLost, Agent: agent, Session: s.ID, Ask: askID(m),
		What: fmt.Sprintf("host %s was lost with %s, which ran step %s of %s: begin the step elsewhere, or wait for %s?", m.Host, m.Session,
			step, run, m.Host),
		Why: "its agent has on_lost: ask. The process on " + m.Host +
			" has ended; what it changed since its files were last fetched is missing",
		Options: []question.Option{
			{ID: beginElsewhere, Label: "begin elsewhere, with the files that were fetched"},
			{ID: waitForIt, Label: "wait until " + m.Host + " is back"},
		},
	}}
}
