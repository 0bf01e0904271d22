package worktree

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const indexBytesMax = 256 << 20 // of a clone's index; one of a million files has about 100 MiB

// Entry is a file in the index of a clone.
type Entry struct {
	Name, ID string
	Mode     uint32 // as git has it
	Stage    int    // 0; another number: a conflict that is not resolved
	Intent   bool   // it was announced (git add --intent-to-add), and has no content yet
}

// ReadIndex is the index of a clone; empty: it has none.
func ReadIndex(clone string) ([]byte, error) {
	file, err := os.OpenFile(filepath.Join(clone, ".git", "index"), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, indexBytesMax))
}

// IndexEntries reads an index file in git's versions 2, 3 and 4. The index is an agent's, so no git reads it. hashBytes is the length of
// an object's id. With an error the entries are those before the first fault, or those of an index whose rest is in another file.
func IndexEntries(text []byte, hashBytes int) (entries []Entry, err error) {
	const header, statBytes, extended, stage, intent = 12, 40, 0x4000, 0x3000, 0x2000
	broken := errors.New("its index cannot be read")
	if len(text) < header || string(text[:4]) != "DIRC" {
		return nil, broken
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 {
		return nil, broken
	}
	before, rest := "", text[header:]
	for ; count > 0; count-- {
		at := statBytes + hashBytes + 2
		if len(rest) < at+2 {
			return entries, broken
		}
		e := Entry{Mode: binary.BigEndian.Uint32(rest[24:]), ID: hex.EncodeToString(rest[statBytes : statBytes+hashBytes])}
		flags := binary.BigEndian.Uint16(rest[at-2:])
		e.Stage = int(flags & stage >> 12)
		if flags&extended != 0 {
			e.Intent = binary.BigEndian.Uint16(rest[at:])&intent != 0
			at += 2
		}
		prefix := ""
		if version == 4 { // the name is the one before, without some bytes at its end, and what follows
			drop, n := dropped(rest[at:])
			if n == 0 || drop > len(before) {
				return entries, broken
			}
			prefix, at = before[:len(before)-drop], at+n
		}
		end := bytes.IndexByte(rest[at:], 0)
		if end < 0 {
			return entries, broken
		}
		e.Name = prefix + string(rest[at:at+end])
		at += end + 1
		if version != 4 { // an entry has a multiple of eight bytes
			at = (at + 7) &^ 7
		}
		if len(rest) < at {
			return entries, broken
		}
		entries = append(entries, e)
		before, rest = e.Name, rest[at:]
	}
	for len(rest) > hashBytes { // extensions, and a hash of all
		if len(rest) < 8 {
			return entries, broken
		}
		size := int64(binary.BigEndian.Uint32(rest[4:]))
		if name := string(rest[:4]); name == "link" || name == "sdir" {
			return entries,
				fmt.Errorf("its index is in parts (%s); run `git config core.splitIndex false`, and `git sparse-checkout disable`, there",
					name)
		}
		if int64(len(rest)) < 8+size {
			return entries, broken
		}
		rest = rest[8+size:]
	}
	return entries, nil
}

// dropped reads a number as git writes offsets, and how many bytes it has; none if it is not one.
func dropped(text []byte) (number, n int) {
	for i, c := range text {
		if i > 3 { // no path is that long
			break
		}
		if i > 0 {
			number++
		}
		if number = number<<7 | int(c&0x7f); c < 0x80 {
			return number, i + 1
		}
	}
	return 0, 0
}
