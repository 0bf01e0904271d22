package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Everything on disk is reached from an open folder, by plain names, and no link is
// followed: an agent may put whatever it likes into its workspace, also in between.

const BytesMax = 1 << 20 // of what readSheet gives

const DefaultMode = 0o644 // of a file that was not there; else the mode it had

// folderID tells a folder from another one that took its path.
type FolderID struct{ dev, ino uint64 }

// identity tells whether a file is still the one that was read, unchanged.
type Identity struct {
	Dev, Ino uint64
	Size     int64 // bytes
	Mtime    int64 // nanoseconds since 1970
}

// String names one write of one file, also across restarts of ours.
func (id Identity) String() string { return fmt.Sprintf("%d.%d.%d", id.Ino, id.Size, id.Mtime) }

// sheet is what lay under a name at one moment.
type Version struct {
	ID       Identity
	Mode     uint32 // permission bits
	UID, GID int
	Bytes    []byte // at most sheetBytesMax + 1
	Moved    bool   // it changed while it was read: look again
}

// unreadable is a file that is there and is not looked at. It says what to do.
type Unreadable struct {
	Fault string
	Err   error // may be nil
}

func (u *Unreadable) Error() string { return u.Fault }
func (u *Unreadable) Unwrap() error { return u.Err }

// again repeats a system call that a signal interrupted.
func Uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// openFolder opens a folder that is no link.
func OpenFolder(path string) (dir int, id FolderID, err error) {
	err = Uninterrupted(func() (err error) {
		dir, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return -1, id, &Unreadable{fmt.Sprintf("%s is no folder (a link is not followed); put a folder there", path), err}
	case err != nil:
		return -1, id, &fs.PathError{Op: "open folder", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err := Uninterrupted(func() error { return unix.Fstat(dir, &st) }); err != nil {
		CloseFolder(dir)
		return -1, id, &fs.PathError{Op: "stat folder", Path: path, Err: err}
	}
	return dir, FolderID{uint64(st.Dev), st.Ino}, nil
}

// closeFD closes what was only read, or was synced before: its error says nothing new.
func CloseFolder(fd int) { _ = unix.Close(fd) }

// openSheet opens a plain file of the folder for reading; the caller closes it.
func Open(dir int, name string) (*os.File, error) {
	fd := -1
	err := Uninterrupted(func() (err error) {
		// O_NONBLOCK: a pipe under this name must not hold us up
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK): // BSD says EMLINK
		return nil, &Unreadable{name + " is a symbolic link and is not followed; put a plain file there", err}
	case errors.Is(err, unix.ENXIO):
		return nil, &Unreadable{name + " is a socket or a device; put a plain file there", err}
	case errors.Is(err, unix.EACCES):
		return nil, &Unreadable{name + " may not be read by this user; make it readable (chmod u+r)", err}
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := Uninterrupted(func() error { return unix.Fstat(fd, &st) }); err != nil {
		_ = file.Close()
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = file.Close()
		return nil, &Unreadable{name + " is no plain file; put one there", nil}
	}
	return file, nil
}

// readSheet reads what lies under a name now.
func Read(dir int, name string) (Version, error) {
	file, err := Open(dir, name)
	if err != nil {
		return Version{}, err
	}
	defer func() { _ = file.Close() }()
	return ReadOpen(file)
}

// readOpen reads an open file from its start. A file that changes under the reading is
// read again, a few times; then it is handed out as moved.
func ReadOpen(file *os.File) (s Version, err error) {
	const readsMax = 3 // a writer in a tight loop moves every time; the caller comes back
	for range readsMax {
		before, err := Stat(file)
		if err != nil {
			return Version{}, err
		}
		buf := make([]byte, min(before.ID.Size, BytesMax)+1)
		n, err := file.ReadAt(buf, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return Version{}, &Unreadable{fmt.Sprintf("%s cannot be read: %v", file.Name(), err), err}
		}
		after, err := Stat(file)
		if err != nil {
			return Version{}, err
		}
		s, s.Bytes = after, buf[:n]
		whole := int64(n) == after.ID.Size || n > BytesMax
		if before.ID == after.ID && whole {
			return s, nil
		}
	}
	s.Moved = true
	return s, nil
}

// statOpen is a sheet without its bytes.
func Stat(file *os.File) (Version, error) {
	var st unix.Stat_t
	if err := Uninterrupted(func() error { return unix.Fstat(int(file.Fd()), &st) }); err != nil {
		return Version{}, &fs.PathError{Op: "stat", Path: file.Name(), Err: err}
	}
	return Version{ID: identityOf(&st), Mode: uint32(st.Mode) & 0o777, UID: int(st.Uid), GID: int(st.Gid)}, nil
}

func identityOf(st *unix.Stat_t) Identity {
	return Identity{uint64(st.Dev), st.Ino, st.Size, unix.TimespecToNsec(st.Mtim)}
}

// identityAt looks at a name without opening it; no link is followed.
func IdentityAt(dir int, name string) (Identity, error) {
	var st unix.Stat_t
	err := Uninterrupted(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return Identity{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return identityOf(&st), nil
}

// create makes a file that was not there, with these bytes, synced.
func Create(dir int, name string, content []byte, mode uint32) (*os.File, error) {
	fd := -1
	err := Uninterrupted(func() (err error) {
		fd, err = unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	file := os.NewFile(uintptr(fd), name)
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		_ = file.Close()
		Remove(dir, name)
		return nil, err
	}
	return file, nil
}

// remove takes away a file of our own making. Where that fails it is in the way of
// nobody, and the next start tries again.
func Remove(dir int, name string) { _ = unix.Unlinkat(dir, name, 0) }

// syncFolder makes the names in a folder durable.
func SyncFolder(dir int) error {
	err := Uninterrupted(func() error { return unix.Fsync(dir) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil // file systems that keep names without being asked say so
	}
	return err
}

// namesIn lists a folder.
func NamesIn(path string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return dir.Readdirnames(-1)
}

// fileTime is a time as part of a file's name: UTC, sortable, no colons.
func TimeInName(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format("20060102T150405.000000000Z")
}

// unsupported says that the file system, not the case, is the reason.
func Unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP)
}
