package crew

import (
	"fmt"
	"testing"
)

// TestButtonAsTheSeedSays checks the lines of the button's table in seed 001, and SPEC's line for a
// crew that consists of placeholders only. The other cases follow from these.
func TestButtonAsTheSeedSays(t *testing.T) {
	for _, c := range []struct {
		docs       []Status
		inProgress bool
		want       Button
	}{
		{nil, false, "SUMMON"}, // no agent-identity docs exist
		{[]Status{Sleeping}, false, "WAKE"},
		{[]Status{Unknown}, false, "WAKE"},
		{[]Status{Alive, Alive, Sleeping}, false, "WAKE"}, // a partial re-wake
		{[]Status{Alive, Unknown}, false, "WAKE"},
		{[]Status{Alive}, false, "none"},
		{[]Status{Alive, Alive, Alive}, false, "none"},
		{[]Status{Sleeping, Unknown, Alive, Hatching}, true, "WAKING…"},
		{nil, true, "WAKING…"},
		{[]Status{Alive}, true, "WAKING…"},
		{[]Status{Expired, Expired}, false, "SUMMON"}, // visibleAgents.length === 0
		{[]Status{Expired, Alive}, false, "none"},
		{[]Status{Hatching, Hatching}, false, "WAKING…"}, // only placeholders, until they register or P7 expires them
		{[]Status{Hatching, Sleeping}, false, "WAKE"},
	} {
		t.Run(fmt.Sprint(c.docs, c.inProgress), func(t *testing.T) {
			if got := ButtonOf(withStatuses(c.docs), c.inProgress); got != c.want {
				t.Errorf("the button is %s, want %s", got, c.want)
			}
		})
	}
}

func withStatuses(statuses []Status) []*Document {
	var docs []*Document
	for i, status := range statuses {
		docs = append(docs, &Document{ID: DocID(fmt.Sprint("agent-", i+1)), Status: status, Identity: Identity{Seat: i}})
	}
	return docs
}

// buttonByHand computes the button from the seed's table, independently of the code under test.
func buttonByHand(hatching, alive, sleeping, unknown int, inProgress bool) Button {
	if inProgress {
		return "WAKING…"
	}
	if hatching+alive+sleeping+unknown == 0 {
		return "SUMMON"
	}
	if sleeping > 0 || unknown > 0 {
		return "WAKE"
	}
	if alive > 0 && hatching == 0 {
		return "none"
	}
	return "WAKING…"
}

// TestButtonTruthTable checks every combination of zero to three members in each of the five
// statuses, in progress or not, in any order, because the order must not matter.
func TestButtonTruthTable(t *testing.T) {
	seen := map[Button]int{}
	for n := range 4 * 4 * 4 * 4 * 4 * 2 {
		count := [5]int{n & 3, n >> 2 & 3, n >> 4 & 3, n >> 6 & 3, n >> 8 & 3}
		inProgress := n>>10 == 1
		var statuses []Status
		for i, status := range []Status{Hatching, Alive, Sleeping, Unknown, Expired} {
			for range count[i] {
				statuses = append(statuses, status)
			}
		}
		want := buttonByHand(count[0], count[1], count[2], count[3], inProgress)
		for turned := range max(1, len(statuses)) {
			order := append(append([]Status{}, statuses[min(turned, len(statuses)):]...), statuses[:min(turned, len(statuses))]...)
			got := ButtonOf(withStatuses(order), inProgress)
			if got != want {
				t.Fatalf("%v, in progress %v: the button is %s, want %s", order, inProgress, got, want)
			}
			seen[got]++
		}
	}
	if len(seen) != 4 {
		t.Errorf("the table does not return all four buttons: %v", seen)
	}
}

// TestButtonOfCrew checks that Crew.Button returns the same.
func TestButtonOfCrew(t *testing.T) {
	c := aCrew(t, 2)
	if got := c.Button(); got != SummonButton {
		t.Errorf("before the first summon the button is %s", got)
	}
	c.Docs = map[DocID]*Document{"a": {ID: "a", Status: Sleeping}}
	if got := c.Button(); got != WakeButton {
		t.Errorf("a member sleeps, but the button is %s", got)
	}
	c.Lead.Stage = Waking
	if got := c.Button(); got != WakingButton {
		t.Errorf("during a wake the button is %s", got)
	}
	c.Lead.Stage = Idle
	if got := c.Button(); got != WakeButton {
		t.Errorf("the stage idle counts as in progress: %s", got)
	}
}
