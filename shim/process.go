package shim

import (
	"slices"
	"syscall"
)

// Process is one process of an agent's tree, as the system's table shows it.
type Process struct {
	PID     int    `json:"pid"`
	Start   uint64 `json:"start_time"` // clock ticks since boot; with PID and the boot it names one process for ever
	Session string `json:"session,omitempty"`
	Command string `json:"command"` // the program's short name; arguments may be secret

	parent, group int
	zombie        bool // it has ended; its parent has not asked how
}

// below gives the living processes that descend from root, without root.
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

// marked gives the living processes, not older than since, whose environment carries mark.
func marked(all []Process, mark string, since uint64) []Process {
	var found []Process
	for _, p := range all {
		if !p.zombie && p.Start >= since && slices.Contains(marksIn(environOf(p.PID)), mark) {
			found = append(found, p)
		}
	}
	return found
}

// join adds to a what of b is not in it.
func join(a, b []Process) []Process {
	for _, p := range b {
		if !slices.ContainsFunc(a, func(q Process) bool { return q.PID == p.PID && q.Start == p.Start }) {
			a = append(a, p)
		}
	}
	return a
}

// withDescendants adds what descends from ps; a child that shed the mark goes with its parent.
func withDescendants(all, ps []Process) []Process {
	for _, p := range slices.Clone(ps) {
		ps = join(ps, below(all, p.PID))
	}
	return ps
}

// without takes out the process self and everybody it descends from: whoever
// sweeps must not end itself, even where it runs inside the tree that it sweeps.
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

// signalAll sends sig to every process of ps; a stopped process is continued, so
// that it can obey. It reports how many were there to receive it.
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
