package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// SQLite's log is a header and then frames, each a page with a header of its own; checksums
// run on from frame to frame, so the first one that does not fit ends the log (see "WAL File
// Format" in SQLite's documentation). That is right for a log that a crash has torn: what
// was being written was not answered. A bit that flipped looks the same, and SQLite drops
// without a word all that was written behind it. But each batch is synced before the next one
// is begun: if two batches come after the place, the first of them had been answered, and
// the log is not torn but damaged.
const (
	walHeaderBytes   = 32
	frameHeaderBytes = 24
	pageBytesMin     = 512
	pageBytesMax     = 64 << 10
	walMagic         = 0x377f0682 // with the last bit set the checksums are big-endian

	walLooks    = 3                    // another process may be writing just now: what is damage stays
	walLookRest = 5 * time.Millisecond // between two of them
)

// checkLog refuses a journal whose log is damaged, before SQLite takes its good part for all
// of it. It only reads.
func checkLog(path string) error {
	var before string
	for look := 1; ; look++ {
		what, err := damageOf(path + "-wal")
		if err != nil || what == "" {
			return err
		}
		if look >= walLooks && what == before {
			return &Unusable{
				Path: path, What: "its log " + filepath.Base(path) + "-wal is damaged: " + what,
				Do: "copy the file and its -wal aside, and restore a backup of both; to go on without what comes after the damage, move the -wal away",
			}
		}
		before = what
		<-time.After(walLookRest)
	}
}

// damageOf says what is wrong with a log; empty: nothing but perhaps a torn end.
func damageOf(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at the journal's log: %w", err)
	}
	defer f.Close()
	l := walReader{from: f}
	what, err := l.damage()
	if err != nil {
		return "", fmt.Errorf("look at the journal's log: %w", err)
	}
	return what, nil
}

// walReader goes through a log, frame by frame.
type walReader struct {
	from  io.Reader
	order binary.ByteOrder
	salts [8]byte
	s0    uint32
	s1    uint32
	frame []byte
}

func (l *walReader) damage() (string, error) {
	var head [walHeaderBytes]byte
	if _, err := io.ReadFull(l.from, head[:]); err != nil {
		return "", nil //nolint:nilerr // too short to hold anything: SQLite begins it anew
	}
	if head == [walHeaderBytes]byte{} {
		return "", nil
	}
	magic := binary.BigEndian.Uint32(head[0:])
	page := binary.BigEndian.Uint32(head[8:])
	l.order = binary.LittleEndian
	if magic&1 == 1 {
		l.order = binary.BigEndian
	}
	l.sum(head[:24])
	if magic&^1 != walMagic || page < pageBytesMin || page > pageBytesMax || !l.sums(head[24:]) {
		return "its first bytes are not what was written", nil
	}
	copy(l.salts[:], head[16:24])
	l.frame = make([]byte, frameHeaderBytes+int(page))
	return l.frames()
}

// frames follows the checksums, and counts the batches behind the first that does not fit.
func (l *walReader) frames() (string, error) {
	good, batches := true, 0
	var bad int
	for n := 1; ; n++ {
		_, err := io.ReadFull(l.from, l.frame)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		ours := [8]byte(l.frame[8:16]) == l.salts
		if good {
			l.sum(l.frame[:8])
			l.sum(l.frame[frameHeaderBytes:])
			if good = ours && l.sums(l.frame[16:24]); !good {
				bad = n
			}
		}
		ends := binary.BigEndian.Uint32(l.frame[4:8]) != 0 // of a batch: the size of the file by then
		if !good && ours && ends {
			batches++
		}
		if batches > 1 {
			return fmt.Sprintf("its frame %d is not what was written, and more was written behind it", bad), nil
		}
	}
}

func (l *walReader) sum(part []byte) {
	for ; len(part) >= 8; part = part[8:] {
		l.s0 += l.order.Uint32(part) + l.s1
		l.s1 += l.order.Uint32(part[4:]) + l.s0
	}
}

func (l *walReader) sums(want []byte) bool {
	return binary.BigEndian.Uint32(want) == l.s0 && binary.BigEndian.Uint32(want[4:]) == l.s1
}
