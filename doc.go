// Package fairlead is the whole system in one page; there is no code here.
//
// Fairlead runs a team of AI agents on a repository, and always knows, and can
// prove, who exists, who should run and what happened. A fairlead is the fitting
// on a ship that leads many lines without letting them tangle.
//
// # A day with it
//
// A person writes a fairlead.yaml: these agents, each with a folder and a way to
// be started. The daemon (fairlead up) reads it and looks at what is there: the
// journal of everything that happened, the agents that still run from before, the
// agent_state.json in each agent's folder. It adopts who lives, and starts who
// should run. From then on it waits for events: a person presses a button, a
// program rewrites a file, a process ends, a deadline passes.
//
// # One event
//
//	  a person           another program         a process         a deadline
//	     |                     |                     |                  |
//	 api, cmd              file packages          shim,              engine
//	     |                     |                  driver               |
//	     +----------+----------+----------+----------+-----------------+
//	                |
//	             engine          one goroutine, one event after the other
//	                |
//	decide          team         pure: changes and effects, or a refusal
//	journal         journal      safe on disk, or stop
//	apply           team         cannot fail
//	act             engine       answers, feeds, files, processes
//
// Nothing is visible that is not safe on disk; so whatever was shown is true after
// a power cut as well. Effects may be repeated after a crash and are harmless
// twice, so the engine needs no memory of what it had begun.
//
// # The packages
//
// The pure ones know no clock, no file and no goroutine. Time comes in as data.
//
//	machine     a state machine is a table of rows; a pair that has no row is refused
//	machine/…   one package a machine: the table, the value, its matrix
//	team        all machines of one team as one value: Decide, Apply
//	condition   what a step's `when` asks, weighed
//	marker      what agents mark in what they say
//	internal/test  harnesses that only tests use: sim, livetest, scriptmodel
//	internal/test  helpers for tests: golden files, leak detection, the page tests
//
// The ones that touch the world know nothing of each other.
//
//	journal     the append-only log of changes; hash-chained; one backend a folder
//	agentfile   agent_state.json, through which other programs command an agent
//	runfile     workflows, run_state.json, reports, manual inputs, gates
//	crewfile    the crew's identity documents
//	dispatchfolder  the folder of a conversation with a coordinator
//	claudehook  Claude Code's hooks and settings
//	prompt      the texts that agents are told
//	transitionlog   the log line of each change of an agent's state
//	internal/file   opening, replacing and parsing files, shared by the above
//	shim        the process beside each agent: it owns pipes and process tree,
//	            and lives on when the daemon does not
//	driver      how to start, tell, hear and judge one kind of agent
//	config      fairlead.yaml, with every fault and its place
//	notify      tells people that they are waited for: a webhook, a notice on the screen
//
// The engine joins them in one loop. Around it stand the faces: api (HTTP, and a
// feed that resumes by sequence), ui (Mission Control, a page that is a plain
// client of the API) and cmd/fairlead (one file a verb).
//
// Imports go one way, from the faces to the machines; tidy_test.go has the table
// and keeps it.
//
// # What is on disk
//
//	fairlead.yaml                what people say; doc/config.md
//	FOLDER/agent_state.json      the meeting point with other programs: what is
//	                             wanted of an agent, and what it says it does
//	.fairlead/                   the journal and the sessions' output; for us alone
//
// The journal is the history and the files are an interface: they are written
// from the journal, and what somebody else writes into them is taken in as an
// event before anything is written over it.
//
// # Three kinds of wrong
//
// A refusal is an answer: the state does not allow it, and here is what it would
// take. A failure is the world's: disk full, permission denied; it is wrapped with
// what we were doing and a way out. A bug panics.
//
// # Where to begin reading
//
// machine for the shape of a table, machine/control for one that matters, then the
// engine's loop. The row ids (C5, X8) in tables, logs and tests are the
// specification's; every one that the code uses has a test.
//
// The one promise: what Fairlead shows was true, is on disk, and says where it
// was learned.
package fairlead
