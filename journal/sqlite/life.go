package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/fairlead-dev/fairlead/journal"
	sqlite "modernc.org/sqlite"
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
	dsn := (&url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro"}).String() // settings would read the tables' names
	dc, err := new(sqlite.Driver).Open(dsn)
	if err != nil {
		return func() {} // then nothing else can open it either
	}
	c := &conn{dc: dc, stmts: map[string]statement{}}
	_, _, _ = c.number("PRAGMA user_version") // or it would not hold on to the log
	return func() { _ = c.close() }
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
			errs = append(errs, j.writer.close())
		}
		for {
			select {
			case c := <-j.readers:
				errs = append(errs, c.close())
				continue
			default:
			}
			break
		}
		if e := errors.Join(errs...); e != nil {
			err = fmt.Errorf("close journal: %w", explain(j.path, e))
		}
	})
	return err
}

// Rest gives back the memory that reading and writing have taken: the idle readers, what the writer has of the file, and
// the buffer of a large batch. What comes next takes it again.
func (j *Journal) Rest() {
	j.life.RLock()
	defer j.life.RUnlock()
	if j.isClosed() {
		return
	}
	for range len(j.readers) {
		select {
		case c := <-j.readers:
			_ = c.close() // it has only read
			<-j.slots
		default:
		}
	}
	select {
	case j.pen <- struct{}{}:
		j.row = nil
		if j.writer != nil {
			clear(j.writer.args[:cap(j.writer.args)]) // the row was one of them
			_ = j.writer.exec("PRAGMA shrink_memory") // a cache: the next append works with it and without
		}
		<-j.pen
	default: // it is not at rest
	}
}
