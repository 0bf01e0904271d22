// Package change has what every state machine, the journal, the files, the API and the page have in common: what an input is
// about, a change, who caused it, and what an agent used.
//
// A machine takes inputs, decides changes and applies them. The journal stores them, with their bodies as JSON.
//
// The one promise: each of these exists once, from where it arises to where it is shown.
package change

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Change is one fact that a machine has found.
type Change struct {
	Machine string
	Entity  string // MACHINE/NAME; of a run: run/ID, of a step run/ID/STEP
	Row     string // the rule that made it (SPEC id)
	From    string
	To      string
	Trigger string
	At      time.Time
	Actor   Actor
	Body    Body
}

// Actor is the origin of a change.
type Actor struct {
	Kind string `json:"kind" doc:"human, agent or engine"`
	ID   string `json:"id" doc:"Who exactly"` // a login name, an agent's name, a part of the engine
}

// Name is the actor in one word, such as human/ann.
func (a Actor) Name() string { return strings.TrimSuffix(a.Kind+"/"+a.ID, "/") }

// Body is what Apply needs: a pointer to a struct. Every value in it is absolute, or names what it is added to, so that Apply needs
// neither a table nor a rule.
type Body interface {
	// JSONKey is the only key of the object that the journal stores. It is permanent, so that new bodies do not affect old ones.
	JSONKey() string
}

// As returns a body of a type; nil: it is one of another type.
func As[T any](b Body) *T {
	is, _ := any(b).(*T)
	return is
}

// Encode returns a body as the journal stores it.
func Encode(b Body) ([]byte, error) {
	return json.Marshal(map[string]Body{b.JSONKey(): b})
}

// Bodies are the bodies that a journal can have: a value of each type, which stays empty.
type Bodies []Body

// Decode is the opposite of Encode. It fails for a body that is not one of these, which a newer version may have written.
func (all Bodies) Decode(data []byte) (Body, error) {
	read := json.NewDecoder(bytes.NewReader(data))
	if start, err := read.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("a change needs an object with one key")
	}
	key, err := read.Token()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(b Body) bool { return b.JSONKey() == key })
	if at < 0 {
		return nil, fmt.Errorf("no change has the key %v", key)
	}
	body, _ := reflect.New(reflect.TypeOf(all[at]).Elem()).Interface().(Body)
	if err := read.Decode(body); err != nil {
		return nil, err
	}
	if end, err := read.Token(); err != nil || end != json.Delim('}') {
		return nil, errors.New("a change needs an object with one key")
	}
	return body, nil
}
