package channels

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/team"
)

// voice is a session for channels as its ear and whoever tells it something share it.
type Voice struct {
	Pen pen // held while something is told, until the journal knows: what is answered is reported after it

	mu    sync.Mutex
	talk  team.Delivery // what it answers now
	input int64         // bytes that were written to it, as far as is known
	waits bool          // its turn waits because it asked so by a call, and not by a word
}

// pen is held by one at a time. Whoever waits for it goes when he is told to: a host may take as
// long as it likes to write.
type pen chan struct{}

func NewVoice() *Voice { return &Voice{Pen: make(pen, 1)} }

func (p pen) Take(ctx context.Context) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p pen) GiveBack() { <-p }

func (v *Voice) Answers() team.Delivery {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.talk
}

func (v *Voice) Set(talk team.Delivery) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.talk = talk
}

func (v *Voice) AskedToWait() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.waits
}

func (v *Voice) SetWaits(waits bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waits = waits
}

func (e *Controller) Voice(session string) *Voice {
	e.talkMu.Lock()
	defer e.talkMu.Unlock()
	return e.voices[session]
}

func (e *Controller) SetVoice(session string, v *Voice) {
	e.talkMu.Lock()
	defer e.talkMu.Unlock()
	if v == nil {
		delete(e.voices, session)
		return
	}
	e.voices[session] = v
}

// talkErrands has an agent told what its channels ask for now. It is called after every change,
// so nothing has to remember to call it.
func (e *Controller) talkErrands(name string) {
	m, a, is := e.sessions.Slots[name], e.State().Agents[name], e.State().Channels.Agents[channel.AgentID(name)]
	if m == nil || a == nil || is == nil && !a.Session.IsLead() || e.Holding() {
		return // a lead need not be in a channel
	}
	todo := e.State().AgentChannelActions(name, e.Now())
	if e.Joins(m) {
		if len(todo) > 0 {
			e.rouse(name)
		}
		return
	}
	if is != nil {
		e.looksAfter(m, a, is)
	}
	e.stopWork(m, a, todo)
	s := a.Session
	deaf := is != nil && is.NoInputMidAnswer && !s.IsLead() // whoever leads is known to hear
	if e.PartOf(m).telling != "" || deaf || !s.ServesChannels() || s.Phase != session.Running || s.Ending != "" || s.Stop != nil || e.Voice(s.ID) == nil {
		return
	}
	next, resumes, ok := e.nextToTell(m, s, todo)
	if !ok {
		return
	}
	e.PartOf(m).telling = next.Key
	plan, session := e.telling(next, false), *s
	e.Go(func(ctx context.Context) {
		if resumes {
			e.told(ctx, m, channel.Told{Token: next.Token, Do: next.Do, N: next.N}, e.Untell(m))
			return
		}
		e.tellTalk(ctx, m, session, plan)
	})
}

// nextToTell chooses what a running session is told now. One thing at a time: only what belongs
// to the turn that it is answering goes into the middle of an answer, and only to a program that hears
// it there; all else is kept until the answer is over. resumes: it goes on already, and need not be
// told.
func (e *Controller) nextToTell(m *sessions.Slot, s *team.Session, todo []channel.Action) (next channel.Action, resumes, ok bool) {
	stops := map[channel.ChannelID]bool{}
	for _, one := range todo {
		if one.Do == channel.StopWork {
			stops[one.Token.Channel] = true
		}
	}
	held := e.State().Hold.On || e.State().Stopping
	for _, one := range todo {
		same := one.Token.Turn != 0 && one.Token == s.Delivery.Token
		switch {
		case one.Do == channel.StopWork || stops[one.Token.Channel] || held && !same:
		case !s.AnswerPending():
			return one, false, true
		case same && s.Delivery.Re == 0 && one.Do == channel.TellMessage && driver.Steers(m.Driver):
			return one, false, true
		case same && s.Delivery.Re == 0 && one.Do == channel.TellGoOn && e.PartOf(m).Resumed == one.Token:
			return one, true, true
		}
	}
	return channel.Action{}, false, false
}

// told acknowledges an errand that needed nothing written.
func (e *Controller) told(ctx context.Context, m *sessions.Slot, what channel.Told, then func(*team.Team)) {
	_, _ = e.Do(ctx, loop.Request{Event: loop.EventBy(sessions.ByShim, "", what), Agent: m.Conf.Name, Look: then}) // that nobody can be told means that the engine stops
}

// untell notes, in the loop, that nothing is being told to an agent any more.
func (e *Controller) Untell(m *sessions.Slot) func(*team.Team) {
	return func(*team.Team) { e.PartOf(m).telling = "" }
}

// tellTalk writes an errand into a running session, once, and has the journal know it before
// anything that comes of it.
func (e *Controller) tellTalk(ctx context.Context, m *sessions.Slot, s team.Session, plan tell) {
	words := func(ctx context.Context) (string, error) { return e.Hooks.LeadPrompt(ctx, plan.todo, false) }
	var err error
	if !team.IsLeadToken(plan.todo.Token) {
		var text string
		text, _, err = e.prompt(ctx, &plan)
		words = func(context.Context) (string, error) { return text, nil }
	}
	if err == nil {
		err = e.write(ctx, m, s, plan.todo, words)
	}
	switch proc := e.sessions.Proc(s.ID); {
	case err == nil || ctx.Err() != nil || e.sessions.Fenced(err):
		return
	case proc == nil, errors.Is(err, ErrOvertaken): // it is over
	case errors.Is(err, driver.ErrNoInput):
		e.sessions.LetGo(ctx, m, s.ID, proc) // it is told in the session after this one
	default:
		e.log.Error("an agent could not be told something; it is tried again", "session", s.ID, "errand", plan.todo.Key, "error", err)
		loop.Rest(ctx, loop.RetryMax)
	}
	_, _ = e.Do(ctx, loop.Request{Agent: m.Conf.Name, Look: e.Untell(m)}) // that nobody can be told means that the engine stops
}

