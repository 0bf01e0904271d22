package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

const (
	inputMax    = wire.BodyMax / 2 // bytes of one input: a prompt has 1 MiB at most
	ackWithin   = 10 * time.Second // the host may be gone for good, and only keeps a few bytes until then
	proofWithin = 5 * time.Second  // evidence is about now: there is none while the host cannot be reached
)

// process is a session's process on the host.
type process struct {
	h       *Host
	session string
	epoch   uint64
	pid     int
	gone    <-chan struct{}

	ctx    context.Context // ends with Close, or when the process is lost with its host
	cancel context.CancelCauseFunc
	done   chan struct{}
	ran    chan struct{} // the goroutine of run has ended
	ending session.Exit  // once done is closed
	err    error         // instead of ending

	turn  chan struct{} // holds a value while input is written
	mu    sync.Mutex
	input int64
	label string
}

var (
	_ sessionhost.Process     = (*process)(nil)
	_ sessionhost.InputWriter = (*process)(nil)
)

// errClosed is the error of a process after Close.
var errClosed = fmt.Errorf("this session is not followed now: %w", fs.ErrClosed)

// follow makes a process of what the host answered.
func (h *Host) follow(session string, epoch uint64, status wire.Status) *process {
	p := &process{
		h: h, session: session, epoch: epoch, pid: status.PID, gone: h.Gone(session), input: status.Input, label: status.Label,
		done: make(chan struct{}), ran: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	go p.run()
	return p
}

// run waits for the end of the process, or for that of its host.
func (p *process) run() {
	defer close(p.ran)
	waiting, stop := until(p.ctx, p.gone, &Lost{p.h.Name})
	defer stop()
	switch err := p.end(waiting); {
	case p.ctx.Err() != nil: // Close
		return
	case isLost(err):
		p.ending = session.Exit{Lost: true, Why: err.Error()}
		defer p.cancel(err)
	case isNotHere(err):
		p.ending = session.Exit{Lost: true, Why: "host " + p.h.Name + " has no record of it"}
	default:
		p.err = err
	}
	close(p.done)
}

// end asks until the host says how the process has ended, or that it does not follow this leader.
func (p *process) end(ctx context.Context) error {
	for again := pauses(); ; {
		err := p.h.ask(ctx, request{session: p.session, method: http.MethodGet, route: wire.EndedRoute, epoch: p.epoch}, &p.ending)
		if err == nil || isFenced(err) || isNotHere(err) || ctx.Err() != nil {
			return err
		}
		p.h.Log.Warn("the end of a session on a host is not known; the host is asked again", "host", p.h.Name, "session", p.session,
			"error", err)
		if !again.Rest(ctx) {
			return context.Cause(ctx)
		}
	}
}

func (p *process) request(method, route string, in any) request {
	return request{session: p.session, method: method, route: route, epoch: p.epoch, in: in, gone: p.gone}
}

// with returns a context that also ends with the process's own.
func (p *process) with(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ctx, func() { cancel(context.Cause(p.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// order sends an order to the process.
func (p *process) order(ctx context.Context, route string, in, out any) error {
	ctx, stop := p.with(ctx)
	defer stop()
	return p.h.ask(ctx, p.request(http.MethodPost, route, in), out)
}

type nothing struct{}

func isNotHere(err error) bool {
	p, is := errors.AsType[*wire.Problem](err)
	return is && p.Code == wire.NotHere
}

func isLost(err error) bool {
	_, is := errors.AsType[*Lost](err)
	return is
}

// PID implements sessionhost.Process.
func (p *process) PID() int { return p.pid }

// Done implements sessionhost.Process.
func (p *process) Done() <-chan struct{} { return p.done }

// Ended implements sessionhost.Process.
func (p *process) Ended(ctx context.Context) (session.Exit, error) {
	select {
	case <-p.ran:
	case <-ctx.Done():
		return session.Exit{}, context.Cause(ctx)
	}
	select {
	case <-p.done:
		return p.ending, p.err
	default:
		return session.Exit{}, errClosed
	}
}

// Send implements driver.Wire.
func (p *process) Send(ctx context.Context, input []byte) error { return p.SendAs(ctx, "", input) }

// SendAs implements sessionhost.InputWriter. If ctx ends, the input is still sent: it may have arrived, and the next input needs to
// know its offset.
func (p *process) SendAs(ctx context.Context, label string, input []byte) error {
	if len(input) > inputMax {
		return fmt.Errorf("%d bytes of input for a session on host %s: at most %d can be sent at once", len(input), p.h.Name, inputMax)
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	sent := make(chan error, 1)
	go func() {
		defer func() { <-p.turn }()
		sent <- p.write(label, input)
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *process) write(label string, input []byte) error {
	at, _ := p.Input()
	err := p.order(context.Background(), wire.InputRoute, wire.InputIn{Offset: at, Label: label, Bytes: input}, &nothing{})
	if isLost(err) {
		return fmt.Errorf("%w: %w", driver.ErrNoInput, err)
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.input += int64(len(input))
	if label != "" {
		p.label = label
	}
	return nil
}

// Input implements sessionhost.InputWriter.
func (p *process) Input() (offset int64, label string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.input, p.label
}

// CloseInput implements driver.Wire.
func (p *process) CloseInput(ctx context.Context) error {
	return unlessLost(p.order(ctx, wire.CloseInputRoute, nil, &nothing{}))
}

// End implements sessionhost.Process.
func (p *process) End(ctx context.Context, grace time.Duration) error {
	err := p.order(ctx, wire.EndRoute, wire.EndIn{GraceMS: ceilMillis(grace)}, &nothing{})
	return unlessLost(p.h.notAdopted(err, p.session, p.epoch))
}

// Ack implements sessionhost.Process.
func (p *process) Ack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ackWithin)
	defer cancel()
	return unlessLost(p.order(ctx, wire.AckRoute, nil, &nothing{}))
}

// unlessLost drops the error that the host was lost: there is nothing left to do there.
func unlessLost(err error) error {
	if isLost(err) {
		return nil
	}
	return err
}

// ceilMillis rounds up: 0 ends a process at once, below 0 is the launch's own grace.
func ceilMillis(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Evidence implements sessionhost.Process.
func (p *process) Evidence(ctx context.Context) (proof sessionhost.Proof, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, proofWithin, fmt.Errorf("host %s did not answer for %v", p.h.Name, proofWithin))
	defer cancel()
	ctx, stop := p.with(ctx)
	defer stop()
	err = p.h.ask(ctx, p.request(http.MethodGet, wire.EvidenceRoute, nil), &proof)
	return proof, err
}

// Close implements sessionhost.Process. The process runs on.
func (p *process) Close() error {
	p.cancel(errClosed)
	<-p.ran
	return nil
}
