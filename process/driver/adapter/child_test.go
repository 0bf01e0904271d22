package adapter

import (
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// stubborn is a program that ends only by one signal, and keeps its output open until then.
type stubborn struct {
	by    syscall.Signal // 0: at the end of its input
	ended chan struct{}
	got   []string // the signals it received
}

func (p *stubborn) Stdin() io.WriteCloser { return (*stubbornInput)(p) }
func (p *stubborn) Stdout() io.ReadCloser { return (*stubbornOutput)(p) }
func (p *stubborn) Stderr() io.ReadCloser { return (*stubbornOutput)(p) }

func (p *stubborn) Wait() session.Exit {
	<-p.ended
	return session.Exit{}
}

func (p *stubborn) Signal(s syscall.Signal) {
	p.got = append(p.got, s.String())
	if s == p.by {
		close(p.ended)
	}
}

type stubbornInput stubborn

func (i *stubbornInput) Write(b []byte) (int, error) { return len(b), nil }

func (i *stubbornInput) Close() error {
	if i.by == 0 {
		select {
		case <-i.ended:
		default:
			close(i.ended)
		}
	}
	return nil
}

type stubbornOutput stubborn

func (o *stubbornOutput) Read([]byte) (int, error) {
	<-o.ended
	return 0, io.EOF
}

func (o *stubbornOutput) Close() error { return nil }

// TestEnd checks that a program gets its full time to end, and less if the session must end
// quickly.
func TestEnd(t *testing.T) {
	for name, c := range map[string]struct {
		by   syscall.Signal
		stop bool
		want time.Duration
		got  string
	}{
		"by itself":         {0, false, 0, ""},
		"by SIGTERM":        {syscall.SIGTERM, false, inputGrace, "terminated"},
		"by SIGKILL":        {syscall.SIGKILL, false, inputGrace + termGrace, "terminated killed"},
		"by SIGKILL, quick": {syscall.SIGKILL, true, 2 * hurryGrace, "terminated killed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewStage(speech.NewWriter(io.Discard), "", nil)
				stop := make(chan struct{})
				s.Stop = stop
				if c.stop {
					close(stop)
				}
				program := &stubborn{by: c.by, ended: make(chan struct{})}
				s.Starts = func(Command) (Process, error) { return program, nil }
				child, err := s.Start(Command{Argv: []string{"/bin/stubborn"}})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				child.End()
				if took := time.Since(began); took != c.want || strings.Join(program.got, " ") != c.got {
					t.Errorf("took %v with %q", took, program.got)
				}
				child.End() // the second call has no effect
			})
		})
	}
}

// talkative is a program that prints as much as is read of it.
type talkative struct {
	stubborn
	rest io.Reader
	read atomic.Int64 // bytes
}

func (p *talkative) Stdout() io.ReadCloser { return io.NopCloser(p) }

func (p *talkative) Read(b []byte) (int, error) {
	n, err := p.rest.Read(b)
	p.read.Add(int64(n))
	return n, err
}

// TestReadAheadHasALimit checks that a program whose lines are not received fills no memory, and that all of them arrive
// later.
func TestReadAheadHasALimit(t *testing.T) {
	const lines, lineBytes = 40, 300_000
	line := strings.Repeat("x", lineBytes-1) + "\n"
	synctest.Test(t, func(t *testing.T) {
		program := &talkative{stubborn: stubborn{ended: make(chan struct{})}, rest: strings.NewReader(strings.Repeat(line, lines))}
		s := NewStage(speech.NewWriter(io.Discard), "", nil)
		s.Starts = func(Command) (Process, error) { return program, nil }
		child, err := s.Start(Command{Argv: []string{"/bin/talkative"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if read, most := program.read.Load(), int64(aheadBytesMax+lineBytes+readBytes); read > most {
			t.Errorf("%d bytes were read, at most %d", read, most)
		}
		n := 0
		for range child.Lines() {
			n++
		}
		if n != lines {
			t.Errorf("%d lines of %d", n, lines)
		}
		child.End()
	})
}

// startReal starts a shell script as a child of a stage.
func startReal(t *testing.T, script string) *Child {
	t.Helper()
	s := NewStage(speech.NewWriter(io.Discard), t.TempDir(), []string{"PATH=/usr/bin:/bin"})
	child, err := s.Start(Command{Argv: []string{"/bin/sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.End() })
	return child
}

// TestLateOutput checks that output that a program wrote before its end is read, regardless of the
// delay.
func TestLateOutput(t *testing.T) {
	t.Parallel()
	child := startReal(t, `i=0; while [ $i -lt 2000 ]; do echo "{\"n\":$i}"; i=$((i+1)); done; sleep 3 & exit 0`)
	<-child.exited
	wait.Pause(outputGrace + outputGrace/2)
	n := 0
	for range child.Lines() {
		n++
	}
	if n != 2000 {
		t.Errorf("%d lines of 2000", n)
	}
}

// TestOutputHeldByOthers checks that a session does not wait for output of processes that were left
// behind.
func TestOutputHeldByOthers(t *testing.T) {
	t.Parallel()
	child := startReal(t, `(while :; do echo '{}'; sleep 0.2; done) & exit 0`)
	late := time.After(time.Minute)
	for {
		select {
		case _, ok := <-child.Lines():
			if !ok {
				return
			}
		case <-late:
			t.Fatal("reading does not end")
		}
	}
}

// TestInputHeldByOthers checks that a program can be ended while another process holds its input
// open and while writes to it are pending.
func TestInputHeldByOthers(t *testing.T) {
	t.Parallel()
	child := startReal(t, `exec 3<&0; sleep 100 <&3 >/dev/null 2>&1 & exit 0`)
	if err := child.Write(make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	child.End()
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("the end took %v", took)
	}
}

// TestEndWhileWriting checks that a program that writes without end can be ended while its output
// is not read.
func TestEndWhileWriting(t *testing.T) {
	t.Parallel()
	child := startReal(t, `trap 'echo {}; exit 0' TERM; while :; do echo '{"say":"and another thing"}'; done`)
	<-child.Lines()
	ended := make(chan Ended, 1)
	go func() { ended <- child.End() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the output does not end")
	}
}

// TestStageForgets checks that a stage keeps no children that have ended.
func TestStageForgets(t *testing.T) {
	t.Parallel()
	s := NewStage(speech.NewWriter(io.Discard), t.TempDir(), nil)
	for range 5 {
		child, err := s.Start(Command{Argv: []string{"/bin/true"}})
		if err != nil {
			t.Fatal(err)
		}
		child.End()
	}
	if live := slices.DeleteFunc(slices.Clone(s.children), (*Child).over); len(s.children) > 1 || len(live) > 0 {
		t.Errorf("%d children are kept", len(s.children))
	}
	if _, err := s.Start(Command{Argv: []string{"/nonexistent/program"}}); err == nil ||
		!strings.Contains(err.Error(), "/nonexistent/program") {
		t.Errorf("got the error %v", err)
	}
}
