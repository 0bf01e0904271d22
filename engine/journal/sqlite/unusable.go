package sqlite

import (
	"errors"
	"fmt"
	"io/fs"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Unusable is the error for a file that cannot be used as it is (damaged, not a journal, or newer
// than this program). It says what a person can do. The file was not changed.
type Unusable struct {
	Path string
	What string
	Do   string
	Err  error // what SQLite said; nil where we found it ourselves
}

func (d *Unusable) Error() string {
	said := ""
	if d.Err != nil {
		said = " (" + d.Err.Error() + ")"
	}
	return fmt.Sprintf("%s: %s%s; %s", d.Path, d.What, said, d.Do)
}

func (d *Unusable) Unwrap() error { return d.Err }

// code is SQLite's primary result code of an error, 0 where it is none of SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

func busy(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

const rescue = "stop what uses it, copy the file and its -wal aside, then restore a backup or move them away to start anew"

// explain adds to SQLite's error what it means here and what to do.
func explain(path string, err error) error {
	var d *Unusable
	if errors.As(err, &d) {
		if d.Path == "" {
			d.Path = path
		}
		return err
	}
	switch code(err) {
	case sqlite3.SQLITE_NOTADB:
		return &Unusable{path, "this is not a database, or its first page is damaged", rescue, err}
	case sqlite3.SQLITE_CORRUPT:
		return &Unusable{path, "the database is damaged", rescue, err}
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%s: no space left on device; free some and restart, nothing was lost: %w", path, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%s: %w: %w; make the file and its folder writable", path, fs.ErrPermission, err)
	case sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("%s: %w; the path must be a file in a folder that can be read and written", path, err)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%s: %w; look at the disk's health and the system's log, then restart", path, err)
	case 0:
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}
