package drivertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// recorded is a program that is played from a recording. It blocks on channels only, so that
// synctest can detect when all goroutines wait.
type recorded struct {
	command adapter.Command
	sizes   []int
	lives   bool // keeps running after its input has ended

	guarded
	output []byte // written but not read
	piece  int
	input  []byte // received but not read
	ended  bool
	exit   session.Exit
}

func (d *dialogue) start(c adapter.Command) (adapter.Process, error) {
	lives := len(d.lives) > 0 && d.lives[0]
	d.lives = d.lives[min(1, len(d.lives)):]
	r := &recorded{lives: lives, command: c, sizes: d.sizes, guarded: guarded{changed: make(chan struct{})}}
	select {
	case d.started <- r:
		return r, nil
	default:
		return nil, fmt.Errorf("more than %d programs were started at once", startsMax)
	}
}

func (r *recorded) print(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.output = append(r.output, b...)
	r.wake()
}

func (r *recorded) end(exit session.Exit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.ended, r.exit = true, exit
	r.wake()
}

// line reads the next line of its input.
func (r *recorded) line() ([]byte, bool) {
	late := time.After(dialoguePatience)
	for {
		r.mu.Lock()
		line, rest, ok := bytes.Cut(r.input, []byte{'\n'})
		if ok {
			r.input = rest
		}
		changed := r.changed
		r.mu.Unlock()
		if ok {
			return line, true
		}
		select {
		case <-changed:
		case <-late:
			return nil, false
		}
	}
}

// unread returns the lines of input that were not read.
func (r *recorded) unread() (lines [][]byte) {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range bytes.Lines(r.input) {
		lines = append(lines, bytes.TrimSpace(line))
	}
	return lines
}

func (r *recorded) Stdin() io.WriteCloser { return (*recordedInput)(r) }
func (r *recorded) Stdout() io.ReadCloser { return (*recordedOutput)(r) }
func (r *recorded) Stderr() io.ReadCloser { return io.NopCloser(bytes.NewReader(nil)) }

func (r *recorded) Wait() session.Exit {
	for {
		r.mu.Lock()
		ended, changed := r.ended, r.changed
		r.mu.Unlock()
		if ended {
			return r.exit
		}
		<-changed
	}
}

func (r *recorded) Signal(s syscall.Signal) { r.end(session.Exit{Code: -1, Signal: names[s]}) }

type recordedInput recorded

func (i *recordedInput) Write(b []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.input = append(i.input, b...)
	i.wake()
	return len(b), nil
}

// Close ends the program if the recording does not contain its end.
func (i *recordedInput) Close() error {
	if !i.lives {
		(*recorded)(i).end(session.Exit{})
	}
	return nil
}

type recordedOutput recorded

func (o *recordedOutput) Read(b []byte) (int, error) {
	for {
		o.mu.Lock()
		n := min(len(b), len(o.output))
		if n > 0 && len(o.sizes) > 0 {
			n = min(n, o.sizes[o.piece%len(o.sizes)])
			o.piece++
		}
		copy(b, o.output[:n])
		o.output = o.output[n:]
		ended, changed := o.ended, o.changed
		o.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case ended:
			return 0, io.EOF
		}
		<-changed
	}
}

func (o *recordedOutput) Close() error { return nil }

