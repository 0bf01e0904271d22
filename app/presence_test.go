package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
)

func TestCrewIsShown(t *testing.T) {
	t.Parallel()
	w := newCrew(t)
	ctx := context.Background()
	if got := w.crew(false); got.Button != "SUMMON" || got.Size != 3 || got.Lead.Agent != "julian" || got.Lead.State != view.LeadAsleep ||
		got.Lead.Seat != 4 || got.Agents == nil || got.Notices == nil {
		t.Errorf("%+v", got)
	}
	var refused *table.Refusal
	if _, err := w.engine.Crew.Summon(ctx, human); !errors.As(err, &refused) {
		t.Errorf("a lead without input, and a held team: %v", err)
	}
	w.leads("Lyra", "Twin")
	w.happens(crew.Imported{Document: crew.Document{Status: crew.Sleeping, Identity: crew.Identity{Name: "Twin", Seat: 7}}})
	w.happens(crew.Imported{Document: crew.Document{Status: crew.Expired, Identity: crew.Identity{Seat: 8}, Extra: []byte(`{"x":1}`)}})
	w.happens(crew.Reported{Session: "julian-1", Agents: []crew.Listed{{Name: "Lyra", Status: "alive", Seat: 0}}})
	got := w.crew(false)
	var seen []string
	for _, one := range got.Agents {
		seen = append(seen, fmt.Sprintf("%s %s %d %s", one.ID, *one.Name, one.Seat, one.Status))
	}
	if all := strings.Join(seen, ", "); all != "agent-1 Lyra 0 alive, agent-2 Twin 1 sleeping, agent-3 Twin 7 sleeping" ||
		got.Button != "WAKE" {
		t.Errorf("%s, %+v", all, got)
	}
	if all := w.crew(true).Agents; len(all) != 4 || all[3].Status != "expired" || all[3].Extra != nil {
		t.Errorf("%+v", all)
	}
	if one, err := w.engine.Crew.Document(ctx, "Lyra"); err != nil || one.ID != "agent-1" || one.Soul != "I am Lyra." || one.LastAliveAt == nil {
		t.Errorf("%+v %v", one, err)
	}
	if one, err := w.engine.Crew.Document(ctx, "agent-4"); err != nil || string(one.Extra) != `{"x":1}` || one.Name != nil {
		t.Errorf("%+v %v", one, err)
	}
	if _, err := w.engine.Crew.Document(ctx, "Twin"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "agent-2") ||
		!strings.Contains(err.Error(), "agent-3") {
		t.Errorf("two members with one name: %v", err)
	}
	var unknown *team.Unknown
	if _, err := w.engine.Crew.Document(ctx, "Nobody"); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
	if _, err := w.engine.Crew.Wake(ctx, human, []string{"Lyra", "Nobody"}); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
	if view, err := w.engine.Status.Agent(ctx, "julian"); err != nil || view.Presence != "lead" {
		t.Errorf("%+v %v", view, err)
	}
}
