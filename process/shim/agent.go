package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/process/spawn"
)

// program finds the file to execute, like a shell in the agent's folder with the agent's own PATH.
func program(l *Spec) (string, error) {
	dir, name := l.Launch.Dir, l.Launch.Argv[0]
	if info, err := os.Stat(dir); dir != "" && (err != nil || !info.IsDir()) {
		return "", &spawn.CannotStart{Why: fmt.Sprintf("the working directory %s does not exist", dir)}
	}
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if why := notExecutable(path); why != "" {
			return "", &spawn.CannotStart{Why: fmt.Sprintf("%s %s", path, why)}
		}
		return path, nil
	}
	search := ""
	for _, kv := range l.Launch.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	found := ""
	for _, d := range filepath.SplitList(search) {
		if !filepath.IsAbs(d) {
			continue // a program in the working directory must be named with ./
		}
		path := filepath.Join(d, name)
		why := notExecutable(path)
		if why == "" {
			return path, nil
		}
		if why != notThere {
			found = fmt.Sprintf("; %s %s", path, why)
		}
	}
	return "", &spawn.CannotStart{Why: fmt.Sprintf("no program %q in the agent's PATH (%s)%s; install it, or give its whole path", name, search,
		found)}
}

const notThere = "does not exist"

func notExecutable(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return notThere
	case err != nil:
		return fmt.Sprintf("cannot be looked at: %v", errors.Unwrap(err))
	case info.IsDir():
		return "is a folder"
	case info.Mode().Perm()&0o111 == 0:
		return "is not executable (chmod +x)"
	}
	return ""
}

const (
	busyTries = 20 // a program that was just written may still be open in another process's fork
	busyPause = 10 * time.Millisecond
)

// fork starts the agent and then the only goroutine that waits for children. A failed start waits
// for its child itself.
func (k *keeper) fork(path string, l *Spec) error {
	ends, err := k.openEnds(l)
	if err != nil {
		return err
	}
	defer ends.closeTheirs()
	attr, argv := &syscall.SysProcAttr{}, l.Launch.Argv
	proc := &syscall.ProcAttr{
		Dir: l.Launch.Dir, Env: markedEnv(l.Launch.Env, k.record.Mark), Sys: attr,
		Files: []uintptr{ends.stdin.Fd(), ends.stdout.Fd(), ends.stdout.Fd()},
	}
	if l.Launch.View != nil {
		if argv, err = k.intoView(l, proc); err != nil {
			ends.closeOurs()
			return err
		}
		defer k.wall.theirs.Close()
	}
	agentAttr(attr)
	if l.PTY {
		attr.Setctty, attr.Ctty = true, 0
	}
	if err := mayBegin(l.DeadMan); err != nil {
		ends.closeOurs()
		return err
	}
	pid, err := k.forkBounded(path, argv, proc, l)
	if err != nil {
		ends.closeOurs()
		if passes(err) {
			// Nothing was started: remove the intent, so that the start can be repeated.
			_ = os.Remove(filepath.Join(k.folder, agentFile))
			_ = syncFolder(k.folder)
			return fmt.Errorf("start the agent: %w; the machine is short of processes or memory, try again", err)
		}
		if k.wall != nil {
			return &spawn.CannotStart{Why: fmt.Sprintf("make its view of the machine: %v; `fairlead doctor` says why", err)}
		}
		return &spawn.CannotStart{Why: fmt.Sprintf("%s: %v", path, err)}
	}
	agent, _ := readProcess(pid) // it exists, at worst as a zombie, because wait was not called yet
	k.record.Step, k.record.AgentPID, k.record.AgentStart = stepStarted, pid, agent.Start
	k.record.StartedAt = time.Now().UTC()
	k.ended, k.alone = make(chan struct{}), make(chan struct{})
	go k.reap(pid)
	if k.alarm != nil {
		go k.heed()
	}
	k.crash("entering")
	if k.wall != nil {
		if err := k.enter(l, ends.output); err != nil {
			ends.closeOurs()
			return err
		}
	}
	k.output = ends.output
	k.startGuard(l)
	k.spool.start(ends.output)
	k.input = newInput(ends.input, l.Launch.Input, l.Launch.KeepStdin, l.PTY)
	return nil
}

// forkBounded starts the agent in a cgroup with its limits, where there is one. Where it cannot be made, the looks hold the limits.
func (k *keeper) forkBounded(path string, argv []string, proc *syscall.ProcAttr, l *Spec) (pid int, err error) {
	if k.group, err = makeGroup(l.Scope, k.record.Mark, l.Launch.Limits); err != nil {
		k.log.Print("the session has no cgroup: %v", err)
	}
	if k.group != nil {
		in := *proc
		attr := *proc.Sys
		in.Sys = &attr
		dir, err := k.group.attach(&attr)
		if err == nil {
			defer dir.Close()
			asVictims(func() { pid, err = forkExec(path, argv, &in) })
		}
		if err == nil {
			return pid, nil
		}
		k.log.Print("the session does not start in its cgroup: %v", err)
		k.group.remove()
		k.group = nil
	}
	asVictims(func() { pid, err = forkExec(path, argv, proc) })
	if err != nil {
		return 0, err
	}
	return pid, nil
}

