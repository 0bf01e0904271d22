// Package transitions writes every transition as a line of JSON, in the format of seed 003 (SPEC
// X6).
//
// It reads the journal's changes, so that a log that was lost or cut is completed from its last
// line on. A full file is kept, and the log continues in a new one.
//
// The one promise: every change in the journal is in the log once, in order.
package transitions
