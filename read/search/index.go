package search

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// BytesMax is the size of the file at which the oldest passages are dropped: about 3 GB of text.
	BytesMax = 4 << 30

	formatVersion = 2          // in user_version: a file of another version is begun anew
	applicationID = 0x464c5358 // FLSX: this file is an index of Fairlead
	busyWait      = 5 * time.Second
	readersMax    = 3 // searches at a time; others wait for their turn

	// shardPassages is how many passages have their words in one table: about 32 MB of output. With fewer,
	// a rare word is looked up in more tables; with more, a common one takes longer in the first.
	shardPassages = 1 << 14
)

// schema is the file. Ids of passages rise in the order in which they are added, which is that of
// time, roughly. The words of shardPassages passages are in a table of their own, words_N: a search
// reads the newest table first and ends when it has enough, and the oldest one is dropped as a whole.
const schema = `
CREATE TABLE position (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL, time INTEGER NOT NULL, dropped INTEGER NOT NULL DEFAULT 0, reach INTEGER NOT NULL DEFAULT 0);
INSERT INTO position (id, seq, hash, time) VALUES (1, 0, '', 0);
CREATE TABLE place (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, entity TEXT NOT NULL, part TEXT NOT NULL, agent TEXT NOT NULL, UNIQUE (kind, entity, part, agent));
CREATE TABLE source (id TEXT PRIMARY KEY, agent TEXT NOT NULL, driver TEXT NOT NULL, time INTEGER NOT NULL, read INTEGER NOT NULL, open INTEGER NOT NULL, file TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX source_open ON source (open) WHERE open = 1;
CREATE TABLE passage (id INTEGER PRIMARY KEY, time INTEGER NOT NULL, place INTEGER NOT NULL, at INTEGER NOT NULL, text BLOB NOT NULL, lines BLOB NOT NULL);
CREATE INDEX passage_time ON passage (time);
CREATE INDEX passage_file ON passage (place) WHERE at < 0;
`

// Position is how far the index has followed the journal.
type Position struct {
	Seq     uint64
	Hash    string    // of that change
	Time    time.Time // of that change
	Dropped int64     // passages that were dropped because the file had reached its limit
	Reach   time.Time // the time of the newest passage that was dropped; zero: none
}

// Source is a session's output, or a file, and how far it was read.
type Source struct {
	ID     string
	Agent  string
	Driver string
	File   string    // the folder, for a source that is no session
	Time   time.Time // when it began; for output, when the last report of usage came
	Read   int64     // bytes
	Open   bool      // more may come
}

// Batch is what is added in one transaction.
type Batch struct {
	Passages []Passage
	Replace  []Place // places by kind and entity; their passages from files are removed first
	Position *Position
	Sources  []Source
}

// Index is the file. It is safe for concurrent use; batches are added by one goroutine.
type Index struct {
	path    string
	limit   int64
	damaged atomic.Bool
	fault   atomic.Pointer[error] // why it is not open

	mu    sync.RWMutex // held to use the connections; Reset replaces them
	write *sql.DB
	read  *sql.DB
	words wordList
}

// ErrNone says that there is no index.
var ErrNone = errors.New("there is no search index")

// New returns an index that is not open yet: Repair opens it. limit is BytesMax, except in tests.
func New(path string, limit int64) *Index {
	x := &Index{path: path, limit: limit}
	x.fault.Store(&errClosed)
	return x
}

// Repair opens the index to write it if it is not open, and begins it anew if there is none, if it is
// damaged, or if another version wrote it. anew reports whether the position may have changed.
func (x *Index) Repair() (anew bool, err error) {
	x.mu.RLock()
	open := x.read != nil
	x.mu.RUnlock()
	if open && !x.damaged.Load() {
		return false, nil
	}
	if !open {
		x.mu.Lock()
		err = x.open()
		if err != nil {
			err = errors.Join(err, x.close())
		}
		x.mu.Unlock()
	}
	if open || unusable(err) {
		err = x.Reset()
	}
	if err != nil {
		x.fault.Store(&err)
	}
	return true, err
}

