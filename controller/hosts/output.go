package hosts

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

	"github.com/fairlead-dev/fairlead/controller/seam"
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
func (o *outputs) spool(session string, proc seam.Process) {
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
		if err := copyOutput(ctx, o.file(session), proc); err != nil && ctx.Err() == nil {
			o.log.Warn("the output of a session on another host is not whole here", "session", session, "error", err)
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

// copyOutput continues at the end of the file.
func copyOutput(ctx context.Context, path string, proc seam.Process) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	out, err := proc.Output(ctx, info.Size())
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.Copy(file, out)
	return err
}

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
