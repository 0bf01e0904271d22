package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/controller/seam"
)

// The output of a session on another host is kept here, too, while it runs: its host may be lost, and the output
// is shown when the session is long over. It is a plain file of the same bytes.

// outputFile is where the output of a session on another host is kept. Ids of sessions are names of folders.
func (c *HostController) outputFile(session string) string {
	return filepath.Join(c.is.Folder, "output", session)
}

// spool copies what a session prints until it has ended. The result is closed when all of it is here.
func (c *HostController) spool(session string, proc seam.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spools[session] != nil {
		return
	}
	done := make(chan struct{})
	c.spools[session] = done
	c.Go(func(ctx context.Context) {
		defer close(done)
		if err := copyOutput(ctx, c.outputFile(session), proc); err != nil && ctx.Err() == nil {
			c.log.Warn("the output of a session on another host is not whole here", "session", session, "error", err)
		}
	})
}

// spooled waits until the output of a session is here, as far as it can come.
func (c *HostController) spooled(ctx context.Context, session string) {
	c.mu.Lock()
	done := c.spools[session]
	delete(c.spools, session)
	c.mu.Unlock()
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

// kept opens the output of a session that has run on another host.
func (c *HostController) kept(session string, offset int64) (io.ReadCloser, error) {
	file, err := os.Open(c.outputFile(session))
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