// OpenReadOnly opens an index that no daemon writes, and writes nothing beside it. The error is
// ErrNone if there is none.
func OpenReadOnly(path string) (*Index, error) {
	x := &Index{path: path}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	db, err := connect(path, url.Values{"mode": {"ro"}, "immutable": {"1"}}, readersMax, "query_only(1)")
	if err != nil {
		return nil, err
	}
	x.read = db
	if err := x.check(db); err != nil {
		err = fmt.Errorf("%s cannot be read: %w; `fairlead up` builds it again", path, err)
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

var errVersion = errors.New("another version of Fairlead wrote it")

// damaged reports whether SQLite found the file damaged.
func damaged(err error) bool {
	code := codeOf(err)
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB || errors.Is(err, errPassage)
}

// unusable reports whether a file that was just opened has to be begun anew. There, SQLITE_ERROR
// means that a table or a column is missing.
func unusable(err error) bool {
	return damaged(err) || codeOf(err) == sqlite3.SQLITE_ERROR || errors.Is(err, errVersion)
}

func codeOf(err error) int {
	if fault, ok := errors.AsType[*sqlite.Error](err); ok {
		return fault.Code() & 0xff
	}
	return 0
}

func connect(path string, q url.Values, most int, pragmas ...string) (*sql.DB, error) {
	for _, p := range append([]string{fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds()), "trusted_schema(0)", "cell_size_check(1)"},
		pragmas...) {
		q.Add("_pragma", p)
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

func (x *Index) open() (err error) {
	if info, err := os.Lstat(x.path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a plain file; remove it", x.path)
	}
	f, err := os.OpenFile(x.path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would make it readable for others
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if x.write, err = connect(x.path, url.Values{"_txlock": {"immediate"}}, 1, "journal_mode(wal)", "synchronous(normal)",
		"journal_size_limit(16777216)"); err != nil {
		return err
	}
	var tables int
	if err := x.write.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if tables == 0 {
		if _, err := x.write.Exec("BEGIN;" + schema +
			fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d; COMMIT", formatVersion, applicationID)); err != nil {
			return err
		}
	}
	if err := x.check(x.write); err != nil {
		return err
	}
	x.read, err = connect(x.path, url.Values{}, readersMax, "query_only(1)")
	return err
}

// check looks whether a file is an index of this version, and can be read.
func (x *Index) check(db *sql.DB) error {
	var version, id int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if err := db.QueryRow("PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if version != formatVersion || id != applicationID {
		return errVersion
	}
	var n int64
	if err := db.QueryRow("SELECT seq FROM position WHERE id = 1").Scan(&n); errors.Is(err, sql.ErrNoRows) {
		return errVersion
	} else if err != nil {
		return err
	}
	return nil
}

// Reset deletes the file and begins it anew.
func (x *Index) Reset() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.close() // of a damaged file; it goes away
	for _, tail := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(x.path + tail); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("begin the search index anew: %w; delete %s", err, x.path+tail)
		}
	}
	x.words.forget()
	x.damaged.Store(false)
	if err := x.open(); err != nil {
		return errors.Join(fmt.Errorf("begin the search index anew: %w", err), x.close())
	}
	return nil
}

// Close closes the file. The next start continues.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.write != nil {
		// so that a reader without a daemon needs one file; if it fails, the log stays
		_, _ = x.write.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	}
	return x.close()
}

