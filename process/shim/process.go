package shim

import (
	"slices"
	"syscall"
)

// Process is one process of an agent's tree, according to the process table.
type Process struct {
	PID     int    `json:"pid"`
	Start   uint64 `json:"start_time"` // clock ticks since boot; identifies one process together with PID and boot
	Session string `json:"session,omitempty"`
	Command string `json:"command"` // the program's short name; arguments may be secret

	parent, group int
	zombie        bool // it has ended and was not reaped yet
}

// below returns the living descendants of root, without root.
func below(all []Process, root int) []Process {
	children := make(map[int][]int, len(all))
	for i, p := range all {
		children[p.parent] = append(children[p.parent], i)
	}
	var found []Process
	seen := map[int]bool{root: true}
	for todo := []int{root}; len(todo) > 0; {
		pid := todo[0]
		todo = todo[1:]
		for _, i := range children[pid] {
			p := all[i]
			if seen[p.PID] {
				continue
			}
			seen[p.PID] = true
			todo = append(todo, p.PID)
			if !p.zombie {
				found = append(found, p)
			}
		}
	}
	return found
}

// marked returns the living processes, not older than since, whose environment contains mark.
func marked(all []Process, mark string, since uint64) []Process {
	var found []Process
	var environ []byte
	for _, p := range all {
		if p.zombie || p.Start < since {
			continue
		}
		if environ = appendEnviron(environ[:0], p.PID); slices.Contains(marksIn(environ), mark) {
			found = append(found, p)
		}
	}
	return found
}

// join appends the elements of b that a lacks.
func join(a, b []Process) []Process {
	for _, p := range b {
		if !slices.ContainsFunc(a, func(q Process) bool { return q.PID == p.PID && q.Start == p.Start }) {
			a = append(a, p)
		}
	}
	return a
}

// withDescendants adds the descendants of ps, including children that removed the mark.
func withDescendants(all, ps []Process) []Process {
	for _, p := range slices.Clone(ps) {
		ps = join(ps, below(all, p.PID))
	}
	return ps
}

// without removes self and all its ancestors: a sweeping process must not end itself, even inside of
// the tree that it sweeps.
func without(all, ps []Process, self int) []Process {
	parent := make(map[int]int, len(all))
	for _, p := range all {
		parent[p.PID] = p.parent
	}
	spare := map[int]bool{}
	for pid := self; pid > 0 && !spare[pid]; pid = parent[pid] {
		spare[pid] = true
	}
	return slices.DeleteFunc(ps, func(p Process) bool { return spare[p.PID] })
}

// signalAll sends sig to every process of ps. A stopped process is continued, so that it can react.
// It returns how many received the signal.
func signalAll(ps []Process, sig syscall.Signal) int {
	n := 0
	for _, p := range ps {
		if !signalProcess(p.PID, p.Start, sig) {
			continue
		}
		n++
		if sig == syscall.SIGTERM {
			signalProcess(p.PID, p.Start, syscall.SIGCONT)
		}
	}
	return n
}

// alive reports whether the process that started at start still runs.
func alive(pid int, start uint64) bool {
	p, ok := readProcess(pid)
	return ok && p.Start == start && !p.zombie
}
