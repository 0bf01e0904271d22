// Package indexer keeps the search index up to date.
//
// It runs in a goroutine of its own, reads only what is durable, rests as
// long as it has worked while it catches up, and never asks the loop. If the index cannot be written,
// the indexer reports that once, tries again, and the daemon goes on.
//
// The journal is the clock: changes are taken in order, and the output of a session is read up to the
// place that a change names (a report of usage, or the end). So an index that is built again has the
// same passages in nearly the same order as one that was kept all the time. At the end of the journal
// the output of the sessions that run is read, whole lines only.
//
// Only what the page and the command line show is indexed: texts of changes, and the facts that the
// driver recognises in the output. The arguments of tool calls are left out.
//
// The one promise: whatever is in the journal and in the spools is found by a search a few seconds later,
// and nothing waits for it.
package indexer
