package tools

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// ActWaitMax limits how long a call waits: proxies may cut a connection that is silent for longer. A
// caller that still waits asks again.
const ActWaitMax = 240 * time.Second

// How a call that waits came out.
const (
	ActResumed      = "resumed"       // the wait is over, and the turn goes on
	ActStillWaiting = "still_waiting" // ask again
	ActForfeited    = "turn_over"     // another participant got the turn meanwhile
	ActAnswered     = "answered"
	ActUnanswered   = "unanswered" // no answer in time
	ActWithdrawn    = "withdrawn"  // the question is not to be answered any more
)

// ActHeard is a message that a waiting agent receives.
type ActHeard struct {
	N    uint64 `json:"n"`
	By   string `json:"by"`
	Text string `json:"text"`
}

// ActWaited is what came of a wait.
type ActWaited struct {
	Channel string    `json:"channel"`
	Turn    uint64    `json:"turn"`
	State   string    `json:"state"`
	Why     string    `json:"why,omitempty"`
	Message *ActHeard `json:"message,omitempty"` // a person's, that ended the wait
	Until   time.Time `json:"until,omitzero"`    // when the turn is forfeited, where it still waits
}

// ActWait pauses the agent's turn (T10) and waits, at most so long, until it goes on: a person says
// so (T15) or writes something into the channel (T12). Asked again while the turn waits, it goes on
// waiting; the wait's own time does not begin anew (T13).
func (c *Controller) ActWait(ctx context.Context, caller AgentCaller, channelName, why string, most time.Duration) (ActWaited, error) {
	h, err := c.actsIn(ctx, caller, channelName, "wait")
	if err == nil && h.late {
		err = lateCall(h, "wait")
	}
	waited := ActWaited{Channel: string(h.token.Channel), Turn: h.token.Turn}
	if err != nil {
		return waited, err
	}
	if h.state != channel.Waiting && h.lease.GoOn == 0 {
		c.wordsFirst(ctx, caller, "wait")
		if err := c.pause(ctx, caller, h, cmp.Or(strings.TrimSpace(why), "it asked to wait")); err != nil {
			return waited, err
		}
	}
	err = c.untilSo(ctx, most, "channel/"+waited.Channel, func(t *team.Team) bool { return h.waited(t, &waited) })
	switch {
	case errors.Is(err, errTimeUp):
		waited.State = ActStillWaiting
		return waited, nil
	case err != nil:
		return waited, err
	case waited.State == ActForfeited:
		return waited, nil
	}
	return waited, c.goesOn(ctx, caller, h, &waited)
}

// pause has a turn wait (T10).
func (c *Controller) pause(ctx context.Context, caller AgentCaller, h holding, why string) error {
	c.noteWait(caller, true)
	_, err := c.act(ctx, caller, "", channel.WaitAskedFor{Token: h.token, Why: clip.Text(loop.FirstLine(why), turns.WhyShownMax)}, nil)
	return err
}

// noteWait tells the listener that a turn waits because its agent asked for it. The turn continues
// when the agent speaks.
func (c *Controller) noteWait(caller AgentCaller, is bool) {
	if v := c.channels.SessionWriter(caller.Session); v != nil {
		v.SetWaits(is)
	}
}

// waited reads off the team whether a wait is over, and how.
func (h holding) waited(t *team.Team, waited *ActWaited) bool {
	h.see(t)
	c := t.Channels.ByID[h.token.Channel]
	switch {
	case h.late:
		waited.State, waited.Why = ActForfeited, "the turn is over"
		if c != nil && c.Head.Holder != "" {
			waited.Why += ", " + string(c.Head.Holder) + " has it now"
		}
		return true
	case h.state != channel.Waiting:
		waited.State = ActResumed
		return true
	case h.lease.Stopped:
		return false // a person interrupted, and is answered first
	}
	waited.Until = h.lease.WaitTo
	for i := range c.Open {
		m := &c.Open[i]
		if m.N > h.lease.Upto && m.Ends.IsZero() && !slices.Contains(h.lease.Ahead, m.N) &&
			(m.Mode == channel.Inject || m.Mode == channel.Interrupt) {
			waited.State, waited.Message = ActResumed, &ActHeard{N: m.N, By: m.By}
			return true
		}
	}
	return false
}

