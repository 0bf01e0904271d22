package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
)

// Handle is a daemon's access to one session. It is safe for concurrent use. It exists until Close,
// and reconnects if the connection breaks while the shim is alive.
type Handle struct {
	folder string
	fence  uint64
	begun  Status        // when it was started or adopted
	done   chan struct{} // the session has ended, or this daemon is fenced: see Done
	closed chan struct{} // Close was called
	ran    chan struct{} // the goroutine of this handle has ended

	mu     sync.Mutex
	client *client       // nil while there is no connection
	change chan struct{} // closed and replaced at every change of the fields below
	size   int64         // readable bytes
	final  *Status       // the final state
	err    error         // *Fenced, or why the state is unknown
}

func newHandle(folder string, fence uint64, conn *os.File, st Status) *Handle {
	h := &Handle{
		folder: folder, fence: fence, begun: st, size: st.SpoolBytes,
		done: make(chan struct{}), closed: make(chan struct{}), ran: make(chan struct{}), change: make(chan struct{}),
	}
	if conn == nil {
		h.finish(&st, nil)
		close(h.ran)
		return h
	}
	h.client = newClient(conn, h.grew)
	go h.run()
	return h
}

// run follows the session to its end, across broken connections.
func (h *Handle) run() {
	defer close(h.ran)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-h.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		h.mu.Lock()
		c := h.client
		h.mu.Unlock()
		st, err := c.run()
		if h.isClosed() {
			return
		}
		if err == nil || errors.As(err, new(*Fenced)) {
			h.finish(st, err)
			return
		}
		conn, st, err := h.again(ctx)
		if h.isClosed() {
			if conn != nil {
				conn.Close()
			}
			return
		}
		if conn == nil {
			h.finish(st, err)
			return
		}
		h.mu.Lock()
		h.client = newClient(conn, h.grew)
		h.mu.Unlock()
		h.grew(st.SpoolBytes)
		if h.isClosed() { // Close may have been called before the new connection existed
			conn.Close()
		}
	}
}

