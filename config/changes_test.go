package config

import (
	"slices"
	"testing"
	"time"
)

func TestChanges(t *testing.T) {
	before := &Config{
		Agents:   []Agent{{Name: "coder", Permissions: Permissions{Allow: []string{"Read"}}}, {Name: "tester"}},
		Channels: []Channel{{Name: "reviews", Agents: []string{"coder"}}},
	}
	same := &Config{
		Agents:   []Agent{{Name: "tester"}, {Name: "coder", Permissions: Permissions{Allow: []string{"Read"}}}},
		Channels: []Channel{{Name: "reviews", Agents: []string{"coder"}}},
	}
	if got := Changes(before, same); len(got) != 0 {
		t.Errorf("agents in another order are changes: %q", got)
	}
	now := &Config{
		Team:     Team{Lead: "coder", Limits: Limits{Session: time.Hour}},
		Agents:   []Agent{{Name: "coder", Permissions: Permissions{Allow: []string{"Write"}}}, {Name: "writer"}},
		Channels: []Channel{{Name: "talk"}},
		Listen:   "127.0.0.1:80",
	}
	want := []string{
		"team changed", "agent coder changed", "agent tester removed", "agent writer added", "channel reviews removed",
		"channel talk added", "listen changed",
	}
	if got := Changes(before, now); !slices.Equal(got, want) {
		t.Errorf("the changes are %q, want %q", got, want)
	}
}
