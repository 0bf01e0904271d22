// Package listen turns what agent programs say into events.
//
// One listener follows each session from the last place in its output that the journal knows. What
// it hears depends on what the session is for: a turn in a channel (what is said becomes posts), the
// lead of the crew (markers become reports), a dispatch folder (tool calls are judged, delegations are
// read), a question for permission (which goes to package questions), usage and the terminal event.
//
// What was heard is reported together with the place up to which it was heard, in one append. After a
// crash the rest is heard again.
//
// The promise: no word of an agent is lost and none counts twice.
package listen
