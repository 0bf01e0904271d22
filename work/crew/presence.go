package crew

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
)

// Requests from people to the crew. The error is a *table.Refusal if the request is refused, and a
// *team.Unknown if a name matches no member. Each call returns when the request is durable, with the
// Seq of its last change. Crew shows the effect.

// Summon asks the lead to create the crew (P1).
func (c *Controller) Summon(ctx context.Context, by change.Actor) (uint64, error) {
	return c.tellLead(ctx, by, crew.SummonAsked{}, "P1")
}

// Wake asks the lead to wake sleeping members (P8): those named by ID or name, or all.
func (c *Controller) Wake(ctx context.Context, by change.Actor, who []string) (uint64, error) {
	if len(who) > wakeNamesMax {
		return 0, fmt.Errorf("%d names are too many: a team has %d seats; name fewer, or none for all", len(who), crew.SeatMax+1)
	}
	var docs []crew.DocID
	var answer error
	if err := c.loop.View(ctx, func(t *team.Team) {
		for _, name := range who {
			doc, err := t.FindDocument(name)
			if err != nil {
				answer = err
				return
			}
			docs = append(docs, doc.ID)
		}
	}); err != nil || answer != nil {
		return 0, cmp.Or(err, answer)
	}
	return c.tellLead(ctx, by, crew.WakeAsked{Docs: docs}, "P8")
}

const wakeNamesMax = 64 // per request; more than a crew has members

// Sleep ends the lead's session, which puts all members to sleep (P3).
func (c *Controller) Sleep(ctx context.Context, by change.Actor) (uint64, error) {
	return c.loop.Submit(ctx, by, "", team.SleepAsked{})
}

// BadDocument is the error for content that is not a valid agent document.
type BadDocument struct{ Why error }

func (b *BadDocument) Error() string {
	return fmt.Sprintf("this is no document of an agent: %v; nothing was taken from it", b.Why)
}

func (b *BadDocument) Unwrap() error { return b.Why }

// ImportDocument imports a document (P12, P13) and returns the result. An imported agent is not
// awake until the lead reports it. It gets a new ID, and the ID in the document is dropped. The
// error is a *BadDocument if the document is invalid, and a *table.Refusal if the crew cannot take
// it.
func (c *Controller) ImportDocument(ctx context.Context, by change.Actor, data []byte) (view.DocumentView, error) {
	doc, bare, err := crewdocs.ReadDocument(data)
	if err != nil {
		return view.DocumentView{}, &BadDocument{Why: err}
	}
	if doc.Extra, err = without(doc.Extra, "id"); err != nil {
		return view.DocumentView{}, &BadDocument{Why: err}
	}
	full := false
	if err := c.loop.View(ctx, func(t *team.Team) {
		full = weight(t.Crew.Docs)+len(doc.Soul)+len(doc.Extra) > DocumentBytesAll
	}); err != nil {
		return view.DocumentView{}, err
	}
	if full {
		return view.DocumentView{}, &table.Refusal{Subject: "the team", Event: "import", State: "full", Row: "P13", Reason: fullWords}
	}
	var id crew.DocID
	var shown view.DocumentView
	_, err = c.loop.Do(ctx, loop.Request{
		Event: loop.EventBy(by, "", crew.Imported{Document: doc, Bare: bare}),
		Found: func(changes []change.Change) {
			for i := range changes {
				if body := change.As[crew.Body](changes[i].Body); body != nil && body.Doc != nil {
					id = crew.DocID(team.AgentOf(changes[i].Entity))
				}
			}
		},
		Look: func(t *team.Team) {
			if is := t.Crew.Docs[id]; is != nil {
				shown = view.ViewDocument(is)
			}
		},
	})
	if never := (*journal.Refused)(nil); errors.As(err, &never) {
		err = &BadDocument{Why: err}
	}
	if err != nil {
		return view.DocumentView{}, err
	}
	return shown, nil
}

// without returns a JSON object of unknown fields without one field.
func without(object json.RawMessage, field string) (json.RawMessage, error) {
	if len(object) == 0 {
		return nil, nil
	}
	var fields file.Fields
	if err := file.Unpack(object, &fields); err != nil {
		return nil, err
	}
	fields = slices.DeleteFunc(fields, func(f file.Field) bool { return f.Name == field })
	if len(fields) == 0 {
		return nil, nil
	}
	return crewdocs.Escaped(fields)
}