// goesOn ends a wait (T12). The agent hears of it from the call that waited, and of the message that
// ended it, so that neither is told a second time.
func (c *Controller) goesOn(ctx context.Context, caller AgentCaller, h holding, waited *ActWaited) error {
	var events []team.Event
	if waited.Message != nil {
		said, err := c.channels.Messages(ctx, waited.Channel, []uint64{waited.Message.N})
		if err != nil {
			return err
		}
		if len(said) > 0 {
			waited.Message.Text = said[0].Text
		}
		by := byCaller(caller)
		events = []team.Event{
			*loop.EventBy(by, "", channel.WaitOver{Token: h.token}),
			*loop.EventBy(by, "", channel.ActionConfirmed{Token: h.token, Do: channel.TellMessage, N: waited.Message.N}),
		}
	}
	c.noteWait(caller, false)
	_, err := c.loop.Do(ctx, loop.Request{
		Derive: loop.Report(events...), Agent: caller.Agent, Look: func(*team.Team) { c.goesOnItself(&h) },
	})
	if err != nil && !loop.IsAnswer(err) {
		return err
	}
	waited.Until = time.Time{}
	waited.State = ActResumed
	waited.Why = "a person had it go on"
	if waited.Message != nil {
		waited.Why = "a person wrote something into the channel"
	}
	return nil
}

// errTimeUp says that nothing came of a wait within its time.
var errTimeUp = errors.New("the time is up")

// untilSo waits until so returns true; it asks again whenever the entity changes. The error is errTimeUp if that took
// too long.
func (c *Controller) untilSo(ctx context.Context, most time.Duration, entity string, so func(*team.Team) bool) error {
	waiting, cancel := context.WithTimeout(ctx, min(max(most, 0), ActWaitMax))
	defer cancel()
	for {
		is, head := false, uint64(0)
		if err := c.loop.View(ctx, func(t *team.Team) { is, head = so(t), c.loop.Head() }); err != nil || is {
			return err
		}
		next, stop := iter.Pull2(c.loop.Changes(waiting, head, entity))
		_, err, more := next()
		stop()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case waiting.Err() != nil:
			return errTimeUp
		case !more:
			return c.loop.Closed()
		case err != nil:
			return err
		}
	}
}

// AgentQuestion is what an agent asks a person.
type AgentQuestion struct {
	ID      string // of one that was asked before: its answer is waited for; empty: it is a new one
	Text    string
	Options []string
	Why     string
}

// ActAnswer is what came of a question.
type ActAnswer struct {
	ID     string `json:"id"`
	State  string `json:"state"` // answered, still_waiting, unanswered, withdrawn
	Option string `json:"option,omitempty"`
	Text   string `json:"text,omitempty"`
	By     string `json:"by,omitempty"`
	Why    string `json:"why,omitempty"`
	Lost   bool   `json:"turn_over,omitempty"` // the turn, where the agent held one, went on meanwhile
}

// ActAskHuman asks a person, and waits for the answer at most so long. A question is durable before
// anybody waits: neither a restart of the daemon nor a call that was given up loses it. Asked again,
// by its id or in the same words while it is open, it is the same question. A turn waits meanwhile (T10).
func (c *Controller) ActAskHuman(ctx context.Context, caller AgentCaller, ask AgentQuestion, most time.Duration) (ActAnswer, error) {
	id, err := c.questionOf(ctx, caller, ask)
	if err != nil {
		return ActAnswer{}, err
	}
	answer := ActAnswer{ID: id, State: ActStillWaiting}
	asked := func(t *team.Team) bool { return answer.read(t.Questions.Questions[id]) }
	over := false
	if err := c.loop.View(ctx, func(t *team.Team) { over = asked(t) }); err != nil {
		return answer, err
	}
	var h *holding
	if !over {
		h = c.turnWaits(ctx, caller, id)
		if err := c.untilSo(ctx, most, "question/"+id, asked); err != nil && !errors.Is(err, errTimeUp) {
			return answer, err
		}
	}
	if answer.State == ActStillWaiting {
		return answer, nil
	}
	if h == nil {
		h = c.heldTurn(ctx, caller)
	}
	if _, err := c.loop.Submit(ctx, byCaller(caller), caller.Agent, question.Hand{ID: id}); err != nil && !loop.IsAnswer(err) {
		return answer, err
	}
	answer.Lost = !c.turnGoesOn(ctx, caller, h)
	return answer, nil
}

// read copies the state of a question, and reports whether it may still change.
func (a *ActAnswer) read(q *question.Question) bool {
	switch {
	case q == nil:
		a.State, a.Why = ActWithdrawn, "it is not known any more"
	case q.State == question.Open:
		return false
	case q.State == question.Withdrawn:
		a.State, a.Why = ActWithdrawn, cmp.Or(q.Ended, "it can no longer be answered")
	case q.By == byTime:
		a.State, a.Option, a.Why = ActUnanswered, q.Option, "no person answered in time"
	default:
		a.State, a.Option, a.Text = ActAnswered, q.Option, q.Text
		a.By = strings.TrimPrefix(q.By, "human/")
	}
	return true
}

