package sim

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// seeds is the number of days to play. It is small in ordinary tests, and smaller with the race
// detector, which is slow. CI plays some thousands without it.
func seeds(t *testing.T) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("FAIRLEAD_SIM_SEEDS"), 10, 64); err == nil {
		return n
	}
	switch {
	case testsize.Race:
		return 30
	case testing.Short():
		return 50
	}
	return 100
}

func TestDays(t *testing.T) {
	dir := t.TempDir()
	for seed := range seeds(t) {
		r := Day(t, dir, seed, StepsDefault, false)
		if r.Failure != nil {
			r = Shorten(t, dir, r)
			t.Errorf("seed %d: %v", seed, r.Failure)
			for _, s := range r.Trace {
				fmt.Printf("%4d %8d %s\n", s.N, s.AtMS, s.Act)
				for _, c := range s.Effects {
					fmt.Printf("              %s\n", c)
				}
			}
			return
		}
	}
}
