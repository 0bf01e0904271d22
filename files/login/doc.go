// Package login keeps the files with which agent programs are signed in.
//
//	the person's file ──┐                ┌── the person's file, with nothing but tokens changed
//	                    ├── Store.Sync ──┤
//	the sessions' file ─┘                └── the sessions' file, with the freshest tokens
//
// A provider may accept only the last of the tokens that it gave out. So a login has one file for all sessions, in a [Store], and a
// refresh in a session reaches the person's own file. Which tokens are fresher is decided by their own time of expiry. A table has the
// names of the tokens for each program; a program in a session can write anything else into its file, and none of that is taken.
//
// The one promise: whatever a session writes, the person's file changes in its tokens alone, and keeps those of the same account.
package login
