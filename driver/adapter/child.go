package adapter

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

// How long a child has: after the end of its input, after SIGTERM, and, once it has ended, for what
// others who hold its output still write. The first two are shorter where we are to be quick.
const (
	inputGrace  = 3 * time.Second
	termGrace   = 3 * time.Second
	hurryGrace  = 500 * time.Millisecond
	outputGrace = time.Second

	outputPatience = 3 * outputGrace // in all, where they write a little now and then
)

// Child is a program under way.
type Child struct {
	stage   *Stage
	process Process
	feed    *feed
	lines   chan Line
	errors  *errorsRead

	exited chan struct{} // closed when the process has ended; exit is set then
	exit   driver.Exit
	ending chan struct{} // closed when its lines are of no interest any more
	once   sync.Once
	closed sync.WaitGroup // its goroutines
}

// Ended is how a child ended.
type Ended struct {
	Exit      driver.Exit
	LastWords string // the end of what it printed as errors; for people
}

// String says it in one line.
func (e Ended) String() string {
	how := fmt.Sprintf("the program ended with exit code %d", e.Exit.Code)
	switch {
	case e.Exit.Signal != "":
		how = "the program was ended by " + e.Exit.Signal
	case e.Exit.Code < 0:
		how = "the program ended; how is not known"
	}
	if e.LastWords != "" {
		how += ": " + e.LastWords
	}
	return how
}

func newChild(s *Stage, p Process) *Child {
	c := &Child{
		stage: s, process: p, feed: newFeed(p.Stdin()), lines: make(chan Line),
		errors: &errorsRead{stage: s}, exited: make(chan struct{}), ending: make(chan struct{}),
	}
	c.closed.Go(c.feed.run)
	c.closed.Go(c.read)
	c.closed.Go(func() { c.errors.read(c.out(p.Stderr())) })
	c.closed.Go(func() {
		c.exit = p.Wait()
		close(c.exited)
		c.feed.stop() // a write to it would wait for whoever else holds its input
		for _, r := range []io.Reader{p.Stdout(), p.Stderr()} {
			hurry(r)
		}
	})
	return c
}

// Send sends a message as one line of JSON. It does not wait. An error says that the program takes
// nothing any more.
func (c *Child) Send(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		panic(fmt.Sprintf("adapter: a message that is no JSON: %v", err))
	}
	return c.Write(append(b, '\n'))
}

// Write sends bytes as they are. It does not wait, and keeps b.
func (c *Child) Write(b []byte) error { return c.feed.add(b) }

// CloseInput ends the program's input after what was sent before. It does not wait.
func (c *Child) CloseInput() { c.feed.close() }

// Lines are what the program writes, one after the other; the next is read when the last was taken. The
// channel is closed when the output has ended.
func (c *Child) Lines() <-chan Line { return c.lines }

// Heard gives the message that a line is: one JSON object. Where it is none, it is told as what it is,
// and nil is returned.
func (c *Child) Heard(l Line) json.RawMessage {
	switch {
	case l.Skipped > 0:
		c.stage.Out.Tell(speech.Event{
			Type: driver.Faulted,
			Text: fmt.Sprintf("a line of %d bytes was not read, %d is the most", l.Skipped, LineBytesMax),
			Raw:  speech.CutRaw(l.Bytes),
		})
	case l.blank():
	case !l.object():
		c.stage.print("stdout", speech.CutText(l.text()))
	case !json.Valid(l.Bytes):
		c.stage.Out.Tell(speech.Event{Type: driver.Faulted, Text: "a line of the program begins as a message and is none", Raw: speech.CutRaw(l.Bytes)})
	default:
		return l.Bytes
	}
	return nil
}

// End ends the program: it closes its input, and where that is not enough within a grace asks it by
// SIGTERM, and kills it. It returns when the program has ended and says how; what others who hold its
// output still write is waited for a moment. Lines that were not taken are lost. It may be called
// more than once, by several.
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

// over says whether nothing of the child is left.
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

// read reads the program's lines and waits for each to be taken.
func (c *Child) read() {
	defer close(c.lines)
	r := newLineReader(c.out(c.process.Stdout()))
	defer c.process.Stdout().Close()
	for {
		l, ok := r.next()
		if !ok {
			return
		}
		select {
		case c.lines <- l:
		case <-c.ending: // read on: who cannot write does not end
		}
	}
}

// out reads one of the program's outputs until its end, or until it is quiet after the program's own end:
// somebody else holds it then, and may do so for ever.
func (c *Child) out(r io.Reader) io.Reader { return &output{r: r, child: c} }

type output struct {
	r      io.Reader
	child  *Child
	waited time.Duration // since the program's end
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
		o.waited += time.Since(began) // and not while a slow reader had what was read: nothing of it is lost
	}
	switch {
	case n > 0:
		return n, nil
	case err != nil:
		return 0, io.EOF // a deadline, or the end
	}
	return 0, nil
}

// hurry lets a reader wait no longer than a moment.
func hurry(r io.Reader) {
	if f, ok := r.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = f.SetReadDeadline(time.Now().Add(outputGrace)) // an error: it is closed
	}
}
