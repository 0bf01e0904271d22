package shim

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/process/sandbox"
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
	said   *os.File
	theirs *os.File
	points *sandbox.Points
	over   chan struct{} // it says no more
	agent  Process       // zero: the shim's child is the agent

	segments int // sandbox.Started has it
}

// intoView makes the folders that a view needs, and changes how the agent is started.
func (k *keeper) intoView(l *Spec, proc *syscall.ProcAttr) (argv []string, err error) {
	w := &wall{view: *l.Launch.View, over: make(chan struct{})}
	if w.view.Report = reportFD; w.view.Dir == "" {
		w.view.Dir = l.Launch.Dir
	}
	w.view.Canaries.Socket, w.view.Memory = k.record.Socket, l.Launch.Limits.Memory
	if argv, err = sandbox.WrapView("fairlead", l.Launch.Argv, w.view); err != nil {
		return nil, &CannotStart{Why: err.Error()}
	}
	if w.points, err = sandbox.MakePoints(filepath.Dir(k.folder), w.view); err != nil {
		return nil, &CannotStart{Why: err.Error()}
	}
	k.wall = w
	k.crash("points")
	if w.said, w.theirs, err = openPipe(0); err != nil {
		return nil, err
	}
	k.record.Wall = w.view.By
	*proc.Sys, proc.Dir, proc.Files = *w.view.Attr(), "", append(proc.Files, w.theirs.Fd())
	return argv, nil
}

// enter waits until the agent runs in its view. If it does not, nothing runs.
func (k *keeper) enter(output *os.File) error {
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
		return &CannotStart{Why: strings.TrimSpace(why)}
	}
	_ = w.said.SetReadDeadline(time.Time{})
	k.record.Unheld = started.Unheld
	w.agent, w.segments = insideAs(k.living(), started.PID), started.Segments
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
		k.log.print("%v", err)
	}
}
