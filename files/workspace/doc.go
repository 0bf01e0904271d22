// Package workspace is the .fairlead folder of a repository: token, lock, journal, sessions, logs.
//
// It makes the folder with the right modes, refuses links that lead out of it, and finds the daemon
// that serves it. Everything in the folder belongs to Fairlead alone; other programs use the files that
// doc/files.md names.
//
// The one promise: one daemon writes a workspace, and a second one is refused with the first one's address.
package workspace
