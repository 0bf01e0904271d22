package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/termtext"
	"github.com/fairlead-dev/fairlead/process/proxy/outlet"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Run starts a command, or a shell if there is none, in the view of an agent or of a task. Its exit code is the command's.
func Run(ctx context.Context, a *cli.App, client *apiclient.Client, name string, command []string) error {
	shell, err := apiclient.Post[view.Shell](ctx, client, "/agents/"+url.PathEscape(name)+"/shell", api.EmptyBody{})
	if err != nil {
		return err
	}
	for _, note := range shell.Notes {
		fmt.Fprintln(a.Err, "fairlead: "+cli.Plain(note))
	}
	if len(command) == 0 {
		command = []string{shell.Shell}
		if _, _, ok := terminal(a); ok {
			fmt.Fprintln(a.Err,
				a.Paint(cli.Dim,
					"in the view of "+cli.Plain(name)+", in "+cli.Plain(shell.Dir)+"; `exit` leaves it, and ends what runs in it"))
		}
	}
	code, err := start(a, shell, command)
	if err != nil {
		return fmt.Errorf("start %s in the view of %s: %w", cli.Line(command[0], cli.StepWidth), cli.Plain(name), err)
	}
	if code != 0 {
		return &cli.Coded{Code: code, Err: cli.ErrSaid}
	}
	return nil
}

// start starts the command and waits for its end.
func start(a *cli.App, shell view.Shell, command []string) (code int, err error) {
	var v sandbox.View
	if err := json.Unmarshal([]byte(shell.View), &v); err != nil {
		return 0, fmt.Errorf("read the view: %w; does the daemon have another version?", err)
	}
	folder, err := os.Stat(filepath.Dir(shell.Lock))
	if err != nil {
		return 0, fmt.Errorf("look at the folder of the shell: %w", err)
	}
	if owner, ok := folder.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() { // the view would have other rights
		return 0, errors.New("the daemon runs as another user; run the command as that one")
	}
	lock, err := locked(shell.Lock)
	if err != nil {
		return 0, fmt.Errorf("lock the shell: %w", err)
	}
	defer lock.Close()
	points, err := sandbox.MakePoints(shell.Made, v)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, points.Remove()) }()
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	extra := append([]*os.File{lock}, heldBy(points)...) // process 1 holds them as long as the view is there
	if shell.Network != "" {
		theirs, end, err := serve(&v, shell)
		if err != nil {
			return 0, err
		}
		defer end()
		extra = append(extra, theirs)
		v.Report, v.EndsLeft = 2+len(extra), true
	}
	argv, err := sandbox.WrapView(exe, command, v)
	if err != nil {
		return 0, err
	}
	cmd := &exec.Cmd{Path: exe, Args: argv, Env: shell.Env, Stderr: a.Err, SysProcAttr: v.Attr()}
	cmd.SysProcAttr.Setsid = true // signals to its group stay in the view
	cmd.ExtraFiles = extra
	runtime.LockOSThread() // its end would be that of the view
	endWithParent(cmd.SysProcAttr)
	if in, out, ok := terminal(a); ok {
		return onTerminal(cmd, shell, in, out)
	}
	return onStreams(a, cmd)
}

// serve keeps a proxy at the sockets of the view's network, which come over the channel whose other end it returns.
func serve(v *sandbox.View, shell view.Shell) (theirs *os.File, end func(), err error) {
	var to spawn.Network
	if err := json.Unmarshal([]byte(shell.Network), &to); err != nil {
		return nil, nil, fmt.Errorf("read the network of the view: %w; does the daemon have another version?", err)
	}
	said, theirs, err := v.OpenReports()
	if err != nil {
		return nil, nil, err
	}
	made := *v
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		var started sandbox.Started
		if json.NewDecoder(said).Decode(&started) != nil || started.Error != "" {
			return // process 1 has said so
		}
		sockets, err := said.Sockets(made)
		if err == nil {
			outlet.Of(filepath.Base(filepath.Dir(shell.Lock)), made, &to, sockets).Keep(ctx)
		}
		for _, s := range sockets {
			s.Close()
		}
	})
	return theirs, func() {
		cancel()
		theirs.Close()
		said.Close()
		served.Wait()
	}, nil
}

// locked makes a file with a lock, which no other process sees without it.
func locked(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err == nil { //nolint:gosec // a descriptor fits an int
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		f.Close()
	}
	return f, err
}

// onStreams runs a command whose streams are those of this one. A terminal is not among them: a program in the view could read what
// is typed there later.
func onStreams(a *cli.App, cmd *exec.Cmd) (int, error) {
	cmd.Stdout, cmd.WaitDelay = a.Out, drained
	var typed io.WriteCloser
	if file, ok := a.In.(*os.File); ok && !cli.Tty(file) {
		cmd.Stdin = file
	} else {
		var err error
		if typed, err = cmd.StdinPipe(); err != nil {
			return 0, err
		}
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	unpass := passSignals(cmd.Process.Pid)
	defer unpass()
	if typed != nil {
		go func() {
			_, _ = io.Copy(typed, a.In) // the program may read no more
			_ = typed.Close()
		}()
	}
	return ended(cmd)
}

// passSignals gives the view what a person or a program sends to this command. The result ends it.
func passSignals(pid int) (end func()) {
	return onSignals(func(sig syscall.Signal) {
		_ = syscall.Kill(-pid, sig) // it may have ended
	}, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
}

// onSignals calls do for each signal that comes, until the result is called.
func onSignals(do func(syscall.Signal), signals ...os.Signal) (end func()) {
	came := make(chan os.Signal, 4)
	signal.Notify(came, signals...)
	go func() {
		for sig := range came {
			if number, ok := sig.(syscall.Signal); ok {
				do(number)
			}
		}
	}()
	return func() {
		signal.Stop(came)
		close(came)
	}
}

// ended waits for a command, and returns its exit code.
func ended(cmd *exec.Cmd) (int, error) {
	err := cmd.Wait()
	status, known := syscall.WaitStatus(0), false
	if cmd.ProcessState != nil {
		status, known = cmd.ProcessState.Sys().(syscall.WaitStatus)
	}
	switch {
	case !known:
		return 0, err
	case status.Signaled(): // process 1 of the view
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// terminal returns the terminal of this command; false: it has none, or only one direction of it.
func terminal(a *cli.App) (in, out *os.File, ok bool) {
	shown := a.Out
	if w, is := shown.(*termtext.Writer); is {
		shown = w.To // the program draws on it
	}
	in, isIn := a.In.(*os.File)
	out, isOut := shown.(*os.File)
	return in, out, isIn && isOut && cli.Tty(in) && cli.Tty(out)
}

// withTerminal is an environment with what programs know of the person's terminal.
func withTerminal(env []string) []string {
	for _, name := range []string{"TERM", "COLORTERM"} {
		if value, set := os.LookupEnv(name); set {
			env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
			env = append(env, name+"="+value)
		}
	}
	return env
}
