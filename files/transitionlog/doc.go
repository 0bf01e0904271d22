// Package transitionlog formats the transition log (SPEC X6): one JSON object for each change of
// an agent's state, one line each.
//
// The format belongs to seed 000, and other programs read it. The time has milliseconds and ends
// in Z, the field order is fixed, and nothing is escaped for HTML.
//
// The one promise: each entry is exactly one line of valid JSON.
package transitionlog
