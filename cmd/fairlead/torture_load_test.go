package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// load is a team at work: agents that count into ledgers, a person who commands without
// rest, and a foreign program that writes into a file of its own accord.
type load struct {
	*torture
	rig    *rig
	client *apiclient.Client
	mark   string // what the marks of this workspace begin with

	gate   sync.RWMutex // read-locked by each action of the load; write-locked by the checks
	doing  context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	wants map[string]*wish // by agent
	notes map[string]uint64
	twice map[string]bool // pairs of sessions that were seen alive side by side

	killed  map[string]int64 // sessions whose shim we killed, with what was spooled before
	known   map[string]bool  // sessions that the journal has opened
	ended   map[string]int64 // bytes that the journal says a session has said
	found   map[string]bool  // notes that the journal has
	checked map[string]bool  // sessions whose output was compared
	starts  map[string]int   // lines of each agent's list that were looked at
	begun   []string         // what those lines named
	after   uint64           // the journal was read up to here
	damaged string           // what was damaged in this round, for messages
	torn    bool             // bytes were taken away in this round that held acknowledged orders
	held    int              // shims that were ever seen: without any, the check proves nothing
}

// The possible desired states of one agent, as far as the load knows them.
type wish struct {
	desired string   // the last that was acknowledged, or written
	perhaps []string // asked for since, without an answer
	any     bool     // a write of the test failed midway, so the state is unknown
}

const (
	commanded = "ada bob eve" // by the person
	scribbled = "fay"         // by the foreign program

	moment   = 2 * time.Minute       // how long the daemon may take until what it says is so, on machines with much other work
	lookTime = 30 * time.Millisecond // between two looks at the process table
)

// tortureProgram is counting that leaves a process running in every third session.
const tortureProgram = `[ $((${FAIRLEAD_SESSION##*-} % 3)) -ne 0 ] || setsid sleep 1000 > /dev/null 2>&1 &
` + counting

var tortureAgents = []string{"ada", "bob", "eve", scribbled}

func tortureFiles() map[string]string {
	yaml := "version: 1\nagents:\n"
	for _, name := range tortureAgents {
		yaml += fmt.Sprintf("  %s: {driver: exec, command: [sh, ../count.sh], workspace: %s, failures_max: 1000, backoff: {first: 1ms, max: 1ms}}\n", name, name)
	}
	return map[string]string{"fairlead.yaml": yaml, "count.sh": tortureProgram}
}

// underLoad deals a blow in each round to a team at work, and counts after each.
func underLoad(strike func(*load)) func(*torture) {
	return func(k *torture) {
		l := k.work(newRig(k.t, tortureFiles()))
		defer l.rest()
		l.again(strike)
	}
}

// again strikes and counts, as often as is wanted.
func (l *load) again(strike func(*load)) {
	for round := range l.rounds {
		l.begins(round)
		pass(l.upTo(300 * time.Millisecond)) // the random moment
		l.damaged, l.torn = "", false
		strike(l)
		l.count()
		l.tally.Rounds++
	}
	l.countLog()
	if l.rounds > tortureSmall && l.held == 0 { // few rounds may each fall between two sessions
		l.wrong(&l.tally.Other, "not one shim was ever seen: the counts prove nothing")
	}
}

