package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

var usual = Size{
	Hosts: 6, Agents: 14, Channels: 3, Faults: 12 * time.Minute, Calm: 4 * time.Minute, Session: 40 * time.Second,
	Orders: 3 * time.Second,
}

// TestClusters plays runs with random faults and orders.
func TestClusters(t *testing.T) {
	met := Counts{}
	runs := testsize.Pick(uint64(12), 100, 3000)
	if testsize.Race { // one thread: there is no race to find
		runs = 2
	}
	for seed := range runs {
		for what, n := range run(t, seed, usual).counts {
			met[what] += n
		}
	}
	t.Log(met)
	for _, what := range []string{
		epochs, starts, leaseEnds, lost, closed, moved, late, retries, falseConflicts, conflicts, pauses,
		rebuilt,
	} {
		if met[what] == 0 && !testsize.Race {
			t.Errorf("no run has met %s: %v", what, met)
		}
	}
}

// TestLargeCluster plays one run of a large team: 50 hosts, 10,000 agents and 1,000 channels in its longest form.
func TestLargeCluster(t *testing.T) {
	size := testsize.Pick(
		Size{Hosts: 10, Agents: 100, Channels: 10, Faults: 4 * time.Minute},
		Size{Hosts: 20, Agents: 1000, Channels: 100, Faults: 6 * time.Minute},
		Size{Hosts: 50, Agents: 10_000, Channels: 1000, Faults: 10 * time.Minute},
	)
	size.Calm, size.Session, size.Orders = 4*time.Minute, 4*time.Minute, 200*time.Millisecond
	t.Log(run(t, 1, size).counts)
}

// A seed gives the same run each time: the same journal, to the last byte.
func TestSameSeedSameRun(t *testing.T) {
	if one, two := run(t, 3, usual), run(t, 3, usual); one.truth.chain.Hash != two.truth.chain.Hash || !slices.Equal(one.trace, two.trace) {
		t.Errorf("two runs differ:\n%v\n%v", one.counts, two.counts)
	}
}
