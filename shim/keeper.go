package shim

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// keeper is a shim at work: one folder, one agent.
type keeper struct {
	folder string
	log    *boundedLog
	orders chan os.Signal

	lock   *os.File
	record agentRecord
	grace  time.Duration
	spool  *spool
	input  *input
	output *os.File // our end of what the agent writes

	ended  chan struct{} // the agent was reaped; wait says how
	sooner chan struct{} // of one: the end was ordered for an earlier time
	alone  chan struct{} // no child is left, the agent and everybody it left behind included
	waited syscall.WaitStatus

	mu       sync.Mutex
	peers    map[*peer]bool
	listener *net.UnixListener
	bound    os.FileInfo // the socket as it was made
	fence    uint64
	told     *answer // the last word, for whoever connects when it is over
	exit     *Exit
	endedAt  time.Time
	endBy    time.Time // when an ordered end turns to SIGKILL
	endTimer *time.Timer
	ordered  bool
	swept    []Process // what outlived the agent
}

// start does everything up to a running agent. An error means that none runs;
// it is a refusal where somebody else started, or will have started, one here.
func (k *keeper) start(l *launchSpec) error {
	if err := k.takeLock(); err != nil {
		return err
	}
	k.crash("locked")
	if err := raiseFence(k.folder, l.Fence); err != nil {
		return err
	}
	k.fence, k.grace = l.Fence, l.Grace
	k.crash("fenced")
	if err := becomeSubreaper(); err != nil && haveSubreaper {
		return fmt.Errorf("become the subreaper: %w", err)
	}
	self, _ := readProcess(os.Getpid())
	k.record = agentRecord{
		Version: protocolVersion, Step: stepStarting, Session: l.Session, Mark: l.Mark,
		BootID: bootID(), ShimPID: os.Getpid(), ShimStart: self.Start,
		Holds: Holds{Subreaper: haveSubreaper, ProcessGroup: true, ParentDeath: haveParentDeath, Mark: true},
	}
	prog, err := program(l)
	if err != nil {
		return k.cannot(err)
	}
	file, err := k.prepare(l)
	if err != nil {
		return err
	}
	k.spool = newSpool(file, l.SpoolMax, k.publish)
	if err := k.listen(); err != nil {
		return err
	}
	k.record.Socket = k.listener.Addr().String()
	if err := writeRecord(k.folder, agentFile, "", &k.record); err != nil {
		return err
	}
	k.crash("intent")
	if err := k.fork(prog, l); err != nil {
		return k.cannot(err)
	}
	k.crash("forked")
	if err := writeRecord(k.folder, agentFile, "", &k.record); err != nil {
		// The intent says enough to find the tree; going without an agent is the honest answer.
		return err
	}
	return nil
}

// takeLock takes the folder for life, unless an agent was ever started in it.
func (k *keeper) takeLock() error {
	f, err := openPlain(filepath.Join(k.folder, lockFile), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("lock the session's folder: %w", err)
	}
	k.lock = f
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(attachPause) {
		locked, err := tryLock(f)
		if err != nil {
			return fmt.Errorf("lock the session's folder: %w", err)
		}
		switch r, err := readAgent(k.folder); {
		case err != nil && !errors.As(err, new(*damaged)):
			return err
		case r != nil && r.Step == stepCannotStart:
			return &CannotStart{Why: r.Why}
		case err != nil || r != nil:
			return &AlreadyStarted{Folder: k.folder}
		}
		if locked {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("lock the session's folder: somebody has held %s for %v without starting an agent: see who (lslocks), and try again", f.Name(), lockPatience)
		}
	}
}

// prepare makes the spool, and keeps disk space for the exit record.
func (k *keeper) prepare(l *launchSpec) (*os.File, error) {
	f, err := openPlain(filepath.Join(k.folder, spoolFile), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("make the spool: %w", err)
	}
	if room, err := openPlain(filepath.Join(k.folder, exitRoom), os.O_WRONLY|os.O_CREATE); err == nil {
		reserve(room, 4096)
		room.Close()
	}
	if !l.NoCgroup {
		k.record.Cgroup = makeCgroup(socketName(k.folder))
	}
	return f, nil
}

// cannot keeps on disk that the command cannot be started, so that every later Start says the same.
func (k *keeper) cannot(err error) error {
	var c *CannotStart
	if !errors.As(err, &c) {
		return err
	}
	k.record.Step, k.record.Why = stepCannotStart, c.Why
	if err := writeRecord(k.folder, agentFile, "", &k.record); err != nil {
		return err
	}
	return c
}

// undo takes back what a start that failed has made.
func (k *keeper) undo() {
	if k.ended != nil {
		k.kill()
		<-k.ended
		k.sweep()
	}
	k.unlisten()
	removeCgroup(k.record.Cgroup)
}