// again reconnects. It waits without a limit for a living shim that does not answer, because the
// session has not ended.
func (h *Handle) again(ctx context.Context) (*os.File, *Status, error) {
	h.mu.Lock()
	h.client = nil
	h.mu.Unlock()
	for {
		conn, st, err := attach(ctx, h.folder, h.fence)
		if err == nil || errors.As(err, new(*Fenced)) || ctx.Err() != nil {
			return conn, st, err
		}
		h.mu.Lock()
		h.err = err
		h.mu.Unlock()
		select {
		case <-time.After(socketLook):
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

func (h *Handle) isClosed() bool {
	select {
	case <-h.closed:
		return true
	default:
		return false
	}
}

func (h *Handle) grew(size int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.size, h.err = max(h.size, size), nil
	close(h.change)
	h.change = make(chan struct{})
}

func (h *Handle) finish(st *Status, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.client, h.err = nil, err
	if st != nil {
		h.final, h.size = st, st.SpoolBytes
	}
	close(h.change)
	h.change = make(chan struct{})
	close(h.done)
}

// Done is closed when the agent has ended, its tree has ended and its exit is on disk; or when the
// shim was lost and the remaining tree was ended; or when another daemon has taken over. Status then
// says which: Exited, Lost, or the error *Fenced. For a session that never started, it is closed
// from the beginning.
func (h *Handle) Done() <-chan struct{} { return h.done }

// Begun is the status when the session was started or adopted, without asking its shim again.
func (h *Handle) Begun() Status { return h.begun }

// Folder is the canonical path of the session's folder.
func (h *Handle) Folder() string { return h.folder }

// Status asks the shim, or returns the final state of an ended session.
func (h *Handle) Status(ctx context.Context) (Status, error) {
	a, err := h.ask(ctx, order{Op: "status"})
	if errors.Is(err, ErrEnded) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.final != nil {
			return *h.final, nil
		}
	}
	if err != nil {
		return Status{}, fmt.Errorf("ask the shim: %w", err)
	}
	if a.Status == nil {
		return Status{}, errors.New("ask the shim: it answered nonsense; end the session")
	}
	return *a.Status, nil
}

// Send writes bytes to the agent's standard input, starting at offset. Bytes that were received
// before are dropped, so a caller that does not know whether an earlier Send arrived can repeat it.
// It returns when the shim has received them. *InputGap, *InputFull, ErrInputClosed and ErrEnded are
// refusals.
func (h *Handle) Send(ctx context.Context, offset int64, b []byte) error {
	return h.SendAs(ctx, offset, "", b)
}

// SendAs is Send with a label for the bytes, which the shim keeps with the last of them as
// Status.InputLabel. After a crash, the caller can find out from it what was sent. At most
// labelBytesMax bytes; empty keeps the previous label.
func (h *Handle) SendAs(ctx context.Context, offset int64, label string, b []byte) error {
	if len(label) > labelBytesMax {
		return fmt.Errorf("send input named by %d bytes: at most %d", len(label), labelBytesMax)
	}
	for {
		piece := b[:min(len(b), inputPieceBytesMax)]
		next := order{Op: "send", Offset: offset, Data: piece}
		if len(piece) == len(b) {
			next.Label = label
		}
		if _, err := h.ask(ctx, next); err != nil {
			return fmt.Errorf("send input at offset %d: %w", offset, err)
		}
		offset, b = offset+int64(len(piece)), b[len(piece):]
		if len(b) == 0 {
			return nil
		}
	}
}

// CloseInput ends the agent's input after what was sent.
func (h *Handle) CloseInput(ctx context.Context) error {
	return h.tell(ctx, "close the input", order{Op: "close_input"})
}

// Interrupt sends SIGINT to the agent's process group, like Ctrl-C.
func (h *Handle) Interrupt(ctx context.Context) error {
	return h.tell(ctx, "interrupt", order{Op: "interrupt"})
}

// Extend moves the deadline of a session with a DeadMan to a later time; an earlier one changes nothing. The
// shim keeps it in memory. ErrEnded means that it came too late, and ErrNoDeadline that there is none.
func (h *Handle) Extend(ctx context.Context, to host.BootTime) error {
	a, err := h.ask(ctx, order{Op: "extend", EndAt: to})
	switch {
	case a.Fault != nil && a.Fault.Kind == "failed": // a shim that knows the order has no other error without a type
		return fmt.Errorf("extend the session: %w: %w", ErrNoDeadline, err)
	case err != nil:
		return fmt.Errorf("extend the session: %w", err)
	}
	return nil
}

// End orders the end: SIGTERM to the agent's whole tree, SIGKILL after grace (below 0: the launch's
// own; 0: immediately). It returns when the order was accepted, and the shim executes it even if the
// daemon ends; Done says when it is finished. It is no error if the agent has ended. If it is
// ordered twice, the earlier deadline applies.
func (h *Handle) End(ctx context.Context, grace time.Duration) error {
	err := h.tell(ctx, "end", order{Op: "end", GraceMS: ceilMillis(grace)})
	if errors.Is(err, ErrEnded) {
		return nil
	}
	return err
}

// EndAt ends the session at once because the team has reached a limit, which its exit names.
func (h *Handle) EndAt(ctx context.Context, limit session.Limit) error {
	err := h.tell(ctx, "end", order{Op: "end", Limit: limit})
	if errors.Is(err, ErrEnded) {
		return nil
	}
	return err
}

func ceilMillis(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func (h *Handle) tell(ctx context.Context, what string, o order) error {
	if _, err := h.ask(ctx, o); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// ask sends an order, and repeats it if the connection broke: all orders are idempotent.
func (h *Handle) ask(ctx context.Context, o order) (answer, error) {
	for {
		h.mu.Lock()
		c, final, err, change := h.client, h.final, h.err, h.change
		h.mu.Unlock()
		switch {
		case h.isClosed():
			return answer{}, ErrClosed
		case final != nil:
			return answer{}, ErrEnded
		case c == nil && err != nil:
			return answer{}, err
		case c != nil:
			a, err := c.ask(ctx, o)
			if !errors.Is(err, errBroken) && (!errors.Is(err, ErrEnded) || o.Op != "status") {
				return a, err
			}
		}
		select { // until there is a new connection, or it has ended
		case <-change:
		case <-h.closed:
		case <-ctx.Done():
			return answer{}, context.Cause(ctx)
		}
	}
}

// Ack records that the exit is in the journal.
func (h *Handle) Ack(ctx context.Context) error {
	h.mu.Lock()
	final := h.final
	h.mu.Unlock()
	if final == nil || final.Phase == NeverStarted {
		return errors.New("acknowledge the exit: it has not ended; wait for Done")
	}
	note, err := openPlain(filepath.Join(h.folder, ackedFile), os.O_WRONLY|os.O_CREATE)
	if err == nil {
		err = note.Close() // if it is lost in a power failure, it is written again
	}
	if err != nil {
		return fmt.Errorf("acknowledge the exit: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	acked := *h.final
	acked.Acked = true
	h.final = &acked
	return nil
}

// Close closes the connection; shim and agent continue. It waits for the handle's goroutines.
func (h *Handle) Close() error {
	h.mu.Lock()
	if !h.isClosed() {
		close(h.closed)
	}
	if h.client != nil {
		h.client.conn.Close()
	}
	h.mu.Unlock()
	<-h.ran
	return nil
}
