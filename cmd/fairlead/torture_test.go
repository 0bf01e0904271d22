package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A blow is one way to break a running team on purpose.
type blow struct {
	name  string
	small bool // a few rounds of it belong to the ordinary tests
	space bool // it needs a user and mount namespace of its own
	run   func(*torture)
}

// blows are all of them; doc/testing.md says what each one does.
var blows = []blow{
	{name: "kill_daemon", run: underLoad(killDaemon)}, // TestKilledDaemon is the small one
	{name: "kill_shims", small: true, run: underLoad(killShims)},
	{name: "kill_agents", run: underLoad(killAgents)}, // TestKilledAgent is the small one
	{name: "kill_all", small: true, run: underLoad(killAll)},
	{name: "kill_all_new_boot", small: true, space: true, run: newBoot},
	{name: "stop_daemon", small: true, run: underLoad(stopDaemon)},
	{name: "stop_shim", small: true, run: underLoad(stopShim)},
	{name: "stop_agent", run: underLoad(stopAgent)},
	{name: "stop_shim_kill_daemon", run: underLoad(stopShimKillDaemon)},
	{name: "disk_full", small: true, space: true, run: fullDisk},
	{name: "disk_read_only", small: true, space: true, run: readOnlyDisk},
	{name: "journal_bit", run: underLoad(flipBit)},
	{name: "journal_torn", small: true, run: underLoad(tearTail)},
	{name: "file_missing", small: true, run: underLoad(removeFile)},
	{name: "race_of_20", run: underLoad(raceDaemons)},
	{name: "clock_monotonic_back", run: monotonicBack},
	{name: "clock_wall_back", run: func(k *torture) {
		k.tally.Skipped = "nobody but root may set it, and then for the whole machine: see the tests of the clock in engine, and sim"
	}},
}

// tally is what one blow came to. All counts but the last five are wanted to be 0.
type tally struct {
	Blow    string
	Skipped string // why nothing was done
	Rounds  int

	Strays  int // processes without a shim
	Doubles int // a session started twice, or two alive for one agent
	// sessions of which lines that were said are gone, or there twice; and a log of transitions that is not what the journal tells
	Output   int
	Commands int // acknowledged or written, and not there
	Statuses int // a status that is not so, after a moment
	Other    int // anything else that is not as it should be

	Sessions, Acknowledged, Written int // how much was going on
	Refused                         int // starts that were refused with words, as they should
	Cut                             int // acknowledged, and then cut off with the bytes that held it: no promise covers it
	Took                            time.Duration

	Words []string // what was seen, for each count
}

func (c *tally) wrong() int {
	return c.Strays + c.Doubles + c.Output + c.Commands + c.Statuses + c.Other
}

// torture is one blow, dealt again and again.
type torture struct {
	t      *testing.T
	rnd    *rand.Rand
	rounds int
	round  int

	telling sync.Mutex // two may find something at once
	tally   tally
}

// wordsMax is how many findings are printed: a thousand equal ones do not help.
const wordsMax = 20

func (k *torture) wrong(count *int, format string, args ...any) {
	k.telling.Lock()
	defer k.telling.Unlock()
	*count++
	if len(k.tally.Words) < wordsMax {
		k.tally.Words = append(k.tally.Words, fmt.Sprintf("round %d: ", k.round)+fmt.Sprintf(format, args...))
	}
}

// begins says which round it is.
func (k *torture) begins(round int) {
	k.telling.Lock()
	defer k.telling.Unlock()
	k.round = round
}

// upTo draws a moment.
func (k *torture) upTo(most time.Duration) time.Duration {
	return time.Duration(k.rnd.Int64N(int64(most)))
}

const tortureSmall = 3 // up to so many rounds only the small blows are dealt

func (k *torture) deal(b blow) {
	k.tally.Blow = b.name
	began := time.Now()
	defer func() { k.tally.Took = time.Since(began).Round(100 * time.Millisecond) }()
	b.run(k)
}

