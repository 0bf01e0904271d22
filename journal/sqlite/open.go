package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
)

const (
	applicationID = 0x46414952 // "FAIR" in the file's header: distinguishes a journal from other databases

	busyWait = 50 * time.Millisecond // SQLite's own wait for a lock; then the context is checked before trying again
	lockWait = 10 * time.Second      // total wait: another process that holds the lock for longer hangs

	readersMax = 4 // concurrent reading connections; more readers take turns, one chunk at a time

	rowBytesKept = 1 << 20 // a buffer that grew beyond this for one batch is released

	walBytesKept = 16 << 20 // a log that grew beyond this is truncated again

	// sqliteOldest has the fix for the WAL reset race, which could damage a file with several writers.
	sqliteOldest = "3.51.3"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Journal is a handle on one file. Its methods may be called from many goroutines.
type Journal struct {
	path string
	file os.FileInfo // what lay at path when it was opened for writing
	how  access      // of the readers' connections; readOnly has no writer
	bell journal.Bell

	writer *conn         // only used by the goroutine that may write
	tail   tail          // likewise
	row    []byte        // likewise: the data of the row to insert
	ids    []changeIDs   // likewise: of the names in the batch
	link   *journal.Hash // likewise: the hash that the batch must end with, or nil
	log    int64         // likewise: the size of SQLite's log, with the zeros at its end
	pen    chan struct{}

	readers chan *conn    // idle ones
	slots   chan struct{} // one for each that may exist

	watch watching

	damaged atomic.Bool // a reader has found a damaged change: nothing more is written, not even by Close

	closed chan struct{}
	once   sync.Once
	life   sync.RWMutex // read-locked by users of a connection, locked by Close
}

var _ journal.Journal = (*Journal)(nil)

// Open opens the journal at path and creates it if necessary; the folder must exist. A file that is
// damaged, is not a journal, or was written by a newer Fairlead is refused with an *Unusable that
// says what to do, and is not changed.
func Open(ctx context.Context, path string) (*Journal, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", path, err)
	}
	if err := lookBeside(abs); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := checkLog(abs); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := create(abs); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if info, err := os.Stat(abs + "-wal"); err == nil && info.Size() > 0 {
		done := leaveAsIs(abs)
		defer done()
	}
	w, err := dial(abs, readWrite)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", explain(abs, err))
	}
	if err := prepare(ctx, w); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", explain(abs, err)), w.close())
	}
	j := handle(abs, readWrite)
	j.writer = w
	if j.file, err = os.Stat(abs); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), j.Close())
	}
	if err := j.checkTail(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", explain(abs, err)), j.Close())
	}
	return j, nil
}

// handle gives a Journal that has no writer yet.
func handle(path string, how access) *Journal {
	return &Journal{
		path:    path,
		how:     how,
		pen:     make(chan struct{}, 1),
		readers: make(chan *conn, readersMax),
		slots:   make(chan struct{}, readersMax),
		closed:  make(chan struct{}),
	}
}

// createMu prevents two Opens of one process from running create at the same time: the second one's
// connection would lose its locks when the first closes the new file.
var createMu sync.Mutex

// create makes an empty file that only its owner can read; SQLite gives its log the same
// permissions. An existing file is not touched, not even opened.
func create(path string) error {
	createMu.Lock()
	defer createMu.Unlock()
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: make the folder %s first", err, filepath.Dir(path))
	case err != nil:
		return fmt.Errorf("%w: the folder must be writable", err)
	}
	return f.Close()
}

// lookBeside refuses a log without its database: SQLite would delete the log, and with it the last
// changes. It only checks names and sizes.
func lookBeside(path string) error {
	wal, err := os.Stat(path + "-wal")
	if err != nil || wal.Size() == 0 {
		return nil //nolint:nilerr // there is none, or nothing in it: nothing can be lost
	}
	db, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Unusable{Path: path, What: "the file is missing, but its log " + filepath.Base(path) + "-wal is there", Do: "put the file back beside the log; to start a new journal move the log away"}
	case err == nil && db.Size() == 0:
		return &Unusable{Path: path, What: "the file is empty, but its log " + filepath.Base(path) + "-wal is not", Do: "put the file back beside the log; to start a new journal move both away"}
	}
	return nil
}

// prepare brings a connection's file to the state that the code expects.
func prepare(ctx context.Context, w *conn) error {
	version, err := w.word("SELECT sqlite_version()")
	if err != nil {
		return err
	}
	if older(version, sqliteOldest) {
		return fmt.Errorf("this program was built with SQLite %s, older than %s: build it with the modules that go.mod names", version, sqliteOldest)
	}
	return patiently(ctx, func() error {
		if err := identify(w); err != nil {
			return err
		}
		mode, err := w.word("PRAGMA journal_mode = wal")
		if err != nil {
			return err
		}
		if mode != "wal" {
			return fmt.Errorf("journal mode is %q, not wal: the file must lie on a local file system", mode)
		}
		if err := w.script(fmt.Sprintf("PRAGMA journal_size_limit = %d", walBytesKept)); err != nil {
			return err
		}
		return migrate(w)
	})
}

// identify refuses a file that is not a journal, before anything is written.
func identify(w *conn) error {
	id, _, err := w.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	have, _, err := w.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	tables, _, err := w.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	if id != applicationID && (id != 0 || have != 0 || tables != 0) {
		return &Unusable{What: "this is a database, but not a journal of Fairlead", Do: "give another path; the file was not touched"}
	}
	want := int64(len(migrations()))
	if have > want {
		return &Unusable{What: fmt.Sprintf("it has format %d and this program knows none beyond %d: it was written by a newer Fairlead", have, want), Do: "use that one, or a copy of the file from before"}
	}
	return nil
}

func migrations() []string {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		panic("sqlite: bad pattern for migrations: " + err.Error())
	}
	return names // in order: Glob sorts
}

// migrate applies the missing migrations, all in one transaction.
func migrate(w *conn) (err error) {
	names := migrations()
	if have, _, err := w.number("PRAGMA user_version"); err != nil || have == int64(len(names)) {
		return err
	}
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.exec("ROLLBACK"))
		}
	}()
	have, _, err := w.number("PRAGMA user_version") // again: another process may have been faster
	if err != nil {
		return err
	}
	for i := int(have); i < len(names); i++ {
		text, err := migrationFiles.ReadFile(names[i])
		if err != nil {
			return err
		}
		if err := w.script(string(text)); err != nil {
			return fmt.Errorf("migration %s: %w", filepath.Base(names[i]), err)
		}
		if filepath.Base(names[i]) == "002.sql" {
			if err := carryOver(w); err != nil {
				return err
			}
		}
	}
	if err := w.script(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(names))); err != nil {
		return err
	}
	return w.exec("COMMIT")
}

// patiently repeats an operation that found the file locked by another process, until the lock is
// free or the wait is over.
func patiently(ctx context.Context, do func() error) error {
	const rest = 2 * time.Millisecond // SQLite has waited before; this only lets others in
	pause := time.NewTicker(rest)
	defer pause.Stop()
	deadline := time.Now().Add(lockWait)
	for {
		err := do()
		if !busy(err) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("another process has held the journal's lock for %s: end it, then try again: %w", lockWait, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
		}
	}
}

// older compares versions like 3.51.3 by their numbers.
func older(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, errX := strconv.Atoi(as[i])
		y, errY := strconv.Atoi(bs[i])
		if errX != nil || errY != nil || x != y {
			return x < y
		}
	}
	return len(as) < len(bs)
}
