package shim

import (
	"os"
	"sync"
)

const ctrlD = 4

// input is the agent's standard input as a stream with offsets. Bytes below the current offset are
// dropped, so a sender that is not sure can repeat them.
type input struct {
	to    *os.File // nil: the agent's input is /dev/null
	last  []byte   // bytes that end the stream if closing does not
	ready chan struct{}

	mu     sync.Mutex
	taken  int64  // offset of the next byte
	queue  []byte // received, not written yet
	label  string // of the last bytes with a label
	closed bool   // no more is accepted; after the queue is empty, the agent sees the end
	broken bool   // the agent closed its end
}

func newInput(to *os.File, first []byte, keep, tty bool) *input {
	in := &input{to: to, ready: make(chan struct{}, 1), taken: int64(len(first)), queue: first, closed: !keep}
	if tty {
		in.last = []byte{ctrlD} // on a terminal, only this ends the input
	}
	if to == nil {
		in.closed = true
		return in
	}
	wake(in.ready)
	go in.write()
	return in
}

func (in *input) write() {
	defer in.to.Close()
	for range in.ready {
		for {
			in.mu.Lock()
			piece := in.queue[:min(len(in.queue), readBytes)]
			done := len(piece) == 0 && in.closed
			in.mu.Unlock()
			if done {
				_, _ = in.to.Write(in.last)
				return
			}
			if len(piece) == 0 {
				break
			}
			n, err := in.to.Write(piece)
			in.mu.Lock()
			in.queue = in.queue[n:]
			if len(in.queue) == 0 || err != nil {
				in.queue = nil // release the memory
			}
			if err != nil {
				in.closed, in.broken = true, true
			}
			in.mu.Unlock()
		}
	}
}

func (in *input) send(offset int64, b []byte, label string) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if offset < 0 || offset > in.taken {
		return &InputGap{Offset: offset, Taken: in.taken}
	}
	if offset+int64(len(b)) <= in.taken {
		in.named(label)
		return nil // all of it was received before
	}
	b = b[in.taken-offset:]
	if in.closed {
		return ErrInputClosed
	}
	if len(in.queue)+len(b) > inputWaitingMax {
		return &InputFull{Waits: int64(len(in.queue))}
	}
	in.queue = append(in.queue, b...)
	in.taken += int64(len(b))
	in.named(label)
	wake(in.ready)
	return nil
}

func (in *input) named(label string) {
	if label != "" {
		in.label = label[:min(len(label), labelBytesMax)]
	}
}

func (in *input) shut() {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	wake(in.ready)
}

func (in *input) fill(st *Status) {
	in.mu.Lock()
	defer in.mu.Unlock()
	st.InputLabel = in.label
	st.InputOffset, st.InputWaits, st.InputClosed = in.taken, int64(len(in.queue)), in.closed
}
