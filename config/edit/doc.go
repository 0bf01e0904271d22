// Package edit changes one agent of fairlead.yaml and keeps the rest of the file as it is.
//
// The text is not written again from values. The tree of the file says at which line and column a key is,
// and only the bytes of the keys that a person changed are replaced, added or removed: comments, order, blank
// lines, quotes and line endings elsewhere stay. What cannot be changed so, such as an entry with an anchor or
// a merge key, is refused, and the message says what to do by hand.
//
//	text, sum ──► Describe ──► Agent (a form) ──► Change ──► Apply ──► new text ──► Diff
//	                                                                       └──► Write, bound to sum
//
// Values of an agent's environment never leave the file: Describe has only names, and Diff hides the values.
//
// The one promise: after Apply every other agent and every key that was not changed has the value that it had,
// or Apply returns an error; and Write replaces only the file whose sum it was given, whole or not at all.
package edit