func (k *torture) verdict(seed uint64) {
	if k.tally.Skipped != "" {
		k.t.Skip(k.tally.Skipped)
	}
	if n := k.tally.wrong(); n > 0 {
		k.t.Errorf("seed %d: %d counts, and 0 are wanted:\n%s", seed, n, strings.Join(k.tally.Words, "\n"))
	}
}

// tableOf is what doc/testing.md shows.
func tableOf(all []tally) string {
	var b strings.Builder
	b.WriteString("| blow | rounds | strays | doubles | lost output | lost commands | false statuses | other | sessions | acknowledged | written | refused | cut | took |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, c := range all {
		if c.Skipped != "" {
			fmt.Fprintf(&b, "| %s | skipped: %s |\n", c.Blow, c.Skipped)
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %s |\n", c.Blow, c.Rounds,
			c.Strays, c.Doubles, c.Output, c.Commands, c.Statuses, c.Other, c.Sessions, c.Acknowledged, c.Written, c.Refused, c.Cut, c.Took)
	}
	return b.String()
}

// inside deals a blow in a user and mount namespace of its own, where we may mount.
func (k *torture) inside(b blow, seed uint64) {
	k.tally.Blow = b.name
	if why, err := exec.Command("unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", os.TempDir()).CombinedOutput(); err != nil {
		k.tally.Skipped = fmt.Sprintf("this machine lets us mount nothing: %v %s", err, strings.TrimSpace(string(why)))
		k.t.Skip(k.tally.Skipped)
	}
	answer := filepath.Join(k.t.TempDir(), "tally")
	words := []string{"-Urm", os.Args[0], "-test.run=^TestInsideNamespace$", "-test.v"}
	if deadline, ok := k.t.Deadline(); ok {
		words = append(words, "-test.timeout="+time.Until(deadline).String())
	}
	cmd := exec.Command("unshare", words...)
	cmd.Env = append(os.Environ(), programVar+"="+program, "FAIRLEAD_TORTURE_INSIDE="+b.name, "FAIRLEAD_TORTURE_ANSWER="+answer,
		"FAIRLEAD_TORTURE="+strconv.Itoa(k.rounds), "FAIRLEAD_TORTURE_SEED="+strconv.FormatUint(seed, 10))
	out, err := cmd.CombinedOutput()
	text, rerr := os.ReadFile(answer)
	if rerr == nil {
		rerr = json.Unmarshal(text, &k.tally)
	}
	if err != nil || rerr != nil {
		k.t.Errorf("seed %d: %v, %v\n%s", seed, err, rerr, out)
	}
}

// TestInsideNamespace is what TestTorture runs of itself in a namespace; alone it does nothing.
func TestInsideNamespace(t *testing.T) {
	name := os.Getenv("FAIRLEAD_TORTURE_INSIDE")
	if name == "" {
		t.Skip("TestTorture runs this")
	}
	os.Unsetenv("FAIRLEAD_TORTURE_INSIDE")
	run, err := os.MkdirTemp("", "fl-run-") //nolint:usetesting // short, and its owner is who we are in here
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) }) // after the rig's own
	t.Setenv("XDG_RUNTIME_DIR", run)
	seed, err := strconv.ParseUint(os.Getenv("FAIRLEAD_TORTURE_SEED"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	rounds, err := strconv.Atoi(os.Getenv("FAIRLEAD_TORTURE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blows {
		if b.name != name {
			continue
		}
		k := &torture{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), rounds: rounds}
		defer func() {
			text, err := json.Marshal(k.tally)
			if err == nil {
				err = os.WriteFile(os.Getenv("FAIRLEAD_TORTURE_ANSWER"), text, 0o600)
			}
			if err != nil {
				t.Error(err)
			}
		}()
		defer k.verdict(seed)
		k.deal(b)
	}
}
