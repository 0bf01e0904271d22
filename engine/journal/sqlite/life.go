package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"github.com/fairlead-dev/fairlead/engine/journal"
	sqlite3 "modernc.org/sqlite/lib"
)

// tailChecked is how many changes Open checks at the end, where a crash or a full
// disk would have left its mark. The rest is checked when it is read.
const tailChecked = 256

// checkTail reads the end of the journal as a reader would.
func (j *Journal) checkTail(ctx context.Context) error {
	seq, _, err := j.Head(ctx)
	if err != nil {
		return err
	}
	for _, err := range j.Read(ctx, journal.Query{After: seq - min(seq, tailChecked)}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) isClosed() bool {
	select {
	case <-j.closed:
		return true
	default:
		return false
	}
}

// leaveAsIs keeps SQLite from putting the log into the file when its last connection closes:
// the last one is ours then, and may not write. What is damaged is for people to look at.
func leaveAsIs(path string) (done func()) {
	// Without settings: they would read the names of the tables.
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro"}).String())
	if err != nil {
		return func() {} // then nothing else can open it either
	}
	db.SetMaxOpenConns(1)
	_, _ = db.Exec("PRAGMA user_version") // or it would not hold on to the log
	return func() { _ = db.Close() }
}

// tails are the ends of the names of a journal's files, that of the journal itself last.
var tails = []string{"-wal", "-shm", ArchiveTail, ""}

// Move renames the files of a journal that is not open. If there is none, it does nothing.
func Move(from, to string) (moved bool, err error) {
	for _, tail := range tails {
		err := os.Rename(from+tail, to+tail)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		moved = err == nil
	}
	return moved, nil
}

// Remove removes the files of a journal that is not open.
func Remove(path string) error {
	for _, tail := range tails {
		if err := os.RemoveAll(path + tail); err != nil {
			return err
		}
	}
	return nil
}

// mark remembers that the file was found damaged.
func (j *Journal) mark(err error) error {
	var broken *journal.Broken
	if errors.As(err, &broken) || code(err) == sqlite3.SQLITE_CORRUPT || code(err) == sqlite3.SQLITE_NOTADB {
		j.damaged.Store(true)
	}
	return err
}

// Close waits for what is being written or read, then lets the file go. Watchers end
// with [journal.ErrClosed]. It may be called twice.
func (j *Journal) Close() (err error) {
	j.once.Do(func() {
		close(j.closed)
		j.life.Lock()
		defer j.life.Unlock()
		var errs []error
		if j.damaged.Load() {
			done := leaveAsIs(j.path)
			defer done()
		}
		if j.writer != nil {
			errs = append(errs, j.writer.Close())
		}
		errs = append(errs, j.readers.Close())
		if e := errors.Join(errs...); e != nil {
			err = fmt.Errorf("close journal: %w", explain(j.path, e))
		}
	})
	return err
}

// Rest gives back the memory that reading and writing have taken: the idle readers, and what the writer has of the file.
// What comes next takes it again.
func (j *Journal) Rest() {
	j.life.RLock()
	defer j.life.RUnlock()
	if j.isClosed() {
		return
	}
	j.readers.SetMaxIdleConns(0) // which closes them
	j.readers.SetMaxIdleConns(readersMax)
	select {
	case j.turn <- struct{}{}:
		_, _ = j.writer.Exec("PRAGMA shrink_memory") // a cache: the next append works with it and without
		<-j.turn
	default: // it is not at rest
	}
}
