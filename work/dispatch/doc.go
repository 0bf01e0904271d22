// Package dispatch follows dispatch folders (seed 002) and lets agents do the work that they ask for.
//
// A folder is its own journal: every program that has something to tell it takes its lock, decides and
// writes, with or without a daemon (ADR 14). The daemon does three things. It reads every new line into
// its journal, so that the history and the page have it. It starts sessions for the conversations and
// tasks of folders that it hosts. And it tells the folder how they ended, through the same functions as
// every other program.
//
// The one promise: each line of a folder is read into the journal once, and each piece of work that a
// folder asked for is answered once, also after a crash.
package dispatch
