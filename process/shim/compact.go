package shim

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Compressed output is a gzip file for every packBytes of output, so that zcat prints it, and reading from an offset
// decompresses one file at most for nothing. While the spool exists, the spool counts: Compact removes it last.
const (
	packBytes = 4 << 20  // of output in one file; the last file has fewer
	packLeast = 16 << 10 // less output than this is not worth another form
)

func packName(folder string, n int64) string {
	return filepath.Join(folder, fmt.Sprintf("%s.%04d.gz", spoolFile, n))
}

// packed reads compressed output from at on.
type packed struct {
	folder   string
	at, size int64
	text     []byte // what is left of the file that was read last
}

// openPacked returns an error that is os.ErrNotExist if there is no compressed output.
func openPacked(folder string, offset int64) (*packed, error) {
	count := int64(0)
	for ; ; count++ {
		_, err := os.Lstat(packName(folder, count))
		if errors.Is(err, os.ErrNotExist) && count > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	last := packName(folder, count-1)
	f, err := openPlain(last, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var size [4]byte // a gzip file ends with the length of its text
	if _, err := f.Seek(-int64(len(size)), io.SeekEnd); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", last, err)
	}
	if _, err := io.ReadFull(f, size[:]); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", last, err)
	}
	return &packed{folder: folder, at: offset, size: (count-1)*packBytes + int64(binary.LittleEndian.Uint32(size[:]))}, nil
}

// Read must not be called concurrently.
func (p *packed) Read(b []byte) (int, error) {
	if p.at >= p.size {
		return 0, io.EOF
	}
	if len(p.text) == 0 {
		n := p.at / packBytes
		text, err := readPack(packName(p.folder, n))
		if err != nil {
			return 0, err
		}
		if want := min(packBytes, p.size-n*packBytes); int64(len(text)) != want {
			return 0, fmt.Errorf("%s is damaged: it has %d bytes of output instead of %d", packName(p.folder, n), len(text), want)
		}
		p.text = text[p.at%packBytes:]
	}
	n := copy(b, p.text)
	p.at, p.text = p.at+int64(n), p.text[n:]
	return n, nil
}

func (p *packed) Close() error { return nil }

// readPack decompresses one file. The result is longer than packBytes only if the file is damaged.
func readPack(path string) ([]byte, error) {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var text []byte
	z, err := gzip.NewReader(f)
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(z, packBytes+1))
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, noEOF(err))
	}
	return text, nil
}

// Compacted is what Compact did with the output of one session, in bytes of the files; zero: nothing was to do.
type Compacted struct{ Before, After int64 }

// Compact compresses the output of a session that ended before a time, and of which no shim runs any more. All
// that reads output reads the result in the same way. It may be killed at any time: the output is removed when its
// compressed form is synced and was read back and compared. With dry it writes nothing.
func Compact(ctx context.Context, folder string, before time.Time, dry bool) (Compacted, error) {
	over, err := EndedBefore(folder, before)
	if err != nil || !over {
		return Compacted{}, err
	}
	path := filepath.Join(folder, spoolFile)
	f, err := openPlain(path, os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) {
		return Compacted{}, nil // it is compressed already
	}
	if err != nil {
		return Compacted{}, fmt.Errorf("compress the output: %w", err)
	}
	defer f.Close()
	alone, err := tryLock(f) // two compressions of one output take turns
	if err != nil || !alone {
		return Compacted{}, err
	}
	size, err := syncedBytes(f)
	if err != nil || size < packLeast {
		return Compacted{}, err
	}
	done := Compacted{Before: size}
	if done.After, err = pack(ctx, folder, f, size, dry); err == nil && !dry {
		err = replaceSpool(folder, done)
	}
	if err != nil {
		return Compacted{}, fmt.Errorf("compress %s: %w; the output is as it was", path, err)
	}
	if done.After >= done.Before {
		return Compacted{}, nil // it does not get smaller
	}
	return done, nil
}

// pack writes compressed output beside the spool, and returns how many bytes it has.
func pack(ctx context.Context, folder string, from io.ReaderAt, size int64, dry bool) (after int64, err error) {
	var text, file bytes.Buffer
	for at := int64(0); at < size; at += packBytes {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		text.Reset()
		if _, err := io.Copy(&text, io.NewSectionReader(from, at, min(packBytes, size-at))); err != nil {
			return 0, err
		}
		file.Reset()
		z := gzip.NewWriter(&file)
		if _, err := z.Write(text.Bytes()); err != nil {
			return 0, err
		}
		if err := z.Close(); err != nil {
			return 0, err
		}
		after += int64(file.Len())
		if dry {
			continue
		}
		path := packName(folder, at/packBytes)
		if err := writePack(path, file.Bytes()); err != nil {
			return 0, err
		}
		if again, err := readPack(path); err != nil || !bytes.Equal(again, text.Bytes()) {
			return 0, errors.Join(err, fmt.Errorf("%s was read back differently", path))
		}
	}
	return after, nil
}

// writePack replaces a file that an earlier attempt may have left.
func writePack(path string, content []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	to, err := openPlain(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = to.Write(content)
	if err == nil {
		err = fsync(to)
	}
	return errors.Join(err, to.Close())
}

// replaceSpool removes the spool, or its compressed form if that is not smaller.
func replaceSpool(folder string, done Compacted) error {
	if done.After < done.Before {
		if err := syncFolder(folder); err != nil {
			return err
		}
		return os.Remove(filepath.Join(folder, spoolFile))
	}
	for n := int64(0); n*packBytes < done.Before; n++ {
		if err := os.Remove(packName(folder, n)); err != nil {
			return err
		}
	}
	return nil
}

// EndedBefore reports whether a session ended before a time, and its shim as well. Then no process writes to its
// spool again, because a folder starts at most one agent.
func EndedBefore(folder string, before time.Time) (bool, error) {
	r, err := readAgent(folder)
	if errors.As(err, new(*damaged)) {
		return false, nil // a person has to look at it first
	}
	if err != nil || r == nil {
		return false, err
	}
	lock, err := openPlain(filepath.Join(folder, lockFile), os.O_RDWR)
	if err != nil {
		return false, fmt.Errorf("look who holds it: %w", err)
	}
	defer lock.Close()
	if free, err := tryLock(lock); err != nil || !free {
		return false, err
	}
	e, err := readExit(folder)
	if err != nil {
		return false, err
	}
	if e != nil {
		return e.At.Before(before), nil
	}
	info, err := os.Lstat(filepath.Join(folder, spoolFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return info.ModTime().Before(before), nil
}
