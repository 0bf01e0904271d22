// Package configure changes the agents of fairlead.yaml: for `fairlead agent`, and for the API.
//
//	command, Mission Control ──► Preview ──► diff and sum ──► a person ──► Write ──► file ──► reload
//
// Nothing is written that would not load: the new text is checked as `fairlead reload` checks it. The sum of the
// file that the diff was made from comes with the order to write; a file that changed meanwhile is not replaced.
//
// The one promise: what is written is exactly what the last Preview with that sum showed.
package configure
