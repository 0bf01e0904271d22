package adapter

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

const (
	printedByUs = "fairlead" // source of the adapter's own messages

	// printedBytesMax is how much output outside of the protocol is reported in one session. A log that
	// never ends must not fill the spool.
	printedBytesMax = 4 << 20
)

// Stage is the environment of Play: where events go, where orders come from, and how programs are
// started.
type Stage struct {
	Out    *speech.Writer
	Orders <-chan speech.Order // nil: there are no orders; closed: no more will come
	Stop   <-chan struct{}     // closed: end the session quickly; nil: never
	Dir    string              // working directory of children by default
	Env    []string            // environment of children; a Command adds to it

	// Starts starts a program; nil: as a process. Tests replace it by a recorded program.
	Starts func(Command) (Process, error)

	mu       sync.Mutex
	children []*Child
	printed  int
}

// Command describes a program to be started.
type Command struct {
	Argv []string // absolute path of the program, and its arguments
	Env  []string // K=V, added to the stage's environment
	Dir  string   // empty: the stage's directory
}

// Process is a running program.
type Process interface {
	Stdin() io.WriteCloser
	Stdout() io.ReadCloser
	Stderr() io.ReadCloser
	Wait() session.Exit // called once; returns when the process has ended, even if another process holds its output
	Signal(sig syscall.Signal)
}

// NewStage returns a stage without orders. env is the environment of children. The address of the
// team's tools is removed from it: each program receives it in its own way, or through Command.Env.
func NewStage(out *speech.Writer, dir string, env []string) *Stage {
	return &Stage{Out: out, Dir: dir, Env: slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == VariableMCPURL || name == VariableMCPToken || name == VariableMCPStdio
	})}
}

// Start starts a program as a child.
func (s *Stage) Start(c Command) (*Child, error) {
	if len(c.Argv) == 0 {
		panic("adapter: a command without a program")
	}
	c.Dir = cmp.Or(c.Dir, s.Dir)
	c.Env = append(slices.Clone(s.Env), c.Env...)
	start := s.Starts
	if start == nil {
		start = StartProcess
	}
	process, err := start(c)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	child := newChild(s, process)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.children = append(slices.DeleteFunc(s.children, (*Child).over), child)
	return child, nil
}

// end ends all running children.
func (s *Stage) end() {
	s.mu.Lock()
	children := slices.Clone(s.children)
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, c := range children {
		all.Go(func() { c.End() })
	}
	all.Wait()
}

// stopping reports whether the session was asked to stop.
func (s *Stage) stopping() bool {
	select {
	case <-s.Stop:
		return true
	default:
		return false
	}
}

// print reports output outside of the protocol, up to a limit.
func (s *Stage) print(by, text string) {
	s.mu.Lock()
	before := s.printed
	s.printed += len(text) + 1
	after := s.printed
	s.mu.Unlock()
	switch {
	case after <= printedBytesMax:
		s.Out.Tell(driver.Fact{Kind: driver.Said, Tool: by, Text: text})
	case before <= printedBytesMax:
		s.Out.Tell(driver.Fact{
			Kind: driver.Said, Tool: by,
			Text: fmt.Sprintf("… [more than %d bytes were printed; the rest is not shown]", printedBytesMax),
		})
	}
}

// process is a real operating system process.
type process struct {
	cmd            *exec.Cmd
	stdin          *os.File
	stdout, stderr *os.File
}

// StartProcess starts a program as an operating system process.
func StartProcess(c Command) (Process, error) {
	var files [6]*os.File
	undo := func() {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	for i := 0; i < len(files); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			undo()
			return nil, err
		}
		files[i], files[i+1] = r, w
	}
	cmd := &exec.Cmd{
		Path: c.Argv[0], Args: c.Argv, Dir: c.Dir, Env: c.Env, SysProcAttr: childAttr(),
		Stdin: files[0], Stdout: files[3], Stderr: files[5],
	}
	if err := cmd.Start(); err != nil {
		undo()
		return nil, err
	}
	for _, f := range []*os.File{files[0], files[3], files[5]} {
		f.Close()
	}
	return &process{cmd: cmd, stdin: files[1], stdout: files[2], stderr: files[4]}, nil
}

func (p *process) Stdin() io.WriteCloser { return p.stdin }
func (p *process) Stdout() io.ReadCloser { return p.stdout }
func (p *process) Stderr() io.ReadCloser { return p.stderr }

func (p *process) Signal(sig syscall.Signal) {
	// os.Process holds a handle, so a reused PID is not signaled by mistake.
	_ = p.cmd.Process.Signal(sig)
}

func (p *process) Wait() session.Exit {
	err := p.cmd.Wait()
	e := session.Exit{Code: -1, At: time.Now()}
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return e
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = cmp.Or(unix.SignalName(status.Signal()), status.Signal().String())
		return e
	}
	e.Code = p.cmd.ProcessState.ExitCode()
	return e
}
