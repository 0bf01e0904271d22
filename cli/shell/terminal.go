package shell

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/fairlead-dev/fairlead/read/view"
)

// drained is how long the last of what a program shows may take when the program has ended: it is in the kernel already. A process that
// stays behind, where no namespace ends it, may hold the terminal open.
const drained = time.Second

// onTerminal runs a command on a terminal of its own, and copies to and from that of the person.
func onTerminal(cmd *exec.Cmd, shell view.Shell, in, out *os.File) (int, error) {
	ours, theirs, err := openTerminal()
	if err != nil {
		return 0, fmt.Errorf("make a terminal: %w", err)
	}
	hangUp := sync.OnceFunc(func() { ours.Close() })
	defer hangUp()
	resize(in, ours)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = theirs, theirs, theirs, withTerminal(cmd.Env)
	cmd.SysProcAttr.Setctty = true
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return 0, err
	}
	unhang := onSignals(func(syscall.Signal) { hangUp() }, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer unhang()
	before, err := term.MakeRaw(int(in.Fd())) //nolint:gosec // a descriptor fits an int
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return 0, fmt.Errorf("use the terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }() //nolint:gosec // the same
	unsize := onSignals(func(syscall.Signal) { resize(in, ours) }, syscall.SIGWINCH)
	defer unsize()
	go func() { _, _ = io.Copy(ours, in) }() // it ends with this command
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		_, _ = io.Copy(out, ours) // it ends with an error when no process has the terminal
	}()
	code, err := ended(cmd)
	select {
	case <-shown:
	case <-time.After(drained):
	}
	return code, err
}

// openTerminal makes a terminal. A read of our end is over when that is closed.
func openTerminal() (ours, theirs *os.File, err error) {
	blocking, theirs, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), "terminal"), theirs, nil //nolint:gosec // a descriptor is not negative
}

// resize gives a terminal the size of the person's. One without a size is as good.
func resize(from, to *os.File) {
	size, err := unix.IoctlGetWinsize(int(from.Fd()), unix.TIOCGWINSZ) //nolint:gosec // a descriptor fits an int
	if err != nil {
		return
	}
	if conn, err := to.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) }) //nolint:gosec // the same
	}
}
