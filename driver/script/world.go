package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// World is where a play has its effects. The real one is a workspace folder; simulators provide
// their own.
type World interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, content []byte) error             // creates missing folders
	AppendFile(name string, content []byte, sync bool) error // sync: on disk when it returns
	Crash(signal string) error                               // the real one does not return; nil: the play ends as if it had crashed

	// Run runs a shell command to its end and returns its exit code; when ctx is done, it ends the
	// command first. Output is written by one goroutine at a time.
	Run(ctx context.Context, command string, env []string, output io.Writer) (code int, err error)

	// Spawn starts a shell command and leaves it running: as a child, in a session of its own (setsid),
	// or as a grandchild whose parent has ended (double_fork). With holdsOutput, it keeps the agent's
	// own output open.
	Spawn(command, mode string, holdsOutput bool, env []string) (pid int, err error)
}

const (
	fileBytesMax = 16 << 20        // limit for edit
	killAfter    = 2 * time.Second // from SIGTERM to SIGKILL when a command is ended
)

// Workspace is the world of a real agent: files below one folder, and processes.
type Workspace struct {
	root *os.Root
	out  *os.File
}

// OpenWorkspace opens a folder. out is what spawned processes may keep open; nil: nothing.
func OpenWorkspace(dir string, out *os.File) (*Workspace, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w; create it, or correct `workspace`", err)
	}
	return &Workspace{root: root, out: out}, nil
}

// Close closes the folder.
func (w *Workspace) Close() error { return w.root.Close() }

// ReadFile reads a file of the workspace, up to 16 MiB.
func (w *Workspace) ReadFile(name string) ([]byte, error) {
	f, err := w.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err == nil && len(b) > fileBytesMax {
		return nil, fmt.Errorf("%s has more than %d bytes", name, fileBytesMax)
	}
	return b, err
}

// WriteFile writes a file of the workspace. It refuses symbolic links that lead out of it.
func (w *Workspace) WriteFile(name string, content []byte) error {
	if err := w.folder(name); err != nil {
		return err
	}
	return w.root.WriteFile(name, content, 0o666)
}

// AppendFile appends to a file of the workspace.
func (w *Workspace) AppendFile(name string, content []byte, sync bool) error {
	if err := w.folder(name); err != nil {
		return err
	}
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (w *Workspace) folder(name string) error {
	if dir := filepath.Dir(name); dir != "." {
		return w.root.MkdirAll(dir, 0o777)
	}
	return nil
}

// Run runs a command with sh, in its own process group.
func (w *Workspace) Run(ctx context.Context, command string, env []string, output io.Writer) (int, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = w.root.Name()
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killAfter // do not wait longer for background processes that hold the pipe
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		// End what ignored SIGTERM. The group's leader has ended, so only its members are signaled.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil:
		return cmd.ProcessState.ExitCode(), nil
	case errors.As(err, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil // as a shell reports it
		}
		return exit.ExitCode(), nil
	case ctx.Err() != nil:
		return -1, nil //nolint:nilerr // it was told to end, and ended
	}
	return -1, fmt.Errorf("run sh: %w", err)
}

// Spawn starts a command and leaves it running.
func (w *Workspace) Spawn(command, mode string, holdsOutput bool, env []string) (int, error) {
	script := "exec sh -c \"$0\""
	if mode == "double_fork" {
		script = "sh -c \"$0\" 3>&- & echo $! >&3" // the intermediate process ends immediately
	}
	cmd := exec.Command("sh", "-c", script, command)
	cmd.Dir = w.root.Name()
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: mode != "child"}
	if holdsOutput && w.out != nil {
		cmd.Stdout, cmd.Stderr = w.out, w.out
	}
	if mode != "double_fork" {
		if err := cmd.Start(); err != nil {
			return 0, fmt.Errorf("spawn: %w", err)
		}
		pid := cmd.Process.Pid // Release clears it
		return pid, cmd.Process.Release()
	}
	r, pids, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("spawn: %w", err)
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{pids}
	err = cmd.Run()
	pids.Close()
	if err != nil {
		return 0, fmt.Errorf("spawn: %w", err)
	}
	var line [32]byte // a PID is shorter, and is written in one piece
	n, _ := r.Read(line[:])
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		return 0, fmt.Errorf("spawn: no pid from the middle process: %w", err)
	}
	return pid, nil
}

// Crash ends this process by a signal. A Go program turns most deadly signals into an exit code, so
// the process first becomes a shell under the same PID, and the signal kills the shell.
func (w *Workspace) Crash(signal string) error {
	if signal != "SIGKILL" {
		name := strings.TrimPrefix(signal, "SIG")
		// The second kill is for an ignored signal, as a stubborn script ignores SIGTERM.
		line := "ulimit -c 0; kill -s " + name + " $$; kill -s KILL $$"
		if err := syscall.Exec("/bin/sh", []string{"sh", "-c", line}, []string{}); err != nil {
			return fmt.Errorf("crash by %s: %w", signal, err)
		}
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		return fmt.Errorf("crash by %s: %w", signal, err)
	}
	select {} // the signal is on its way
}
