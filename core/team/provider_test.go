package team

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// A provider that does not answer is known by its first sign, with the words of the last one, until the program says something else.
func TestProviderAway(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "run_once")
	id := c.starts("ada")
	reports := func(offset int64, p *Provider) *Provider {
		t.Helper()
		c.at = c.at.Add(time.Second)
		c.must("ada", SessionReported{Session: id, Offset: offset, Provider: p})
		return c.Agents["ada"].Session.Provider
	}
	first := reports(1, &Provider{Code: "authentication", Why: "retry 1"})
	if first == nil || first.Code != "authentication" || first.Why != "retry 1" || !first.Since.Equal(c.at) {
		t.Fatalf("%+v at %v", first, c.at)
	}
	if again := reports(2, &Provider{Code: "authentication", Why: "retry 5"}); again.Why != "retry 5" || !again.Since.Equal(first.Since) {
		t.Errorf("%+v, first %+v", again, first)
	}
	if other := reports(3, &Provider{Code: "network", Why: "no route"}); other.Code != "network" || !other.Since.Equal(c.at) {
		t.Errorf("%+v at %v", other, c.at)
	}
	if same := reports(4, nil); same == nil || same.Code != "network" {
		t.Errorf("a report without news: %+v", same)
	}
	if answers := reports(5, &Provider{}); answers != nil {
		t.Errorf("it answers, and is %+v", answers)
	}
}

// A report at the last offset changes what is known about the provider and nothing else: that can be reported late. An earlier one is a
// repetition.
func TestProviderAwayLate(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "run_once")
	id := c.starts("ada")
	used := change.Usage{InputTokens: 3}
	c.must("ada", SessionReported{Session: id, Offset: 5, Usage: used, Provider: &Provider{Code: "network"}})
	for _, r := range []struct {
		offset     int64
		code, want string
	}{{5, "authentication", "authentication"}, {4, "billing", "authentication"}, {5, "network", "network"}} {
		c.must("ada", SessionReported{Session: id, Offset: r.offset, Usage: used, Context: 50, Provider: &Provider{Code: r.code}})
		s := c.Agents["ada"].Session
		if s.Provider == nil || s.Provider.Code != r.want || s.Offset != 5 || s.Context != 0 || c.Agents["ada"].Usage.InputTokens != 3 {
			t.Errorf("%+v: %+v, session %+v, used %+v", r, s.Provider, s, c.Agents["ada"].Usage)
		}
	}
}
