// Package sandbox runs a program that may read everything and write only to given folders.
//
//	fairlead __sandbox --write DIR -- PROGRAM ARGUMENT…
//
// The process closes inherited descriptors, restricts itself, verifies that the restrictions work,
// and becomes PROGRAM by execve. Process id, parent, group, environment and standard streams stay
// the same, so a supervising process (the shim) need not know about it. The restrictions also apply
// to all child processes and cannot be removed. If any step fails, the process prints the reason and
// exits with 126, and PROGRAM is not started.
//
// [Run] does the same for a command of this process, in which it restricts only the thread that starts
// the command. The command is then in one Landlock domain with that thread, so no process may trace this
// one from then on (PR_SET_DUMPABLE); the command can still send it a signal.
//
// # Mechanisms
//
//   - Landlock denies every write outside the folders of [Box.Write]: creating, opening for writing,
//     truncating, removing, renaming, linking, mounting, and writing into other processes. It needs
//     Landlock version 3 (Linux 6.2), because earlier versions permit truncation.
//   - A system call filter denies what Landlock does not see: changing the mode, owner, times, flags
//     and extended attributes of any file (so `touch`, `chmod` and `cp -p` fail inside the folders
//     too), and connecting to a unix socket, behind which another process may write. [Box.Attributes]
//     and [Box.Sockets] permit them. It also denies io_uring, which bypasses the filter, inserting
//     input into a terminal, and setting the limits of another process.
//   - No program gains privileges (no_new_privs: set-user-ID bits and file capabilities have no
//     effect), and root keeps only CAP_DAC_OVERRIDE.
//   - From Landlock version 6 on, signals and abstract sockets cannot reach processes outside.
//
// [Box.Execute] restricts which files may be executed, and [Box.Alone] denies the network and signals
// to processes outside, also before version 6.
//
// Besides the folders, /dev/null, zero, full, random, urandom and tty may be written, and the
// terminal that is open as a standard stream. /dev/shm and new pseudo-terminals may not, because
// they are shared with all processes ([Box.Terminals] permits terminals). The caller should set
// TMPDIR to a folder that may be written.
//
// # Limits
//
// Reading is not restricted: the program can read everything that its user can, including keys. The
// network is not restricted without [Box.Alone]: the program may ask a service to write for it, with a token that it can
// read. Not restricted either: what an open standard stream leads to; a file in a writable folder
// that has a second name (a hard link) outside; access times and locks; memory, processes and disk
// space; shared memory and message queues that are not files. Programs for another architecture
// (32 bits) are killed.
//
// The one promise: a sandboxed program changes no file outside its folders, or it does not run.
package sandbox