// passes distinguishes a busy machine from a wrong command.
func passes(err error) bool {
	return slices.ContainsFunc([]error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EINTR},
		func(passing error) bool {
			return errors.Is(err, passing)
		})
}

func forkExec(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	for range busyTries {
		pid, err = syscall.ForkExec(path, argv, attr)
		if err != syscall.ETXTBSY && err != syscall.EAGAIN {
			return pid, err
		}
		time.Sleep(busyPause)
	}
	return pid, err
}

// reap is the only caller of wait. The shim adopts every orphan of the tree, so if the kernel
// reports no child, the tree has ended.
func (k *keeper) reap(agent int) {
	for gone := false; ; {
		pid, ws, err := k.waitChild()
		if err != nil {
			close(k.alone)
			return
		}
		first := false
		if pid == agent {
			k.wall.finish()
			gone, first = true, k.agentEnded(ws)
		}
		// Most agents leave no process behind. Then sweep need not look for one.
		alone := gone && k.isAlone(first)
		if alone {
			close(k.alone)
		}
		if first {
			close(k.ended)
		}
		if alone {
			return
		}
	}
}

// isAlone reports whether no process of the tree is left. Without a proxy among the children, it asks the kernel only the first time:
// later, waitChild says so.
func (k *keeper) isAlone(first bool) bool {
	if first || k.wall.starts() {
		if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err == syscall.ECHILD {
			return true
		}
	}
	return k.wall.starts() && k.onlyOurs()
}

// agentEnded takes how the agent ended. It is false if that was known before.
func (k *keeper) agentEnded(ws syscall.WaitStatus) (first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.endedAt.IsZero() {
		return false
	}
	k.waited, k.endedAt = ws, time.Now()
	if k.endTimer != nil {
		k.endTimer.Stop()
	}
	return true
}

// end orders the agent's end: SIGTERM to its tree, SIGKILL after grace (below 0: the launch's own).
// If it is ordered again, the earlier deadline applies.
func (k *keeper) end(grace time.Duration) error {
	if grace < 0 {
		grace = k.grace
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	by, first := time.Now().Add(grace), !k.ordered
	switch {
	case !first && by.Before(k.endBy):
		k.endBy = by
		wake(k.sooner)
	case !first, !k.endedAt.IsZero():
		return nil // already on its way
	}
	if !k.endedAt.IsZero() {
		return nil
	}
	if k.endTimer != nil {
		k.endTimer.Stop()
	}
	k.ordered, k.endBy = true, by
	k.endTimer = time.AfterFunc(grace, k.kill)
	if first && grace > 0 {
		signalAll(k.living(), syscall.SIGTERM)
	}
	return nil
}

func (k *keeper) kill() {
	// Only the agent: after its end, sweep ends the others until none is left.
	signalProcess(k.record.AgentPID, k.record.AgentStart, syscall.SIGKILL)
}

// interrupt sends SIGINT to the agent's process group, like Ctrl-C.
func (k *keeper) interrupt() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.endedAt.IsZero() {
		return ErrEnded
	}
	// If it was reaped this instant, all PIDs would have to be used once before this one is another
	// process's.
	err := syscall.Kill(-k.record.AgentPID, syscall.SIGINT)
	if group := k.wall.group(); err == nil && group > 0 && group != k.record.AgentPID {
		err = syscall.Kill(-group, syscall.SIGINT)
	}
	if err != nil {
		return fmt.Errorf("interrupt the agent: %w", err)
	}
	return nil
}

// ends holds the file descriptors of the two pipes, or of the pty.
type ends struct {
	stdin, stdout *os.File // the agent's
	input, output *os.File // ours; input is nil where the agent's is /dev/null
}

func (k *keeper) openEnds(l *Spec) (e ends, err error) {
	if l.PTY {
		return openPTY()
	}
	if e.output, e.stdout, err = openPipe(0); err != nil {
		return e, err
	}
	if len(l.Launch.Input) == 0 && !l.Launch.KeepStdin {
		e.stdin, err = os.Open(os.DevNull)
	} else {
		e.stdin, e.input, err = openPipe(1)
	}
	if err != nil {
		e.output.Close()
		e.stdout.Close()
	}
	return e, err
}

func (e ends) closeTheirs() {
	e.stdin.Close()
	if e.stdout != e.stdin {
		e.stdout.Close()
	}
}

func (e ends) closeOurs() {
	e.output.Close()
	if e.input != nil && e.input != e.output {
		e.input.Close()
	}
}