// Record runs a conversation with a real program and writes the recording that Dialogue plays. It
// calls tell for orders after each event, at first with a zero event: the first order must be a
// start, and an order without a type means that no more will come. replace are pairs for
// strings.NewReplacer: replace the workspace by /work/repo, and remove names of this machine and its
// user. It returns the terminal event.
func Record(t *testing.T, p adapter.Protocol, part adapter.Part, env []string, file string, tell func(driver.Fact) []speech.Order,
	replace ...string,
) driver.Stop {
	t.Helper()
	r := &recorder{began: time.Now(), replace: strings.NewReplacer(append(replace, part.Dir, recordedDir)...)}
	asked, orders := make(chan driver.Fact, 1<<16), make(chan speech.Order)
	stage := adapter.NewStage(speech.NewWriter(&lineTap{each: func(line []byte) {
		var e driver.Fact
		must(t, json.Unmarshal(line, &e))
		if e.Kind == driver.Stopped {
			r.over.Store(true)
		}
		asked <- e
	}}), part.Dir, env)
	stage.Orders, stage.Starts = orders, func(c adapter.Command) (adapter.Process, error) {
		process, err := adapter.StartProcess(c)
		if err != nil {
			return nil, err
		}
		r.note(Entry{Dir: "start", Argv: c.Argv, Env: variables(c.Env[len(stage.Env):])})
		return &tapped{Process: process, r: r}, nil
	}
	over, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		tellAll(r, tell, asked, orders, over)
	}()
	stop := adapter.Perform(t.Context(), p, part, stage)
	close(over)
	<-told
	r.mu.Lock()
	defer r.mu.Unlock()
	writeEntries(t, file, r.entries)
	return stop
}

// tellAll sends the orders that tell returns, and records each one that was received.
func tellAll(r *recorder, tell func(driver.Fact) []speech.Order, asked <-chan driver.Fact, orders chan<- speech.Order,
	over <-chan struct{},
) {
	var e driver.Fact
	var taken int64
	open := true
	for {
		for _, o := range tell(e) {
			if o.Type == "" && open {
				r.note(Entry{Dir: "over"})
				close(orders)
				open = false
			}
			if !open {
				break
			}
			taken += int64(len(o.Encode()))
			o.End = taken
			at := r.note(Entry{Dir: "order", Msg: bytes.TrimSpace(o.Encode())}) // recorded before its consequences
			select {
			case orders <- o:
			case <-over:
				r.forget(at)
				return
			}
		}
		select {
		case e = <-asked:
		case <-over:
			return
		}
	}
}

type recorder struct {
	began   time.Time
	replace *strings.Replacer
	over    atomic.Bool // the terminal event was reported: from now on we end the program

	mu      sync.Mutex
	entries []Entry
}

// note adds an entry and returns its index.
func (r *recorder) note(e Entry) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.T = float64(time.Since(r.began).Milliseconds()) / 1000
	for i := range e.Argv {
		e.Argv[i] = r.replace.Replace(e.Argv[i])
	}
	e.Msg, e.Text = json.RawMessage(r.replace.Replace(string(e.Msg))), r.replace.Replace(e.Text)
	if len(e.Msg) == 0 {
		e.Msg = nil
	}
	r.entries = append(r.entries, e)
	return len(r.entries) - 1
}

func (r *recorder) forget(at int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = slices.Delete(r.entries, at, at+1)
}

// line records one line.
func (r *recorder) line(dir string, line []byte) {
	switch {
	case object(line) != nil:
		r.note(Entry{Dir: dir, Msg: bytes.Clone(line)})
	case dir == "recv":
		r.note(Entry{Dir: "print", Text: strings.ToValidUTF8(string(line), "\uFFFD")})
	default:
		r.note(Entry{Dir: dir, Msg: message(line)})
	}
}

// tapped is a process whose input and output are recorded.
type tapped struct {
	adapter.Process
	r *recorder
}

func (p *tapped) Stdin() io.WriteCloser {
	return struct {
		io.Writer
		io.Closer
	}{io.MultiWriter(p.Process.Stdin(), &lineTap{each: func(l []byte) { p.r.line("send", l) }}), p.Process.Stdin()}
}

func (p *tapped) Stdout() io.ReadCloser {
	out := p.Process.Stdout()
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(out, &lineTap{each: func(l []byte) { p.r.line("recv", l) }}), out}
}

func (p *tapped) Wait() session.Exit {
	exit := p.Process.Wait()
	if !p.r.over.Load() {
		p.r.note(Entry{Dir: "exit", Code: exit.Code, Signal: exit.Signal})
	}
	return exit
}

// lineTap calls each with every complete line that is written to it.
type lineTap struct {
	each func(line []byte)
	rest []byte
}

func (l *lineTap) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte{'\n'})
		if !ok {
			return len(b), nil
		}
		l.each(line)
		l.rest = rest
	}
}
