package sqlite

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// ArchiveTail is the end of the name of the archive, which begins with that of the journal.
const ArchiveTail = "-archive"

const (
	partChanges = 1024     // of a part: who wants one change reads a part, some milliseconds
	partMax     = 64 << 20 // bytes of its lines, which have chunkBytes of data, one change more, and escapes
	vacuumShare = 8        // the file is written anew if one part of so many is free
	lineEnd     = "\n"     // between the entities of a part
)

// Compacting says what Compact does.
type Compacting struct {
	Before time.Time // only changes before this time; the last change of all always stays
	Dry    bool      // change nothing
	Alone  bool      // no other process works with the journal, so the file can be written anew, without free pages
}

// Compacted is what Compact did, or would do.
type Compacted struct {
	Changes       uint64 // that were moved to the archive now
	Before, After int64  // bytes of their text, and in the archive
	Free          int64  // bytes in the file that the next changes will use
}

// Compact moves the changes of a journal before a time into its archive, where every reader finds them. Each part is one
// transaction, so Compact may be killed at any time. Another process may read and append meanwhile; its new changes stay.
func Compact(ctx context.Context, path string, how Compacting) (done Compacted, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("compact the journal: %w", err)
		}
	}()
	j, err := openToCompact(ctx, path, how.Dry)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	var head uint64 // changes that come meanwhile stay, or a busy writer would never let this end
	if err := j.reading(ctx, func(tx *sql.Tx) (err error) { head, _, err = headOf(tx); return err }); err != nil {
		return done, err
	}
	for next := uint64(1); next < head; {
		var p *part
		var packed []byte
		if err := j.reading(ctx, func(tx *sql.Tx) (err error) {
			p, packed, err = pack(tx, path, next, how.Before)
			return err
		}); err != nil {
			return done, err
		}
		if p == nil {
			break
		}
		if !how.Dry {
			if err := j.archive(ctx, p, packed); err != nil {
				return done, err
			}
		}
		next = p.last + 1
		done.Changes, done.Before, done.After = done.Changes+p.last-p.first+1, done.Before+p.text, done.After+p.size
	}
	if how.Dry {
		return done, nil
	}
	return done, j.shrink(ctx, how.Alone, &done)
}

