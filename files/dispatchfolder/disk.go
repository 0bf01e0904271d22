package dispatchfolder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// opened is an open folder. Names below it are opened without following links, because an agent may change
// its outputs at any time.
type opened struct {
	fd   int
	path string // for messages
}

// again repeats a system call that was interrupted by a signal.
var again = file.Uninterrupted

func openFolder(path string) (opened, error) {
	d := opened{fd: -1, path: path}
	err := again(func() (err error) {
		d.fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return d, plain(path, err)
}

// plain explains the kernel's error for links and similar entries.
func plain(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK):
		return &file.Unreadable{Fault: path + " is a symbolic link, and links are not followed here; replace it by its target", Err: err}
	case errors.Is(err, unix.ENOTDIR):
		return &file.Unreadable{
			Fault: path + " has a parent that is not a folder (links are not followed); replace it by a folder",
			Err:   err,
		}
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.EISDIR):
		return &file.Unreadable{Fault: path + " is not a regular file; replace it by one", Err: err}
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		return &file.Unreadable{Fault: path + " may not be read or written by this user; change its mode or its owner", Err: err}
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

func (d opened) close() { _ = unix.Close(d.fd) }

// below opens a folder under this one, name by name.
func (d opened) below(rel string) (opened, error) {
	at := opened{fd: d.fd, path: d.path}
	if rel == "" || rel == "." {
		err := again(func() (err error) { at.fd, err = unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0); return err })
		return at, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		next := opened{fd: -1, path: at.path + "/" + name}
		if name == "" || name == "." || name == ".." {
			return next, &file.Unreadable{Fault: fmt.Sprintf("%q is no name of a folder here", name), Err: fs.ErrInvalid}
		}
		err := again(func() (err error) {
			next.fd, err = unix.Openat(at.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			return err
		})
		if at.fd != d.fd {
			at.close()
		}
		if err != nil {
			return next, plain(next.path, err)
		}
		at = next
	}
	return at, nil
}

// parent opens the folder that holds a name; leaf is its last part.
func (d opened) parent(rel string) (at opened, leaf string, err error) {
	i := strings.LastIndexByte(rel, '/')
	leaf = rel[i+1:]
	if leaf == "" || leaf == "." || leaf == ".." {
		return opened{fd: -1}, leaf, &file.Unreadable{Fault: fmt.Sprintf("%q is no name of a file here", rel), Err: fs.ErrInvalid}
	}
	at, err = d.below(rel[:max(i, 0)])
	return at, leaf, err
}

// open opens a regular file with the flags of open(2).
func (d opened) open(rel string, flags int) (*os.File, error) {
	at, leaf, err := d.parent(rel)
	if err != nil {
		return nil, err
	}
	defer at.close()
	path := at.path + "/" + leaf
	fd := -1
	err = again(func() (err error) {
		// O_NONBLOCK: opening a pipe must not block
		fd, err = unix.Openat(at.fd, leaf, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o644)
		return err
	})
	if err != nil {
		return nil, plain(path, err)
	}
	opened := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(fd, &st) }); err != nil {
		_ = opened.Close()
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = opened.Close()
		return nil, &file.Unreadable{Fault: path + " is not a regular file; replace it by one"}
	}
	return opened, nil
}

// read returns at most limit bytes of a regular file, and whether that was all.
func (d opened) read(rel string, limit int64) (content []byte, whole bool, err error) {
	file, err := d.open(rel, unix.O_RDONLY)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	content, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	if int64(len(content)) > limit {
		return content[:limit], false, nil
	}
	return content, true, nil
}

// kind returns the type of an entry without following links; 0: there is none.
func (d opened) kind(rel string) (mode uint32, err error) {
	at, leaf, err := d.parent(rel)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
		return 0, err
	}
	defer at.close()
	var st unix.Stat_t
	err = again(func() error { return unix.Fstatat(at.fd, leaf, &st, unix.AT_SYMLINK_NOFOLLOW) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, &fs.PathError{Op: "stat", Path: at.path + "/" + leaf, Err: err}
	}
	return uint32(st.Mode) & unix.S_IFMT, nil //nolint:unconvert // 16 bits on one system, 32 on the other
}

