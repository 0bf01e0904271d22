package cluster

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// TestClusters plays runs with random faults and orders.
func TestClusters(t *testing.T) {
	size := Size{Hosts: 6, Agents: 14, Channels: 3, Faults: 12 * time.Minute, Calm: 4 * time.Minute, Session: 40 * time.Second, Orders: 3 * time.Second}
	met := Counts{}
	for seed := range testsize.Pick(uint64(12), 300, 3000) {
		counts, failure := Run(seed, size, t.Logf)
		if failure != nil {
			t.Fatalf("seed %d: %v", seed, failure)
		}
		for what, n := range counts {
			met[what] += n
		}
	}
	t.Log(met)
	for _, what := range []string{epochs, starts, leaseEnds, lost, closed, moved, late, retries, falseConflicts, conflicts, pauses, rebuilt} {
		if met[what] == 0 {
			t.Errorf("no run has met %s: %v", what, met)
		}
	}
}
