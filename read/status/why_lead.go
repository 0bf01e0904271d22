package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/team"
)

// leadEvidence is one fact about an agent as the lead.
type leadEvidence struct {
	at    time.Time
	holds bool
	text  string
}

// leadIn reports how an agent leads the crew, its next action, and what delays it. It runs in the
// loop.
func leadIn(t *team.Team, a *team.Agent, at time.Time) (list []leadEvidence) {
	lead := &t.Crew.Lead
	if lead.Agent != a.Name {
		return nil
	}
	add := func(at time.Time, holds bool, format string, args ...any) {
		list = append(list, leadEvidence{at: at, holds: holds, text: fmt.Sprintf(format, args...)})
	}
	switch {
	case lead.Session == "" && a.Session.IsLead():
		add(a.Session.OpenedAt, true, "it leads the team: its lead session %s begins", a.Session.ID)
	case lead.Session == "":
		add(time.Time{}, true, "it leads the team: no lead session is open, so the team sleeps")
	case lead.Heard():
		add(lead.Reported, true, "it leads the team: in session %s it reported which agents are awake", lead.Session)
	default:
		add(time.Time{}, true, "it leads the team: in session %s it has not reported yet which agents are awake", lead.Session)
	}
	if lead.InProgress() {
		who := ""
		if len(lead.Who) > 0 {
			who = " " + strings.Join(namesOf(&t.Crew, lead.Who), ", ")
		}
		add(lead.Since, true, "it is %s%s", lead.Stage, who)
	}
	if n := len(lead.Actions); n > 0 {
		add(time.Time{}, true, "its next action: %s", turns.LeadWords(channel.ActionKind(lead.Actions[0].Do)))
	}
	if waits := t.LeadWaits(at); waits != "" {
		add(time.Time{}, false, "its lead session waits: %s", waits)
	}
	return list
}

// namesOf returns the display names of documents.
func namesOf(crew *crew.Crew, ids []crew.DocID) (names []string) {
	for _, id := range ids {
		name := string(id)
		if doc := crew.Docs[id]; doc != nil && doc.Name != "" {
			name = doc.Name
		}
		names = append(names, name)
	}
	return names
}
