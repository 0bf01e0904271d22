package adapter

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// Time limits for a child: after its input was closed, after SIGTERM, and, after it has ended, for
// the output of other processes that hold its pipes. The first two are shorter if the session must
// end quickly.
const (
	inputGrace  = 3 * time.Second
	termGrace   = 3 * time.Second
	hurryGrace  = 500 * time.Millisecond
	outputGrace = time.Second

	outputPatience = 3 * outputGrace // total, if other processes write from time to time
)

// How far a program's output is read ahead of the receiver of its lines, so that goroutines do not take turns for each line.
const (
	aheadLines     = 64
	aheadBytesMax  = 1 << 20 // a line that exceeds it waits until all before it were received
	aheadLookEvery = time.Millisecond
)

// Child is a running program.
type Child struct {
	stage   *Stage
	process Process
	feed    *feed
	lines   chan Line
	errors  *errorsRead

	exited chan struct{} // closed when the process has ended; exit is set by then
	exit   session.Exit
	ending chan struct{} // closed when its lines are no longer needed
	once   sync.Once
	closed sync.WaitGroup // its goroutines have ended
}

// Ended describes how a child ended.
type Ended struct {
	Exit      session.Exit
	LastWords string // end of its error output, for people
}

// String formats it in one line.
func (e Ended) String() string {
	how := fmt.Sprintf("the program ended with exit code %d", e.Exit.Code)
	switch {
	case e.Exit.Signal != "":
		how = "the program was ended by " + e.Exit.Signal
	case e.Exit.Code < 0:
		how = "the program ended; the exit status is unknown"
	}
	if e.LastWords != "" {
		how += ": " + e.LastWords
	}
	return how
}

func newChild(s *Stage, p Process) *Child {
	c := &Child{
		stage: s, process: p, feed: newFeed(p.Stdin()), lines: make(chan Line, aheadLines),
		errors: &errorsRead{stage: s}, exited: make(chan struct{}), ending: make(chan struct{}),
	}
	c.closed.Go(c.feed.run)
	c.closed.Go(c.read)
	c.closed.Go(func() { c.errors.read(c.out(p.Stderr())) })
	c.closed.Go(func() {
		c.exit = p.Wait()
		close(c.exited)
		c.feed.stop() // otherwise a write could block if another process holds the child's input open
		for _, r := range []io.Reader{p.Stdout(), p.Stderr()} {
			hurry(r)
		}
	})
	return c
}

// Send writes a message as one line of JSON. It does not block. It returns an error if the program's
// input is closed or full.
func (c *Child) Send(message any) error { return c.Write(append(encode.JSON(message), '\n')) }

// Write queues bytes for the program. It does not block, and it keeps b.
func (c *Child) Write(b []byte) error { return c.feed.add(b) }

// CloseInput ends the program's input after everything sent so far. It does not block.
func (c *Child) CloseInput() { c.feed.close() }

// Lines returns the program's output line by line, which is read a little ahead. The channel is closed at the end of
// the output.
func (c *Child) Lines() <-chan Line { return c.lines }

// Heard returns the message in a line: one JSON object. It reports any other line as text and
// returns nil.
func (c *Child) Heard(l Line) json.RawMessage {
	c.stage.Out.Gather(l.more || len(c.lines) > 0)
	switch {
	case l.Skipped > 0:
		c.stage.Out.Tell(driver.Fact{
			Kind: driver.Faulted,
			Text: fmt.Sprintf("a line of %d bytes was not read, the limit is %d", l.Skipped, LineBytesMax),
			Raw:  speech.CutRaw(l.Bytes),
		})
	case l.blank():
	case !l.object():
		c.stage.print("stdout", speech.CutText(l.text()))
	case !json.Valid(l.Bytes):
		c.stage.Out.Tell(driver.Fact{
			Kind: driver.Faulted, Text: "a line of the program begins like a message but is not JSON",
			Raw: speech.CutRaw(l.Bytes),
		})
	default:
		return l.Bytes
	}
	return nil
}

// End ends the program: it closes the program's input, then sends SIGTERM, then SIGKILL, each after
// a time limit. It returns how the program ended, after a short wait for the output of other
// processes that hold its pipes. Unread lines are lost. Several goroutines may call it, more than
// once.
func (c *Child) End() Ended {
	c.once.Do(func() { close(c.ending) })
	c.feed.close()
	input, term := inputGrace, termGrace
	if c.stage.stopping() {
		input, term = hurryGrace, hurryGrace
	}
	for _, next := range []struct {
		grace  time.Duration
		signal syscall.Signal
	}{{input, syscall.SIGTERM}, {term, syscall.SIGKILL}} {
		if c.wait(next.grace) {
			break
		}
		c.process.Signal(next.signal)
	}
	<-c.exited
	c.closed.Wait()
	return Ended{Exit: c.exit, LastWords: c.errors.last()}
}

// over reports whether the child and all its goroutines have ended.
func (c *Child) over() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

func (c *Child) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
		return false
	}
}

// read reads the program's lines, and waits for the receiver if it is far ahead.
func (c *Child) read() {
	defer close(c.lines)
	r := newLineReader(c.out(c.process.Stdout()))
	defer c.process.Stdout().Close()
	ahead := 0 // bytes read since all lines had been received
	for {
		l, ok := r.next()
		if !ok {
			return
		}
		l.more = r.more()
		if len(c.lines) == 0 {
			ahead = 0
		}
		if ahead += len(l.Bytes); ahead > aheadBytesMax {
			c.caughtUp()
			ahead = len(l.Bytes)
		}
		select {
		case c.lines <- l:
		case <-c.ending: // keep reading: a program that cannot write would not end
		}
	}
}

// caughtUp waits until all lines were received, or are no longer needed. A channel reports no receipt, so it looks; few
// programs are so far ahead.
func (c *Child) caughtUp() {
	tick := time.NewTicker(aheadLookEvery)
	defer tick.Stop()
	for len(c.lines) > 0 {
		select {
		case <-tick.C:
		case <-c.ending:
			return
		}
	}
}

// out reads one of the program's outputs to its end. After the program has ended, it stops when the
// output is quiet: another process may hold the pipe open forever.
func (c *Child) out(r io.Reader) io.Reader { return &output{r: r, child: c} }

type output struct {
	r      io.Reader
	child  *Child
	waited time.Duration // since the program ended
}

func (o *output) Read(b []byte) (int, error) {
	over := o.child.over()
	if over {
		if o.waited > outputPatience {
			return 0, io.EOF
		}
		hurry(o.r)
	}
	began := time.Now()
	n, err := o.r.Read(b)
	if over {
		o.waited += time.Since(began) // excludes the time in which a slow reader processed lines, so that none is lost
	}
	switch {
	case n > 0:
		return n, nil
	case err != nil:
		return 0, io.EOF // at the deadline, or at the end
	}
	return 0, nil
}

// hurry sets a short deadline for a reader.
func hurry(r io.Reader) {
	if f, ok := r.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = f.SetReadDeadline(time.Now().Add(outputGrace)) // ignore the error: the file is closed then
	}
}
