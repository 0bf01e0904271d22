package shim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/process/proxy/outlet"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

const (
	viewPatience  = 30 * time.Second // to make a view, which takes milliseconds, on a machine with much other work
	saidBytesMax  = 64 << 10         // two short lines
	finishTimeout = time.Second      // what process 1 said is in the pipe when it has ended
	wordsBytesMax = 1 << 10          // of its error output, for a message
	reportFD      = 3                // the agent has no such descriptor: process 1 keeps it
)

// wall is the view in which an agent runs. The shim's child is process 1 of the view; the agent is the child of that. What
// process 1 says about the agent's end counts, and where it was killed before, its own end.
type wall struct {
	view   sandbox.View
	said   *sandbox.Reports
	theirs *os.File
	points *sandbox.Points
	over   chan struct{} // it says no more
	agent  Process       // zero: the shim's child is the agent

	segments int    // sandbox.Started has it
	stop     func() // ends the outlet of the view's network, and closes its sockets; nil: there are none
}

// intoView makes the folders that a view needs, and changes how the agent is started.
func (k *keeper) intoView(l *Spec, proc *syscall.ProcAttr) (argv []string, err error) {
	w := &wall{view: *l.Launch.View, over: make(chan struct{})}
	if w.view.Report = reportFD; w.view.Dir == "" {
		w.view.Dir = l.Launch.Dir
	}
	w.view.Canaries.Socket, w.view.Memory = k.record.Socket, l.Launch.Limits.Memory
	if argv, err = sandbox.WrapView("fairlead", l.Launch.Argv, w.view); err != nil {
		return nil, &spawn.CannotStart{Why: err.Error()}
	}
	if w.points, err = sandbox.MakePoints(filepath.Dir(k.folder), w.view); err != nil {
		return nil, &spawn.CannotStart{Why: err.Error()}
	}
	k.wall = w
	k.crash("points")
	if w.said, w.theirs, err = w.view.OpenReports(); err != nil {
		return nil, err
	}
	k.record.Wall = w.view.By
	*proc.Sys, proc.Dir, proc.Files = *w.view.Attr(), "", append(proc.Files, w.theirs.Fd())
	return argv, nil
}

// enter waits until the agent runs in its view. If it does not, nothing runs.
func (k *keeper) enter(l *Spec, output *os.File) error {
	w := k.wall
	w.theirs.Close()
	_ = w.said.SetReadDeadline(time.Now().Add(viewPatience))
	said := json.NewDecoder(io.LimitReader(w.said, saidBytesMax))
	var started sandbox.Started
	if err := said.Decode(&started); err != nil || started.Error != "" {
		k.kill()
		close(w.over)
		k.sweep()
		why := started.Error
		if err != nil {
			why = fmt.Sprintf("its view was not made within %v: %v %s", viewPatience, err, lastWords(output))
		}
		return &spawn.CannotStart{Why: strings.TrimSpace(why)}
	}
	_ = w.said.SetReadDeadline(time.Time{})
	k.record.Unheld = started.Unheld
	w.agent, w.segments = insideAs(k.living(), started.PID), started.Segments
	if err := k.serveNetwork(l); err != nil {
		k.kill()
		close(w.over)
		k.sweep()
		return err
	}
	go func() {
		defer close(w.over)
		var ended struct {
			Status *uint32 `json:"status"` // of a sandbox.Ended
		}
		if said.Decode(&ended) == nil && ended.Status != nil && k.agentEnded(syscall.WaitStatus(*ended.Status)) {
			close(k.ended)
		}
	}()
	return nil
}

// serveNetwork keeps a proxy at the sockets of the view. Until one answers, what the agent asks waits in them.
func (k *keeper) serveNetwork(l *Spec) error {
	w := k.wall
	sockets, err := w.said.Sockets(w.view)
	ctx, cancel := context.WithCancel(context.Background())
	var kept sync.WaitGroup
	w.stop = func() {
		cancel()
		kept.Wait()
		for _, f := range sockets {
			f.Close()
		}
	}
	to := l.Launch.Network
	switch {
	case err != nil:
		return &spawn.CannotStart{Why: err.Error()}
	case to == nil || !w.starts():
		return nil
	}
	o := outlet.Of(l.Session, w.view, to, sockets)
	o.Register.Ports, o.Said = k.record.Ports, func(text string) { k.log.Print("%s", text) }
	o.Options.Around = func(start func() error) error {
		k.starting.Lock()
		defer k.starting.Unlock()
		return start()
	}
	kept.Go(func() { o.Keep(ctx) })
	return nil
}

// starts reports whether the shim may start a proxy, which is then its child and no process of the agent.
func (w *wall) starts() bool { return w != nil && w.view.Network != nil }

// unserve ends the session in the proxy.
func (w *wall) unserve() {
	if w != nil && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// insideAs returns the process with a number inside a view; zero: it has ended.
func insideAs(all []Process, pid int) Process {
	for _, p := range all {
		status, _ := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/status")
		_, numbers, _ := strings.Cut(string(status), "\nNSpid:")
		numbers, _, _ = strings.Cut(numbers, "\n")
		if f := strings.Fields(numbers); len(f) > 0 && f[len(f)-1] == strconv.Itoa(pid) {
			return p
		}
	}
	return Process{}
}

// lastWords is what a process has left in its output.
func lastWords(output *os.File) string {
	_ = output.SetReadDeadline(time.Now().Add(finishTimeout))
	text, _ := io.ReadAll(io.LimitReader(output, wordsBytesMax)) // a message lacks it at worst
	return strings.ToValidUTF8(string(text), "?")
}

// finish returns when all that process 1 said before its end is known.
func (w *wall) finish() {
	if w == nil {
		return
	}
	_ = w.said.SetReadDeadline(time.Now().Add(finishTimeout))
	<-w.over
}

// group is the agent's process group, which is its own if it has a terminal.
func (w *wall) group() int {
	if w == nil || w.agent.PID == 0 {
		return 0
	}
	now, ok := readProcess(w.agent.PID)
	if !ok || now.Start != w.agent.Start {
		return 0
	}
	return now.group
}

// beside returns those of the living processes that are neither the agent nor process 1 of its view.
func (k *keeper) beside(all []Process) (found []Process) {
	for _, p := range all {
		is := p.PID == k.record.AgentPID || k.wall != nil && p.PID == k.wall.agent.PID && p.Start == k.wall.agent.Start
		if !is {
			found = append(found, p)
		}
	}
	return found
}

// leave removes what was made for the view.
func (k *keeper) leave() {
	if k.wall == nil {
		return
	}
	if err := k.wall.points.Remove(); err != nil {
		k.log.Print("%v", err)
	}
}
