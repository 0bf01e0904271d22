package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/machine/presence"
	"github.com/fairlead-dev/fairlead/team"
)

// What people ask of the team. The errors are a *machine.Refusal where the answer is no, and a
// *team.Unknown where nobody of the team is meant. Each returns when the order is durable, with
// the Seq of the last change that it made; what comes of it shows in Crew.

// Summon has the lead bring a team into being (P1).
func (e *Engine) Summon(ctx context.Context, by Actor) (uint64, error) {
	return e.submit(ctx, by, "", presence.SummonAsked{})
}

// Wake has the lead wake those who are not awake (P8): who is named by an id or a name, or
// everybody.
func (e *Engine) Wake(ctx context.Context, by Actor, who []string) (uint64, error) {
	if len(who) > wakeNamesMax {
		return 0, fmt.Errorf("%d names are too many: a team has %d seats; name fewer, or none for all", len(who), presence.SeatMax+1)
	}
	var docs []presence.DocID
	var answer error
	if err := e.look(ctx, func(t *team.Team) {
		for _, name := range who {
			doc, err := t.MemberOf(name)
			if err != nil {
				answer = err
				return
			}
			docs = append(docs, doc.ID)
		}
	}); err != nil || answer != nil {
		return 0, errors.Join(err, answer)
	}
	return e.submit(ctx, by, "", presence.WakeAsked{Docs: docs})
}

const wakeNamesMax = 64 // of one order: more than the seats that there are

// Sleep ends the lead's session, and with it everybody sleeps (P3).
func (e *Engine) Sleep(ctx context.Context, by Actor) (uint64, error) {
	return e.submit(ctx, by, "", team.SleepAsked{})
}

// BadDocument says that what was handed in is no agent's document.
type BadDocument struct{ Why error }

func (b *BadDocument) Error() string {
	return fmt.Sprintf("this is no document of an agent: %v; nothing was taken from it", b.Why)
}

func (b *BadDocument) Unwrap() error { return b.Why }

// ImportDocument takes in a document from elsewhere (P12, P13). The error is a *BadDocument where
// it is none, and a *machine.Refusal where there is no room for it.
func (e *Engine) ImportDocument(_ context.Context, _ Actor, _ []byte) (DocumentView, error) {
	return DocumentView{}, &BadDocument{Why: errors.New("documents are not read yet")}
}
