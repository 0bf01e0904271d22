package sandbox

import "strings"

const (
	kernelHasNot   = "not every kernel has it"
	locksAreAdvice = "a lock needs no right to write, and a filter of calls does not see the file; a program that does not ask for the lock does not wait"
	resources      = "root in a container may lack CAP_SYS_RESOURCE"
)

// cannot are attempts that some kernels, file systems or machines do not support outside either, with the reason.
var cannot = map[string]string{
	"all rights over the ports of the machine": kernelHasNot, "a port of the machine": kernelHasNot,
	"the memory of the machine":              kernelHasNot,
	"the memory of the machine, by its file": kernelHasNot, "load a module": kernelHasNot, "remove a module": kernelHasNot,
	"another kernel":            kernelHasNot,
	"set a program for modules": kernelHasNot, "the magic keys": kernelHasNot, "the memory of the kernel": kernelHasNot,
	"read the first folder of the file system by a made-up handle": "not every file system gives its first folder that number",
	"another kernel, from a file":                                  kernelHasNot, "hear of the processes of the machine": kernelHasNot,
	"the addresses of the kernel":                       kernelHasNot,
	"what the kernel says of the other end of a socket": kernelHasNot, "the mounts of the other end of a socket": kernelHasNot,
	"a descriptor of the other end of a socket": kernelHasNot, "a descriptor from the other end of a socket": kernelHasNot,
	"the number of the other end of a socket, by its descriptor": kernelHasNot, "packets past the kernel": kernelHasNot,
	"a table in the kernel":       kernelHasNot,
	"what another user may store": kernelHasNot, "hear which process opens a file": kernelHasNot, "a pipe without a limit": resources,
	"the limits of processes, raised": resources, "name another program as its own": resources,
}

// notHeld are attempts that a view does not refuse, with the reason. The package's page says so. One that is refused after all has
// to leave this list.
var notHeld = map[string]string{
	"lock a file that is shown": locksAreAdvice, "lock a part of a file that is shown": locksAreAdvice,
}

// closedByLandlock reports whether Landlock alone does not permit the twin of an attempt either: there is no middle between all
// unix sockets and none, /proc is read-only, and there is no /dev/shm of its own.
func closedByLandlock(a wallAttempt) bool {
	if strings.Contains(a.name, "the other end of a socket") {
		return true
	}
	switch a.name {
	case "forget which pages the starter used", "what the starter leaves when it fails", "make a named socket",
		"write the memory of another process", "the name of another process", "let another process be ended first",
		"what another process leaves when it fails", "forget which pages another process used", "read shared memory by its file",
		"write shared memory by its file", "raw packets", "raw internet packets", "a stream below the root of another process",
		"a stream below the folder of another process":
		return true
	}
	return a.row == RowSocket
}