// attend waits for the agent's end; meanwhile it hears signals and looks after its socket.
func (k *keeper) attend() {
	look := time.NewTicker(socketLook)
	defer look.Stop()
	for {
		select {
		case <-k.ended:
			return
		case sig := <-k.orders:
			switch sig {
			case syscall.SIGTERM: // somebody wants the shim gone: not without its agent
				_ = k.end(-1)
			case syscall.SIGUSR1:
				k.look()
			}
		case <-look.C:
			k.look()
		}
	}
}

// look makes the socket again where it vanished while nobody was connected.
func (k *keeper) look() {
	k.mu.Lock()
	quiet, bound, l := len(k.peers) == 0, k.bound, k.listener
	k.mu.Unlock()
	if !quiet || l == nil {
		return
	}
	if now, err := os.Lstat(l.Addr().String()); err == nil && os.SameFile(now, bound) {
		return
	}
	if err := k.listen(); err != nil {
		k.log.print("make the socket again: %v", err)
		return
	}
	l.Close()
}

// sweep ends whatever the agent left behind, until the kernel says that no child
// is left and no process carries the mark.
func (k *keeper) sweep() {
	k.letFinish()
	alone := k.alone
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		rest := k.tree()
		if len(rest) == 0 {
			select {
			case <-k.alone:
				return
			default: // a zombie that is just being reaped, or a child born this instant
			}
		}
		k.mu.Lock()
		k.swept = join(k.swept, rest)
		k.mu.Unlock()
		killCgroup(k.record.Cgroup)
		signalAll(rest, syscall.SIGKILL)
		select {
		case <-alone:
			alone = nil
		case <-time.After(pause):
		}
	}
}

// letFinish gives what outlives the agent the rest of the grace, where the end was
// ordered: it got its SIGTERM, too. Where the agent ended by itself nobody asked to wait.
func (k *keeper) letFinish() {
	for {
		k.mu.Lock()
		left := time.Until(k.endBy)
		if !k.ordered {
			left = 0
		}
		k.mu.Unlock()
		if left <= 0 {
			return
		}
		select {
		case <-k.alone:
			return
		case <-k.sooner:
		case <-time.After(left):
		}
	}
}

// tree gives the living processes of the agent's tree, the agent included.
func (k *keeper) tree() []Process {
	all, err := processes()
	if err != nil {
		return nil
	}
	self := os.Getpid()
	found := below(all, self)
	found = withDescendants(all, join(found, marked(all, k.record.Mark, k.record.AgentStart)))
	return without(all, found, self)
}

// bury writes the exit record, tells everybody, and leaves nothing in the runtime folder.
func (k *keeper) bury() {
	defer removeCgroup(k.record.Cgroup)
	defer k.unlisten()
	size, cut := k.spool.finish(k.output)
	k.crash("spool_synced")
	k.mu.Lock()
	e := &Exit{Code: -1, At: k.endedAt.UTC(), SpoolBytes: size, CutBytes: cut, Swept: len(k.swept), Ordered: k.ordered}
	k.mu.Unlock()
	if k.waited.Signaled() {
		e.Signal = signalName(k.waited.Signal())
	} else {
		e.Code = k.waited.ExitStatus()
	}
	for {
		err := writeRecord(k.folder, exitFile, exitRoom, e)
		if err == nil {
			break
		}
		k.log.print("%v", err)
		if _, gone := os.Stat(k.folder); gone != nil {
			return // somebody removed the folder: there is nobody to tell
		}
		time.Sleep(diskPause)
	}
	k.crash("exit_synced")
	k.mu.Lock()
	k.exit = e
	k.mu.Unlock()
	os.Remove(filepath.Join(k.folder, exitRoom))
	st := k.status()
	k.unlisten() // from now on the folder answers
	k.tellAll(answer{Event: "exit", Status: &st})
}

// status is what the shim knows now.
func (k *keeper) status() Status {
	st := k.record.status()
	st.Phase = Running
	k.spool.fill(&st)
	k.input.fill(&st)
	k.mu.Lock()
	over := k.exit != nil
	k.mu.Unlock()
	if !over { // or nothing is left, and the whole process table need not be read for it
		for _, p := range k.tree() {
			if p.PID != k.record.AgentPID {
				st.Children++
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	st.Fence, st.Ending, st.AgentEnded = k.fence, k.ordered || !k.endedAt.IsZero(), !k.endedAt.IsZero()
	if k.exit != nil {
		st.Phase, st.Exit, st.SpoolBytes, st.Ending = Exited, k.exit, k.exit.SpoolBytes, false
	}
	return st
}
