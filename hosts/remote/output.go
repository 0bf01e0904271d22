package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

// Output implements driver.Wire. It follows the process to its end.
func (p *process) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	ctx, stop := p.with(ctx)
	out, err := p.h.output(ctx, request{session: p.session, epoch: p.epoch, gone: p.gone}, offset)
	if isLost(err) {
		stop()
		return http.NoBody, nil
	}
	if err != nil {
		stop()
		return nil, err
	}
	out.also = stop
	return out, nil
}

// output is a stream that continues over broken connections.
type output struct {
	h    *Host
	r    request
	at   int64
	ctx  context.Context
	stop context.CancelCauseFunc
	also func()

	broke bool         // no bytes have come since the last attempt
	again retry.Pauses // while none come
	mu    sync.Mutex   // for Close
	body  io.ReadCloser
}

func (h *Host) output(ctx context.Context, r request, offset int64) (*output, error) {
	r.method, r.route = http.MethodGet, wire.OutputRoute
	o := &output{h: h, r: r, at: offset, again: pauses()}
	o.ctx, o.stop = context.WithCancelCause(ctx)
	if err := o.open(); err != nil {
		o.stop(nil)
		return nil, err
	}
	return o, nil
}

// open asks for the output from the next byte on.
func (o *output) open() error {
	o.r.query = "?offset=" + strconv.FormatInt(o.at, 10)
	return o.h.send(o.ctx, o.r, func(answer *http.Response) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.body = answer.Body
		return nil
	})
}

// Read must not be called concurrently; Close may be called during Read.
func (o *output) Read(b []byte) (int, error) {
	for {
		n, err := o.body.Read(b)
		o.at += int64(n)
		if n > 0 {
			o.broke, o.again = false, pauses()
			return n, nil
		}
		if err == nil || errors.Is(err, io.EOF) {
			return 0, err
		}
		_ = o.body.Close() // it is broken
		if o.broke && !o.again.Rest(o.ctx) || o.ctx.Err() != nil {
			return 0, o.over(context.Cause(o.ctx))
		}
		o.broke = true
		if err := o.open(); err != nil {
			return 0, o.over(err)
		}
	}
}

// over is the end of a stream that cannot continue. That of a process that was lost ends as it would if its shim were lost.
func (o *output) over(err error) error {
	if isLost(err) {
		return io.EOF
	}
	return err
}

// Close ends a Read that waits.
func (o *output) Close() error {
	o.stop(os.ErrClosed)
	if o.also != nil {
		o.also()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.body.Close()
}
