package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reports is the caller's end of the channel of [View.Report]. In a view with a network of its own, the sockets come with what is read.
type Reports struct {
	*os.File
	sockets []*os.File
}

// OpenReports makes the channel for a view. theirs is for process 1.
func (v View) OpenReports() (ours *Reports, theirs *os.File, err error) {
	open := unix.Pipe
	if v.Network != nil {
		open = func(fds []int) error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			copy(fds, pair[:])
			return err
		}
	}
	fds := make([]int, 2)
	syscall.ForkLock.RLock() // no process that is started meanwhile inherits them
	if err = open(fds); err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a channel for the reports of a view: %w", err)
	}
	_ = unix.SetNonblock(fds[0], true) // for deadlines; process 1 writes as usual
	return &Reports{File: os.NewFile(uintptr(fds[0]), "reports")}, os.NewFile(uintptr(fds[1]), "reports"), nil
}

// Read implements io.Reader.
func (r *Reports) Read(b []byte) (n int, err error) {
	n, sockets, err := readFiles(r.File, b)
	r.sockets = append(r.sockets, sockets...)
	return n, err
}

// Sockets are those that came for a view, in the order of [Inside.Sockets]. The caller closes them.
func (r *Reports) Sockets(v View) ([]*os.File, error) {
	want := 0
	if v.Network != nil {
		want = len(v.Network.Sockets())
	}
	if len(r.sockets) != want {
		return r.sockets, fmt.Errorf("%d sockets of the view's network came instead of %d", len(r.sockets), want)
	}
	return r.sockets, nil
}
