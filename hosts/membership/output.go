package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// outputs keeps the output of sessions on other hosts here, too, while it runs: its host may be lost, and the output
// is shown when the session is long over. It is a plain file of the same bytes.
type outputs struct {
	folder string
	log    *slog.Logger
	run    func(func(context.Context)) // in a goroutine that ends with the daemon

	mu     sync.Mutex
	copied map[string]chan struct{} // by session that is copied: closed when all of it is here
}

// file is where the output of a session is. Ids of sessions are names of files.
func (o *outputs) file(session string) string { return filepath.Join(o.folder, session) }

// spool copies what a session prints until it has ended.
func (o *outputs) spool(session string, proc sessionhost.Process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.copied[session] != nil {
		return
	}
	done := make(chan struct{})
	o.copied[session] = done
	o.run(func(ctx context.Context) {
		defer func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			delete(o.copied, session)
			close(done)
		}()
		for again, warned := loop.Retry(), false; ; {
			err := sessionhost.CopyOutput(ctx, o.file(session), 0o700, 0o600, outputMax, proc.Output)
			if err == nil || ctx.Err() != nil {
				return
			}
			if !warned { // a full disk, for example: the host has the output meanwhile
				warned = true
				o.log.Error("the output of a session on another host cannot be kept here; it is tried again until it can", "session",
					session, "error", err)
			}
			if !again.Rest(ctx) {
				return
			}
		}
	})
}

// spooled waits until the output of a session is here, as far as it can come.
func (o *outputs) spooled(ctx context.Context, session string) {
	o.mu.Lock()
	done := o.copied[session]
	o.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// rest copies what a lost session printed that did not arrive, and returns how many bytes that was.
func (o *outputs) rest(ctx context.Context, session string, output func(context.Context, int64) (io.ReadCloser, error)) (came int64,
	err error,
) {
	had := o.size(session)
	err = sessionhost.CopyOutput(ctx, o.file(session), 0o700, 0o600, outputMax, output)
	has := o.size(session)
	if err == nil && has >= outputMax {
		err = fmt.Errorf("more than %d MiB are not kept", outputMax>>20)
	}
	return has - had, err
}

func (o *outputs) size(session string) int64 {
	if info, err := os.Stat(o.file(session)); err == nil {
		return info.Size()
	}
	return 0
}

// outputMax is how much output of a session is kept: as much as a shim keeps.
const outputMax = 1 << 30

// open opens the output of a session that has run on another host.
func (o *outputs) open(session string, offset int64) (io.ReadCloser, error) {
	file, err := os.Open(o.file(session))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no output of session %s is here: %w", session, err)
	}
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
