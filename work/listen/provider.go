package listen

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// A session makes at most awayChangesMax reports about its provider within awayEvery, since each is a change in the journal, and a
// program may try again, or give another reason, several times a second: a sign, that the provider answers, and one more sign. What is
// said beyond that is held back until the time is over; then only the last of it counts, and one report is made in each such time.
const (
	awayEvery      = 10 * time.Second
	awayChangesMax = 3
)

// awayProvider is what a program says about a provider that does not answer.
type awayProvider struct {
	told    string         // the code in the journal; empty: it answers
	last    team.Provider  // what the program said last
	urgent  *team.Provider // what it said while reports were held back and needs a person: it comes before the last
	times   [awayChangesMax]time.Time
	opensAt time.Time // something is held back until then; zero: nothing
}

// stands begins with what the journal has.
func (a *awayProvider) stands(p *team.Provider) {
	if p != nil {
		a.told, a.last = p.Code, *p
	}
}

// hears returns what a fact changes in what is known about the provider; nil: nothing yet. Text, a call, usage and the end of the session
// show that it answers.
func (a *awayProvider) hears(fact driver.Fact, now time.Time) *team.Provider {
	switch fact.Kind {
	case driver.ProviderAway:
		a.last = team.Provider{Code: string(fact.Provider), Why: clip.Text(fact.Text, sessions.TextBytesMax)}
		if fact.Provider.NeedsPerson() {
			urgent := a.last
			a.urgent = &urgent
		}
	case driver.Said, driver.Thought, driver.ToolCalled, driver.UsageReported, driver.Stopped:
		if a.last.Code == "" || fact.Kind == driver.Said && fact.Tool != "" { // a notice is no answer
			return nil
		}
		a.last = team.Provider{}
	default:
		return nil
	}
	return a.due(now)
}

// due returns what may be reported now; nil: nothing.
func (a *awayProvider) due(now time.Time) (report *team.Provider) {
	if now.Before(a.opensAt) {
		return nil
	}
	held, next := !a.opensAt.IsZero(), a.last
	if held && a.urgent != nil {
		next = *a.urgent
	}
	switch newest := a.times[awayChangesMax-1]; {
	case next.Code == a.told && (next.Code == "" || now.Sub(newest) < awayEvery):
		a.urgent = nil
	case now.Sub(a.times[0]) >= awayEvery:
		a.told, a.urgent, report = next.Code, nil, &next
		copy(a.times[:], a.times[1:])
		a.times[awayChangesMax-1] = now
		if held {
			a.times = [awayChangesMax]time.Time{now, now, now}
		}
	}
	a.opensAt = time.Time{}
	if a.last.Code != a.told {
		a.opensAt = a.times[0].Add(awayEvery)
	}
	return report
}