func (x *Index) close() error {
	var errs []error
	for _, db := range []*sql.DB{x.read, x.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	x.read, x.write = nil, nil
	return errors.Join(errs...)
}

var errClosed = errors.New("the search index is not open yet; try again in a moment")

// using runs do with the connections open.
func (x *Index) using(do func() error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.read == nil {
		return &Unavailable{*x.fault.Load()}
	}
	err := do()
	if damaged(err) {
		x.damaged.Store(true)
	}
	return err
}

// Unavailable says why the index cannot be used now.
type Unavailable struct{ Why error }

func (u *Unavailable) Error() string { return "the search index cannot be used: " + u.Why.Error() }
func (u *Unavailable) Unwrap() error { return u.Why }

// Damaged reports whether a use of the index found it damaged; Repair begins it anew.
func (x *Index) Damaged() bool { return x.damaged.Load() }

// Position returns how far the index has followed the journal.
func (x *Index) Position(ctx context.Context) (p Position, err error) {
	err = x.using(func() error { p, err = position(ctx, x.read); return err })
	return p, err
}

func position(ctx context.Context, db *sql.DB) (p Position, err error) {
	var at, reach int64
	err = db.QueryRowContext(ctx, "SELECT seq, hash, time, dropped, reach FROM position WHERE id = 1").Scan(&p.Seq, &p.Hash, &at,
		&p.Dropped, &reach)
	p.Time = timeOf(at)
	p.Reach = timeOf(reach)
	return p, err
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func msOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Source returns a source by its id. ok is false if there is none.
func (x *Index) Source(ctx context.Context, id string) (s Source, ok bool, err error) {
	list, err := x.sources(ctx, "WHERE id = ?", id)
	if len(list) == 1 {
		return list[0], true, err
	}
	return s, false, err
}

// OpenSources returns the sources that may grow, by id.
func (x *Index) OpenSources(ctx context.Context) ([]Source, error) {
	return x.sources(ctx, "WHERE open = 1 ORDER BY id")
}

func (x *Index) sources(ctx context.Context, where string, args ...any) (list []Source, err error) {
	err = x.using(func() error {
		//nolint:gosec // the conditions are constants
		rows, err := x.read.QueryContext(ctx, "SELECT id, agent, driver, file, time, read, open FROM source "+where, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var s Source
			var at int64
			if err := rows.Scan(&s.ID, &s.Agent, &s.Driver, &s.File, &at, &s.Read, &s.Open); err != nil {
				return err
			}
			s.Time = timeOf(at)
			list = append(list, s)
		}
		return rows.Err()
	})
	return list, err
}

// Add stores a batch, all of it or nothing. dropped is how many of the oldest passages were dropped
// because the file has reached its limit.
func (x *Index) Add(ctx context.Context, b Batch) (dropped int64, err error) {
	err = x.using(func() error {
		if err := x.add(ctx, b); err != nil {
			return err
		}
		dropped, err = x.drop(ctx)
		return err
	})
	return dropped, err
}

// Rest gives back the memory that adding has taken, some megabytes. The goroutine that adds calls it.
func (x *Index) Rest() {
	_ = x.using(func() error { // a fault shows in the next use
		x.words = wordList{}
		for _, db := range []*sql.DB{x.read, x.write} {
			if _, err := db.Exec("PRAGMA shrink_memory"); err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *Index) add(ctx context.Context, b Batch) error {
	tx, err := x.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := x.store(tx, b); err != nil {
		x.words.forget() // places of this transaction do not exist
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		x.words.forget()
		return err
	}
	return nil
}

// store writes a batch. The context ends transactions, not statements, so that none is half done.
func (x *Index) store(tx *sql.Tx, b Batch) error {
	for _, p := range b.Replace {
		if err := remove(tx, p); err != nil {
			return err
		}
	}
	passage, err := tx.Prepare("INSERT INTO passage (time, place, at, text, lines) VALUES (?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer passage.Close()
	var words *sql.Stmt
	shard := int64(-1)
	defer func() {
		if words != nil {
			words.Close()
		}
	}()
	for i := range b.Passages {
		p := &b.Passages[i]
		place, err := x.words.place(tx, p.Place)
		if err != nil {
			return err
		}
		text, err := x.words.pack(p.Text)
		if err != nil {
			return err
		}
		made, err := passage.Exec(msOf(p.Time), place, p.At, text, p.packLines())
		if err != nil {
			return err
		}
		id, err := made.LastInsertId()
		if err != nil {
			return err
		}
		if n := id / shardPassages; n != shard {
			if words != nil {
				words.Close()
			}
			if words, err = openShard(tx, n); err != nil {
				return err
			}
			shard = n
		}
		if _, err := words.Exec(id, x.words.terms(p)); err != nil {
			return err
		}
	}
	for _, s := range b.Sources {
		if _, err := tx.Exec("INSERT OR REPLACE INTO source (id, agent, driver, file, time, read, open) VALUES (?, ?, ?, ?, ?, ?, ?)", s.ID,
			s.Agent, s.Driver, s.File, msOf(s.Time), s.Read, s.Open); err != nil {
			return err
		}
	}
	if p := b.Position; p != nil {
		if _, err := tx.Exec("UPDATE position SET seq = ?, hash = ?, time = ?", int64(p.Seq), p.Hash,
			msOf(p.Time)); err != nil { //nolint:gosec // a journal has no 2^63 changes
			return err
		}
	}
	return nil
}

func wordsTable(shard int64) string { return fmt.Sprintf("words_%d", shard) }

// openShard makes the table of a shard, if there is none, and prepares writing into it.
func openShard(tx *sql.Tx, n int64) (*sql.Stmt, error) {
	name := wordsTable(n)
	if _, err := tx.Exec("CREATE VIRTUAL TABLE IF NOT EXISTS " + name +
		" USING fts5 (w, content='', columnsize=0, detail=none, tokenize='ascii')"); err != nil {
		return nil, err
	}
	return tx.Prepare("INSERT INTO " + name + " (rowid, w) VALUES (?, ?)")
}

// remove removes the passages of a place that came from files. Their words stay until the shard is
// dropped, and lead nowhere.
func remove(tx *sql.Tx, p Place) error {
	_, err := tx.Exec("DELETE FROM passage WHERE at < 0 AND place IN (SELECT id FROM place WHERE kind = ? AND entity = ?)", p.Kind,
		p.Entity)
	return err
}

// used is the size of what is stored.
func used(ctx context.Context, db *sql.DB) (int64, error) {
	var pages, free, size int64
	err := db.QueryRowContext(ctx,
		"SELECT (SELECT page_count FROM pragma_page_count), (SELECT freelist_count FROM pragma_freelist_count), (SELECT page_size FROM pragma_page_size)").Scan(&pages, &free, &size)
	return (pages - free) * size, err
}

// drop removes the oldest shard if the file has reached its limit. The file does not shrink; its free
// pages are used again. The newest shard stays.
func (x *Index) drop(ctx context.Context) (dropped int64, err error) {
	n, err := used(ctx, x.write)
	if err != nil || n <= x.limit {
		return 0, err
	}
	first, last, err := shards(ctx, x.write)
	if err != nil || first >= last {
		return 0, err
	}
	tx, err := x.write.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	if dropped, err = dropShard(tx, first); err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	return dropped, tx.Commit()
}

// shards are the first and the last shard; first > last: there is none.
func shards(ctx context.Context, db *sql.DB) (first, last int64, err error) {
	err = db.QueryRowContext(ctx,
		"SELECT coalesce((SELECT min(id) FROM passage), ?1) / ?1, coalesce((SELECT max(id) FROM passage), 0) / ?1",
		shardPassages).Scan(&first, &last)
	return first, last, err
}

func dropShard(tx *sql.Tx, n int64) (int64, error) {
	from, to := n*shardPassages, (n+1)*shardPassages-1
	var reach sql.NullInt64
	if err := tx.QueryRow("SELECT max(time) FROM passage WHERE id BETWEEN ? AND ?", from, to).Scan(&reach); err != nil {
		return 0, err
	}
	if _, err := tx.Exec("DROP TABLE IF EXISTS " + wordsTable(n)); err != nil {
		return 0, err
	}
	gone, err := tx.Exec("DELETE FROM passage WHERE id BETWEEN ? AND ?", from, to)
	if err != nil {
		return 0, err
	}
	count, err := gone.RowsAffected()
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec("UPDATE position SET dropped = dropped + ?, reach = max(reach, ?)", count, reach.Int64)
	return count, err
}

// kindTerm and agentTerm are terms that no text has, because they begin with a character of the
// private area, which is no letter.
func kindTerm(kind string) string   { return "\ue000" + kind }
func agentTerm(agent string) string { return "\ue001" + hex.EncodeToString([]byte(agent)) }

func anyOf(list []string, term func(string) string) string {
	all := slices.Clone(list)
	for i := range all {
		all[i] = quoted(term(all[i]))
	}
	return "(" + strings.Join(all, " OR ") + ")"
}
