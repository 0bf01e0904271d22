package listen

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver"
)

// A program that says something else about its provider several times a second makes a few changes in the journal, not one each time. A
// sign that needs a person is in the journal at most ten seconds after it was given, whatever follows it.
func TestAwayProviderIsBounded(t *testing.T) {
	away := func(code driver.ProviderCode) driver.Fact {
		return driver.Fact{Kind: driver.ProviderAway, Provider: code}
	}
	said := driver.Fact{Kind: driver.Said, Text: "x"}
	const every, over = 200 * time.Millisecond, time.Minute
	for name, facts := range map[string][]driver.Fact{
		"one code":               {away(driver.ProviderNetwork)},
		"two codes":              {away(driver.ProviderNetwork), away(driver.ProviderRateLimit)},
		"a code and text":        {away(driver.ProviderNetwork), said},
		"a login among codes":    {away(driver.ProviderNetwork), away(driver.ProviderAuthentication), away(driver.ProviderRateLimit)},
		"a login and text":       {away(driver.ProviderAuthentication), said},
		"a bill and text":        {away(driver.ProviderBilling), said, said},
		"text, at last the code": {said, said, said, said, away(driver.ProviderNetwork)},
	} {
		t.Run(name, func(t *testing.T) {
			var a awayProvider
			journal, reports := "", []time.Duration{}
			var needed time.Duration // since when a login or a bill is not in the journal; 0: it is, or there is none
			tells := func(now time.Duration, fact *driver.Fact) {
				at := time.Unix(0, 0).Add(now)
				p := a.due(at)
				if fact != nil {
					p = a.hears(*fact, at)
				}
				if p == nil {
					return
				}
				journal, reports = p.Code, append(reports, now)
			}
			for now := time.Duration(0); now < over; now += every {
				fact := facts[int(now/every)%len(facts)]
				if !a.opensAt.IsZero() && !time.Unix(0, 0).Add(now).Before(a.opensAt) {
					tells(now, nil) // the timer
				}
				tells(now, &fact)
				needs := fact.Provider == driver.ProviderAuthentication || fact.Provider == driver.ProviderBilling
				switch {
				case driver.ProviderCode(journal) == driver.ProviderAuthentication ||
					driver.ProviderCode(journal) == driver.ProviderBilling:
					needed = 0
				case needs && needed == 0:
					needed = now + 1
				}
				if needed > 0 && now-needed > awayEvery {
					t.Fatalf("after %v the sign of %v is not in the journal", now, needed)
				}
			}
			if len(reports) == 0 || reports[0] > every*time.Duration(len(facts)-1) {
				t.Errorf("the first sign was not reported at once: %v", reports)
			}
			for i := range reports {
				if i >= awayChangesMax && reports[i]-reports[i-awayChangesMax] < awayEvery {
					t.Errorf("%d reports within %v: %v", awayChangesMax+1, awayEvery, reports)
				}
			}
			// When nothing more is said, the journal soon has what was said last.
			last, now := facts[(int(over/every)-1)%len(facts)].Provider, over
			for range 3 {
				now += awayEvery
				tells(now, nil)
			}
			if journal != string(last) {
				t.Errorf("at last %q, want %q", journal, last)
			}
		})
	}
}
