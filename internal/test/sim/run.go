package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// StepsDefault is the default length of a day: long enough for three or four engines, short enough
// for a thousand days a second on a few processors.
const StepsDefault = 120

// Failure is a promise that did not hold.
type Failure struct {
	Promise Promise `json:"promise"`
	Why     string  `json:"why"`
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s (%s: %s): %s", f.Promise.Name, f.Promise.From, f.Promise.Says, f.Why)
}

// Result is what came of a day.
type Result struct {
	Seed     uint64   `json:"seed"`
	Acts     []Act    `json:"acts"`              // what the stagehand chose
	Changes  uint64   `json:"changes"`           // in the journal, at the end
	Starts   int      `json:"starts"`            // of sessions
	Engines  int      `json:"engines"`           // that lived
	Failure  *Failure `json:"failure,omitempty"` // nil: every promise held
	Trace    []Step   `json:"trace,omitempty"`   // where it was asked for
	Shortest bool     `json:"shortest,omitempty"`
}

// Day plays one day in a bubble of its own. The same seed, steps and folder give the same
// acts. Folder is an existing one that agents are told is their workspace; nothing is written
// to it.
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

// again plays the acts of a day once more, or what is left of them.
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
	defer func() { // the bubble panics if a goroutine is left in it
		if p := recover(); p != nil {
			r.Failure = &Failure{Promise: comesToRest, Why: fmt.Sprint(p)}
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
			w.do(Act{Do: "evening"})
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		r.Changes, r.Starts, r.Engines, r.Failure, r.Trace = w.head, len(w.order), len(w.lives), w.failure, w.trace
	})
	return r
}

// shortenMax limits the time spent on making a trace shorter, because a person waits for it.
const shortenMax = 20 * time.Second

// Shorten takes acts away from a day that broke a promise, for as long as it still breaks
// the same one, and gives the shortest day found, with its trace. A day that does not
// fail again is given back with its trace as it is.
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
				best = r.Acts // it may have broken earlier
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
