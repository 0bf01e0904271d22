package shim

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/boundedlog"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/boottime"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// keeper is the state of a shim: one folder, one agent.
type keeper struct {
	folder string
	log    *boundedlog.Log
	orders chan os.Signal

	lock   *os.File
	record agentRecord
	grace  time.Duration
	spool  *spool
	input  *input
	output *os.File // the shim's end of the agent's output
	ports  *os.File // holds the locks of the leased ports; nil: none
	wall   *wall    // the view in which the agent runs; nil: none

	guard    *guard     // looks after its limits; nil: it is about to start
	group    *group     // its cgroup; nil: it has none
	starting sync.Mutex // of a proxy: the process that starts it is waited for by that alone

	portsTouched time.Time

	deadMan *host.DeadMan   // the deadline of a leased session; nil: it has none
	alarm   *boottime.Alarm // for the deadline; nil: it has none

	ended  chan struct{} // the agent was reaped; wait has the result
	sooner chan struct{} // capacity 1: the end was ordered for an earlier time
	alone  chan struct{} // no child is left, including processes that the agent left behind
	waited syscall.WaitStatus

	mu          sync.Mutex
	peers       map[*peer]bool
	listener    *os.File
	bound       os.FileInfo // the socket as it was created
	fence       uint64
	told        *answer // the final answer, for later connections
	exit        *session.Exit
	endedAt     time.Time
	endBy       time.Time // when an ordered end becomes SIGKILL
	endTimer    *time.Timer
	ordered     bool
	why         string        // the end was ordered by the shim itself
	limit       session.Limit // for which the shim has ended it
	limitOfTeam bool          // it is the team's
	swept       []Process     // processes that outlived the agent
}

// start does everything up to a running agent. An error means that no agent runs; it is a refusal if
// another shim has started, or is starting, one here.
func (k *keeper) start(l *Spec) error {
	if err := k.takeLock(l.Session); err != nil {
		return err
	}
	k.crash("locked")
	if err := checkFence(k.folder, l.Fence); err != nil {
		return err
	}
	k.fence, k.grace = l.Fence, cmp.Or(l.Grace, graceDefault)
	k.crash("fenced")
	if err := becomeSubreaper(); err != nil && haveSubreaper {
		return fmt.Errorf("become the subreaper: %w", err)
	}
	self, _ := readProcess(os.Getpid())
	k.record = agentRecord{
		Version: ownProtocol(), Step: stepStarting, Session: l.Session, Mark: markOf(l.Workspace, l.Session), Fence: l.Fence,
		BootID: bootID(), ShimPID: os.Getpid(), ShimStart: self.Start,
		Holds: Holds{Subreaper: haveSubreaper, ProcessGroup: true, ParentDeath: haveParentDeath, Mark: true},
	}
	prog := "/proc/self/exe" // makes a view, and looks for the program in it
	if l.Launch.View == nil {
		var err error
		if prog, err = program(l); err != nil {
			return k.cannot(err)
		}
	}
	if err := k.lease(l); err != nil {
		return err
	}
	file, err := k.prepare(l)
	if err != nil {
		return err
	}
	k.spool = newSpool(file, cmp.Or(l.Launch.Limits.Output, spoolBytesDefault), k.publish)
	if err := k.listen(); err != nil {
		return err
	}
	k.record.Socket = k.listener.Name()
	if err := writeRecord(k.folder, agentFile, "", &k.record); err != nil {
		return err
	}
	k.crash("intent")
	if err := k.fork(prog, l); err != nil {
		return k.cannot(err)
	}
	k.crash("forked")
	if err := writeStarted(k.folder, &k.record); err != nil {
		// The intent suffices to find the tree, so end without an agent.
		return err
	}
	return nil
}

// takeLock locks the folder permanently, unless an agent was ever started in it.
func (k *keeper) takeLock(session string) error {
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
			return &spawn.CannotStart{Why: r.Why}
		case err != nil || r != nil:
			return &spawn.AlreadyStarted{Session: session}
		}
		if locked {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("lock the session's folder: another process has held %s for %v without starting an agent: find it with lslocks, and try again", f.Name(), lockPatience)
		}
	}
}

