// Package anchor finds the place of a comment in text that has changed since.
//
// A comment keeps the text around its line, and its place in other content is where this text is. Line numbers alone would point to
// another line after each change above them.
//
// The one promise: a place that is said to be the same has the same line. A test and a fuzz target show it.
package anchor
