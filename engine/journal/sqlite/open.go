package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

const (
	applicationID = 0x46414952 // "FAIR" in the file's header: distinguishes a journal from other databases
	formatVersion = 8          // of the tables in schema.sql and of the records in them; a file with another one is refused

	busyWait = 50 * time.Millisecond // SQLite's own wait for a lock; then the context is checked before trying again
	lockWait = 10 * time.Second      // total wait: another process that holds the lock for longer hangs

	readersMax = 4 // concurrent reading connections; more readers take turns, one chunk at a time

	walBytesKept = 16 << 20 // a log that grew beyond this is truncated again

	// What a connection keeps of the file; in memory it is twice as much. What is left out is in the system's cache. A batch of
	// hundreds of changes fits in that of the writer: without room, its pages are written twice.
	cacheKiB       = 64
	writerCacheKiB = 1024

	// sqliteOldest has the fix for the WAL reset race, which could damage a file with several writers.
	sqliteOldest = "3.51.3"
)

//go:embed schema.sql
var schema string

// Journal is a handle on one file. Its methods may be called from many goroutines.
type Journal struct {
	path     string
	file     os.FileInfo // what lay at path when it was opened for writing
	notifier journal.Notifier

	writer *sql.DB       // one connection; nil: the journal is only read
	insert *sql.Stmt     // of the writer
	head   *sql.Stmt     // likewise
	tail   tail          // only used by the goroutine that has the turn
	turn   chan struct{} // has room for one

	readers *sql.DB

	watch watching

	damaged atomic.Bool // a reader has found a damaged change: nothing more is written, not even by Close

	closed chan struct{}
	once   sync.Once
	life   sync.RWMutex // read-locked by users of a connection, locked by Close
}

var _ journal.Journal = (*Journal)(nil)

// access is how a connection may use the file.
type access string

const (
	readWrite access = "rw"
	readOnly  access = "ro"
)

// dial returns connections to a file, at most so many. They are made when they are needed. The path must be absolute.
func dial(path string, how access, most, cache int, pragmas ...string) *sql.DB {
	q := url.Values{"mode": {string(how)}, "_error_rc": {"1"}, "_txlock": {"immediate"}}
	for _, p := range append([]string{
		fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds()),
		"synchronous(FULL)",
		fmt.Sprintf("cache_size(-%d)", cache),
		"cell_size_check(1)", // a damaged page is noticed when it is loaded
		"trusted_schema(0)",  // the file may come from somewhere else
	}, pragmas...) {
		q.Add("_pragma", p)
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		panic("sqlite: the driver is not there: " + err.Error())
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db
}

// Open opens the journal at path and creates it if necessary; the folder must exist. A file that is
// damaged, is not a journal, or has another format is refused with an *Unusable that says what to do, and is not changed.
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
	j := handle(abs, readWrite)
	j.writer = dial(abs, readWrite, 1, writerCacheKiB)
	if err := prepare(ctx, j.writer); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", explain(abs, err)), j.Close())
	}
	j.insert, err = j.writer.Prepare(insertChange)
	if err == nil {
		j.head, err = j.writer.Prepare(selectHead)
	}
	if err == nil {
		j.file, err = os.Stat(abs)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", explain(abs, err)), j.Close())
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
		turn:    make(chan struct{}, 1),
		readers: dial(path, how, readersMax, cacheKiB, "query_only(1)"),
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

// lookBeside refuses a log or an archive without its database: SQLite would delete the log, and with it the last
// changes, and Compact overwrite the archive. It only checks names and sizes.
func lookBeside(path string) error {
	db, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if !missing && (err != nil || db.Size() > 0) {
		return nil //nolint:nilerr // opening it reports the same error
	}
	for _, tail := range []string{"-wal", ArchiveTail} {
		name := filepath.Base(path) + tail
		switch beside, err := os.Stat(path + tail); {
		case err != nil || beside.Size() == 0: // nothing can be lost
		case missing:
			return &Unusable{
				Path: path, What: "the file is missing, but " + name + " is there",
				Do: "put the file back beside it; to start a new journal move " + name + " away",
			}
		default:
			return &Unusable{
				Path: path, What: "the file is empty, but " + name + " is not",
				Do: "put the file back beside it; to start a new journal move both away",
			}
		}
	}
	return nil
}

// prepare makes sure that the file has the tables.
func prepare(ctx context.Context, w *sql.DB) error {
	return patiently(ctx, func() error {
		if err := identify(w); err != nil {
			return err
		}
		var mode string
		if err := w.QueryRow("PRAGMA journal_mode = wal").Scan(&mode); err != nil {
			return err
		}
		if mode != "wal" {
			return fmt.Errorf("journal mode is %q, not wal: the file must lie on a local file system", mode)
		}
		if _, err := w.Exec(fmt.Sprintf("PRAGMA journal_size_limit = %d", walBytesKept)); err != nil {
			return err
		}
		tx, err := w.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // it does nothing after Commit
		var have int
		if err := tx.QueryRow("PRAGMA user_version").Scan(&have); err != nil || have == formatVersion {
			return err // another process may have been faster
		}
		numbers := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, formatVersion)
		if _, err := tx.Exec(schema + numbers); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// querier is an *sql.DB or an *sql.Tx.
type querier interface {
	Query(query string, args ...any) (*sql.Rows, error)
	QueryRow(query string, args ...any) *sql.Row
}

// identify refuses a file that is not a journal of this format, before anything is written. An empty file is one.
func identify(w querier) error {
	var version string
	var id, have, tables int
	err := w.QueryRow(`SELECT sqlite_version(), (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).Scan(&version, &id, &have, &tables)
	switch {
	case err != nil:
		return err
	case older(version, sqliteOldest):
		return fmt.Errorf("this program was built with SQLite %s, older than %s: build it with the modules that go.mod names",
			version, sqliteOldest)
	case id == 0 && have == 0 && tables == 0:
		return nil
	case id != applicationID:
		return &Unusable{What: "this is a database, but not a journal of Fairlead", Do: "give another path; the file was not touched"}
	case have != formatVersion:
		return &Unusable{
			What: fmt.Sprintf("it has format %d, and this program knows only format %d: another version of Fairlead has written it",
				have, formatVersion),
			Do: "use that version, or move the file and those beside it (-wal, -shm, -archive) away to start a new journal; " +
				"agents' files and the branches of tasks stay as they are",
		}
	}
	return checkTables(w)
}

// checkTables compares the definitions in a file with those of schema.sql, which SQLite keeps as they were written: a flipped bit in
// them need not be an error.
func checkTables(w querier) error {
	rows, err := w.Query("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
	if err != nil {
		return err
	}
	defer rows.Close()
	found := 0
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if strings.Contains(schema, text) {
			found++
		}
	}
	if err := rows.Err(); err != nil || found == strings.Count(schema, "\nCREATE ") {
		return err
	}
	return &Unusable{What: "the definitions of its tables are damaged", Do: rescue}
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
