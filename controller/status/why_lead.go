package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/controller/channels"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/team"
)

// leadEvidence is one thing that is known of an agent as the lead of the team.
type leadEvidence struct {
	at    time.Time
	holds bool
	text  string
}

// leadIn says how an agent leads the team, what it is still to be told, and what keeps it from
// that. It runs in the loop.
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
		add(lead.Reported, true, "it leads the team: in session %s it said who is awake", lead.Session)
	default:
		add(time.Time{}, true, "it leads the team: in session %s it has not said yet who is awake", lead.Session)
	}
	if lead.InProgress() {
		who := ""
		if len(lead.Who) > 0 {
			who = " " + strings.Join(namesOf(&t.Crew, lead.Who), ", ")
		}
		add(lead.Since, true, "it is %s%s", lead.Stage, who)
	}
	if n := len(lead.Actions); n > 0 {
		add(time.Time{}, true, "of what it is to be told comes first: %s", channels.LeadWords(channel.ActionKind(lead.Actions[0].Do)))
	}
	if waits := t.LeadWaits(at); waits != "" {
		add(time.Time{}, false, "its lead session waits: %s", waits)
	}
	return list
}

// namesOf are documents as people call them.
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
