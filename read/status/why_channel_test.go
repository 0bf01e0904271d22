package status

import (
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/work/agents"

	machineturn "github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
)

// `why` names the channel, the turn and the place in the queue, and what a session answers.
func TestWhyNamesTheTurn(t *testing.T) {
	all := team.New(agents.RenderSum)
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tell := func(agent string, what any) {
		t.Helper()
		var touched team.Touched
		for ev, more := (team.Event{At: at, Agent: agent, What: what, Text: "x"}), true; more; ev, more = all.Next(&touched, at) {
			changes, err := all.Decide(ev)
			if err != nil {
				t.Fatal(err)
			}
			for _, ch := range changes {
				all.Apply(ch)
				touched.Note(ch)
			}
		}
	}
	settings := team.Settings{Driver: "script", Policy: control.Policy{FailuresMax: 1}}
	tell("", team.DaemonStarted{})
	tell("", team.Configured{
		Agents:   map[string]team.Settings{"ada": settings, "bob": settings},
		Turns:    map[string]machineturn.AgentSettings{"ada": {}, "bob": {}},
		Channels: map[string]team.Channel{"reviews": {Settings: machineturn.DefaultSettings(), Agents: []string{"ada", "bob"}}},
	})
	tell("", machineturn.AgentConnected{Agent: "ada"})
	tell("", machineturn.AgentConnected{Agent: "bob"})
	says := func(agent string, want ...string) {
		t.Helper()
		var got []string
		for _, one := range channelEvidenceOf(all, all.Agents[agent]) {
			got = append(got, one.text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: evidence %q, want %q", agent, got, want)
		}
	}
	says("bob", "in #reviews it is QUEUED: behind 1 in the queue")
	tell("", machineturn.HumanSpoke{Channel: "reviews", By: "julian", Bytes: 1})
	says("ada", "in #reviews it is ACTIVE: it has turn 1", "session ada-1 is being started for #reviews")
	tell("ada", team.SessionStarted{Session: "ada-1", PID: 1})
	says("ada", "in #reviews it is ACTIVE: it has turn 1", "session ada-1 answers turn 1 in #reviews")
	tell("ada", team.SessionEnded{Session: "ada-1", Outcome: control.OK})
	says("ada", "in #reviews it is ACTIVE: it has turn 1; it answered without TURN_COMPLETE and its session has ended; `fairlead channel skip reviews` ends its turn, else its time limit does")
	tell("", machineturn.HumanSpoke{Channel: "reviews", By: "julian", Bytes: 1, Mode: machineturn.Inject})
	tell("ada", team.SessionStarted{Session: "ada-2", PID: 1})
	says("ada", "in #reviews it is ACTIVE: it has turn 1", "session ada-2 answers turn 1 in #reviews")
	tell("", machineturn.WaitAskedFor{Token: machineturn.Token{Channel: "reviews", Agent: "ada", Turn: 1}, Why: "a build"})
	says("ada", "in #reviews it is WAITING: it has turn 1, and waits: a build", "session ada-2 answers turn 1 in #reviews")
	says("bob", "in #reviews it is QUEUED: next in the queue")
	tell("", machineturn.HumanSpoke{Channel: "reviews", By: "julian", Bytes: 1, Mode: machineturn.Parallel})
	says("bob", "in #reviews it is QUEUED: next in the queue", "session bob-1 is being started for #reviews")
	tell("bob", team.SessionStarted{Session: "bob-1", PID: 1})
	says("bob", "in #reviews it is QUEUED: next in the queue", "session bob-1 answers message 3 in #reviews, which needs no turn")
}
