// Package change has what every state machine, the journal, the files, the API and the page have in common: who caused
// a change, and what an agent used.
//
// The one promise: each of these exists once, from where it arises to where it is shown.
package change

// Actor is the origin of a change.
type Actor struct {
	Kind string `json:"kind" doc:"human, agent or engine"`
	ID   string `json:"id" doc:"Who exactly"` // a login name, an agent's name, a part of the engine
}
