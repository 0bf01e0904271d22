// Package exchange reads, writes and watches files that other programs write too. It does not know
// what they contain: a Content says how a file is called, how large it may be and how it is parsed.
//
// Files watches one file in each of many folders, or all files of one folder. Each change by another
// program is delivered once and in order as a Seen.
//
// Other programs truncate and rewrite a file in place, so a read may return half of it. Content
// that does not parse is therefore read again before it is reported as malformed. It is kept whole:
// as a copy beside the file, or by PutAside. Write prepares a complete file and exchanges it with
// the current one (renameat2). The replaced file stays open for a while, because another program
// may still be writing to it; what it writes there is reported too. Links are not followed.
//
// A Projection is a file that only shows what Fairlead knows, as run_state.json does: it is not watched, its writes are not synced,
// and what another program wrote into it waits for the caller's decision.
//
// Limits:
//   - A program that read the file before our write, and writes after it, restores its old
//     copy of our fields. The result arrives as a Seen like any other change.
//   - A write to the replaced file is missed if it comes more than a second after the exchange.
//   - On a file system without exchange, a rename by another program between our last read and our
//     rename (microseconds) is lost.
//
// The one promise: complete content written by another program is reported before Fairlead
// replaces it, or, if the two writes cross, after.
package exchange
