package crew

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/table"
)

// Every machine names its documents agent-1, agent-2, and so on. A document from another machine
// whose name exists here is another member and is imported under another name. One with the same
// name and different identity fields is refused (P13, X5).
func TestImportOfAnExistingName(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var c Crew
	give := func(doc Document) error {
		changes, err := c.Decide(Imported{ID: "agent-1", Document: doc}, Now{At: at})
		for _, ch := range changes {
			c.Apply(ch)
		}
		return err
	}
	lyra := Identity{Name: "Lyra", Soul: "I am."}
	if err := give(Document{Status: Sleeping, Identity: lyra}); err != nil {
		t.Fatal(err)
	}
	var refusal *table.Refusal
	if err := give(Document{Status: Sleeping, Identity: Identity{Name: "Kael"}}); !errors.As(err, &refusal) || refusal.Row != "P11" {
		t.Errorf("on an occupied seat: %v", err)
	}
	if err := give(Document{Status: Alive, Identity: Identity{Name: "Kael", Seat: 1}}); err != nil {
		t.Error(err)
	}
	if len(c.Docs) != 2 || c.Docs["agent-1"].Identity != lyra || c.onSeat(1) == nil || c.onSeat(1).Status != Unknown {
		t.Errorf("documents: %+v", c.InOrder())
	}
	other := lyra
	other.Soul = "I am another."
	if err := give(Document{Status: Sleeping, Identity: other}); !errors.As(err, &refusal) || refusal.Row != "X5" ||
		c.Docs["agent-1"].Soul != lyra.Soul {
		t.Errorf("with another soul: %v, %+v", err, c.Docs["agent-1"])
	}
}

func (c *Crew) onSeat(seat int) *Document { return (&crewDraft{crew: c}).onSeat(seat) }
