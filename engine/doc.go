// Package engine runs a team: it is the one place where decisions meet the world.
//
// A single goroutine owns the team. Whoever wants something lays an event on its
// table; it takes what lies there as one batch, decides and applies each in memory,
// appends the batch to the journal with one sync, and only then answers, publishes
// and lets the errands begin. Errands (start a process, end one, write a file) run
// beside it, and what comes of them comes back as events. Errands and deadlines are
// read off the team's state after every batch and after every start, so nothing of
// them has to survive a crash.
//
//	face, file, shim, timer ── event ──►  decide · apply · append · sync  ──► answer, watchers
//	        ▲                                          │
//	        └────────────── errands ◄──────────────────┘
//
// What agents are to be told in channels is an errand like any other: it is written into their
// sessions under its own name, and what they say is appended together with the place in
// their output, so that after a crash nothing is told twice and no word is lost.
//
// A start looks first and acts last: the journal is replayed, the processes that
// outlived us are found, the files are read for what was wished meanwhile, and only
// then does anything begin. Before a process is started the file is read once more.
//
// The one promise: nothing is told, written or started that is not in the journal.
package engine
