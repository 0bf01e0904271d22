// Package shim manages one agent's process, from its start to the end of its last descendant.
//
// A small process, the shim, runs beside every agent. It is the agent's parent: it owns the pipes
// (or the pty), writes the agent's output to the spool file of the session's folder, reaps every
// process that the agent leaves behind, and records how the agent ended. The daemon talks to the
// shim over a unix socket and may end at any time. The shim and the agent continue, and the next
// daemon adopts them with all output. When the agent and its whole tree have ended, the shim writes
// the exit record, notifies its connections, and exits.
//
//	daemon ──socket──► shim ──pipe──► agent ──► children, grandchildren
//	                     │
//	                     └──► FOLDER: lock, fence, agent.json, spool, exit.json, shim.log
//
// # The folder
//
// One folder is one session, and one session is started once:
//
//	lock        flock, held by the shim for its whole life
//	agent.json  "starting", synced before the fork; replaced by "started" after it. It has the daemon's epoch
//	fence       the highest daemon epoch that was seen later, decimal
//	spool       what the agent wrote (standard output and error, as it came)
//	spool.N.gz  the same, after Compact: N from 0000 on; while the spool exists, it counts
//	exit.json   how it ended; its existence means that the tree is gone and the spool is complete
//	acked       the exit record is in the journal
//	shim.log  the shim's own words, at most logBytesMax
//
// Beside the folders of the sessions, .points has a file for each folder that was made for a view; see sandbox.Points.
//
// The intent is on disk before the fork. After a crash at any step, a folder in which an agent may
// have been started says so: the session is then lost, but never started twice.
//
// # Finding the tree
//
// A living shim is the subreaper: everything that the agent starts stays its descendant, however
// often it forks and calls setsid, and the kernel reports when no child is left. If the shim itself
// is killed, the agent dies with it (parent-death signal), and the rest is found by the mark
// FAIRLEAD_MARK in /proc/*/environ. A process is identified by
// PID, start time and boot ID, never by PID alone, and is signaled through a pidfd.
//
// # Views
//
// With Spec.View, the shim's child is process 1 of a view of the machine (package sandbox), and the agent is the child of that. The
// shim makes missing mount points before, gives process 1 a pipe as descriptor 3, and the start is complete when process 1
// has reported there that the agent runs, and which rows its trial found open. AgentPID is process 1: its end is that of all
// processes of the view, also when the shim is killed, whose death signal it has. The agent's own exit status comes over the pipe at
// once; process 1 stays until no process is left, so what outlives the agent is treated as without a view. PIDs are always those
// outside of the view. The shim removes the mount points after the last process; if it was killed, Adopt does. Two sessions may use
// one of them: then the last one removes it.
//
// # Deadline
//
// A session that a host runs under a lease has a host.DeadMan. The shim reads the clock of the boot immediately
// before it starts the process, and ends the tree when the deadline has come, whether or not a daemon runs. Only the
// daemon's Extend moves the deadline.
//
// # What is not promised
//
// Bytes that were in the pipe but not in the spool when a shim was killed. A process that another
// program started for the agent (a container daemon, a service manager). After the shim's death: a
// descendant that cleared its environment; a set-uid program, or a process
// of another user. The deadline of a leased session while its shim is stopped, and of what a
// shim that was killed has left. Processes that an agent leaves running (a server, a daemon of Fairlead
// itself) are ended with it on purpose. macOS has no subreaper and no parent-death signal;
// there only the mark is available.
//
// The one promise: a folder starts at most one agent, ever, and when Done is closed, no process of that
// agent runs any more.
package shim
