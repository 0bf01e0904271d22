package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/fairlead-dev/fairlead/driver/script"
)

// typing is a session's input, as its shim has it: bytes below the offset that was reached
// are dropped, and of the last bytes that had a name the name is kept. The world's lock
// guards it.
type typing struct {
	taken  int64  // offset of the next byte
	all    []byte // so many bytes
	label  string
	lines  []line        // not read yet
	more   chan struct{} // closed and made anew with every line, and with the end
	closed bool
}

// line is one order in a session's input.
type line struct {
	order script.Order
	key   string // of the action that it carries
	end   int64  // bytes of input up to and with it
}

func newTyping() *typing { return &typing{more: make(chan struct{})} }

// take is what a shim does with bytes for an offset.
func (t *typing) take(offset int64, label string, b []byte) (fresh bool, err error) {
	switch {
	case offset > t.taken:
		return false, errors.New("there is a gap in the input")
	case offset+int64(len(b)) <= t.taken:
		t.named(label)
		return false, nil // all of it is there already
	case t.closed:
		return false, errors.New("the input was closed")
	}
	b = b[t.taken-offset:]
	t.all = append(t.all, b...)
	for one := range bytes.Lines(b) {
		t.taken += int64(len(one))
		var order script.Order
		if json.Unmarshal(one, &order) == nil { // a truncated line is ignored by its reader
			t.lines = append(t.lines, line{order: order, key: label, end: t.taken})
		}
	}
	t.named(label)
	t.wake()
	return true, nil
}

// says reports whether the content at an offset equals the new bytes, as far as there is content. It
// ignores what a shim drops.
func (t *typing) says(offset int64, b []byte) bool {
	there := t.all[min(offset, t.taken):]
	n := min(len(there), len(b))
	return bytes.Equal(there[:n], b[:n])
}

func (t *typing) named(label string) {
	if label != "" {
		t.label = label
	}
}

func (t *typing) wake() {
	close(t.more)
	t.more = make(chan struct{})
}

func (t *typing) close() {
	if !t.closed {
		t.closed = true
		t.wake()
	}
}

// begins puts the first bytes into a session's input: the action that it was opened for. The caller
// holds the lock.
func (w *world) begins(s *hostSession, first []byte) {
	a := w.truth.Agents[agentIn(s.id)]
	key := ""
	if a.Session != nil && a.Session.ID == s.id && a.Session.Delivery != nil {
		key = a.Session.Delivery.Key
	}
	if _, err := s.input.take(0, key, first); err != nil {
		panic("sim: the first input: " + err.Error())
	}
	s.input.label = "" // a launch names nothing
	w.told(s, key, string(first))
}

// SendAs writes input that has a name: the key of its action.
func (p *process) SendAs(_ context.Context, label string, b []byte) error {
	p.w.mu.Lock()
	p.w.checkTyped(p.l, p.hostSession, label, b)
	p.w.mu.Unlock()
	return p.typed("type", label, b)
}

// Send writes what has none: an order to stop, an answer.
func (p *process) Send(_ context.Context, b []byte) error {
	p.w.mu.Lock()
	p.w.checkAnswer(p.hostSession, b)
	p.w.mu.Unlock()
	return p.typed("hush", "", b)
}

func (p *process) typed(what, label string, b []byte) error {
	return p.w.act(p.l, what+" "+p.id, func() error {
		if err := p.allowed(); err != nil {
			return err
		}
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		if p.isOver() {
			return errors.New("the agent has ended")
		}
		p.w.check(toldOnce, p.input.says(p.at, b), "%s is written to at %d, where something else is: %s", p.id, p.at, label)
		fresh, err := p.input.take(p.at, label, b)
		if err != nil {
			return err
		}
		p.at += int64(len(b))
		p.w.came("%s has %d bytes of input, the last are %q", p.id, p.input.taken, p.input.label)
		if fresh && label != "" {
			p.w.told(p.hostSession, label, string(b))
		}
		return nil
	})
}

// Input is how far the session's input goes, and what the last of it was called.
func (p *process) Input() (offset int64, label string) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.at, p.input.label
}