// errOvertaken says that an errand is not to be done any more.
var ErrOvertaken = errors.New("it is not to be told any more")

// stillToTell asks last, with the pen in hand, whether an errand is to be told now: to wait for
// the pen may have taken longer than the turn.
func (e *Controller) stillToTell(ctx context.Context, m *sessions.Slot, s team.Session, key string) error {
	still := false
	if err := e.View(ctx, func(t *team.Team) {
		if now := m.Sitting(t); now != nil && now.ID == s.ID && now.Phase == session.Running && now.Ending == "" && now.Stop == nil {
			next, _, ok := e.nextToTell(m, now, t.AgentChannelActions(m.Conf.Name, e.Now()))
			still = ok && next.Key == key
		}
	}); err != nil {
		return err
	}
	if !still {
		return ErrOvertaken
	}
	return nil
}

// write is the writing itself. words are asked for last, since the lead is told what is true then.
func (e *Controller) write(ctx context.Context, m *sessions.Slot, s team.Session, todo channel.Action, words func(context.Context) (string, error)) error {
	v, proc := e.Voice(s.ID), e.sessions.Proc(s.ID)
	typist, ok := proc.(seam.Typist)
	if v == nil || !ok {
		return driver.ErrNoInput
	}
	if err := v.Pen.Take(ctx); err != nil {
		return err
	}
	defer v.Pen.GiveBack()
	if err := e.stillToTell(ctx, m, s, todo.Key); err != nil {
		return err
	}
	text, err := words(ctx)
	if errors.Is(err, ErrNobodyLeft) {
		return e.Hooks.LeadTold(ctx, m, todo.N)
	}
	if err != nil {
		return err
	}
	before := v.Answers()
	v.Set(team.DeliveryOf(todo))
	if err := m.Driver.Converse(sessions.Known(*m.Conf), sessions.SessionFor(m, s), named{proc, typist, todo.Key}).Prompt(ctx, text); err != nil {
		v.Set(before)
		return err
	}
	input, _ := typist.Input()
	v.HeardOf(input)
	_, err = e.Do(ctx, loop.Request{
		Event: m.Event(sessions.ByShim, team.Delivered{Session: s.ID, Action: todo, Input: input}), Agent: m.Conf.Name,
		Look: e.Untell(m),
	})
	if loop.IsAnswer(err) {
		return nil // it is over; what it was told is told to the one after it
	}
	return err
}

// heardOf notes how far the input was written.
func (v *Voice) HeardOf(input int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.input = max(v.input, input)
}

// named is a wire whose input has a name. A driver sends a prompt in one piece.
type named struct {
	seam.Process
	typist seam.Typist
	label  string
}

func (n named) Send(ctx context.Context, input []byte) error {
	return n.typist.SendAs(ctx, n.label, input)
}

// stopWork has an agent stop what is not wanted any more, and says so when it has: at once where
// it was not at work on that. It never waits behind what the agent is to be told.
func (e *Controller) stopWork(m *sessions.Slot, a *team.Agent, todo []channel.Action) {
	begun := e.PartOf(m).stops
	e.PartOf(m).stops = nil
	for _, one := range todo {
		if one.Do != channel.StopWork {
			continue
		}
		s := a.Session
		at, do := one.Key, func(ctx context.Context) {
			e.told(ctx, m, channel.Told{Token: one.Token, Do: channel.StopWork, N: one.N}, nil)
		}
		if e.worksOn(s, one) {
			if s.Phase != session.Running || s.Ending != "" {
				continue // it does not begin, or ends already
			}
			session := *s
			at, do = at+" "+s.ID, func(ctx context.Context) { e.cancelTalk(ctx, m, session) }
		}
		if e.PartOf(m).stops == nil {
			e.PartOf(m).stops = map[string]bool{}
		}
		e.PartOf(m).stops[at] = true
		if !begun[at] {
			e.Go(do)
		}
	}
}

// worksOn says whether a session is at work on what is to be stopped. An answer to all that needs
// no turn is none of it, unless the agent is out of the channel.
func (e *Controller) worksOn(s *team.Session, stop channel.Action) bool {
	if !s.AnswerPending() || s.Delivery.Token.Channel != stop.Token.Channel {
		return false
	}
	seat := e.State().Channels.ByID[stop.Token.Channel].Participants[stop.Token.Agent]
	return s.Delivery.Re == 0 || seat == nil || seat.Gone || !e.State().Channels.Agents[stop.Token.Agent].Online()
}

// cancelTalk has a session stop what it is doing; one that takes no such order, or does not obey
// it, is ended.
func (e *Controller) cancelTalk(ctx context.Context, m *sessions.Slot, s team.Session) {
	proc, err := e.sessions.Proc(s.ID), driver.ErrNoInput
	if proc != nil {
		err = m.Driver.Converse(sessions.Known(*m.Conf), sessions.SessionFor(m, s), proc).Cancel(ctx)
	}
	if err != nil && !errors.Is(err, driver.ErrNoInput) && ctx.Err() == nil && !e.sessions.Fenced(err) {
		e.log.Error("an agent could not be told to stop what it says; its session is ended", "session", s.ID, "error", err)
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
	if err := e.View(ctx, func(t *team.Team) {
		now := m.Sitting(t)
		still = now != nil && now.ID == s.ID && now.AnswerPending() && now.Delivery.Key == s.Delivery.Key
	}); err == nil && still {
		e.sessions.End(ctx, m, s.ID, m.Conf.Grace)
	}
}
