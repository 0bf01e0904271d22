package shim

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

const (
	// shimWord is the first argument of a process that is a shim; session and folder follow.
	shimWord = "__holder"

	// crashVar names a step at which a shim kills itself: how our tests prove
	// that no crash at any step doubles an agent.
	crashVar = "FAIRLEAD_SHIM_CRASH"

	launchFD = 3 // where the daemon's end of the first conversation is
)

// Intercept runs the shim, and does not return, where this process was started
// as one. It stands first in main, and in TestMain of tests that start agents.
func Intercept() {
	if len(os.Args) > 1 && os.Args[1] == shimWord {
		os.Exit(Main(os.Args[2:]))
	}
}

// A session's start waits for its shim, and a shim needs next to nothing of the program
// that it is. Packages are initialised by import path where imports leave the choice, so it
// branches off here before most of them: one library alone takes 14 ms. Where that order
// changes it is only slower, and Intercept does the same.
func init() { Intercept() } //nolint:gochecknoinits // see above: main is too late

// Main is the shim's whole life: args are the session's name and its folder,
// descriptor 3 is a socket on which the launch comes. The result is the exit code.
func Main(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "the shim is started by Fairlead, not by hand")
		return 2
	}
	// The parent-death signal is tied to the thread that forks: this one, which lives as long as the process.
	runtime.LockOSThread()
	nameProcess("fairlead-shim")
	closeInherited(launchFD)
	_ = os.Chdir("/") // keep nobody's file system busy
	orders := make(chan os.Signal, 4)
	// Heard, not ignored: what is ignored stays ignored in the agent.
	signal.Notify(orders, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1)

	k := &keeper{folder: args[1], log: newLog(os.Stderr), orders: orders, peers: map[*peer]bool{}, sooner: make(chan struct{}, 1)}
	if err := k.run(); err != nil {
		k.log.print("%v", err)
		return 1
	}
	return 0
}

// run is the story of a shim. Every step may be its last: what is on disk then must be true.
func (k *keeper) run() error {
	launch, first, err := receiveLaunch()
	if err != nil {
		return err // nothing was started; whoever launched is gone or said nonsense
	}
	if err := k.start(launch); err != nil {
		_ = writeFrame(first, answer{ID: 1, Version: protocolVersion, Fault: toFault(err)})
		first.Close()
		k.undo()
		return err
	}
	k.crash("started")
	launch.Env, launch.Input = nil, nil
	debug.FreeOSMemory()
	k.serve(first, launch.Fence)
	k.crash("replied")

	k.attend()
	k.crash("agent_ended")
	k.sweep()
	k.crash("tree_gone")
	k.bury()
	return nil
}

func receiveLaunch() (*launchSpec, *net.UnixConn, error) {
	f := os.NewFile(launchFD, "launch")
	c, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return nil, nil, fmt.Errorf("the shim is started by Fairlead, not by hand: %w", err)
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.New("the shim is started by Fairlead, not by hand: descriptor 3 is no unix socket")
	}
	var o order
	_ = conn.SetReadDeadline(time.Now().Add(attachPatience))
	if err := readFrame(conn, launchBytesMax, &o); err != nil {
		return nil, nil, fmt.Errorf("no launch came: %w", err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	if o.Op != "launch" || o.Launch == nil {
		return nil, nil, fmt.Errorf("the first order is %q, not a launch", o.Op)
	}
	return o.Launch, conn, nil
}

// crash ends the shim where a test asked for it.
func (k *keeper) crash(step string) {
	if os.Getenv(crashVar) == step {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour) // the signal is on its way
	}
}

// boundedLog writes few lines, and then no more.
type boundedLog struct {
	to   io.Writer
	left int
}

func newLog(to io.Writer) *boundedLog { return &boundedLog{to: to, left: logBytesMax} }

// print is called by the main goroutine only.
func (l *boundedLog) print(format string, args ...any) {
	line := time.Now().UTC().Format(time.RFC3339) + " " + fmt.Sprintf(format, args...) + "\n"
	if l.left -= len(line); l.left > 0 {
		_, _ = io.WriteString(l.to, line) // there is nobody else to tell
	}
}
