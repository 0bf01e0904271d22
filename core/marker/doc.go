// Package marker finds the markers for Fairlead in an agent's output.
//
// The output is a stream that may be cut anywhere, also inside a character or a marker. A marker is a tag
// in brackets with a JSON object, a report between two lines, or a word at the end of a line that ends the
// agent's turn. A Scanner takes the pieces and returns the stream in order, split into text to show and
// markers to act on. Markers are not shown. An invalid marker is returned with its text and its fault; the
// scan continues after it.
//
// The caller decides what a marker means and whether this agent may use it. The content is untrusted.
//
// The one promise: the result does not depend on where the stream is cut, and every byte is part of exactly
// one piece.
package marker
