package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// The tests that take longest. Go starts the tests of a package in the order of the names of its files, so
// these wait beside the others and not after them.

// Every command of doc/tour.md works as it is written, in order, and shows what the page shows.
func TestTour(t *testing.T) {
	t.Parallel() // it mostly waits
	page, err := os.ReadFile(filepath.Join("..", "..", "doc", "tour.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := blocks(string(page))
	if len(all) < 12 {
		t.Fatalf("the page has %d blocks of commands", len(all))
	}
	place := newGuidePlace(t, "git", "awk", "python3")
	folder := place.dir
	for _, b := range all {
		for end := time.Now().Add(rigWait); ; {
			var output string
			output, folder, err = place.step(t, folder, b.commands)
			if err != nil {
				t.Fatalf("%v:\n%s\n%s", err, b.commands, output)
			}
			line := b.missing(output)
			if line == "" {
				break
			}
			if !b.readOnly() || time.Now().After(end) {
				t.Fatalf("the page shows %q, and the output has no such line there:\n%s\n%s", line, b.commands, output)
			}
		}
	}
}

// The same for doc/crew.md: a crew is summoned, sleeps, wakes, loses a member, and moves to another machine.
func TestCrewGuide(t *testing.T) {
	t.Parallel() // it mostly waits
	_, seen := follow(t, "crew.md", "awk")
	inOrder(t, seen,
		"8 of 8 are awake: Lyra, Kael", "julian leads: it is here", "all members are awake",
		"I took Lyra, after the small constellation", "the blue door is locked", "session is over; the crew sleeps", "wakes 8: Lyra",
		"8 of 8 are awake", "I am awake. I know who I am", "the blue door is locked", "Kael has crashed", "wakes 1: Kael",
		"1 of 1 are awake: Kael",
		"wrote LEAD.md, for julian", "Lyra is in the crew as", "Lyra                  sleeping", "8 of 8 are awake",
		"I remember nothing else yet",
	)
}

// longRun skips a test of sheer numbers that `.ci/run scripts` runs, unless it was asked for. What it proves is proved once in
// `go test ./...` by a shorter test or a script.
func longRun(t *testing.T) {
	t.Helper()
	if !testsize.CI() && os.Getenv("FAIRLEAD_TORTURE") == "" {
		t.Skip("FAIRLEAD_LONG=ci or FAIRLEAD_TORTURE=1 runs it")
	}
}

// TestTorture breaks a working team in every way that we know, and counts what it loses.
// `.ci/run scripts` deals the small blows once. FAIRLEAD_TORTURE=100 is the number of rounds of
// each blow, FAIRLEAD_TORTURE_SEED plays the same blows again (what the machine does between
// them is its own).
func TestTorture(t *testing.T) {
	t.Parallel()
	longRun(t)
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("it looks for processes as Linux shows them, and it takes its time")
	}
	rounds := 1
	if text := os.Getenv("FAIRLEAD_TORTURE"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("FAIRLEAD_TORTURE=%q is no number of rounds, 1 or more", text)
		}
		rounds = n
	}
	long := rounds > tortureSmall
	seed, err := strconv.ParseUint(os.Getenv("FAIRLEAD_TORTURE_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: FAIRLEAD_TORTURE_SEED=%d FAIRLEAD_TORTURE=%d plays it again", seed, seed, rounds)
	var table []tally
	for _, b := range blows {
		if !long && !b.small {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			k := &torture{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), rounds: rounds}
			defer func() { table = append(table, k.tally) }()
			if b.space {
				k.inside(b, seed)
				return
			}
			defer k.verdict(seed) // also where it came to an end before its time
			k.deal(b)
		})
	}
	t.Log("\n" + tableOf(table))
}
