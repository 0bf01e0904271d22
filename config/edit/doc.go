// Package edit changes one agent of fairlead.yaml and keeps the rest of the file as it is.
//
// The tree of the file says at which line a key begins. Only the lines of the keys that a person changed are
// replaced, added or removed: comments, order, blank lines, quotes and line endings elsewhere stay. A mapping in
// braces is written again as a whole when one of its keys changes. What is a comment, and where a value ends, is
// asked of the reader of the file: the file says the same without a comment. What cannot be changed so, such as
// an entry with an anchor or a merge key, is refused, and the message says what to do by hand.
//
//	text, sum ──► Describe ──► Agent (a form) ──► Change ──► Apply ──► new text ──► Diff
//	                                                                       └──► Write, bound to sum
//
// Values of an agent's environment never leave the file: Describe has only names, and Diff hides the values.
//
// The one promise: after Apply every other agent and every key that was not changed has the value that it had,
// or Apply returns an error; and Write replaces only the file whose sum it was given, whole or not at all.
package edit
