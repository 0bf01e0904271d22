package proxy

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

const (
	foldEvery = time.Second
	// sessionEventsMax is how many hosts are kept of one session while no daemon reads: more than a build reaches. What is more is counted
	// without its name.
	sessionEventsMax = 1000
	eventsMax        = 20_000 // of all sessions: 10 MB
)

// events are folded by session, host, port and verdict until a daemon gets them.
type events struct {
	listens func() bool // whether a daemon is there
	tell    func(wire.Message) bool

	mu     sync.Mutex
	folded map[eventKey]wire.Event
	count  map[string]int // by session
	timer  *time.Timer    // nil: nothing waits
}

type eventKey struct {
	session, host string
	port          int
	verdict       wire.Verdict
}

func newEvents(listens func() bool, tell func(wire.Message) bool) *events {
	return &events{listens: listens, tell: tell, folded: map[eventKey]wire.Event{}, count: map[string]int{}}
}

func (e *events) add(one wire.Event) {
	one.First = time.Now().UTC()
	one.Last = one.First
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fold(one)
	e.schedule()
}

// fold adds an event to those that wait.
func (e *events) fold(one wire.Event) {
	key := eventKey{one.Session, one.Host, one.Port, one.Verdict}
	before, known := e.folded[key]
	if !known && (e.count[one.Session] >= sessionEventsMax || len(e.folded) >= eventsMax) {
		one.Host, one.Port, one.Why = "", 0, ""
		key.host, key.port = "", 0
		before, known = e.folded[key]
	}
	if !known {
		if len(e.folded) >= 2*eventsMax {
			return // more sessions than that have come and gone without a daemon
		}
		e.count[one.Session]++
		e.folded[key] = one
		return
	}
	before.Count += one.Count
	before.In += one.In
	before.Out += one.Out
	if one.First.Before(before.First) {
		before.First = one.First
	}
	if one.Last.After(before.Last) {
		before.Last = one.Last
	}
	if one.Why != "" {
		before.Why = one.Why
	}
	e.folded[key] = before
}

// schedule sends what waits a moment later. The first event of a moment is sent at once: a person waits for the question.
func (e *events) schedule() {
	if e.timer == nil {
		e.timer = time.AfterFunc(0, e.send)
	}
}

// wake sends what waited for a daemon.
func (e *events) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.folded) > 0 {
		e.schedule()
	}
}

// send sends what waits. It keeps it if no daemon listens.
func (e *events) send() {
	e.mu.Lock()
	if !e.listens() {
		e.timer = nil // wake sends again
		e.mu.Unlock()
		return
	}
	all := slices.SortedFunc(maps.Values(e.folded), func(a, b wire.Event) int { return a.First.Compare(b.First) })
	e.folded, e.count = map[eventKey]wire.Event{}, map[string]int{}
	e.mu.Unlock()
	told := 0
	for i := range all {
		if !e.tell(wire.Message{Event: &all[i]}) {
			break
		}
		told++
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range all[told:] {
		e.fold(one)
	}
	if told == 0 {
		e.timer = nil // wake, or the next event, sends again
		return
	}
	e.timer = time.AfterFunc(foldEvery, e.send)
}