// byTime is the answerer of a question that timed out.
const byTime = "time"

// questionOf finds the question that an agent asks about, or raises it. It is durable then.
func (c *Controller) questionOf(ctx context.Context, caller AgentCaller, ask AgentQuestion) (id string, err error) {
	var no error
	q := question.Question{
		Agent: caller.Agent, Session: caller.Session, Kind: question.Asked, What: ask.Text,
		Why: cmp.Or(strings.TrimSpace(ask.Why), "the agent asks a person"),
	}
	for i, label := range ask.Options {
		q.Options = append(q.Options, question.Option{ID: strconv.Itoa(i + 1), Label: label})
	}
	if err := c.loop.View(ctx, func(t *team.Team) {
		m, _, over := c.acting(t, caller)
		switch is := t.Questions.Questions[ask.ID]; {
		case over != nil:
			no = over
		case m.Run != "":
			no = &table.Refusal{
				Subject: caller.Agent, Event: "ask_human", State: "a step without an agent", Row: "Q1",
				Reason: "only an agent of fairlead.yaml asks people; have the step be human_in_the_loop, or report it as FAILED and say what is missing",
			}
		case ask.ID != "" && (is == nil || is.Agent != caller.Agent || is.Kind != question.Asked):
			no = &team.Unknown{What: "question of yours", Name: clip.Text(ask.ID, loop.ActorBytesMax)}
		case ask.ID != "":
			id = ask.ID
		default:
			q.Ask = freeName(&t.Questions, caller.Session, ask)
			if wait := m.Conf.Permissions.Timeout; wait > 0 {
				q.ExpiresAt = c.loop.Now().Add(wait)
			}
			if t.Questions.Of(caller.Session, q.Ask) == nil {
				no = c.questions.MayAsk(caller.Agent, false)
			}
		}
	}); err != nil || no != nil || id != "" {
		return id, cmp.Or(err, no)
	}
	if _, err := c.loop.Submit(ctx, byCaller(caller), caller.Agent, question.Ask{Question: q}); err != nil {
		return "", err
	}
	err = c.loop.View(ctx, func(t *team.Team) {
		if is := t.Questions.Of(caller.Session, q.Ask); is != nil {
			id = is.ID
		}
	})
	if err == nil && id == "" {
		err = fmt.Errorf("a question was asked and is not to be found, which is a fault in fairlead; ask it again")
	}
	return id, err
}

// freeName returns a question's name within its session: the same name for the same text until an
// answer was delivered.
func freeName(book *question.Questions, session string, ask AgentQuestion) string {
	sum := sha256.Sum256([]byte(ask.Text + "\x00" + strings.Join(ask.Options, "\x00")))
	base := "ask_human/" + hex.EncodeToString(sum[:8])
	for n := 1; ; n++ {
		name := base + "/" + strconv.Itoa(n)
		if q := book.Of(session, name); q == nil || !q.Over() {
			return name
		}
	}
}

// turnWaits has the turn wait that the agent holds; nil: it holds none.
func (c *Controller) turnWaits(ctx context.Context, caller AgentCaller, id string) *holding {
	h := c.heldTurn(ctx, caller)
	if h == nil || h.state != channel.Active {
		return h
	}
	c.wordsFirst(ctx, caller, "ask_human")
	_ = c.pause(ctx, caller, *h, "it asks a person ("+id+")") // a turn that does not wait runs out at its own time
	return h
}

// heldTurn is the turn that an agent holds in this session; nil: none.
func (c *Controller) heldTurn(ctx context.Context, caller AgentCaller) *holding {
	h, err := c.actsIn(ctx, caller, "", "ask_human")
	if err != nil || h.late {
		return nil
	}
	return &h
}

// turnGoesOn ends the wait for an answer. False: the turn is over.
func (c *Controller) turnGoesOn(ctx context.Context, caller AgentCaller, h *holding) bool {
	if h == nil {
		return true
	}
	if err := c.loop.View(ctx, func(t *team.Team) { h.see(t) }); err != nil || h.late {
		return false
	}
	c.noteWait(caller, false)
	if h.state != channel.Waiting || h.lease.Stopped {
		return true
	}
	// a turn that waits on runs out at its own time
	_, _ = c.act(ctx, caller, "", channel.WaitOver{Token: h.token}, func(*team.Team) { c.goesOnItself(h) })
	return true
}
