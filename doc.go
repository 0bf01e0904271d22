// Package fairlead describes the system on one page; it contains no code.
//
// Fairlead supervises a team of AI coding agents on a repository: it starts and
// stops them, gives them tasks and turns, enforces what each may touch, and keeps
// an auditable record of everything.
//
// # An ordinary day
//
// A person writes fairlead.yaml: the agents, each with a folder and a command. The
// daemon (fairlead up) reads it, the journal, the sessions that still run, and the
// agent_state.json in each agent's folder. It adopts running sessions and starts
// the agents that should run. Then it waits for events: a person presses a button,
// a program changes a file, a process ends, a deadline passes.
//
// # One event
//
//	  a person           another program         a process         a deadline
//	     |                     |                     |                  |
//	 api, cmd                  files               process            timers
//	     |                     |                     |                  |
//	     +----------+----------+----------+----------+------------------+
//	                |
//	           engine/loop       one goroutine, one event after the other
//	                |
//	decide     core/team         pure: changes, or a refusal
//	append     engine/journal    safe on disk, or stop
//	apply      core/team         cannot fail
//	act        work              answers, feeds, files, processes
//
// Nothing is visible before it is safe on disk, so everything that was shown is
// true after a power cut as well. Actions are derived from the state and harmless
// twice, so the daemon needs no memory of what it had begun.
//
// # The rooms
//
// The folders are rooms, from the bottom to the top. A package imports the rooms
// below its own and no room above. tidy_test.go has the order and checks it.
//
//	internal   small things that two rooms need; internal/test: the test harnesses
//	core       pure: no clock, file, lock, network or goroutine; time is data.
//	           table: a state machine is a table of rows, and a pair without a row
//	           is refused; one package for each machine; team: all machines of one
//	           team as one value; policy, rank, marker, condition
//	config     fairlead.yaml, with every error and its place
//	files      files that other programs read and write: agentstate, crewdocs,
//	           runstate, dispatchfolder, prompts
//	process    shim: the process beside each agent, which outlives the daemon;
//	           driver: how to start, prompt and judge one kind of agent; sandbox:
//	           an agent's own view of the machine; claudehook: hooks and settings
//	git        clones, landing, diffs, the copies between hosts, the forge
//	engine     loop: the one goroutine that decides; journal: the append-only,
//	           hash-chained log of changes, one folder a backend
//	work       what the state asks for, one package a concern; listen: what agents
//	           say → events
//	hosts      certificates, invitations, connections, sessions on other hosts,
//	           engine hosts
//	read       views, status, search: what people are shown
//	app        joins loop and parts, and recovers after a start
//	api        HTTP, the live feed, the tools for agents
//	ui         Mission Control, a page that uses only the API
//	cli        printing and the flows of the commands; cli/daemon: the daemon
//	cmd        flags and calls
//
// doc/architecture.md explains the design.
//
// # What is on disk
//
//	fairlead.yaml                the configuration; doc/config.md
//	FOLDER/agent_state.json      the interface for other programs: the desired state
//	                             of an agent, and its current state
//	.fairlead/                   the journal and the sessions' output; private
//
// The journal is the history and the files are an interface: they are written from
// the journal. What another program writes into them becomes an event before
// anything overwrites it.
//
// # Three kinds of wrong
//
// A refusal is an answer: the state does not allow it, and this is what it would
// take. A failure comes from outside: disk full, permission denied; it is wrapped
// with what was being done and a way out. A bug panics.
//
// # Where to begin reading
//
// Read core/table for the shape of a table, core/control for an important one,
// then engine/loop. The row ids (C5, X8) in tables, logs and tests are those of the
// specification; every one that the code uses has a test.
//
// The one promise: what Fairlead shows was true, is on disk, and names its
// evidence.
package fairlead