func contextFor(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// pass lets real time pass: for once it is the moment that is wanted, not a condition.
func pass(d time.Duration) { wait.Pause(d) }

// work sets the load going.
func (k *torture) work(s *rig) *load {
	k.t.Helper()
	l := &load{
		torture: k, rig: s, client: s.client(), mark: markOf(s.dir),
		wants: map[string]*wish{}, notes: map[string]uint64{}, twice: map[string]bool{}, killed: map[string]int64{},
		known: map[string]bool{}, ended: map[string]int64{}, found: map[string]bool{}, checked: map[string]bool{}, starts: map[string]int{},
	}
	for _, name := range tortureAgents {
		s.must("start", name)
		l.wants[name] = &wish{desired: "continuous"}
	}
	l.resume()
	return l
}

// resume sets the load going again after rest.
func (l *load) resume() {
	l.doing, l.cancel = context.WithCancel(context.Background())
	seed := l.rnd.Uint64()
	l.done.Go(func() { l.repeat(seed, 20*time.Millisecond, l.command) })
	l.done.Go(func() { l.repeat(seed+1, 60*time.Millisecond, l.scribble) })
	l.done.Go(func() { l.repeat(seed+2, lookTime, func(*torture) { l.lookForDoubles() }) })
}

// rest ends the load; what runs goes on.
func (l *load) rest() {
	l.cancel()
	l.done.Wait()
}

func (l *load) repeat(seed uint64, pause time.Duration, act func(*torture)) {
	k := &torture{rnd: newRand(seed)}
	for l.doing.Err() == nil {
		l.gate.RLock()
		if l.doing.Err() == nil {
			act(k)
		}
		l.gate.RUnlock()
		pass(k.upTo(pause))
	}
}

// command gives one order and remembers whether it was acknowledged.
func (l *load) command(k *torture) {
	name := tortureAgents[k.rnd.IntN(3)]
	verb, desired := api.Start, "continuous"
	if k.rnd.IntN(2) == 0 {
		verb, desired = api.Stop, "pause"
	}
	note := fmt.Sprintf("order %x", k.rnd.Uint64())
	l.mu.Lock()
	w := l.wants[name]
	w.perhaps = append(w.perhaps, desired)
	l.mu.Unlock()
	ctx, cancel := contextFor(rigWait)
	defer cancel()
	answer, err := l.client.Command(ctx, verb, name, note)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		return // nothing was promised; it may have come to pass all the same
	}
	*w = wish{desired: desired}
	l.notes[note] = answer.Seq
	l.tally.Acknowledged++
}

// scribble is a foreign Mission Control: it reads the file, changes it and writes it back
// where it lies, as the seed's own does.
func (l *load) scribble(k *torture) {
	path := filepath.Join(l.rig.dir, scribbled, "agent_state.json")
	text, err := os.ReadFile(path)
	var state map[string]any
	if err != nil || json.Unmarshal(text, &state) != nil {
		return
	}
	desired := []string{"continuous", "pause"}[k.rnd.IntN(2)]
	state["desired_state"] = desired
	state["timestamp"] = time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	state["setBy"] = "human"
	state["note"] = fmt.Sprintf("written %x", k.rnd.Uint64())
	text, err = json.MarshalIndent(state, "", "  ")
	if err != nil {
		panic(err) // a map of plain values
	}
	err = os.WriteFile(path, text, 0o600)
	l.mu.Lock()
	defer l.mu.Unlock()
	*l.wants[scribbled] = wish{desired: desired, any: err != nil}
	l.tally.Written++
}

// up starts the daemon again, and stops everything where it does not come.
func (l *load) up() {
	l.t.Helper()
	if said, err := l.rig.tryUp(); err != nil {
		l.t.Fatalf("round %d: the daemon did not come back: %v; it said: %s", l.round, err, said)
	}
}

// lookForDoubles checks whether one agent has two live sessions. All processes cannot be listed at
// one instant; two that both still live after both were seen lived at the same time.
func (l *load) lookForDoubles() {
	seen := l.census()
	for i, a := range seen {
		for _, b := range seen[i+1:] {
			if a.shim || b.shim || a.session == b.session || agentIn(a.session) != agentIn(b.session) {
				continue
			}
			if !a.lives() || !b.lives() {
				continue
			}
			l.mu.Lock()
			if pair := a.session + " and " + b.session; !l.twice[pair] {
				l.twice[pair] = true
				l.wrong(&l.tally.Doubles, "%s live at the same time: processes %d (%s) and %d (%s)", pair, a.pid, a.command, b.pid,
					b.command)
			}
			l.mu.Unlock()
		}
	}
}
