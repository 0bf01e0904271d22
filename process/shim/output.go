package shim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Output reads the agent's output from an offset on, and follows it: only bytes that are synced to
// disk, io.EOF at the end. It may be called several times. A Read ends with ctx, with Close of the
// reader, with ErrClosed after the handle's Close, and with *Fenced.
func (h *Handle) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	f, err := openSpool(h.folder, offset)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	return &follower{h: h, ctx: ctx, cancel: cancel, file: f, at: offset}, nil
}

type follower struct {
	h      *Handle
	ctx    context.Context
	cancel context.CancelFunc
	file   io.ReadCloser // at byte at
	at     int64
	shut   atomic.Bool
}

// Read must not be called concurrently; Close may be called during Read.
func (f *follower) Read(b []byte) (int, error) {
	for {
		if f.shut.Load() {
			return 0, os.ErrClosed
		}
		if err := f.ctx.Err(); err != nil {
			return 0, context.Cause(f.ctx)
		}
		h := f.h
		h.mu.Lock()
		size, over, err, change := h.size, h.final != nil, h.err, h.change
		h.mu.Unlock()
		var fenced *Fenced
		switch {
		case len(b) == 0:
			return 0, nil
		case f.at < size:
			n, err := f.file.Read(b[:min(int64(len(b)), size-f.at)])
			f.at += int64(n)
			if n > 0 {
				return n, nil
			}
			return 0, fmt.Errorf("read the spool at byte %d of %d: %w; was it cut?", f.at, size, noEOF(err))
		case over:
			return 0, io.EOF
		case errors.As(err, &fenced):
			return 0, fenced
		}
		select {
		case <-change:
		case <-f.ctx.Done():
		case <-h.closed:
			return 0, ErrClosed
		}
	}
}

// noEOF: an end of file where more bytes are expected is an error, and must not look like the end.
func noEOF(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close ends a Read that waits.
func (f *follower) Close() error {
	if f.shut.Swap(true) {
		return nil
	}
	f.cancel()
	return f.file.Close()
}

// Output reads an agent's output from an offset on, up to its current end. It is for ended sessions
// and needs no daemon and no epoch.
func Output(folder string, offset int64) (io.ReadCloser, error) {
	f, err := openSpool(folder, offset)
	if err != nil {
		return nil, err
	}
	e, err := readExit(folder)
	if err != nil {
		f.Close()
		return nil, err
	}
	var size int64
	if e != nil {
		size = e.SpoolBytes
	} else if size, err = syncedBytes(f); err != nil { // it may be running, or lost
		f.Close()
		return nil, fmt.Errorf("open the spool: %w", err)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(f, max(0, size-offset)), f}, nil
}

// syncedBytes returns how many bytes of output survive a crash of the machine.
func syncedBytes(output io.ReadCloser) (int64, error) {
	if p, is := output.(*packed); is {
		return p.size, nil
	}
	f := output.(*os.File)
	if err := dataSync(f); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// OutputBytes is the length of an agent's output now, of which the last bytes may not be on disk yet.
func OutputBytes(folder string) (int64, error) {
	info, err := os.Lstat(filepath.Join(folder, spoolFile))
	if !errors.Is(err, os.ErrNotExist) {
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	p, err := openPacked(folder, 0)
	if err != nil {
		return 0, err
	}
	return p.size, nil
}

// openSpool opens an agent's output at an offset. It is compressed if the spool is gone: Compact removes that last.
func openSpool(folder string, offset int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, fmt.Errorf("open the spool at byte %d: offsets begin at 0", offset)
	}
	f, err := openPlain(filepath.Join(folder, spoolFile), os.O_RDONLY)
	if err == nil {
		if _, err = f.Seek(offset, io.SeekStart); err != nil {
			f.Close()
			return nil, fmt.Errorf("open the spool: %w", err)
		}
		return f, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open the spool: %w", err)
	}
	p, err := openPacked(folder, offset)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open the spool: %w; no agent was started there", err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the spool: %w", err)
	}
	return p, nil
}
