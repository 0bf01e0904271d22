package config

import (
	"slices"
	"testing"
	"time"
)

func TestChanges(t *testing.T) {
	before := &Config{
		Agents:   []Agent{{Name: "coder", Line: 3, Permissions: Permissions{Allow: []string{"Read"}}}, {Name: "tester", Line: 4}},
		Channels: []Channel{{Name: "reviews", Agents: []string{"coder"}}},
	}
	same := &Config{
		Agents:   []Agent{{Name: "tester", Line: 7}, {Name: "coder", Line: 9, Permissions: Permissions{Allow: []string{"Read"}}}},
		Channels: []Channel{{Name: "reviews", Agents: []string{"coder"}}},
	}
	if got := Changes(before, same); len(got) != 0 {
		t.Errorf("agents in another order and at other lines are changes: %q", got)
	}
	now := &Config{
		Team:     Team{Lead: "coder", Limits: Limits{Session: time.Hour}},
		Agents:   []Agent{{Name: "coder", Line: 3, Permissions: Permissions{Allow: []string{"Write"}}}, {Name: "writer", Line: 4}},
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
	if before.Agents[0].Line != 3 {
		t.Error("the comparison changed the configuration")
	}
}
