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

// Compressed output is a gzip file of many members, one for each block of packBytes, so that zcat reads it and
// any offset is found without reading what is before it. The extra field of each member's header is the
// subfield "FL" with the length of the member, 4 bytes, little-endian. RFC 1952 describes the rest.
const (
	packedFile    = "spool.gz"
	packBytes     = 1 << 20  // of output in one member; the last one has fewer
	packHeader    = 20       // bytes of a member's header: 10 fixed ones, and the extra field
	packLengthAt  = 16       // where the length of the member is in it
	packLeast     = 16 << 10 // less output than this is not worth a file of another format
	packSampled   = 8        // a dry run compresses one block of so many
	packMemberMax = 2 * packBytes
	packsMax      = 1 << 16 // far more than the output of a session may be
)

// stored is a session's output on disk, as the agent wrote it or compressed.
type stored interface {
	io.ReaderAt
	io.Closer
	length() (int64, error) // bytes that a crash of the machine does not take away
}

type plainSpool struct{ *os.File }

func (s plainSpool) length() (int64, error) {
	if err := dataSync(s.File); err != nil {
		return 0, err
	}
	info, err := s.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// packedSpool reads compressed output. It keeps the block that was read last.
type packedSpool struct {
	file  *os.File
	at    []int64 // where each member begins
	size  int64
	block int // of text; -1: none
	text  []byte
}

func (p *packedSpool) length() (int64, error) { return p.size, nil }
func (p *packedSpool) Close() error           { return p.file.Close() }

// openPacked reads the headers of all members.
func openPacked(path string) (*packedSpool, error) {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	p := &packedSpool{file: f, block: -1}
	if err := p.index(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return p, nil
}

func (p *packedSpool) index() error {
	info, err := p.file.Stat()
	if err != nil {
		return err
	}
	var head [packHeader]byte
	for at := int64(0); at < info.Size(); {
		if _, err := p.file.ReadAt(head[:], at); err != nil {
			return fmt.Errorf("the header at byte %d: %w", at, noEOF(err))
		}
		size := int64(binary.LittleEndian.Uint32(head[packLengthAt:]))
		if !bytes.Equal(head[10:packLengthAt], extraOf(nil)[:6]) || size <= packHeader || size > packMemberMax || at+size > info.Size() {
			return fmt.Errorf("the header at byte %d is not one of Fairlead", at)
		}
		if p.at = append(p.at, at); len(p.at) > packsMax {
			return fmt.Errorf("it has more than %d parts", packsMax)
		}
		at += size
	}
	if len(p.at) == 0 {
		return nil
	}
	var last [4]byte
	if _, err := p.file.ReadAt(last[:], info.Size()-4); err != nil {
		return noEOF(err)
	}
	rest := int64(binary.LittleEndian.Uint32(last[:]))
	if rest > packBytes {
		return fmt.Errorf("its last part claims %d bytes", rest)
	}
	p.size = int64(len(p.at)-1)*packBytes + rest
	return nil
}

// extraOf is the extra field of a header with its length, as gzip writes it.
func extraOf(length []byte) []byte {
	return append([]byte{8, 0, 'F', 'L', 4, 0}, length...)
}

// ReadAt must not be called concurrently.
func (p *packedSpool) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) && off < p.size {
		block := int(off / packBytes)
		if block != p.block {
			if err := p.load(block); err != nil {
				return n, fmt.Errorf("read %s: %w", p.file.Name(), err)
			}
		}
		from := int(off % packBytes)
		if from >= len(p.text) {
			return n, fmt.Errorf("read %s: block %d has %d bytes: %w", p.file.Name(), block, len(p.text), io.ErrUnexpectedEOF)
		}
		c := copy(b[n:], p.text[from:])
		n, off = n+c, off+int64(c)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (p *packedSpool) load(block int) error {
	p.block = -1
	z, err := gzip.NewReader(io.NewSectionReader(p.file, p.at[block], packMemberMax))
	if err != nil {
		return fmt.Errorf("block %d: %w", block, noEOF(err))
	}
	z.Multistream(false)
	p.text, err = io.ReadAll(io.LimitReader(z, packBytes+1))
	if err == nil && (len(p.text) > packBytes || block < len(p.at)-1 && len(p.text) < packBytes) {
		err = errors.New("it has another length than the blocks beside it")
	}
	if err != nil {
		return fmt.Errorf("block %d: %w", block, noEOF(err))
	}
	p.block = block
	return nil
}

// Compacted is what Compact did with the output of one session, in bytes of the file; zero: nothing was to do.
type Compacted struct{ Before, After int64 }

// Compact compresses the output of a session that ended before a time, and of which no shim runs any more. All
// that reads output reads the result in the same way. It may be killed at any time: the output is removed when its
// compressed form is synced and was read back and compared. With dry it changes nothing and estimates the result
// from a part of the output.
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
	size, err := plainSpool{f}.length()
	if err != nil || size < packLeast {
		return Compacted{}, err
	}
	done := Compacted{Before: size}
	if dry {
		done.After, err = pack(ctx, io.NewSectionReader(f, 0, size), io.Discard, packSampled)
	} else {
		done.After, err = replaceByPacked(ctx, folder, f, size)
	}
	if err != nil {
		return Compacted{}, fmt.Errorf("compress %s: %w", path, err)
	}
	if done.After >= done.Before {
		return Compacted{}, nil // it does not get smaller
	}
	return done, nil
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

// replaceByPacked puts compressed output in the place of f, the spool.
func replaceByPacked(ctx context.Context, folder string, f *os.File, size int64) (after int64, err error) {
	temp := filepath.Join(folder, packedFile+".new")
	to, err := openPlain(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return 0, err
	}
	after, err = pack(ctx, io.NewSectionReader(f, 0, size), to, 1)
	if err == nil {
		err = fsync(to)
	}
	if e := to.Close(); err == nil {
		err = e
	}
	if err == nil && after < size {
		err = samePacked(ctx, temp, f, size)
	}
	if err != nil || after >= size {
		return after, errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, filepath.Join(folder, packedFile)); err != nil {
		return 0, err
	}
	if err := syncFolder(folder); err != nil {
		return 0, err
	}
	return after, os.Remove(f.Name())
}

// pack compresses output, one block of every so many, and returns the bytes that all of it takes.
func pack(ctx context.Context, from io.Reader, to io.Writer, every int) (bytesAll int64, err error) {
	var member bytes.Buffer
	block := make([]byte, packBytes)
	z, err := gzip.NewWriterLevel(&member, gzip.DefaultCompression)
	if err != nil {
		return 0, err
	}
	var sampled, sampledTo, all int64
	for i := 0; ; i++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := io.ReadFull(from, block)
		if n == 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, err
		}
		all += int64(n)
		if i%every != 0 {
			continue
		}
		member.Reset()
		z.Reset(&member)
		z.Extra = extraOf(make([]byte, 4))[2:]
		if _, err := z.Write(block[:n]); err != nil {
			return 0, err
		}
		if err := z.Close(); err != nil {
			return 0, err
		}
		binary.LittleEndian.PutUint32(member.Bytes()[packLengthAt:], uint32(member.Len())) //nolint:gosec // packMemberMax at most
		sampled, sampledTo = sampled+int64(n), sampledTo+int64(member.Len())
		if _, err := to.Write(member.Bytes()); err != nil {
			return 0, fmt.Errorf("%w; free some disk: the output is as it was", err)
		}
	}
	if sampled == 0 {
		return 0, nil
	}
	return int64(float64(sampledTo) * (float64(all) / float64(sampled))), nil
}

// samePacked reads compressed output back and compares it with the spool.
func samePacked(ctx context.Context, path string, f *os.File, size int64) error {
	p, err := openPacked(path)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.size != size {
		return fmt.Errorf("it was read back with %d bytes instead of %d; the output is as it was", p.size, size)
	}
	was, is := make([]byte, packBytes), make([]byte, packBytes)
	for at := int64(0); at < size; at += packBytes {
		n := min(packBytes, size-at)
		if _, err := f.ReadAt(was[:n], at); err != nil {
			return noEOF(err)
		}
		if _, err := p.ReadAt(is[:n], at); err != nil {
			return err
		}
		if !bytes.Equal(was[:n], is[:n]) {
			return fmt.Errorf("it was read back differently after byte %d; the output is as it was", at)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
