// Package marker finds what an agent tells Fairlead in the middle of what it says to people.
//
// An agent's words come as a stream, cut anywhere: in the middle of a word, of a marker, of a
// letter. Most of it is conversation. Here and there stands a marker: a tag in brackets and a
// JSON object behind it, a report between two lines, or a word at the end of a line by which
// the agent gives up its turn. A Scanner is fed the pieces as they come and gives back the
// same stream in order, taken apart: conversation to show, and markers to act on. Markers are
// not shown. One that is broken is handed over with its text and what is wrong with it; it
// means nothing, and the stream goes on behind it.
//
// What a marker means, and whether this agent may say so, is decided by whoever reads them:
// everything here is only what somebody said.
//
// The one promise: however the stream is cut, the same pieces come out, and no byte of it is
// neither conversation nor part of a marker.
package marker
