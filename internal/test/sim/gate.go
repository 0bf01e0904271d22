package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// errDead is what an engine meets after its death: nothing that it does has any effect.
var errDead = errors.New("this engine is dead")

// fate is what the stagehand decides about one who waits at the gate.
type fate string

const (
	goOn      fate = "go"     // it happens
	fails     fate = "fail"   // it does not happen, and the engine is told why
	late      fate = "late"   // it happens, and the engine is told that it failed
	dies      fate = "die"    // the engine dies before it happens
	diesDone  fate = "die-ok" // it happens, and the engine dies before it is told
	raced     fate = "race"   // write: another program writes between the last read and the exchange
	cannotRun fate = "cannot" // start: the command cannot be executed
)

// knock is one act that waits at the gate.
type knock struct {
	key  string // what it is, the same in every replay of a day
	life *life
	told chan fate
}

// wait waits at the gate until the stagehand has decided.
func (w *world) wait(l *life, what string) fate {
	w.mu.Lock()
	if l.dead {
		w.mu.Unlock()
		return dies
	}
	k := &knock{key: w.keyOf(l, what), life: l, told: make(chan fate, 1)}
	w.gate = append(w.gate, k)
	w.mu.Unlock()
	select {
	case f := <-k.told:
		return f
	case <-l.gone:
		w.leave(k)
		return dies
	}
}

// keyOf names an act; a second one of the same kind at the same time has a number.
func (w *world) keyOf(l *life, what string) string {
	base := fmt.Sprintf("%s of engine %d", what, l.n)
	key := base
	for n := 2; w.at(key) != nil; n++ {
		key = fmt.Sprintf("%s (%d)", base, n)
	}
	return key
}

func (w *world) at(key string) *knock {
	for _, k := range w.gate {
		if k.key == key {
			return k
		}
	}
	return nil
}

func (w *world) leave(k *knock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate = slices.DeleteFunc(w.gate, func(other *knock) bool { return other == k })
}

// waiting lists who waits, in an order that does not depend on who came first.
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

// let decides about one operation that waits. It is no error if none waits under that name, because
// in a shortened day many operations do not happen.
func (w *world) let(key string, f fate) bool {
	w.mu.Lock()
	k := w.at(key)
	w.mu.Unlock()
	if k == nil {
		return false
	}
	w.leave(k)
	k.told <- f
	return true
}

// act is something that an engine does to the world.
func (w *world) act(l *life, what string, do func() error) error {
	switch f := w.wait(l, what); f {
	case goOn, raced, cannotRun:
		return do()
	case fails:
		return w.inject(l, what)
	case late:
		_ = do() // its result is discarded
		return w.inject(l, what)
	case diesDone:
		_ = do()
		w.die(l)
		return errDead
	default:
		w.die(l)
		return errDead
	}
}

// inject is a fault. Its words are looked for later: every error is to be said.
func (w *world) inject(l *life, what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults++
	text := fmt.Sprintf("injected fault %d: %s", w.faults, what)
	l.faults = append(l.faults, text)
	return errors.New(text)
}

// kind is the first word of what is done: append, start, adopt, …
func kind(key string) string {
	word, _, _ := strings.Cut(key, " ")
	return word
}
