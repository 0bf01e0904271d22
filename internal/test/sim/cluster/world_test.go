// Package cluster simulates a team on many hosts, and checks the rules of package host.
//
// Everything that decides is the code of Fairlead: [host] for leases and placement, [attempt] for appends to
// a replicated journal, the package team for what agents do, the journal's chain for mirrors. Everything around
// it is simulated here: the engine that stores the journal and the leases, the network, the clocks of the
// hosts, daemons, shims and processes, and people who give orders. One thread takes one event after the
// other from a queue, so a seed gives the same run each time.
//
//	people ──► daemon ──► leader: team + hosts ──► attempt ──► engine (3 nodes) ──► mirrors of all hosts
//	              │                                                                      │
//	              └── guard ──► shim ──► process ──► [check] ◄── every message, start and end
//
// The engine answers as JetStream was seen to answer: late, not at all after it has stored, and with error
// 10071 where there is no conflict. A node that is cut off shows the past. Faults come at random: partitions,
// one-way links, stopped daemons, sleeping and restarting machines, clocks that run fast or slow or jump,
// lost and damaged stores, lost mirrors.
//
// The checks use true time and the true order of messages, which no host knows. They are in check_test.go.
//
// What is simulated in less detail: agents are not connected to their channels, so channels hold messages
// of people but give no turns; runs of workflows are left out; an engine never loses two of three stores.
//
// The one promise: a broken rule is reported with the seed that leads to it.
package cluster

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Size is how much a run simulates.
type Size struct {
	Hosts, Agents, Channels int
	Faults                  time.Duration // how long faults happen
	Calm                    time.Duration // after them, until everything must have settled
	Session                 time.Duration // about how long a session takes
	Orders                  time.Duration // about how often a person gives one
}

// Rules that are checked. Each failure names one.
const (
	ordersOnce    = "every acknowledged order is present once, and in order"
	refusedAbsent = "an order that was answered as not stored is not in the journal"
	oneChain      = "one chain is on all mirrors"
	epochsRise    = "epochs only rise, and only the leader of the newest epoch writes"
	oneProcess    = "a session has at most one process"
	pauseHolds    = "no process starts after a pause was acknowledged"
	leaseHolds    = "no process runs after its host's lease ended"
	movedSafely   = "a session moves only when its process has ended"
	lateIsLate    = "a late report moves nothing"
	settles       = "everything comes to rest when the faults are over"
)

// Failure is a rule that did not hold.
type Failure struct {
	Rule string
	Why  string
	At   time.Duration
}

func (f *Failure) Error() string { return fmt.Sprintf("after %v: %s: %s", f.At, f.Rule, f.Why) }

// What a run can meet. A test without faults proves little.
const (
	messages       = "messages"
	changes        = "changes"
	epochs         = "epochs"
	starts         = "processes begun"
	leaseEnds      = "processes ended by their lease"
	lost           = "hosts lost"
	closed         = "leases closed"
	moved          = "sessions moved"
	late           = "late reports"
	retries        = "messages sent again"
	falseConflicts = "error 10071 without a conflict"
	conflicts      = "conflicts"
	pauses         = "pauses acknowledged"
	rebuilt        = "damaged stores found"
)

// Counts are how often it was met.
type Counts map[string]int

// world is the truth of one run.
type world struct {
	size    Size
	rnd     *rand.Rand
	now     time.Duration
	queue   queue
	n       uint64 // of events so far
	peers   []*peer
	blocked map[[2]int]bool // from, to: nothing passes
	faulty  bool            // answers are lost, late and wrong
	slowly  time.Duration   // how long each message takes to be stored; 0: none is slow, but by chance
	mute    int             // so many stored messages are not answered
	engine  engine
	truth   truth
	counts  Counts
	failure *Failure
	trace   []string // of faults, leaders and losses
}

type event struct {
	at time.Duration
	n  uint64
	do func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// in lets something happen after a time.
func (w *world) in(d time.Duration, do func()) {
	w.n++
	heap.Push(&w.queue, event{w.now + d, w.n, do})
}

// until lets all happen that happens until a time.
func (w *world) until(end time.Duration) {
	for w.failure == nil && len(w.queue) > 0 && w.queue[0].at <= end {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
	}
	w.now = max(w.now, end)
}

func (w *world) broken(rule, why string, args ...any) {
	if w.failure == nil {
		w.failure = &Failure{rule, fmt.Sprintf(why, args...), w.now}
	}
}

func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rnd.Int64N(int64(to-from)))
}

func (w *world) chance(percent int) bool { return w.rnd.IntN(100) < percent }

// newWorld makes the hosts: the first three have the engine's nodes.
func newWorld(seed uint64, size Size) *world {
	w := &world{size: size, counts: Counts{}, rnd: rand.New(rand.NewPCG(seed, 19)), blocked: map[[2]int]bool{}}
	w.engine = newEngine()
	w.truth = newTruth(w)
	for i := range size.Hosts {
		w.peers = append(w.peers, newPeer(w, i))
	}
	w.engineChanged()
	for _, p := range w.peers {
		w.in(w.between(0, time.Second), func() { p.begin() })
	}
	return w
}

// run plays one run: faults, then calm.
func run(t *testing.T, seed uint64, size Size) *world {
	t.Helper()
	w := newWorld(seed, size)
	w.until(30 * time.Second)
	w.faulty = true
	w.people()
	w.faults()
	w.until(w.now + w.size.Faults)
	w.heal()
	w.until(w.now + w.size.Calm)
	w.checkEnd()
	if w.failure != nil {
		t.Fatalf("seed %d: %v\n%s", seed, w.failure, strings.Join(w.trace[max(0, len(w.trace)-traceMax):], "\n"))
	}
	return w
}

const traceMax = 60 // the last lines are what a failure needs

// note writes a line of the trace.
func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%12v  ", w.now.Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// reaches reports whether something sent by one host arrives at the other now.
func (w *world) reaches(from, to *peer) bool {
	return from == to || from.side == to.side && !w.blocked[[2]int{from.i, to.i}]
}

// send carries a message to another daemon. It is lost if the way is cut when it leaves or when it arrives;
// a daemon that is stopped finds it later.
func (w *world) send(from, to *peer, arrives func()) {
	if !w.reaches(from, to) || w.faulty && w.chance(1) {
		return
	}
	life := to.life
	w.in(w.latency(), func() {
		if w.reaches(from, to) && to.life == life {
			to.run(arrives)
		}
	})
}

func (w *world) latency() time.Duration {
	if w.faulty && w.chance(2) {
		return w.between(0, 4*time.Second)
	}
	return w.between(time.Millisecond, 10*time.Millisecond)
}
