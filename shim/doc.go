// Package shim keeps one agent's process, from its first instant to the end of
// its last grandchild.
//
// Beside every agent stands a small process, the shim. It is the agent's parent,
// its ears and its undertaker: it owns the pipes (or the pty), writes what the
// agent says into the spool file of the session's folder, reaps every process the
// agent leaves behind, and writes down how the agent ended. The daemon talks to it
// over a unix socket and may vanish at any instant; the shim stays, the agent
// works on, and the next daemon adopts both with every byte that was said
// meanwhile. When the agent has ended and its whole tree is gone, the shim
// writes the exit record, tells whoever listens, and goes; no shim lingers.
//
//	daemon ──socket──► shim ──pipe──► agent ──► children, grandchildren
//	                     │
//	                     └──► FOLDER: lock, fence, agent.json, spool, exit.json, holder.log
//
// # The folder
//
// One folder is one session, and one session is one start, for ever:
//
//	lock        flock, held by the shim for its whole life
//	fence       the highest daemon epoch that was seen, decimal
//	agent.json  written and synced twice: "starting" before the fork, "started" after it
//	spool       what the agent wrote (standard output and error, as it came)
//	exit.json   how it ended; its existence means that the tree is gone and the spool is complete
//	acked       the exit record is in the journal
//	holder.log  the shim's own words, at most logBytesMax
//
// The intent is on disk before the fork, so a crash at any step leaves a folder
// that says "was started" where it may have been: it is then lost, never doubled.
//
// # Finding the tree
//
// While the shim lives it is the subreaper: whatever the agent starts, however
// often it forks and calls setsid, stays its descendant, and "no child left" is
// the kernel's own answer. When the shim itself is killed, the agent dies with
// it (parent-death signal), and the rest is found by the mark FAIRLEAD_MARK in
// /proc/*/environ or by its cgroup, where one could be made. A process is named by
// pid, start time and boot id, never by pid alone, and is signalled through a
// pidfd.
//
// # What is not promised
//
// Bytes that were in the pipe, not in the spool, when a shim was killed. A
// process that another program started on the agent's behalf (a container daemon,
// a service manager). After the shim's death: a descendant that emptied its
// environment, where there was no cgroup; a set-uid program, or a process of
// another user. What an agent leaves running (a server, a daemon of Fairlead's own)
// ends with it, on purpose. macOS has no
// subreaper, no parent-death signal and no cgroup; there the mark alone holds.
//
// The one promise: a folder starts at most one agent, ever, and when Done is
// closed nothing of that agent runs any more.
package shim
