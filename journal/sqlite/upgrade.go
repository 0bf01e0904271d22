package sqlite

import (
	"database/sql/driver"

	"github.com/fairlead-dev/fairlead/journal"
)

// Format 1 kept each change in a row of its own. carryOver puts them into batches, within
// the transaction that changes the format. Each is checked on the way: a damaged journal is
// left as it is.
func carryOver(w *conn) error {
	var (
		chain journal.Chain
		p     = packer{keep: func(b batchRow) error { return w.exec(insertBatch, int64(b.first), int64(b.last), b.hash[:], b.data) }}
	)
	err := w.query(func(row []driver.Value) (bool, error) {
		var ch journal.Change
		r, err := oldRow(row)
		if err == nil {
			err = w.fill(&ch, uint64(row[0].(int64)), &r)
		}
		if err == nil {
			copy(ch.Hash[:], row[6].([]byte))
			err = chain.Take(&ch)
		}
		if err != nil {
			return false, err
		}
		return true, p.add(ch.Seq, &r, ch.Hash)
	}, "SELECT seq, entity, version, time, phrase, cause, hash, data FROM change ORDER BY seq")
	if err != nil {
		return err
	}
	return p.flush()
}

// oldRow takes a row of format 1 apart.
func oldRow(row []driver.Value) (r record, err error) {
	var n [6]int64
	for i := range n {
		v, ok := row[i].(int64)
		if !ok {
			return r, broken(uint64(n[0]), "a column has the wrong type")
		}
		n[i] = v
	}
	hash, ok := row[6].([]byte)
	if !ok || len(hash) != len(journal.Hash{}) {
		return r, broken(uint64(n[0]), "it has no hash")
	}
	if row[7] != nil {
		if r.data, ok = row[7].([]byte); !ok {
			return r, broken(uint64(n[0]), "its data has the wrong type")
		}
	}
	r.entity, r.version, r.nanos, r.phrase, r.cause = uint64(n[1]), uint64(n[2]), n[3], uint64(n[4]), uint64(n[5])
	return r, nil
}

// packer puts records into rows of batch, and gives each to keep.
type packer struct {
	keep   func(batchRow) error
	row    batchRow
	before int64
}

func (p *packer) add(seq uint64, r *record, hash journal.Hash) error {
	if len(p.row.data) == 0 {
		p.row.first, p.before = seq, 0
	}
	copy(r.mark[:], hash[:])
	p.row.data = appendRecord(p.row.data, r, p.before)
	p.row.last, p.row.hash, p.before = seq, hash, r.nanos
	if p.row.last-p.row.first+1 == chunkChanges || len(p.row.data) >= chunkBytes {
		return p.flush()
	}
	return nil
}

// addAll adds a batch, of which these are the changes.
func (p *packer) addAll(b *batchRow, changes []journal.Change) (err error) {
	var r record
	rest := b.data
	for i := range changes {
		if rest, err = nextRecord(rest, &r, r.nanos); err != nil {
			return broken(changes[i].Seq, "%v", err)
		}
		if err := p.add(changes[i].Seq, &r, changes[i].Hash); err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) flush() error {
	if len(p.row.data) == 0 {
		return nil
	}
	err := p.keep(p.row)
	p.row.data = p.row.data[:0]
	return err
}
