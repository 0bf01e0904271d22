package engine

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/team"
)

// Who is behind an event that nobody outside asked for.
var (
	byTimer    = team.Actor{Kind: "engine", ID: "timer"}
	byRecovery = team.Actor{Kind: "engine", ID: "recovery"}
	byShim     = team.Actor{Kind: "engine", ID: "holder"}
	byIntent   = team.Actor{Kind: "engine", ID: "last look"}
	byProbe    = team.Actor{Kind: "engine", ID: "probe"}
)

// ask lays a request on the table and waits for its answer.
func (e *Engine) ask(ctx context.Context, req request) (uint64, error) {
	req.answer = make(chan answer, 1)
	select {
	case e.table <- req:
	case <-e.quit:
		return 0, e.closed()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case a := <-req.answer:
		return a.seq, a.err
	case <-e.quit:
		select {
		case a := <-req.answer: // it was answered with the last breath
			return a.seq, a.err
		default:
			return 0, e.closed()
		}
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// submit has an event decided; it returns when what came of it is durable.
func (e *Engine) submit(ctx context.Context, actor team.Actor, agent string, what any) (uint64, error) {
	return e.ask(ctx, request{event: eventBy(actor, agent, what)})
}

func eventBy(actor team.Actor, agent string, what any) *team.Event {
	return &team.Event{Actor: team.Actor{Kind: fitWord(actor.Kind), ID: fitWord(actor.ID)}, Agent: agent, What: what}
}

// look runs f on the team, between two batches. It must be quick, and keep nothing of what it
// sees. When look returns, f has run or never will, also where nobody could wait for it: what
// f filled is the caller's alone.
func (e *Engine) look(ctx context.Context, f func(*team.Team)) error {
	var taken atomic.Bool // by the loop, to run it; or by us, so that it never does
	over := make(chan struct{})
	_, err := e.ask(ctx, request{look: func(t *team.Team) {
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

// isAnswer says whether an error is an answer to who asked, not a failure of ours.
func isAnswer(err error) bool {
	var refusal *machine.Refusal
	var unknown *team.Unknown
	return errors.As(err, &refusal) || errors.As(err, &unknown)
}

const (
	actorBytesMax = 200  // who it was; the journal takes words of 256
	noteBytesMax  = 2000 // of a hold; as much as control takes for a wish
)

// fitWord makes a name that others gave fit for the journal.
func fitWord(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return cutText(s, actorBytesMax)
}

// cutText shortens what others said, at a whole character.
func cutText(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
