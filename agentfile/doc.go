// Package agentfile reads, writes and watches agent_state.json, the file through which other
// programs command an agent and report what it does (seed 000).
//
// State is the file as a value. Parse and Render are pure, keep unknown fields, and are the only
// code that knows how seed 000 spells things. Files watches the files of a whole team: each change
// by another program arrives once and in order as a Seen.
//
// Other programs truncate and rewrite the file in place, so a read may return half of it. Content
// that does not parse is therefore read again before it is reported as malformed, and malformed
// content is kept as a copy beside the file. Write prepares a complete file and exchanges it with
// the current one (renameat2). The replaced file stays open for a while, because another program
// may still be writing to it; what it writes there is reported too.
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
package agentfile
