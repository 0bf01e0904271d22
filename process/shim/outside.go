package shim

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// RunsInside is the error of Outside for a process that runs in a session.
type RunsInside struct {
	PID     int
	Session string
	Held    bool // the network of its session is not this process's
}

func (r *RunsInside) Error() string {
	return fmt.Sprintf("process %d runs in session %s, and only Fairlead itself is served here", r.PID, r.Session)
}

// Outside returns an error unless the process at the other end of a unix socket is one of this user's that runs in no session. A shim runs
// outside of its own session. Sessions in which this process itself runs do not count.
func Outside(c syscall.Conn) error {
	uid, pid, err := peerOf(c)
	switch {
	case err != nil:
		return fmt.Errorf("identify the process that connected: %w", err)
	case uid != os.Getuid():
		return fmt.Errorf("the process that connected belongs to user %d, not to user %d", uid, os.Getuid())
	case pid <= 0:
		return fmt.Errorf("the process that connected runs in no namespace of this process, so it is no part of Fairlead")
	}
	p, err := processAt(c)
	if err != nil {
		return fmt.Errorf("identify the process that connected: %w", err)
	}
	defer p.close()
	held := true
	is := p.origin(func(pid int) Origin {
		held = !sameNetwork(pid)
		return caller(pid, marksAround, ancestry, "", enclosing())
	})
	switch {
	case is.Session != "":
		_, session, _ := strings.Cut(is.Session, ".") // the mark begins with the workspace
		return &RunsInside{pid, session, held}
	case is.Unseen:
		return notIdentified(pid)
	}
	return nil
}

// notIdentified refuses a connection of a process that has ended before its identity was read: agents may not connect, and it may have
// been one.
func notIdentified(pid int) error {
	return fmt.Errorf("process %d has ended before Fairlead could see whether it belongs to an agent; connect again", pid)
}

// marksAround are the marks of a process and its ancestors without the one that a shim has of its own session. Every process of an agent
// has an ancestor with a mark, so that one that gives itself a shim's variable is found all the same.
func marksAround(pid int) []string {
	marks := marksAbove(pid)
	if mark, ok := envValue(environOf(pid), shimVar); ok && mark != "" && len(marks) > 0 && marks[0] == mark {
		marks = marks[1:]
	}
	return marks
}
