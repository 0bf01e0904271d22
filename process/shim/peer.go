package shim

// peerProcess is the process that made a connection. A PID is used again once its process has ended, and a connection can be passed
// to another process; ended tells whether the process that made it is still there.
type peerProcess struct {
	pid   int
	ended func() bool // never true if the system does not know: then only the start time tells
	close func()
}

// origin looks at the process, and looks again whether it is still the one that made the connection: what was read can be another
// process's, which got the PID.
func (p peerProcess) origin(look func(pid int) Origin) Origin {
	if p.ended() {
		return Origin{Unseen: true}
	}
	is := look(p.pid)
	if p.ended() {
		return Origin{Unseen: true}
	}
	return is
}
