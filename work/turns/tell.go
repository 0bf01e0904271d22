package turns

import (
	"context"
	"errors"
	"sync"
	"time"

	crewctl "github.com/fairlead-dev/fairlead/work/crew"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// SessionWriter is the state of a channel session that its listener shares with the code that
// writes to it.
type SessionWriter struct {
	WriteLock writeLock // held during a write until the journal has it, so that answers are recorded after it

	mu       sync.Mutex
	delivery team.Delivery // what the session answers now
	input    int64         // bytes of input known to be written
	waits    bool          // the turn waits because of a tool call, not because of a marker
}

// writeLock is a mutex whose Lock ends with its context, since a host may take any time to write.
type writeLock chan struct{}

// NewSessionWriter makes a session writer that has told nothing yet.
func NewSessionWriter() *SessionWriter { return &SessionWriter{WriteLock: make(writeLock, 1)} }

func (p writeLock) Lock(ctx context.Context) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p writeLock) Unlock() { <-p }

// Answers is what the session answers now.
func (v *SessionWriter) Answers() team.Delivery {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.delivery
}

// Set notes what the session answers from now on.
func (v *SessionWriter) Set(delivery team.Delivery) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.delivery = delivery
}

// AskedToWait says whether the turn waits because a tool call asked so.
func (v *SessionWriter) AskedToWait() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.waits
}

// SetWaits notes whether the turn waits because a tool call asked so.
func (v *SessionWriter) SetWaits(waits bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waits = waits
}

// SessionWriter is the writer of a followed session, or nil.
func (c *Controller) SessionWriter(session string) *SessionWriter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writers[session]
}

// SetSessionWriter adds the writer of a session; nil removes it.
func (c *Controller) SetSessionWriter(session string, v *SessionWriter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v == nil {
		delete(c.writers, session)
		return
	}
	c.writers[session] = v
}

// tellNext delivers what an agent's channels ask for now. It is called after every change, so that
// no other code has to remember to call it.
func (c *Controller) tellNext(name string) {
	m, a, is := c.sessions.Slots[name], c.loop.State().Agents[name], c.loop.State().Channels.Agents[channel.AgentID(name)]
	if m == nil || a == nil || is == nil && !a.Session.IsLead() || c.loop.Holding() {
		return // a lead need not be in a channel
	}
	todo := c.loop.State().AgentChannelActions(name, c.loop.Now())
	if c.Joins(m) {
		c.fillWait(name, todo)
		return
	}
	if is != nil && c.mayProbe(m, a, is) { // it is not known whether it can take part (J3)
		c.Participant(m).probing = true
		c.loop.Go(func(ctx context.Context) { c.probe(ctx, m) })
	}
	c.stopWork(m, a, todo)
	s := a.Session
	deaf := is != nil && is.NoInputMidAnswer && !s.IsLead() // a lead reads input while it answers
	if c.Participant(m).telling != "" || deaf || !s.ServesChannels() || s.Phase != session.Running || s.Ending != "" || s.Stop != nil ||
		c.SessionWriter(s.ID) == nil {
		return
	}
	next, resumes, ok := c.nextToTell(m, s, todo)
	if !ok {
		return
	}
	c.Participant(m).telling = next.Key
	plan, session := c.messageFor(next, false), *s
	c.loop.Go(func(ctx context.Context) {
		if resumes {
			c.acknowledge(ctx, m, channel.ActionConfirmed{Token: next.Token, Do: next.Do, N: next.N}, c.clearTelling(m))
			return
		}
		c.tellSession(ctx, m, session, plan)
	})
}