// prepare creates the spool, and reserves disk space for the exit record.
func (k *keeper) prepare(l *Spec) (*os.File, error) {
	f, err := openPlain(filepath.Join(k.folder, spoolFile), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("make the spool: %w", err)
	}
	if room, err := openPlain(filepath.Join(k.folder, exitRoom), os.O_WRONLY|os.O_CREATE); err == nil {
		reserve(room, 4096)
		room.Close()
	}
	if k.deadMan = l.DeadMan; k.deadMan != nil && !k.deadMan.Waits {
		if k.alarm, err = boottime.NewAlarm(); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// cannot records that the command cannot be started, so that every later Start returns the same.
func (k *keeper) cannot(err error) error {
	var c *spawn.CannotStart
	if !errors.As(err, &c) {
		return err
	}
	k.record.Step, k.record.Why = stepCannotStart, c.Why
	if err := writeRecord(k.folder, agentFile, "", &k.record); err != nil {
		return err
	}
	return c
}

// undo removes what a failed start has created.
func (k *keeper) undo() {
	if k.ended != nil {
		k.kill()
		<-k.ended
		k.sweep()
	}
	k.wall.unserve()
	k.group.remove()
	k.leave()
	k.unlisten()
}

// attend waits for the agent's end, and handles signals and the socket meanwhile.
func (k *keeper) attend() {
	look := time.NewTicker(socketLook)
	defer look.Stop()
	for {
		select {
		case <-k.ended:
			return
		case sig := <-k.orders:
			switch sig {
			case syscall.SIGTERM: // a request to end the shim: end the agent first
				_ = k.end(-1)
			case syscall.SIGUSR1:
				k.look()
			}
		case <-look.C:
			k.look()
		}
	}
}

// look creates the socket again if it vanished while there was no connection.
func (k *keeper) look() {
	k.touchPorts()
	k.mu.Lock()
	quiet, bound, l := len(k.peers) == 0, k.bound, k.listener
	k.mu.Unlock()
	if !quiet || l == nil {
		return
	}
	if now, err := os.Lstat(l.Name()); err == nil && os.SameFile(now, bound) {
		return
	}
	if err := k.listen(); err != nil {
		k.log.Print("make the socket again: %v", err)
		return
	}
	l.Close()
}

// sweep ends the processes that the agent left behind, until the kernel reports no child. Without a subreaper
// that is not enough: then no process may have the mark, either.
func (k *keeper) sweep() {
	k.letFinish()
	alone := k.alone
	for again := (retry.Pauses{First: time.Millisecond, Most: time.Second}); ; {
		if haveSubreaper && closed(k.alone) {
			return
		}
		rest := k.living()
		if len(rest) == 0 && closed(k.alone) { // otherwise a zombie is being reaped, or a child started this instant
			return
		}
		k.mu.Lock()
		k.swept = join(k.swept, k.beside(rest))
		k.mu.Unlock()
		signalAll(rest, syscall.SIGKILL)
		select {
		case <-alone:
			alone = nil
		case <-time.After(again.Next()):
		}
	}
}

// letFinish gives processes that outlive the agent the rest of the grace period if the end was
// ordered, because they received SIGTERM, too. Otherwise they are ended immediately.
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

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// processTable is a variable so that a test can count how often a shim reads the whole table. All shims of a team
// may end at a time, so each reads only its own tree where the kernel shows that.
var processTable = processes

// bury writes the exit record, notifies all connections, and removes the socket.
func (k *keeper) bury() {
	defer k.unlisten()
	k.wall.unserve()
	k.release()
	k.leave()
	kernels := k.group.ended()
	k.group.remove()
	size, cut := k.spool.finish(k.output)
	k.crash("spool_synced")
	k.mu.Lock()
	if k.limit == "" && k.waited.Signaled() {
		k.limit = kernels
	}
	e := &session.Exit{
		Code: -1, At: k.endedAt.UTC(), SpoolBytes: size, CutBytes: cut, Swept: len(k.swept), Ordered: k.ordered, Why: k.why,
		Limit: k.limit, OfTeam: k.limitOfTeam, Use: k.guard.last(),
	}
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
		k.log.Print("%v", err)
		if _, gone := os.Stat(k.folder); gone != nil {
			return // the folder was removed: no one can read the result
		}
		time.Sleep(diskPause)
	}
	k.crash("exit_synced")
	k.mu.Lock()
	k.exit = e
	k.mu.Unlock()
	os.Remove(filepath.Join(k.folder, exitRoom))
	st := k.state()
	k.unlisten() // from now on the folder has the result
	k.tellAll(answer{Event: "exit", Status: &st})
}

// status returns the shim's current state, with the processes that run beside the agent.
func (k *keeper) status() Status {
	st := k.state()
	if st.Phase != Exited { // otherwise nothing is left, and the process table need not be read
		st.Children = len(k.beside(k.living()))
		st.Use = k.guard.now(k.record.AgentPID)
	}
	return st
}

// state is the status without the processes beside the agent.
func (k *keeper) state() Status {
	st := k.record.status()
	st.Phase = Running
	k.spool.fill(&st)
	k.input.fill(&st)
	k.mu.Lock()
	defer k.mu.Unlock()
	st.Fence, st.Ending, st.AgentEnded = k.fence, k.ordered || !k.endedAt.IsZero(), !k.endedAt.IsZero()
	if k.alarm != nil {
		st.LeaseEnd = k.deadMan.EndAt
	}
	if k.exit != nil {
		st.Phase, st.Exit, st.SpoolBytes, st.Ending = Exited, k.exit, k.exit.SpoolBytes, false
	}
	return st
}
