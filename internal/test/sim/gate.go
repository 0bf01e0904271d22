package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// errDead is the result of every operation of an engine that has crashed.
var errDead = errors.New("this engine is dead")

// outcome is what the director decides about an operation that waits at the gate.
type outcome string

const (
	proceeds      outcome = "go"     // it is done
	fails         outcome = "fail"   // it is not done, and the engine gets an error
	replyLost     outcome = "late"   // it is done, but the engine gets an error
	crashBefore   outcome = "die"    // the engine crashes before it is done
	crashAfter    outcome = "die-ok" // it is done, and the engine crashes before it gets the result
	raceWrite     outcome = "race"   // a write: another program writes between the engine's read and its exchange
	notExecutable outcome = "cannot" // a start: the command cannot be executed
)

// operation is one effect of an engine that waits at the gate.
type operation struct {
	key     string // its name, which is the same in every replay of a day
	engine  *engineRun
	decided chan outcome
}

// wait blocks until the director has decided about an operation.
func (w *world) wait(l *engineRun, what string) outcome {
	w.mu.Lock()
	if l.dead {
		w.mu.Unlock()
		return crashBefore
	}
	k := &operation{key: w.keyOf(l, what), engine: l, decided: make(chan outcome, 1)}
	w.gate = append(w.gate, k)
	w.mu.Unlock()
	select {
	case f := <-k.decided:
		return f
	case <-l.gone:
		w.leave(k)
		return crashBefore
	}
}

// keyOf names an operation. A second one of the same name gets a number.
func (w *world) keyOf(l *engineRun, what string) string {
	base := fmt.Sprintf("%s of engine %d", what, l.n)
	key := base
	for n := 2; w.at(key) != nil; n++ {
		key = fmt.Sprintf("%s (%d)", base, n)
	}
	return key
}

func (w *world) at(key string) *operation {
	for _, k := range w.gate {
		if k.key == key {
			return k
		}
	}
	return nil
}

func (w *world) leave(k *operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate = slices.DeleteFunc(w.gate, func(other *operation) bool { return other == k })
}

// waiting lists the waiting operations in an order that does not depend on their arrival.
func (w *world) waiting() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := make([]string, len(w.gate))
	for i, k := range w.gate {
		keys[i] = k.key
	}
	slices.Sort(keys)
	return keys
}

// decide decides about one waiting operation. An unknown key is no error, because in a shortened
// day many operations do not happen.
func (w *world) decide(key string, f outcome) bool {
	w.mu.Lock()
	k := w.at(key)
	w.mu.Unlock()
	if k == nil {
		return false
	}
	w.leave(k)
	k.decided <- f
	return true
}

// act performs an operation of an engine with the outcome that the director chooses.
func (w *world) act(l *engineRun, what string, do func() error) error {
	switch f := w.wait(l, what); f {
	case proceeds, raceWrite, notExecutable:
		return do()
	case fails:
		return w.inject(l, what)
	case replyLost:
		_ = do() // the engine does not get its result
		return w.inject(l, what)
	case crashAfter:
		_ = do()
		w.crash(l)
		return errDead
	default:
		w.crash(l)
		return errDead
	}
}

// inject returns a fault. checkSaid looks for its text, because every error must be reported.
func (w *world) inject(l *engineRun, what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults++
	text := fmt.Sprintf("injected fault %d: %s", w.faults, what)
	l.faults = append(l.faults, text)
	return errors.New(text)
}

// kind returns the first word of a key: append, start, adopt, …
func kind(key string) string {
	word, _, _ := strings.Cut(key, " ")
	return word
}