// nextToTell chooses what a running session receives now, one action at a time. Only actions of the
// turn that it is answering are written during an answer, and only if the program reads input then;
// all others wait until the answer is over. resumes means that the agent has already continued and
// needs no text.
func (c *Controller) nextToTell(m *sessions.Slot, s *team.Session, todo []channel.Action) (next channel.Action, resumes, ok bool) {
	stops := map[channel.ChannelID]bool{}
	for _, one := range todo {
		if one.Do == channel.StopWork {
			stops[one.Token.Channel] = true
		}
	}
	held := c.loop.State().Hold.On || c.loop.State().Stopping
	for _, one := range todo {
		same := one.Token.Turn != 0 && one.Token == s.Delivery.Token
		switch {
		case one.Do == channel.StopWork || stops[one.Token.Channel] || held && !same:
		case !s.AnswerPending():
			return one, false, true
		case same && s.Delivery.Re == 0 && one.Do == channel.TellMessage && m.Steers:
			return one, false, true
		case same && s.Delivery.Re == 0 && one.Do == channel.TellGoOn && c.Participant(m).Resumed == one.Token:
			return one, true, true
		}
	}
	return channel.Action{}, false, false
}

// acknowledge records an action that needed no write.
func (c *Controller) acknowledge(ctx context.Context, m *sessions.Slot, what channel.ActionConfirmed, then func(*team.Team)) {
	// fails only if the loop has stopped
	_, _ = c.loop.Do(ctx, loop.Request{Event: loop.EventBy(sessions.ByShim, "", what), Agent: m.Conf.Name, Look: then})
}

// clearTelling records, in the loop, that no write to an agent is in progress.
func (c *Controller) clearTelling(m *sessions.Slot) func(*team.Team) {
	return func(*team.Team) { c.Participant(m).telling = "" }
}

// tellSession writes an action into a running session, once, and journals it before any of its
// results.
func (c *Controller) tellSession(ctx context.Context, m *sessions.Slot, s team.Session, plan message) {
	words := func(ctx context.Context) (string, error) { return c.crew.LeadPrompt(ctx, plan.todo, false) }
	var err error
	if !team.IsLeadToken(plan.todo.Token) {
		var text string
		text, _, err = c.prompt(ctx, &plan)
		words = func(context.Context) (string, error) { return text, nil }
	}
	if err == nil {
		err = c.write(ctx, m, s, plan.todo, words)
	}
	switch proc := c.sessions.Proc(s.ID); {
	case err == nil || ctx.Err() != nil || c.sessions.Fenced(err):
		return
	case proc == nil, errors.Is(err, sessions.ErrNotAsked): // the action is no longer due
	case errors.Is(err, driver.ErrNoInput):
		c.sessions.CloseInput(ctx, m, s.ID, proc) // the next session receives the action
	default:
		c.log.Error("an action could not be delivered to an agent; Fairlead tries again", "session", s.ID, "action", plan.todo.Key, "error",
			err)
		retry.Rest(ctx, loop.RetryMax)
	}
	_, _ = c.loop.Do(ctx, loop.Request{Agent: m.Conf.Name, Look: c.clearTelling(m)}) // fails only if the loop has stopped
}

// stillToTell checks, while it holds the write lock, whether an action is still due: waiting for
// the lock may have taken longer than the turn.
func (c *Controller) stillToTell(ctx context.Context, m *sessions.Slot, s team.Session, key string) error {
	still := false
	if err := c.loop.View(ctx, func(t *team.Team) {
		if now := m.Open(t); now != nil && now.ID == s.ID && now.Phase == session.Running && now.Ending == "" && now.Stop == nil {
			next, _, ok := c.nextToTell(m, now, t.AgentChannelActions(m.Conf.Name, c.loop.Now()))
			still = ok && next.Key == key
		}
	}); err != nil {
		return err
	}
	if !still {
		return sessions.ErrNotAsked
	}
	return nil
}

