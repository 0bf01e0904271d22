package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/socket"
)

const (
	// Word is the first argument of a proxy's process; its folder follows.
	Word = "__proxy"

	// startWord follows Word in the process that starts a proxy and exits.
	startWord = "start"

	// LockFD is the descriptor of the lock in a proxy's process.
	LockFD = 3

	lockFile = "lock"
	logFile  = "log" // of a proxy, in its folder

	connectEvery    = 20 * time.Millisecond // a proxy that starts needs about as long
	connectPatience = 10 * time.Second      // a machine under load starts a process within it
	helloPatience   = 5 * time.Second       // a proxy answers at once
	logBytesMax     = 1 << 20               // a longer log of earlier proxies is emptied when one starts

	socketPathBytes = 100 // sun_path has 104 bytes on macOS, 108 on Linux
)

// inherited are the variables that a proxy gets. None has a secret: rules and keys come over the socket. FAIRLEAD_MARK are the marks of the
// sessions around the caller; the caller's own session is not among them, because a shim has that in another variable.
var inherited = []string{"FAIRLEAD_MARK", runtimedir.Var, "GOCOVERDIR", "GORACE"}

// Serving is set by the package of the proxy. A program without it, such as a test that starts sessions, is started as a proxy all the
// same, because a shim starts the program that it is itself.
var Serving atomic.Bool

// servingPatience is how long a process may take to initialize the package of the proxy, on a machine with much other work.
const servingPatience = 5 * time.Second

// The process in between is done as soon as this package is initialized. A program that has no proxy ends, so that it does not go on as
// what it usually is.
func init() { //nolint:gochecknoinits // main would load all other packages first
	switch {
	case len(os.Args) == 4 && os.Args[1] == Word && os.Args[2] == startWord:
		os.Exit(startProxy(os.Args[3]))
	case len(os.Args) == 3 && os.Args[1] == Word:
		time.AfterFunc(servingPatience, func() {
			if !Serving.Load() {
				fmt.Fprintln(os.Stderr, "this program has no proxy in it; its main has to import process/proxy")
				os.Exit(1)
			}
		})
	}
}

// startProxy starts the proxy in a session of its own. The standard streams and the lock go to it.
func startProxy(folder string) int {
	lock := os.NewFile(LockFD, lockFile)
	exe, err := self()
	if err == nil {
		_, err = os.StartProcess(exe, []string{"fairlead", Word, folder}, &os.ProcAttr{
			Dir: "/", Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, lock}, Sys: &syscall.SysProcAttr{Setsid: true},
		})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "start the proxy: %v\n", err)
		return 1
	}
	return 0
}

// Options are what Connect may be given.
type Options struct {
	Exe string // the program with the proxy in it; empty: this one

	// Around is called with the start of the process in between, which lasts a few milliseconds; nil: it is just called.
	Around func(start func() error) error
}

// Connect connects to the proxy of a folder, and starts one if there is none. ctx ends it; it takes 10 s at most.
func Connect(ctx context.Context, folder string, role Role, o Options) (*Conn, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the proxy's folder: %w; it must be ours to write", err)
	}
	folder, err := Folder(folder)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, connectPatience, errors.New("no proxy answered within 10 s"))
	defer cancel()
	for {
		c, connecting := Find(folder, role)
		if connecting == nil || errors.As(connecting, new(*Refused)) {
			return c, connecting
		}
		if err := start(folder, o); err != nil {
			return nil, fmt.Errorf("start the proxy of %s: %w", folder, err)
		}
		select {
		case <-time.After(connectEvery):
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to the proxy of %s: %w (%w); see %s", folder, context.Cause(ctx), connecting, filepath.Join(folder, logFile))
		}
	}
}

// Folder is the canonical path of a proxy's folder, from which the name of its socket is made.
func Folder(folder string) (string, error) {
	abs, err := filepath.Abs(folder)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("the proxy's folder: %w", err)
	}
	return abs, nil
}

// socketName is the name of the socket in a runtime folder.
func socketName(folder string) string { return runtimedir.SocketName("x", folder) }

// SocketPath is the path for the socket of a proxy that starts, in the first runtime folder that can be used.
func SocketPath(folder string) (string, error) {
	var faults []error
	for _, dir := range runtimedir.Dirs() {
		path := filepath.Join(dir, socketName(folder))
		err := runtimedir.Private(dir)
		if err == nil && len(path) >= socketPathBytes {
			err = fmt.Errorf("%s is too long for a socket", path)
		}
		if err == nil {
			return path, nil
		}
		faults = append(faults, err)
	}
	return "", fmt.Errorf("no runtime folder for the proxy's socket: %w", errors.Join(faults...))
}

// Find connects to the proxy of a folder if one runs. The folder is that of Folder. A *Refused is its answer.
func Find(folder string, role Role) (*Conn, error) {
	var faults []error
	for _, dir := range runtimedir.Dirs() {
		s, err := socket.ConnectUnix(filepath.Join(dir, socketName(folder)))
		if err != nil {
			faults = append(faults, err)
			continue
		}
		c := NewConn(s)
		if err := c.greet(role); err != nil {
			_ = c.Close()
			return nil, err
		}
		return c, nil
	}
	return nil, errors.Join(faults...)
}

// greet says hello and waits for the proxy's.
func (c *Conn) greet(role Role) error {
	if err := c.Send(Message{Hello: &Hello{Version: Version, Role: role}}); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(helloPatience))
	m, files, err := c.Receive()
	_ = c.SetReadDeadline(time.Time{})
	for _, f := range files {
		f.Close()
	}
	switch {
	case err != nil:
		return err
	case m.Refused != nil:
		return m.Refused
	case m.Hello == nil || m.Hello.Version != Version:
		return &Refused{Text: "a proxy of another version of Fairlead serves this folder; end its sessions, and it ends 10 s later"}
	}
	c.PID = m.Hello.PID
	return nil
}

// start starts a proxy if no process has the lock. No error if one has it: that process is a proxy, or about to start one.
func start(folder string, o Options) error {
	lock, err := os.OpenFile(filepath.Join(folder, lockFile), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	switch err := flock(lock); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil
	case err != nil:
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if o.Around == nil {
		return launch(folder, o.Exe, lock)
	}
	return o.Around(func() error { return launch(folder, o.Exe, lock) })
}

func flock(f *os.File) error {
	for {
		err := socket.Control(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// launch starts the process in between, and waits for it.
func launch(folder, exe string, lock *os.File) error {
	log, err := os.OpenFile(filepath.Join(folder, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if size, err := log.Seek(0, io.SeekEnd); err == nil && size > logBytesMax {
		_ = log.Truncate(0)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	if exe == "" {
		if exe, err = self(); err != nil {
			return err
		}
	}
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	p, err := os.StartProcess(exe, []string{"fairlead", Word, startWord, folder}, &os.ProcAttr{
		Env: env, Files: []*os.File{null, null, log, lock}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	state, err := p.Wait()
	switch {
	case err != nil:
		return err
	case !state.Success():
		return fmt.Errorf("the process that starts it ended with %v; see %s", state, log.Name())
	}
	return nil
}
