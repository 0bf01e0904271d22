package driver

import (
	"bytes"
	"context"
	"io"
)

// Recorded is a Wire to output that was read before. It takes no input.
type Recorded struct {
	Text []byte
	From int64 // the offset of the first byte of Text in the output
}

var _ Wire = Recorded{}

// Output implements Wire.
func (r Recorded) Output(_ context.Context, offset int64) (io.ReadCloser, error) {
	at := min(max(offset-r.From, 0), int64(len(r.Text)))
	return io.NopCloser(bytes.NewReader(r.Text[at:])), nil
}

// Send implements Wire; it fails.
func (Recorded) Send(context.Context, []byte) error { return io.ErrClosedPipe }

// CloseInput implements Wire; it fails.
func (Recorded) CloseInput(context.Context) error { return io.ErrClosedPipe }