// write writes the action. It asks for words last, since the lead receives what is true at that
// moment.
func (c *Controller) write(ctx context.Context, m *sessions.Slot, s team.Session, todo channel.Action,
	words func(context.Context) (string, error),
) error {
	v, proc := c.SessionWriter(s.ID), c.sessions.Proc(s.ID)
	typist, ok := proc.(sessionhost.InputWriter)
	if v == nil || !ok {
		return driver.ErrNoInput
	}
	if err := v.WriteLock.Lock(ctx); err != nil {
		return err
	}
	defer v.WriteLock.Unlock()
	if err := c.stillToTell(ctx, m, s, todo.Key); err != nil {
		return err
	}
	text, err := words(ctx)
	if errors.Is(err, crewctl.ErrNoRecipient) {
		return c.confirmLeadAction(ctx, m, todo.N)
	}
	if err != nil {
		return err
	}
	before := v.Answers()
	v.Set(team.DeliveryOf(todo))
	if err := m.Driver.Converse(sessions.Known(*m.Conf), sessions.SessionFor(m, s),
		sessions.LabeledWire{Process: proc, Typist: typist, Label: todo.Key}).Prompt(ctx, text); err != nil {
		v.Set(before)
		return err
	}
	input, _ := typist.Input()
	v.NoteInput(input)
	_, err = c.loop.Do(ctx, loop.Request{
		Event: m.Event(sessions.ByShim, team.Delivered{Session: s.ID, Action: todo, Input: input}), Agent: m.Conf.Name,
		Look: c.clearTelling(m),
	})
	if loop.IsAnswer(err) {
		return nil // the session is over; the next session receives the action
	}
	return err
}

// NoteInput records how many bytes of input were written.
func (v *SessionWriter) NoteInput(input int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.input = max(v.input, input)
}

// stopWork stops an agent's work that is no longer wanted, and acknowledges the stop when the work
// has stopped: at once if the agent was not working on it. A stop never waits behind other actions.
func (c *Controller) stopWork(m *sessions.Slot, a *team.Agent, todo []channel.Action) {
	begun := c.Participant(m).stops
	c.Participant(m).stops = nil
	for _, one := range todo {
		if one.Do != channel.StopWork {
			continue
		}
		s := a.Session
		at, do := one.Key, func(ctx context.Context) {
			c.acknowledge(ctx, m, channel.ActionConfirmed{Token: one.Token, Do: channel.StopWork, N: one.N}, nil)
		}
		if c.worksOn(s, one) {
			if s.Phase != session.Running || s.Ending != "" {
				continue // it has not started, or is ending already
			}
			session := *s
			at, do = at+" "+s.ID, func(ctx context.Context) { c.cancelAnswer(ctx, m, session) }
		}
		if c.Participant(m).stops == nil {
			c.Participant(m).stops = map[string]bool{}
		}
		c.Participant(m).stops[at] = true
		if !begun[at] {
			c.loop.Go(do)
		}
	}
}

// worksOn reports whether a session works on what is to be stopped. Answers that need no turn
// continue, unless the agent has left the channel.
func (c *Controller) worksOn(s *team.Session, stop channel.Action) bool {
	if !s.AnswerPending() || s.Delivery.Token.Channel != stop.Token.Channel {
		return false
	}
	seat := c.loop.State().Channels.ByID[stop.Token.Channel].Participants[stop.Token.Agent]
	return s.Delivery.Re == 0 || seat == nil || seat.Gone || !c.loop.State().Channels.Agents[stop.Token.Agent].Online()
}

// cancelAnswer cancels a session's current work. A session that does not support that, or does not
// obey, is ended.
func (c *Controller) cancelAnswer(ctx context.Context, m *sessions.Slot, s team.Session) {
	proc, err := c.sessions.Proc(s.ID), driver.ErrNoInput
	if proc != nil {
		err = m.Driver.Converse(sessions.Known(*m.Conf), sessions.SessionFor(m, s), proc).Cancel(ctx)
	}
	if err != nil && !errors.Is(err, driver.ErrNoInput) && ctx.Err() == nil && !c.sessions.Fenced(err) {
		c.log.Error("an agent's answer could not be cancelled; its session is ended", "session", s.ID, "error", err)
	}
	if err == nil {
		grace := time.NewTimer(m.Conf.Grace)
		defer grace.Stop()
		select {
		case <-proc.Done():
			return
		case <-ctx.Done():
			return
		case <-grace.C:
		}
	}
	still := false
	if err := c.loop.View(ctx, func(t *team.Team) {
		now := m.Open(t)
		still = now != nil && now.ID == s.ID && now.AnswerPending() && now.Delivery.Key == s.Delivery.Key
	}); err == nil && still {
		c.sessions.End(ctx, m, s.ID, m.Conf.Grace)
	}
}
