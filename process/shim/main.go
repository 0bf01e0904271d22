package shim

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/internal/boundedlog"
	"github.com/fairlead-dev/fairlead/internal/socket"
)

const (
	// shimWord is the first argument of a shim process; session and folder follow.
	shimWord = "__shim"

	// crashVar names a step at which a shim kills itself. Tests use it to prove that no crash at any
	// step starts an agent twice.
	crashVar = "FAIRLEAD_SHIM_CRASH"

	launchFD = 3 // the socket to the daemon
)

// Intercept runs the shim, and does not return, if this process was started as one. Call it first in
// main, and in TestMain of tests that start agents.
func Intercept() {
	if len(os.Args) > 1 && os.Args[1] == shimWord {
		os.Exit(Main(os.Args[2:]))
	}
}

// A shim needs little of this program. Go initializes packages in the order of their import paths, each as soon as all
// that it imports are initialized. So this runs before most of them, as long as this package imports none that itself
// comes late: not net (see socket.go), and not runtime/debug. A shim that begins in main has 5.0 MB of memory of its own
// instead of 2.4, for as long as its agent runs, and starts 6 ms later. A test counts what is allocated until here.
func init() { Intercept() } //nolint:gochecknoinits // see above: main is too late

// Main runs the shim: args are the session's name and its folder, and descriptor 3 is a socket for
// the launch. The result is the exit code.
func Main(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "the shim is started by Fairlead, not by hand")
		return 2
	}
	// The parent-death signal is bound to the thread that forks: this one, which lives as long as the
	// process.
	runtime.LockOSThread()
	nameProcess("fairlead-shim")
	closeInherited(launchFD)
	_ = os.Chdir("/") // do not keep a file system busy
	orders := make(chan os.Signal, 4)
	// Handle the signals: an ignored signal would stay ignored in the agent.
	signal.Notify(orders, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1)

	k := &keeper{
		folder: args[1], log: boundedlog.New(os.Stderr, logBytesMax), orders: orders, peers: map[*peer]bool{},
		sooner: make(chan struct{}, 1),
	}
	if err := k.run(); err != nil {
		k.log.Print("%v", err)
		return 1
	}
	return 0
}

// run executes the shim's steps. It may be killed after each, so the state on disk must always be
// correct.
func (k *keeper) run() error {
	launch, first, err := receiveLaunch()
	if err != nil {
		return err // nothing was started; the launching process has ended or sent an invalid launch
	}
	if err := k.start(launch); err != nil {
		_ = writeFrame(first, answer{ID: 1, Version: ownProtocol(), Fault: toFault(err)})
		first.Close()
		k.undo()
		return err
	}
	k.crash("started")
	launch.Launch.Env, launch.Launch.Input, launch.Launch.Network = nil, nil, nil // the outlet has what is left of the last
	k.serve(first, launch.Fence)
	k.crash("replied")

	k.attend()
	k.crash("agent_ended")
	k.sweep()
	k.crash("tree_gone")
	k.bury()
	return nil
}

// receiveLaunch waits for the launch.
func receiveLaunch() (*Spec, *os.File, error) {
	conn, err := socket.Polled(launchFD, "launch")
	if err == nil {
		_, _, err = peerOf(conn)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the shim is started by Fairlead, not by hand: descriptor 3 is no unix socket: %w", err)
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

// crash kills the shim if a test requested it.
func (k *keeper) crash(step string) {
	if os.Getenv(crashVar) == step {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour) // the signal is on its way
	}
}
