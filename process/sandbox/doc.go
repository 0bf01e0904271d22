// Package sandbox runs a program in a view of the machine: folders that may be read, folders that may be written, and nothing else.
//
//	fairlead __sandbox --view VIEW -- PROGRAM ARGUMENT…
//
// The command ([WrapView]) is started with the flags of new namespaces ([View.Attr]). It is process 1 of the view: it makes the mounts,
// gives up all rights, tries whether the view holds, and starts PROGRAM. Where there are no namespaces it restricts itself by Landlock
// and becomes PROGRAM by execve: process id, parent and group stay the same. The restrictions also apply to all child processes and
// cannot be removed. If any step fails, the process prints the reason and exits with 126, and PROGRAM is not started.
//
// [Look] tries what this machine can hold. doc/sandbox.md says what holds which row, and what a machine needs.
//
// # Landlock and the filter
//
// They stand inside a view as a second layer, and alone where there are no namespaces.
//
//   - Landlock denies every write outside of the writable places: creating, opening for writing, truncating, removing, renaming, linking,
//     mounting, and writing into other processes; alone also every read outside of the places. It needs Landlock version 3 (Linux 6.2),
//     because earlier versions permit truncation.
//   - A system call filter denies what Landlock does not see: io_uring, which bypasses the filter, inserting input into a terminal,
//     setting the limits of another process; alone also unix sockets, behind which another process may write, and one of a pair of
//     datagram sockets. In namespaces it denies mounts, new namespaces, and calls that only root needs.
//   - No program gains privileges (no_new_privs: set-user-ID bits and file capabilities have no effect). Alone, root keeps
//     CAP_DAC_OVERRIDE.
//   - From Landlock version 6 on, signals and abstract sockets cannot reach processes outside.
//
// # The network
//
// With [View.Network], a view has a network of its own: loopback, and sockets that process 1 makes in it and hands to its caller, for a
// proxy outside. /etc/resolv.conf names this address, and /etc/hosts has the names of loopback only. The filter permits only sockets
// that stay in this network. Abstract unix sockets are the network's, too.
//
// [View.Execute] restricts which files may be executed, and [View.Alone] denies the network and signals to processes outside, also
// before version 6.
//
// # Limits
//
// The network is not restricted without [View.Network] or [View.Alone]. Not restricted either: what an open standard stream leads to; a
// file in a writable folder that has a second name (a hard link) outside; memory and disk space; a unix socket that another program makes
// in a folder of the view after the start; locks of files that are only read. Programs for another architecture (32 bits) are killed.
// Where Landlock stands alone, names, sizes, modes, owners, times and attributes of files outside can be read, and without [View.Execute]
// those that the user may change can be changed: [RowNames] and [RowAttributes].
//
// The one promise: a program in a view changes no file outside of its places, or it does not run.
package sandbox
