// Package sandbox lets a process read everything and write next to nothing.
//
// Think of a visitor in a library. He may walk through every room and read every
// book; what he writes, he writes at the one desk that he was shown to. He brings
// his friends (the processes that he starts), and they sit at the same desk. The
// door of the library locked behind him: there is no way back to the rights that
// he had outside, for him, for them, or for what they leave running.
//
//	fairlead __sandbox --write DESK -- PROGRAM ARGUMENT…
//
// is the door. It closes what was left open, restricts itself, proves to itself
// that it is restricted, and becomes PROGRAM by execve: the same process, number,
// parent, group, environment and standard streams, so whoever watches over it (the
// shim) need not know. Where any step of that fails it says so, exits with 126,
// and PROGRAM was never started.
//
// # What stands guard
//
//   - Landlock denies every write to what is not below a folder of [Box.Write]:
//     making, opening for writing, truncating, removing, renaming, linking out or
//     in, mounting, and writing into other processes. The kernel must have
//     Landlock's third version (Linux 6.2): before it a file could be truncated.
//   - A filter of system calls denies what Landlock does not see: to change the
//     mode, owner, times, flags and extended attributes of a file, whichever it is
//     (so `touch`, `chmod` and `cp -p` complain inside the folders too), and to open
//     a unix socket, behind which somebody else may do the writing. [Box.Attributes]
//     and [Box.Sockets] give them back. It also denies what would carry calls past it
//     (io_uring), typing into a terminal, and setting the limits of another process.
//   - No program gains rights (no_new_privs: set-user-ID bits and file capabilities
//     do nothing), and root is left with CAP_DAC_OVERRIDE alone.
//   - From Landlock's sixth version on, signals and abstract sockets reach no
//     process outside.
//
// Besides the folders, /dev/null, zero, full, random, urandom and tty may be
// written, and the terminal that is already open as a standard stream. /dev/shm and
// new pseudo-terminals may not: they are shared with everybody ([Box.Terminals] gives
// terminals back). A TMPDIR of its own below a folder that may be written is the
// caller's to give.
//
// # What is not prevented
//
// Reading: everything that its user may read, keys included. The network: it may
// ask a service, on this machine or another, to write in its stead, and with a
// token that it can read. What an open standard stream leads to. A file in a
// writable folder that has a second name (a hard link) outside it: it is one file.
// Changing a file's access time by reading it, or holding a lock on it. Using up
// memory, processes, or the disk below its folders. Shared memory and message queues
// that are no files. Programs for another architecture (32 bits) are ended.
//
// The one promise: what runs in the sandbox changes no file outside the folders it
// was given, or it does not run.
package sandbox
