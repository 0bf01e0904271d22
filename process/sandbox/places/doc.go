// Package places decides what of the machine a session sees, and what it may do there: it makes a [sandbox.View] of an agent's
// configuration, its environment, and a look at the few folders that these name.
//
//	configuration ─┐
//	environment   ─┼─ Of ──> Places ── Make ──> the session's own folder ──> the view ── End
//	the disk      ─┘
//
// [Of] changes nothing, and reads no more than a fixed number of names: what a view costs does not depend on how many files there
// are. [Places.Make] makes what has to exist before a process starts, and [End] removes it again, also after a crash. Folders that a
// workspace lacks are made and removed by the process that makes the view.
//
// A place is a folder. A mount on a single file would be gone when the file is replaced, and it cannot be made for a file that does
// not exist yet. Two kinds of files are mounted all the same, since Fairlead makes them and replaces none: logins, which all sessions
// share, and settings in a folder that agents share.
//
// The one promise: what a session cannot write or see according to its places, it reaches under no other path of its view.
package places
