package task

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/worktree"
)

const indexBytesMax = 256 << 20 // of a clone's index; one of a million files has about 100 MiB

// staged lists the files in the folder that the clone's index has and a list of git does not. An agent may have added a
// file that git ignores, and not committed it yet. The index is the agent's, so no git reads it; what cannot be read of it
// has no names. hashBytes is the length of an object's id.
func staged(t Task, hashBytes int, list string) ([]string, error) {
	file, err := os.OpenFile(filepath.Join(t.Tree, ".git", "index"), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, indexBytesMax))
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, name := range worktree.Zeroed(list) {
		known[name] = true
	}
	return slices.DeleteFunc(indexNames(text, hashBytes), func(name string) bool { return known[name] || !isFile(t.Tree, name) }), nil
}

// isFile reports whether a name is one of a file or link in the folder, not behind a link and not in a repository.
func isFile(tree, name string) bool {
	if !filepath.IsLocal(name) || strings.ContainsRune(name, 0) {
		return false
	}
	at := tree
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if part == "" || strings.EqualFold(part, ".git") {
			return false
		}
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		switch last := i == len(parts)-1; {
		case err != nil, last && !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink, !last && !info.IsDir():
			return false
		case last:
			return true
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return false
		}
	}
	return false
}

// indexNames reads the names of an index file in git's versions 2, 3 and 4. It returns those before the first fault.
func indexNames(text []byte, hashBytes int) (names []string) {
	const header, statBytes, extended = 12, 40, 0x4000
	if len(text) < header || string(text[:4]) != "DIRC" {
		return nil
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 {
		return nil
	}
	before := ""
	for rest := text[header:]; count > 0; count-- {
		at := statBytes + hashBytes + 2
		if len(rest) < at+2 {
			return names
		}
		if binary.BigEndian.Uint16(rest[at-2:])&extended != 0 {
			at += 2
		}
		prefix := ""
		if version == 4 { // the name is the one before, without some bytes at its end, and what follows
			drop, n := dropped(rest[at:])
			if n == 0 || drop > len(before) {
				return names
			}
			prefix, at = before[:len(before)-drop], at+n
		}
		end := bytes.IndexByte(rest[at:], 0)
		if end < 0 {
			return names
		}
		name := prefix + string(rest[at:at+end])
		at += end + 1
		if version != 4 { // an entry has a multiple of eight bytes
			at = (at + 7) &^ 7
		}
		if len(rest) < at {
			return names
		}
		names, before, rest = append(names, name), name, rest[at:]
	}
	return names
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
