package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	sqlite "modernc.org/sqlite"
)

// conn is one SQLite connection with its prepared statements. It speaks to the
// driver directly: database/sql would convert every column of every row once more.
// One goroutine at a time.
type conn struct {
	dc    driver.Conn
	stmts map[string]statement
	args  []driver.NamedValue
	names dictionary
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// access is how a connection may use the file.
type access string

const (
	readWrite access = "rw"
	readOnly  access = "ro"
)

// cacheKiB is what a connection keeps of the file; in memory it is twice as much. A reader passes over each page once, and
// an append changes the last pages; what is left out is in the system's cache. With SQLite's 2,000, a start took megabytes,
// and memory that SQLite's allocator has once had it keeps.
const cacheKiB = 64

// dial opens a connection. The path must be absolute.
func dial(path string, how access) (*conn, error) {
	q := url.Values{"mode": {string(how)}, "_error_rc": {"1"}}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds()))
	q.Add("_pragma", "synchronous(FULL)")
	q.Add("_pragma", fmt.Sprintf("cache_size(-%d)", cacheKiB))
	q.Add("_pragma", "cell_size_check(1)") // a damaged page is noticed when it is loaded
	q.Add("_pragma", "trusted_schema(0)")  // the file may come from somewhere else
	if how == readOnly {
		q.Add("_pragma", "query_only(1)")
	}
	dsn := (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
	dc, err := new(sqlite.Driver).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{dc: dc, stmts: map[string]statement{}}, nil
}

// prepared keeps one statement for each text; texts are constants of this package.
func (c *conn) prepared(text string) (statement, error) {
	if s, ok := c.stmts[text]; ok {
		return s, nil
	}
	ds, err := c.dc.Prepare(text)
	if err != nil {
		return nil, err
	}
	s := ds.(statement) // the driver's statements have always been both; another driver would be a bug
	c.stmts[text] = s
	return s, nil
}

func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs one statement to its end. Arguments are int64, string, []byte or nil.
func (c *conn) exec(text string, args ...any) error {
	s, err := c.prepared(text)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(context.Background(), c.bind(args))
	return err
}

// script runs several statements; they are not kept.
func (c *conn) script(text string) error {
	s, err := c.dc.Prepare(text)
	if err != nil {
		return err
	}
	_, err = s.(statement).ExecContext(context.Background(), nil)
	return errors.Join(err, s.Close())
}

// query calls each for every row until it says that it has enough. The values are
// valid during the call; byte slices may be kept.
func (c *conn) query(each func(row []driver.Value) (more bool, err error), text string, args ...any) (err error) {
	s, err := c.prepared(text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		more, err := each(row)
		if err != nil || !more {
			return err
		}
	}
}

// number gives the single integer of a query, or none where there is no row or NULL.
func (c *conn) number(text string, args ...any) (n int64, ok bool, err error) {
	err = c.query(func(row []driver.Value) (bool, error) {
		n, ok = row[0].(int64)
		return false, nil
	}, text, args...)
	return n, ok, err
}

// word gives the single text of a query.
func (c *conn) word(text string, args ...any) (s string, err error) {
	err = c.query(func(row []driver.Value) (bool, error) {
		s, _ = row[0].(string)
		return false, nil
	}, text, args...)
	return s, err
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.dc.Close())...)
}