func openToCompact(ctx context.Context, path string, dry bool) (*Journal, error) {
	if !dry {
		return Open(ctx, path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	j := handle(abs, readOnly)
	if err := j.reading(ctx, func(tx *sql.Tx) error { return identify(tx) }); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// part is a row of the table archive.
type part struct {
	first, last uint64
	hash        journal.Hash // of the change last
	place, size int64
	sum         [sha256.Size]byte
	entities    string
	text        int64 // bytes of its lines; not stored
}

// partFrom returns the first part with changes from one on; with an entity, the first that has it. nil: there is none.
func partFrom(tx *sql.Tx, seq uint64, entity string) (*part, error) {
	var p part
	var hash, sum []byte
	if entity != "" {
		entity = lineEnd + entity + lineEnd
	}
	err := tx.QueryRow(`SELECT first, last, hash, place, size, sum FROM archive
		WHERE last >= ?1 AND instr(entities, ?2) > 0 ORDER BY first LIMIT 1`, int64(seq), entity).Scan(&p.first, &p.last, &hash, &p.place,
		&p.size, &sum)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil && (copy(p.hash[:], hash) != len(p.hash) || copy(p.sum[:], sum) != len(p.sum)) {
		err = errors.New("a hash in it is too short")
	}
	return &p, ofRow(p.first, err)
}

// read gives the changes of a part, all of them checked.
func (p *part) read(tx *sql.Tx, path string) ([]journal.Change, error) {
	prev, err := hashOf(tx, path, p.first-1)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path + ArchiveTail)
	if err != nil {
		return nil, broken(p.first, "it is in the archive, which cannot be read: %v", err)
	}
	defer f.Close()
	packed := make([]byte, min(p.size, partMax))
	if _, err := f.ReadAt(packed, p.place); err != nil {
		return nil, broken(p.first, "it is in the archive %s, which cannot be read: %v", filepath.Base(f.Name()), err)
	}
	if sha256.Sum256(packed) != p.sum {
		return nil, broken(p.first, "its part of the archive %s is not what was written", filepath.Base(f.Name()))
	}
	return p.unpack(packed, prev)
}

// unpack reads the changes behind one with the hash prev.
func (p *part) unpack(packed []byte, prev journal.Hash) ([]journal.Change, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, broken(p.first, "its part of the archive cannot be decompressed: %v", err)
	}
	lines := json.NewDecoder(bufio.NewReader(io.LimitReader(z, partMax)))
	changes := make([]journal.Change, 0, partChanges)
	var sum journal.Summer
	for seq := p.first; seq <= p.last; seq++ {
		var l journal.Line
		if err := lines.Decode(&l); err != nil {
			return nil, broken(seq, "its line in the archive cannot be read: %v", err)
		}
		c := l.Stored()
		prev = sum.Sum(prev, &c)
		c.Hash = prev
		if c.Seq != seq {
			return nil, broken(seq, "change %d is in its place in the archive", c.Seq)
		}
		changes = append(changes, c)
	}
	if prev != p.hash {
		return nil, broken(p.first, "the changes up to %d give the hash %s, and it is %s", p.last, prev, p.hash)
	}
	return changes, nil
}

// takePart adds the selected changes of a part to the chunk.
func (cur *cursor) takePart(tx *sql.Tx, p *part) error {
	if cur.query.Entity == "" && p.first > cur.next {
		return broken(cur.next, "it is missing (the next one stored is %d)", p.first)
	}
	if p.first > cur.until {
		cur.next = p.first
		return nil
	}
	changes, err := p.read(tx, cur.path)
	if err != nil {
		return err
	}
	for i := range changes {
		if seq := changes[i].Seq; seq < cur.next || seq > cur.until { // the reader had this change before compact moved it into the archive
			continue
		}
		if err := cur.take(&changes[i]); err != nil {
			return err
		}
	}
	cur.next, cur.prev = p.last+1, p.hash
	return nil
}

// pack makes a part of the first rows of the table from a change on, and reads it back. nil: there are none before the time.
func pack(tx *sql.Tx, path string, next uint64, before time.Time) (*part, []byte, error) {
	head, _, err := headOf(tx)
	if err != nil || head == 0 {
		return nil, nil, err
	}
	var prev journal.Hash
	p := &part{entities: lineEnd}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	rows, err := tx.Query(selectChanges, int64(next), int64(head)-1, partChanges)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for size := 0; rows.Next() && size < chunkBytes; {
		c, _, err := scan(rows)
		if err != nil {
			return nil, nil, err
		}
		if !c.Time.Before(before) {
			break
		}
		if p.first == 0 {
			p.first = c.Seq
			if prev, err = hashOf(tx, path, c.Seq-1); err != nil {
				return nil, nil, err
			}
		}
		text, err := json.Marshal(journal.LineOf(&c))
		if err == nil {
			_, err = z.Write(append(text, '\n'))
		}
		if err != nil {
			return nil, nil, err
		}
		if !strings.Contains(p.entities, lineEnd+c.Entity+lineEnd) {
			p.entities += c.Entity + lineEnd
		}
		p.last, p.hash, p.text, size = c.Seq, c.Hash, p.text+int64(len(text)), size+len(c.Data)
	}
	if err := errors.Join(rows.Err(), z.Close()); err != nil || p.first == 0 {
		return nil, nil, err
	}
	p.size, p.sum = int64(packed.Len()), sha256.Sum256(packed.Bytes())
	if _, err := p.unpack(packed.Bytes(), prev); err != nil {
		return nil, nil, fmt.Errorf("what was written for the archive reads differently, and the journal is as it was: %w", err)
	}
	return p, packed.Bytes(), nil
}

// archive moves the changes of a part out of the table.
func (j *Journal) archive(ctx context.Context, p *part, packed []byte) error {
	return j.writing(ctx, func(tx *sql.Tx) (bool, error) { return p.store(tx, j.path, packed) })
}

// store writes a part behind the others, and then takes its changes out of the table. If another process has done
// that, it does nothing.
func (p *part) store(tx *sql.Tx, path string, packed []byte) (stored bool, err error) {
	var last uint64
	err = tx.QueryRow("SELECT coalesce(max(last), 0), coalesce(max(place + size), 0) FROM archive").Scan(&last, &p.place)
	if err != nil || last != p.first-1 {
		return false, err
	}
	if err := writeBehind(path+ArchiveTail, p.place, packed); err != nil {
		return false, err
	}
	if _, err := tx.Exec("INSERT INTO archive (first, last, hash, place, size, sum, entities) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
		int64(p.first), int64(p.last), p.hash[:], p.place, p.size, p.sum[:], p.entities); err != nil {
		return false, err
	}
	_, err = tx.Exec("DELETE FROM change WHERE seq <= ?1", int64(p.last))
	return err == nil, err
}

// writeBehind stores bytes at a place of the archive, as its end, and syncs it.
func writeBehind(path string, place int64, packed []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(place)
	if err == nil {
		_, err = f.WriteAt(packed, place)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil || place > 0 {
		return err
	}
	folder, err := os.Open(filepath.Dir(path)) // the file is new in it
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// shrink gives free pages back, and says how many there are.
func (j *Journal) shrink(ctx context.Context, alone bool, done *Compacted) error {
	var free, all, size int64
	const pages = `SELECT freelist_count, page_count, page_size FROM pragma_freelist_count, pragma_page_count, pragma_page_size`
	err := j.writer.QueryRow(pages).Scan(&free, &all, &size)
	if err == nil && alone && free*vacuumShare > all {
		free = 0
		err = patiently(ctx, func() error {
			_, err := j.writer.Exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
			return err
		})
	}
	done.Free = free * size
	return explain(j.path, err)
}
