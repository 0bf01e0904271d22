package shim

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// order is what a daemon sends. A frame is four bytes of length, most significant
// first, and one JSON value.
type order struct {
	ID      uint64 `json:"id,omitempty"`
	Op      string `json:"op"` // launch, hello, status, growth, send, close_input, interrupt, extend, end
	Version int    `json:"v,omitempty"`
	Fence   uint64 `json:"fence,omitempty"`
	Offset  int64  `json:"offset,omitempty"`
	Data    []byte `json:"data,omitempty"`
	Label   string `json:"label,omitempty"`    // send: the label of the data
	GraceMS int64  `json:"grace_ms,omitempty"` // end: below 0 means the launch's own
	Launch  *Spec  `json:"launch,omitempty"`

	Limit session.Limit `json:"limit,omitempty"` // end: the limit of the team that was reached

	EndAt host.BootTime `json:"end_at,omitempty"` // extend: the new deadline
}

// answer is what a shim sends: in reply to an order (ID is set) or as an event (Event is set).
type answer struct {
	ID      uint64  `json:"id,omitempty"`
	Event   string  `json:"event,omitempty"` // spool, exit, fenced
	Version int     `json:"v,omitempty"`
	Status  *Status `json:"status,omitempty"`
	Size    int64   `json:"size,omitempty"` // spool: bytes that may be read now; growth: bytes a second
	Fault   *fault  `json:"fault,omitempty"`
}

// fault transports typed errors over the socket.
type fault struct {
	Kind string `json:"kind"` // fenced, already_started, cannot_start, input_gap, input_full, input_closed, ended, failed
	Text string `json:"text,omitempty"`
	A    uint64 `json:"a,omitempty"`
	B    uint64 `json:"b,omitempty"`
}

func toFault(err error) *fault {
	var (
		fenced *Fenced
		again  *spawn.AlreadyStarted
		cannot *spawn.CannotStart
		gap    *InputGap
		full   *InputFull
		other  *NotTheDaemon
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fenced):
		return &fault{Kind: "fenced", A: fenced.Mine, B: fenced.Seen}
	case errors.As(err, &again):
		return &fault{Kind: "already_started", Text: again.Session}
	case errors.As(err, &cannot):
		return &fault{Kind: "cannot_start", Text: cannot.Why}
	case errors.As(err, &gap):
		return &fault{Kind: "input_gap", A: uint64(gap.Offset), B: uint64(gap.Taken)}
	case errors.As(err, &full):
		return &fault{Kind: "input_full", A: uint64(full.Waits)}
	case errors.As(err, &other):
		return &fault{Kind: "not_the_daemon", Text: other.Why}
	case errors.Is(err, ErrInputClosed):
		return &fault{Kind: "input_closed"}
	case errors.Is(err, ErrEnded):
		return &fault{Kind: "ended"}
	}
	return &fault{Kind: "failed", Text: err.Error()}
}

func (f *fault) err() error {
	if f == nil {
		return nil
	}
	switch f.Kind {
	case "fenced":
		return &Fenced{Mine: f.A, Seen: f.B}
	case "not_the_daemon":
		return &NotTheDaemon{f.Text}
	case "already_started":
		return &spawn.AlreadyStarted{Session: f.Text}
	case "cannot_start":
		return &spawn.CannotStart{Why: f.Text}
	case "input_gap":
		return &InputGap{Offset: int64(f.A), Taken: int64(f.B)}
	case "input_full":
		return &InputFull{Waits: int64(f.A)}
	case "input_closed":
		return ErrInputClosed
	case "ended":
		return ErrEnded
	}
	return errors.New(f.Text)
}

func writeFrame(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write to the shim's socket: %w", err)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	_, err = w.Write(append(frame, body...)) // one write, so that frames of two writers are not mixed
	return err
}

// readFrame reads one frame of at most max bytes. io.EOF means that the other side closed between
// two frames.
func readFrame(r io.Reader, max int, into any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > uint32(max) {
		return fmt.Errorf("frame of %d bytes on the shim's socket: at most %d", n, max)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("frame of %d bytes on the shim's socket broke off: %w", n, io.ErrUnexpectedEOF)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("frame on the shim's socket: %w", err)
	}
	return nil
}
