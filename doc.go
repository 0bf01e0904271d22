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
//	 api, cmd              file packages        shim, driver          timers
//	     |                     |                     |                  |
//	     +----------+----------+----------+----------+------------------+
//	                |
//	              loop           one goroutine, one event after the other
//	                |
//	decide          team         pure: changes, or a refusal
//	append          journal      safe on disk, or stop
//	apply           team         cannot fail
//	act             controllers  answers, feeds, files, processes
//
// Nothing is visible before it is safe on disk, so everything that was shown is
// true after a power cut as well. Actions are derived from the state and harmless
// twice, so the daemon needs no memory of what it had begun.
//
// # The packages
//
// The pure ones import no clock, file, lock, network or goroutine. Time is data.
//
//	machine     a state machine is a table of rows; a pair without a row is refused
//	machine/…   one package for each machine: the table, the value, its matrix
//	team        all machines of one team as one value: Decide, Apply
//	policy      may this state make that tool call? which description fits a text?
//	condition   the expressions of `when` and `until_condition`
//	marker      markers in what agents say
//
// The ones that touch the outside world do not know each other.
//
//	journal         the append-only, hash-chained log of changes; one folder a backend
//	shim            the process beside each agent: it owns pipes and process tree,
//	                and outlives the daemon
//	driver          how to start, prompt, read and judge one kind of agent
//	sandbox         read everywhere, write only where allowed, enforced by the kernel
//	agentfile       agent_state.json, through which other programs command an agent
//	runfile         workflows, run_state.json, reports, manual inputs, gates
//	crewfile        the crew's identity documents
//	dispatchfolder  the folder of a conversation with a coordinator
//	claudehook      Claude Code's hooks and settings
//	prompt          the texts that agents are given
//	transitionlog   the log line of each change of an agent's state
//	internal/file   opening, replacing and parsing files, shared by the above
//	config          fairlead.yaml, with every error and its place
//	notify          notices for people: the desktop, a webhook, Slack, ntfy, e-mail
//
// Package loop is the one goroutine that decides. controller has one package for
// each concern (agents, channels, crew, runs, dispatch, questions, tools), listen
// turns what agent programs say into events, view holds the read models. Clients
// of the daemon are api (HTTP, and a feed
// that resumes by sequence number), ui (Mission Control, a page that uses only the
// API) and cmd/fairlead (the commands). internal/test holds the test harnesses.
//
// Imports go one way, from the clients down to the machines; tidy_test.go has the
// table and checks it. doc/architecture.md explains the design.
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
// Read machine for the shape of a table, machine/control for an important one,
// then the loop. The row ids (C5, X8) in tables, logs and tests are those of the
// specification; every one that the code uses has a test.
//
// The one promise: what Fairlead shows was true, is on disk, and names its
// evidence.
package fairlead
