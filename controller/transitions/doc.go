// Package transitions writes every transition as a line of JSON, in the shape of seed 003 (SPEC X6).
//
// It reads the journal's changes, so a log that was lost or cut is written again from where it ends. A
// full file is kept and the log goes on in a new one.
//
// The promise: every change in the journal is in the log once, in order.
package transitions