// mkdir creates a folder. existed means that it was there.
func (d opened) mkdir(rel string) (existed bool, err error) {
	at, leaf, err := d.parent(rel)
	if err != nil {
		return false, err
	}
	defer at.close()
	point("mkdir " + rel)
	err = again(func() error { return unix.Mkdirat(at.fd, leaf, 0o755) })
	switch {
	case errors.Is(err, fs.ErrExist):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("make the folder %s/%s: %w", at.path, leaf, err)
	}
	return false, nil
}

// names lists at most limit names of a folder.
func (d opened) names(rel string, most int) ([]string, error) {
	at, err := d.below(rel)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(at.fd), at.path)
	defer file.Close()
	names, err := file.Readdirnames(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list %s: %w", at.path, err)
	}
	return names, nil
}

// sync makes the names in a folder durable.
func (d opened) sync(rel string) error {
	at, err := d.below(rel)
	if err != nil {
		return err
	}
	defer at.close()
	err = fsync(at.fd)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil // returned by file systems that keep names without a sync
	}
	return err
}

// write writes everything, in one call if the system allows it.
func write(file *os.File, text []byte) error {
	point("write " + file.Name())
	if torn != nil {
		if n := torn(file.Name(), len(text)); n < len(text) {
			_, _ = file.Write(text[:n])
			point("torn " + file.Name())
		}
	}
	_, err := file.Write(text)
	return err
}

// fsync syncs a file or a folder's names. Tests that simulate a kill, but not a power failure, replace it.
var fsync = func(fd int) error { return again(func() error { return unix.Fsync(fd) }) }

// point and torn are hooks for tests: before each write, and in the middle of one.
var (
	point = func(string) {}
	torn  func(name string, size int) int
)

// Disk is policy.Disk for the real file system.
type Disk struct{}

var _ policy.Disk = Disk{}

const linksMax = 40 // the kernel's limit; more is a loop

// Look follows a path to its end.
func (Disk) Look(path string) (policy.File, error) {
	real, err := resolve(path)
	if err != nil {
		return policy.File{}, err
	}
	file := policy.File{Path: real, Kind: policy.Missing}
	var st unix.Stat_t
	err = again(func() error { return unix.Lstat(real, &st) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file, nil
	case err != nil:
		return policy.File{}, &fs.PathError{Op: "look at", Path: real, Err: err}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		file.Kind = policy.Folder
	case unix.S_IFREG:
		file.Kind = policy.Regular
		file.Exec = st.Mode&0o111 != 0
		file.Links = int(st.Nlink) //nolint:unconvert // of another size on each system
		file.Script = script(real)
	case unix.S_IFLNK:
		return policy.File{}, fmt.Errorf("check %s: it was replaced by a link meanwhile", real)
	default:
		file.Kind = policy.Other
	}
	return file, nil
}

// script reports whether a regular file begins with #!. One that cannot be read counts as a script, because
// it may still be executed.
func script(path string) bool {
	in, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0) //nolint:gosec // only its first bytes are read
	if err != nil {
		return true
	}
	defer in.Close()
	var two [2]byte
	n, _ := in.ReadAt(two[:], 0)
	return string(two[:n]) == "#!"
}

// resolve follows every link of an absolute path like the kernel. A part that does not exist is kept as
// written; a ".." after it cannot be resolved.
func resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("resolve %s: the path is not absolute", path)
	}
	done := "/"
	rest := path
	links, missing := 0, false
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		switch name {
		case "", ".":
			continue
		case "..":
			if missing {
				return "", fmt.Errorf("resolve %s: %s does not exist, so its parent (..) is unknown", path, done)
			}
			done = filepath.Dir(done)
			continue
		}
		at := filepath.Join(done, name)
		if missing {
			done = at
			continue
		}
		var st unix.Stat_t
		err := again(func() error { return unix.Lstat(at, &st) })
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing, done = true, at
			continue
		case err != nil:
			return "", &fs.PathError{Op: "follow", Path: at, Err: err}
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			done = at
			continue
		}
		if links++; links > linksMax {
			return "", fmt.Errorf("resolve %s: more than %d links, or a loop", path, linksMax)
		}
		target, err := os.Readlink(at)
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", path, err)
		}
		if strings.HasPrefix(target, "/") {
			done = "/"
		}
		rest = target + "/" + rest
	}
	return done, nil
}
