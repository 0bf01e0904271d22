package drivertest

import (
	"bytes"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
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
	exit   driver.Exit
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

func (r *recorded) end(exit driver.Exit) {
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

func (r *recorded) Wait() driver.Exit {
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

func (r *recorded) Signal(s syscall.Signal) { r.end(driver.Exit{Code: -1, Signal: names[s]}) }

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
		(*recorded)(i).end(driver.Exit{})
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
