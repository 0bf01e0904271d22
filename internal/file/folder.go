package file

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Files are reached from an open folder, by plain names, and links are not followed: an agent may change its
// workspace at any time.

const BytesMax = 1 << 20 // limit of a file that holds one record

const DefaultMode = 0o644 // of a new file; a replacement keeps the mode of the old file

// FolderID identifies a folder, so that a replacement under the same path is noticed.
type FolderID struct{ dev, ino uint64 }

// Identity tells whether a file is still the one that was read, unchanged.
type Identity struct {
	Dev, Ino uint64
	Size     int64 // bytes
	Mtime    int64 // nanoseconds since 1970
}

// String identifies one write of one file, also after a restart.
func (id Identity) String() string { return fmt.Sprintf("%d.%d.%d", id.Ino, id.Size, id.Mtime) }

// Version is a file's content and metadata at one moment.
type Version struct {
	ID       Identity
	Mode     uint32 // permission bits
	UID, GID int
	Ctime    int64 // nanoseconds since 1970, when the file was last changed or renamed; unlike Mtime, no program can set it
	Bytes    []byte
	Moved    bool // it changed during the read: look again
}

// Unreadable is the error for a file that exists and is not read. Its text says what to do.
type Unreadable struct {
	Fault string
	Err   error // may be nil
}

func (u *Unreadable) Error() string { return u.Fault }
func (u *Unreadable) Unwrap() error { return u.Err }

// Uninterrupted repeats a system call that was interrupted by a signal.
func Uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// OpenFolder opens a folder; a link is refused.
func OpenFolder(path string) (dir int, id FolderID, err error) {
	err = Uninterrupted(func() (err error) {
		dir, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return -1, id, &Unreadable{fmt.Sprintf("%s is not a folder (a symbolic link is not followed); put a folder there", path), err}
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

// CloseFolder closes a descriptor. The error is ignored: nothing is pending.
func CloseFolder(fd int) { _ = unix.Close(fd) }

// Open opens a regular file of the folder for reading. The caller closes it.
func Open(dir int, name string) (*os.File, error) {
	fd := -1
	err := Uninterrupted(func() (err error) {
		// O_NONBLOCK: opening a pipe must not block
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK): // EMLINK is BSD's
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

// Read reads the file that has this name now, at most most + 1 bytes.
func Read(dir int, name string, most int64) (Version, error) {
	file, err := Open(dir, name)
	if err != nil {
		return Version{}, err
	}
	defer func() { _ = file.Close() }()
	return ReadOpen(file, most)
}

// ReadOpen reads an open file from its start, at most most + 1 bytes. If the file changes during the read, it is read again a few
// times, then returned with Moved set.
func ReadOpen(file *os.File, most int64) (s Version, err error) {
	const readsMax = 3 // a tight loop of writes changes it each time; the caller tries again later
	for range readsMax {
		before, err := Stat(file)
		if err != nil {
			return Version{}, err
		}
		buf := make([]byte, min(before.ID.Size, most)+1)
		n, err := file.ReadAt(buf, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return Version{}, &Unreadable{fmt.Sprintf("%s cannot be read: %v", file.Name(), err), err}
		}
		after, err := Stat(file)
		if err != nil {
			return Version{}, err
		}
		s, s.Bytes = after, buf[:n]
		whole := int64(n) == after.ID.Size || int64(n) > most
		if before.ID == after.ID && whole {
			return s, nil
		}
	}
	s.Moved = true
	return s, nil
}

// Stat returns a Version without its bytes.
func Stat(file *os.File) (Version, error) {
	var st unix.Stat_t
	if err := Uninterrupted(func() error { return unix.Fstat(int(file.Fd()), &st) }); err != nil {
		return Version{}, &fs.PathError{Op: "stat", Path: file.Name(), Err: err}
	}
	return Version{
		ID: identityOf(&st), Mode: uint32(st.Mode) & 0o777, UID: int(st.Uid), GID: int(st.Gid),
		Ctime: unix.TimespecToNsec(st.Ctim),
	}, nil
}

func identityOf(st *unix.Stat_t) Identity {
	return Identity{uint64(st.Dev), st.Ino, st.Size, unix.TimespecToNsec(st.Mtim)}
}

// IdentityAt returns the identity of a name without opening it; links are not followed.
func IdentityAt(dir int, name string) (Identity, error) {
	var st unix.Stat_t
	err := Uninterrupted(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return Identity{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return identityOf(&st), nil
}

// Create creates a file with this content. It fails if the name exists.
func Create(dir int, name string, content []byte, mode uint32, synced bool) (*os.File, error) {
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
	if err == nil && synced {
		err = file.Sync()
	}
	if err != nil {
		_ = file.Close()
		Remove(dir, name)
		return nil, err
	}
	return file, nil
}

// CreateLike is Create with the mode and owner of another file, if there is one, so that the same programs can
// write it.
func CreateLike(dir int, name, like string, content []byte, synced bool) (*os.File, error) {
	mode, uid, gid := uint32(DefaultMode), os.Getuid(), os.Getgid()
	if handle, err := Open(dir, like); err == nil {
		if s, err := Stat(handle); err == nil {
			mode, uid, gid = s.Mode, s.UID, s.GID
		}
		_ = handle.Close()
	}
	file, err := Create(dir, name, content, mode, synced)
	if err != nil {
		return nil, err
	}
	if uid != os.Getuid() || gid != os.Getgid() {
		_ = file.Chown(uid, gid) // only root can change the owner; others keep their own
	}
	if mode != DefaultMode {
		err = file.Chmod(os.FileMode(mode)) // the umask removed some bits
	}
	if err != nil {
		_ = file.Close()
		Remove(dir, name)
		return nil, err
	}
	return file, nil
}

// RenameNew renames a to b; the error is EEXIST if b exists.
func RenameNew(dir int, a, b string) error {
	err := renameNew(dir, a, b)
	if Unsupported(err) {
		// link refuses an existing name as well, on every file system that has links
		err = Uninterrupted(func() error { return unix.Linkat(dir, a, dir, b, 0) })
		if err == nil {
			Remove(dir, a)
		}
	}
	return err
}

// Remove removes a temporary file. If that fails, the next start tries again.
func Remove(dir int, name string) { _ = unix.Unlinkat(dir, name, 0) }

// SyncFolder makes the names in a folder durable.
func SyncFolder(dir int) error {
	err := Uninterrupted(func() error { return unix.Fsync(dir) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil // returned by file systems that keep names without a sync
	}
	return err
}

// NamesIn lists a folder.
func NamesIn(path string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return dir.Readdirnames(-1)
}

// TimeInName formats a time for a file name: UTC, sortable, without colons.
func TimeInName(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format("20060102T150405.000000000Z")
}

// Unsupported reports whether the file system does not support the operation.
func Unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP)
}

// Sum identifies content: the first 8 bytes of its SHA-256, as 16 hexadecimal digits. It distinguishes our
// writes from others'; it does not protect against forgery.
type Sum string

// SumOf returns the sum of b.
func SumOf(b []byte) Sum {
	full := sha256.Sum256(b)
	var digits [16]byte
	hex.Encode(digits[:], full[:8])
	return Sum(digits[:])
}
