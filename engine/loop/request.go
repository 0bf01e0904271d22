package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Request is one entry of the queue: one event, several, or none. Every function in it runs in the
// loop's goroutine, also after its caller gave up waiting: then the caller must not read what they fill.
type Request struct {
	Event *team.Event

	// Derive makes events from what is true when the request is decided. It has each decided before it makes the next one; the error
	// of decide is a refusal, and the first one is the answer. The events share an append.
	Derive func(decide func(team.Event) error)

	Agent string                // whose actions are derived again
	First func() error          // runs before anything is decided; an error is the answer
	Found func([]change.Change) // gets the changes that an event led to, before they are in the journal
	Look  func(*team.Team)      // sees the team when all of it is in the journal
	After func()                // runs when the batch is in the journal

	answer chan Answer // nil: no caller waits; else it has room for one
}

// Report is the Derive of events that are known already. A refused one does not hold back the others.
func Report(events ...team.Event) func(decide func(team.Event) error) {
	return func(decide func(team.Event) error) {
		for _, ev := range events {
			if err := decide(ev); err != nil && !IsAnswer(err) {
				return
			}
		}
	}
}

// Answer is the result of a request.
type Answer struct {
	Seq uint64 // of the last change that the request made; if it made none, of the journal's last change
	Err error  // a refusal, or why the loop has ended
}

// Do submits a request and waits for its answer.
func (l *Loop) Do(ctx context.Context, req Request) (uint64, error) {
	wait, err := l.Post(ctx, req)
	if err != nil {
		return 0, err
	}
	return wait(ctx)
}

// Post submits a request and returns a function that waits for its answer. Requests that one caller
// posts are decided in order.
func (l *Loop) Post(ctx context.Context, req Request) (wait func(context.Context) (uint64, error), err error) {
	req.answer = make(chan Answer, 1)
	select {
	case l.queue <- req:
	case <-l.quit:
		return nil, l.Closed()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return func(ctx context.Context) (uint64, error) {
		select {
		case a := <-req.answer:
			return a.Seq, a.Err
		case <-l.quit:
			select {
			case a := <-req.answer: // it was answered in the last batch
				return a.Seq, a.Err
			default:
				return 0, l.Closed()
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}, nil
}

// Notify submits a request that no caller waits for; a refusal is logged.
func (l *Loop) Notify(req Request) error {
	select {
	case l.queue <- req:
		return nil
	case <-l.quit:
		return l.Closed()
	}
}

// Tell decides one event during the recovery, before Run.
func (l *Loop) Tell(ctx context.Context, ev *team.Event) error {
	req := Request{Event: ev, answer: make(chan Answer, 1)}
	if err := l.Step(ctx, []Request{req}); err != nil {
		return err
	}
	if refused := (<-req.answer).Err; refused != nil {
		return fmt.Errorf("the recovery was refused, which is a fault in fairlead: %w", refused)
	}
	return nil
}

// Submit has one event decided. It returns when the changes that it led to are durable.
func (l *Loop) Submit(ctx context.Context, actor change.Actor, agent string, what any) (uint64, error) {
	return l.Do(ctx, Request{Event: EventBy(actor, agent, what)})
}

// View runs f on the team, between two batches. f must be quick and keep nothing that it sees. When
// View returns, f has run or never will, also where the caller gave up waiting: what f filled belongs
// to the caller alone.
func (l *Loop) View(ctx context.Context, f func(*team.Team)) error {
	var taken atomic.Bool // by the loop, to run f; or by this function, so that f never runs
	over := make(chan struct{})
	_, err := l.Do(ctx, Request{Look: func(t *team.Team) {
		if taken.CompareAndSwap(false, true) {
			defer close(over)
			f(t)
		}
	}})
	if err != nil && !taken.CompareAndSwap(false, true) {
		<-over
	}
	return err
}

// Until waits until a condition on the team holds: it is checked now, and after each batch of changes.
// The condition runs as View's function does. The error is ctx's, or that of a loop that has stopped.
func (l *Loop) Until(ctx context.Context, holds func(*team.Team) bool) error {
	for {
		next := l.ring.changed() // before the check, so that no change is missed
		var is bool
		if err := l.View(ctx, func(t *team.Team) { is = holds(t) }); err != nil || is {
			return err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Changed returns a channel that is closed after the next batch of changes, or when the loop ends.
func (l *Loop) Changed() <-chan struct{} { return l.ring.changed() }

// EventBy makes an event. The actor's words are made fit for the journal.
func EventBy(actor change.Actor, agent string, what any) *team.Event {
	return &team.Event{Actor: change.Actor{Kind: fitWord(actor.Kind), ID: fitWord(actor.ID)}, Agent: agent, What: what}
}

// IsAnswer says whether an error is a refusal (the answer to a request) and not a failure of Fairlead.
func IsAnswer(err error) bool {
	var refusal *table.Refusal
	var unknown *team.Unknown
	return errors.As(err, &refusal) || errors.As(err, &unknown)
}

// Limits of what others may say about themselves.
const (
	ActorBytesMax = 200  // of an actor's name; the journal takes words of 256
	NoteBytesMax  = 2000 // of a hold's note; as much as control takes for an order
)

// fitWord makes a name that others gave fit for the journal.
func fitWord(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return clip.Text(s, ActorBytesMax)
}

// FirstLine is the first line of a text.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
