// Package offline reads a workspace where no daemon runs.
//
// It opens a copy of the journal, lets the engine make the same views of it, and serves them
// through the API's own handlers inside of this process. Nothing in the workspace is written,
// locked or started, so it also works in the sandbox of an agent.
//
// The one promise: what a read command prints without a daemon comes from the same code as with one.
package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/fairlead-dev/fairlead/api/server"

	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/search"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// ErrNoJournal says that no daemon has ever run in a workspace.
var ErrNoJournal = errors.New("there is no journal")

// Reader answers requests as a daemon would, as of the last change in the journal.
type Reader struct {
	*apiclient.Client
	AsOf time.Time // of the last change; zero: there is none

	close []func() error
}

// Open opens the journal of a workspace to read it. The error is ErrNoJournal if there is none.
func Open(ctx context.Context, conf *config.Config, drivers map[string]driver.Driver) (_ *Reader, err error) {
	r := &Reader{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	j, done, err := Journal(ctx, conf.Dir)
	if err != nil {
		return r, err
	}
	r.close = append(r.close, done)
	for ch, err := range j.Read(ctx, last(ctx, j)) {
		if err != nil {
			return r, err
		}
		r.AsOf = ch.Time
	}
	e, end, err := read(ctx, conf, drivers, j, time.Time{})
	if err != nil {
		return r, err
	}
	r.close = append(r.close, end)
	index, err := search.OpenReadOnly(filepath.Join(conf.Dir, ".fairlead", "search.db"))
	if err != nil {
		index = nil // a search says that there is none; the other commands do not need it
	} else {
		r.close = append(r.close, index.Close)
	}
	server := server.New(server.Options{Engine: e, Dir: conf.Dir, Store: "sqlite", Search: index, Past: Past(conf, drivers, j)})
	r.close = append(r.close, server.Close)
	r.Client = apiclient.ReadFrom(conf.Dir, server.SocketHandler())
	return r, nil
}

// Past opens the team as it was at a moment of a journal; see server.Options.
func Past(conf *config.Config, drivers map[string]driver.Driver,
	j journal.Journal,
) func(context.Context, server.Moment) (*app.App, func() error, error) {
	return func(ctx context.Context, at server.Moment) (*app.App, func() error, error) {
		then, _, err := journal.Until(ctx, j, at.Seq)
		if err != nil {
			return nil, nil, err
		}
		return read(ctx, conf, drivers, then, at.Time)
	}
}

// read answers from a journal, now or as of an earlier moment, until the function that it returns is called.
func read(ctx context.Context, conf *config.Config, drivers map[string]driver.Driver, j journal.Journal, at time.Time) (*app.App,
	func() error, error,
) {
	shims := filepath.Join(conf.Dir, ".fairlead", "sessions")
	e, err := app.OpenReadOnly(ctx, outside.Options{
		Name: filepath.Base(conf.Dir), Config: conf, Journal: j, Drivers: drivers, Lookup: os.LookupEnv, BootID: workspace.BootID(),
		Host: &sessions.Shims{Folder: shims, Workspace: conf.Dir}, Log: slog.New(slog.DiscardHandler),
		Look: app.DiskObserver{Folder: shims}.Proof, At: at,
	})
	if err != nil {
		return nil, nil, err
	}
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- e.RunReads(reading) }()
	return e, func() error { stop(); return <-ended }, nil
}

// Close removes the copy of the journal.
func (r *Reader) Close() error {
	var errs []error
	for i := len(r.close) - 1; i >= 0; i-- {
		errs = append(errs, r.close[i]())
	}
	r.close = nil
	return errors.Join(errs...)
}

func last(ctx context.Context, j journal.Journal) journal.Query {
	head, _, err := j.Head(ctx)
	if err != nil || head == 0 {
		return journal.Query{} // reading it reports the same error
	}
	return journal.Query{After: head - 1}
}

// Journal opens a copy of the journal of a workspace. SQLite writes files beside a database even
// where it only reads, and reading must leave no trace. done removes the copy. The error is
// ErrNoJournal if there is none.
func Journal(ctx context.Context, dir string) (_ journal.Journal, done func() error, err error) {
	path, err := filepath.Abs(filepath.Join(dir, ".fairlead", "journal.db"))
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrNoJournal
	}
	folder, err := os.MkdirTemp("", "fairlead-read-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for a copy of the journal: %w; set TMPDIR to a folder with space", err)
	}
	remove := func() error { return os.RemoveAll(folder) }
	to := filepath.Join(folder, "journal.db")
	if err := copyJournal(ctx, path, to); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	// What is archived stays where it is, and the archive only grows: the copy refers to it.
	if err := os.Symlink(path+sqlite.ArchiveTail, to+sqlite.ArchiveTail); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	j, err := sqlite.Open(ctx, to)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read a copy of %s: %w", path, err), remove())
	}
	return j, func() error { return errors.Join(j.Close(), remove()) }, nil
}

const (
	copyTries = 5                     // a daemon rarely checkpoints its log; five times in a row means a fault
	copyPause = 50 * time.Millisecond // between two attempts
)

// copyJournal copies the database and its write-ahead log. SQLite appends changes to the log, and
// moves them into the database at times; a copy is whole if that did not happen meanwhile. A log
// that only grew is fine: SQLite reads it up to the last whole change.
func copyJournal(ctx context.Context, from, to string) error {
	for range copyTries {
		before := generation(from)
		for _, tail := range []string{"", "-wal"} {
			err := copyFile(from+tail, to+tail)
			if err != nil && (tail == "" || !errors.Is(err, fs.ErrNotExist)) {
				return fmt.Errorf("copy the journal: %w; set TMPDIR to a folder with space", err)
			}
		}
		if generation(from) == before {
			return nil
		}
		timer := time.NewTimer(copyPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return fmt.Errorf("%s changes too fast to be copied: a daemon has just started; ask it with `fairlead ps`", from)
}

const walHeaderBytes = 32 // it contains salts, which change when the log restarts

// generation changes when the database is written, or its log begins anew.
func generation(path string) string {
	said := ""
	if info, err := os.Stat(path); err == nil {
		said = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	}
	wal, err := os.Open(path + "-wal")
	if err != nil {
		return said
	}
	defer wal.Close()
	header := make([]byte, walHeaderBytes)
	n, _ := io.ReadFull(wal, header) // an empty log has none
	return said + string(bytes.TrimRight(header[:n], "\x00"))
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}
