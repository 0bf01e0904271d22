// Package claude lets a program with Claude Code's hooks hold to a session.
//
// Think of a customs post on the road between a model and the world. The road's owner built the
// barrier and rings at every car (a hook); this package is the officer who comes out. Where the
// driver carries no papers of ours he waves at once and says nothing: most cars are none of his
// business. Where the car belongs to a journey that he knows (a session folder, found by the
// program's own id of its session) he looks into the book, writes down what passes, and turns
// back what may not: with a reason, and with the name of somebody who may. When his lamp goes
// out he leaves the barrier down.
//
// Decode reads what a hook is told, Hook.Answer decides, and an Answer says what goes to standard
// output, what to standard error and with which exit code. Settings adds the barrier to a
// settings file and takes it away again, to the byte.
//
// What it takes from the program is what the program says: the names of events, tools and fields
// are those that Claude Code documents. Fields and events that are not known are passed over;
// fields that are known and have another type are a fault.
//
// The one promise: inside a session no tool call passes because something here went wrong, and
// outside of one nobody notices that this is here.
package claudehook
