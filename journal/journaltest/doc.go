// Package journaltest is the suite that every journal must pass, and a journal that
// fails on command.
//
// Think of it as the harbour's inspection: each ledger that wants to sail is loaded,
// read by many at once, closed in the middle of a sentence, opened again, and
// compared line by line with what was put in.
//
// Whoever writes a backend calls [Run] from a test and is done. Whoever tests
// something that stands on a journal wraps one in [Faulty] and chooses when it fails.
//
// The promise: two backends that pass cannot be told apart through the interface.
package journaltest
