package shim

import "slices"

// Birth identifies one process: PIDs are reused, and then the start time differs.
type Birth struct {
	PID   int
	Start uint64 // ticks since boot
}

// walksMax bounds the repeated walks up a process tree that changes during the walk. A process that
// forks and exits endlessly is refused, not waited for.
const walksMax = 8

// Caller finds the session of a workspace in which the process at the other end of a socket runs. Ask it
// as soon as the process connects, because a PID can be reused later. who is the process if it runs in no
// session. unseen means that it could not be inspected: it has ended, or its ancestors changed during
// each attempt. Such a caller may be an agent. workspace is spelled as in Config.Workspace.
func Caller(workspace string, pid int) (session string, who Birth, unseen bool) {
	return caller(pid, func() (string, bool) { return SessionOf(workspace, pid) }, ancestry)
}

// caller counts the answer "no session" only if the ancestors are the same before and after the
// question: if an ancestor exits meanwhile, the walk ends below the shim, and the orphaned process
// becomes the shim's child a moment later.
func caller(pid int, session func() (string, bool), above func(int) ([]Birth, bool)) (id string, who Birth, unseen bool) {
	for range walksMax {
		before, whole := above(pid)
		if id, ok := session(); ok {
			return id, Birth{}, false
		}
		after, still := above(pid)
		if whole && still && slices.Equal(before, after) {
			return "", before[0], false
		}
	}
	return "", Birth{}, true
}

// BirthOf returns the process with a PID. It is called for each order; reading the ancestors costs many
// more files.
func BirthOf(pid int) (is Birth, ok bool) {
	chain, _ := lineage(pid)
	return chain, chain.PID != 0
}
