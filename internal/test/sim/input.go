package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/fairlead-dev/fairlead/driver/script"
)

// sessionInput is a session's input as its shim keeps it. Bytes below the reached offset are
// dropped as repetitions. The label of the last labelled write is kept. The world's lock guards it.
type sessionInput struct {
	taken  int64  // offset of the next byte
	all    []byte // all input so far
	label  string
	lines  []line        // lines that the agent has not read
	more   chan struct{} // closed and replaced with every line and at the end
	closed bool
}

// line is one order in a session's input.
type line struct {
	order script.Order
	key   string // key of its action
	end   int64  // offset of its end in the input
}

func newSessionInput() *sessionInput { return &sessionInput{more: make(chan struct{})} }

// take accepts input at an offset, as a shim does.
func (t *sessionInput) take(offset int64, label string, b []byte) (fresh bool, err error) {
	switch {
	case offset > t.taken:
		return false, errors.New("the input has a gap")
	case offset+int64(len(b)) <= t.taken:
		t.setLabel(label)
		return false, nil // a repetition of known input
	case t.closed:
		return false, errors.New("the input was closed")
	}
	b = b[t.taken-offset:]
	t.all = append(t.all, b...)
	for one := range bytes.Lines(b) {
		t.taken += int64(len(one))
		var order script.Order
		if json.Unmarshal(one, &order) == nil { // the reader ignores an incomplete line
			t.lines = append(t.lines, line{order: order, key: label, end: t.taken})
		}
	}
	t.setLabel(label)
	t.wake()
	return true, nil
}

// matches reports whether the known input at an offset equals b, as far as both are known.
func (t *sessionInput) matches(offset int64, b []byte) bool {
	there := t.all[min(offset, t.taken):]
	n := min(len(there), len(b))
	return bytes.Equal(there[:n], b[:n])
}

func (t *sessionInput) setLabel(label string) {
	if label != "" {
		t.label = label
	}
}

func (t *sessionInput) wake() {
	close(t.more)
	t.more = make(chan struct{})
}

func (t *sessionInput) close() {
	if !t.closed {
		t.closed = true
		t.wake()
	}
}

// putFirstInput writes the input of a launch, which contains the action that the session was opened
// for. The caller holds the lock.
func (w *world) putFirstInput(s *hostSession, first []byte) {
	a := w.truth.Agents[agentIn(s.id)]
	key := ""
	if a.Session != nil && a.Session.ID == s.id && a.Session.Delivery != nil {
		key = a.Session.Delivery.Key
	}
	if _, err := s.input.take(0, key, first); err != nil {
		panic("sim: the first input: " + err.Error())
	}
	s.input.label = "" // the input of a launch has no label
	w.delivered(s, key, string(first))
}

// SendAs writes input with a label: the key of its action.
func (p *process) SendAs(_ context.Context, label string, b []byte) error {
	p.w.mu.Lock()
	p.w.checkInputWrite(p.l, p.hostSession, label, b)
	p.w.mu.Unlock()
	return p.typed("type", label, b)
}

// Send writes input without a label: an order to stop, or an answer.
func (p *process) Send(_ context.Context, b []byte) error {
	p.w.mu.Lock()
	p.w.checkAnswer(p.hostSession, b)
	p.w.mu.Unlock()
	return p.typed("input", "", b)
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
		p.w.check(inputOnce, p.input.matches(p.at, b), "%s receives other input at the known offset %d: %s", p.id, p.at, label)
		fresh, err := p.input.take(p.at, label, b)
		if err != nil {
			return err
		}
		p.at += int64(len(b))
		p.w.notef("%s has %d bytes of input, the last label is %q", p.id, p.input.taken, p.input.label)
		if fresh && label != "" {
			p.w.delivered(p.hostSession, label, string(b))
		}
		return nil
	})
}

// Input returns the offset of the session's input and its last label.
func (p *process) Input() (offset int64, label string) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.at, p.input.label
}
