package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// StepsDefault is the default number of acts in a day: enough for three or four engines, and few
// enough for a thousand days a second on a few processors.
const StepsDefault = 120

// Failure is a broken promise.
type Failure struct {
	Promise Promise `json:"promise"`
	Why     string  `json:"why"`
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s (%s: %s): %s", f.Promise.Name, f.Promise.From, f.Promise.Says, f.Why)
}

// Result is the result of a day.
type Result struct {
	Seed     uint64   `json:"seed"`
	Acts     []Act    `json:"acts"`              // the acts that the director chose
	Changes  uint64   `json:"changes"`           // changes in the journal at the end
	Starts   int      `json:"starts"`            // number of sessions
	Engines  int      `json:"engines"`           // number of engines
	Failure  *Failure `json:"failure,omitempty"` // nil: every promise held
	Trace    []Step   `json:"trace,omitempty"`   // only if it was requested
	Shortest bool     `json:"shortest,omitempty"`
}

// Day plays one day in its own bubble. The same seed, steps and folder give the same acts. The
// folder must exist. It is the workspace in the agents' configuration, and no file is written to
// it.
func Day(t *testing.T, folder string, seed uint64, steps int, tracing bool) Result {
	rnd := rand.New(rand.NewPCG(seed, 0))
	m, first := drawMix(rnd, seed), opening(seed)
	return play(t, folder, seed, tracing, func(w *world, n int) (Act, bool) {
		switch {
		case n < len(first):
			return first[n], true
		case n >= len(first)+steps:
			return Act{}, false
		}
		return w.draw(rnd, m), true
	})
}

// again plays given acts with the seed of a day.
func again(t *testing.T, folder string, seed uint64, acts []Act, tracing bool) Result {
	return play(t, folder, seed, tracing, func(_ *world, n int) (Act, bool) {
		if n >= len(acts) {
			return Act{}, false
		}
		return acts[n], true
	})
}

func play(t *testing.T, folder string, seed uint64, tracing bool, next func(w *world, n int) (Act, bool)) (r Result) {
	r.Seed = seed
	var w *world
	defer func() { // the bubble panics if a goroutine does not end
		if p := recover(); p != nil {
			r.Failure = &Failure{Promise: becomesIdle, Why: fmt.Sprint(p)}
			if w != nil {
				r.Trace = w.trace
			}
		}
	}()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(seed, folder, tracing)
		defer w.end()
		for n := 0; !w.failed(); n++ {
			act, ok := next(w, n)
			if !ok {
				break
			}
			r.Acts = append(r.Acts, act)
			w.do(act)
		}
		if !w.failed() {
			w.do(Act{Do: "end-of-day"})
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		r.Changes, r.Starts, r.Engines, r.Failure, r.Trace = w.head, len(w.started), len(w.engines), w.failure, w.trace
	})
	return r
}

// shortenMax limits the time to shorten a trace, because a person waits for it.
const shortenMax = 20 * time.Second

// Shorten removes acts from a day as long as the day still breaks the same promise. It returns the
// shortest day found, with its trace. If the day does not fail again, Shorten returns it unchanged,
// with its trace.
func Shorten(t *testing.T, folder string, long Result) Result {
	fails := func(acts []Act) (Result, bool) {
		r := again(t, folder, long.Seed, acts, false)
		return r, r.Failure != nil && r.Failure.Promise == long.Failure.Promise
	}
	best, began := long.Acts, time.Now()
	for part := (len(best) + 1) / 2; part > 0; part /= 2 {
		for at := 0; at < len(best) && time.Since(began) < shortenMax; {
			rest := slices.Concat(best[:at], best[min(at+part, len(best)):])
			if r, still := fails(rest); still {
				best = r.Acts // the promise may be broken earlier now
				continue
			}
			at += part
		}
	}
	r := again(t, folder, long.Seed, best, true)
	if r.Failure == nil || r.Failure.Promise != long.Failure.Promise {
		r = again(t, folder, long.Seed, long.Acts, true)
		r.Failure = long.Failure
		return r
	}
	r.Shortest = true
	return r
}
