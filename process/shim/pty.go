package shim

import (
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// A terminal of the classic size: programs wrap their lines at its width.
const ptyRows, ptyColumns = 24, 80

// openPTY creates a terminal: the agent's three streams on one side, the shim on the other.
func openPTY() (ends, error) {
	ours, theirs, err := pty.Open()
	if err != nil {
		return ends{}, fmt.Errorf("make a pseudo terminal: %w", err)
	}
	_ = pty.Setsize(ours, &pty.Winsize{Rows: ptyRows, Cols: ptyColumns})
	// Two files for the shim's end, so that reading and writing can be closed separately; non-blocking,
	// so that a read can be cancelled.
	fds := [2]*os.File{}
	for i := range fds {
		fd, err := unix.FcntlInt(ours.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			err = unix.SetNonblock(fd, true)
		}
		if err != nil {
			ours.Close()
			theirs.Close()
			return ends{}, fmt.Errorf("make a pseudo terminal: %w", err)
		}
		fds[i] = os.NewFile(uintptr(fd), "pty")
	}
	ours.Close()
	return ends{stdin: theirs, stdout: theirs, output: fds[0], input: fds[1]}, nil
}
