package cluster

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

var short = Size{Hosts: 6, Agents: 14, Channels: 3, Faults: 12 * time.Minute, Calm: 4 * time.Minute, Session: 40 * time.Second, Orders: 3 * time.Second}

func TestClusters(t *testing.T) {
	n := testsize.Pick(uint64(40), 400, 2000)
	if seeds, err := strconv.ParseUint(os.Getenv("FAIRLEAD_SIM_SEEDS"), 10, 64); err == nil {
		n = seeds
	}
	var all Counts
	for seed := range n {
		counts, failure := Run(seed, short, t.Logf)
		if failure != nil {
			t.Fatalf("seed %d: %v", seed, failure)
		}
		all = counts
	}
	t.Logf("%+v", all)
}
