package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// Recording is a wire that plays recorded output. Input is kept in Sent.
type Recording struct {
	Bytes []byte
	Sizes []int // sizes of the pieces, repeated; none: as the reader asks
	Open  bool  // the output does not end: readers wait until their context is done

	mu    sync.Mutex
	Sent  []byte
	reads atomic.Int32 // readers that are still open
}

// Output plays the recording from an offset on.
func (r *Recording) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	if offset < 0 || offset > int64(len(r.Bytes)) {
		return nil, fmt.Errorf("offset %d of %d bytes", offset, len(r.Bytes))
	}
	r.reads.Add(1)
	return &playback{wire: r, rest: r.Bytes[offset:], ctx: ctx, closed: make(chan struct{})}, nil
}

// Send keeps the input.
func (r *Recording) Send(_ context.Context, input []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Sent = append(r.Sent, input...)
	return nil
}

// CloseInput does nothing.
func (r *Recording) CloseInput(context.Context) error { return nil }

type playback struct {
	wire   *Recording
	rest   []byte
	ctx    context.Context
	piece  int
	once   sync.Once
	closed chan struct{}
}

func (p *playback) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		if !p.wire.Open {
			return 0, io.EOF
		}
		select {
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		case <-p.closed:
			return 0, os.ErrClosed
		}
	}
	n := min(len(b), len(p.rest))
	if sizes := p.wire.Sizes; len(sizes) > 0 {
		n = min(n, max(sizes[p.piece%len(sizes)], 1))
		p.piece++
	}
	copy(b, p.rest[:n])
	p.rest = p.rest[n:]
	return n, nil
}

func (p *playback) Close() error {
	p.once.Do(func() {
		p.wire.reads.Add(-1)
		close(p.closed)
	})
	return nil
}

// Process is a running agent in a test, in place of a shim. Its output goes to a file and is read
// from there.
type Process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	sent  atomic.Int64 // bytes of input
	spool string

	mu      sync.Mutex
	size    int64
	closed  bool          // the output has ended
	changed chan struct{} // closed and replaced whenever size or closed changes

	done chan struct{} // closed when the process and its output have ended
	exit session.Exit
}

const (
	outputGrace = 5 * time.Second // for output that another process holds open after the agent has ended
	deadline    = 2 * time.Minute // limit for every wait of a test; generous for loaded machines
)

// Start starts a process for a driver's launch. It is ended at the end of the test.
func Start(t testing.TB, l spawn.Launch) *Process {
	t.Helper()
	p := &Process{
		cmd:     exec.Command(l.Argv[0], l.Argv[1:]...),
		spool:   filepath.Join(t.TempDir(), "spool"),
		changed: make(chan struct{}), done: make(chan struct{}),
	}
	p.cmd.Dir, p.cmd.Env = l.Dir, l.Env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r, w, err := os.Pipe()
	must(t, err)
	p.cmd.Stdout, p.cmd.Stderr = w, w
	p.stdin, err = p.cmd.StdinPipe()
	must(t, err)
	file, err := os.Create(p.spool)
	must(t, err)
	must(t, p.cmd.Start())
	w.Close()
	t.Cleanup(func() {
		p.Signal(syscall.SIGKILL)
		<-p.done
	})
	p.sent.Store(int64(len(l.Input)))
	go func() { // in a goroutine: an agent that does not read must not block the test
		if _, err := p.stdin.Write(l.Input); err != nil || !l.KeepStdin {
			p.stdin.Close()
		}
	}()
	go p.pump(r, file)
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pump copies output to the file and waits until all has ended.
func (p *Process) pump(r, file *os.File) {
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		buf := make([]byte, 64<<10)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				if _, err := file.Write(buf[:n]); err != nil {
					panic("drivertest: spool: " + err.Error())
				}
				p.change(int64(n), false)
			}
			if err != nil {
				return
			}
		}
	}()
	err := p.cmd.Wait()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // its children, except those that left the group
	select {
	case <-copied:
	case <-time.After(outputGrace):
	}
	r.Close()
	<-copied
	file.Close()
	p.exit = exitOf(p.cmd.ProcessState, err)
	p.change(0, true)
	close(p.done)
}

func exitOf(state *os.ProcessState, err error) session.Exit {
	e := session.Exit{Code: -1, At: time.Now()}
	if state == nil {
		panic("drivertest: wait: " + err.Error())
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = names[status.Signal()]
		if e.Signal == "" {
			e.Signal = fmt.Sprintf("signal %d", int(status.Signal()))
		}
		return e
	}
	e.Code = state.ExitCode()
	return e
}

var names = map[syscall.Signal]string{
	syscall.SIGKILL: "SIGKILL", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGHUP: "SIGHUP",
	syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGTERM: "SIGTERM",
	syscall.SIGPIPE: "SIGPIPE",
}

func (p *Process) change(n int64, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size += n
	p.closed = closed
	close(p.changed)
	p.changed = make(chan struct{})
}

// PID is the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process and its output have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the process and to its group.
func (p *Process) Signal(s syscall.Signal) {
	select {
	case <-p.done: // its PID may have been reused by now
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// Wait waits until the process and its output have ended.
func (p *Process) Wait(t testing.TB) session.Exit {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(deadline):
		p.Signal(syscall.SIGKILL)
		t.Fatalf("the process has not ended after %v", deadline)
	}
	return p.exit
}

// Spool returns everything the process has written so far.
func (p *Process) Spool(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(p.spool)
	must(t, err)
	return b
}

// Output follows the file from an offset on.
func (p *Process) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	f, err := os.Open(p.spool)
	if err != nil {
		return nil, err
	}
	return &follower{p: p, f: f, ctx: ctx, at: offset}, nil
}

// Sent is how many bytes of input the process was given, including its launch's.
func (p *Process) Sent() int64 { return p.sent.Load() }

// Send writes to the process's standard input.
func (p *Process) Send(_ context.Context, input []byte) error {
	p.sent.Add(int64(len(input))) // before writing, so that the agent cannot report more than this
	_, err := io.Copy(p.stdin, bytes.NewReader(input))
	return err
}

// CloseInput ends the process's standard input.
func (p *Process) CloseInput(context.Context) error { return p.stdin.Close() }

type follower struct {
	p   *Process
	f   *os.File
	ctx context.Context
	at  int64
}

func (f *follower) Read(b []byte) (int, error) {
	for {
		f.p.mu.Lock()
		size, closed, changed := f.p.size, f.p.closed, f.p.changed
		f.p.mu.Unlock()
		if f.at < size {
			n, err := f.f.ReadAt(b[:min(int64(len(b)), size-f.at)], f.at)
			f.at += int64(n)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return n, err
		}
		if closed {
			return 0, io.EOF
		}
		select {
		case <-changed:
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		}
	}
}

func (f *follower) Close() error { return f.f.Close() }
