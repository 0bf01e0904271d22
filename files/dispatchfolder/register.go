package dispatchfolder

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/internal/encode"
)

const (
	elsewhereName = ".elsewhere"
	listedMax     = 10_000 // folders of a repository that are searched, the newest by name
	pointerMax    = 8 << 10
)

// Found is a dispatch folder of a repository.
type Found struct {
	Folder  *Folder
	Session dispatch.Dispatch
	Fault   string // why it cannot be read; then Session is empty
}

// Open reports whether the dispatch is readable and not closed.
func (f Found) Open() bool {
	return f.Fault == "" && f.Session.Phase != dispatch.Closed
}

// StateHome is the folder for this user's persistent program state.
func StateHome() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the state folder: %w; set XDG_STATE_HOME", err)
	}
	return filepath.Join(home, ".local", "state"), nil
}

func programFile(id string) (string, error) {
	home, err := StateHome()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(home, "fairlead", "sessions", hex.EncodeToString(sum[:16])), nil
}

// forget removes the entry of a program that leads to this folder; another's entry stays. The folder of the entries is locked
// meanwhile, as it is by point. What cannot be removed stays: ByProgram ignores the entry of a dispatch that has ended.
func (f *Folder) forget(id string) {
	file, err := programFile(id)
	if err != nil {
		return
	}
	d, err := openFolder(filepath.Dir(file))
	if err != nil {
		return
	}
	defer d.close()
	unlock, err := d.lockEntries()
	if err != nil {
		return
	}
	defer unlock()
	if path, err := pointed(file); err == nil && path == f.path {
		_ = os.Remove(file)
	}
}

// lockEntries locks a folder of entries. The lock is the folder's own, so that the folder holds entries only.
func (d opened) lockEntries() (unlock func(), err error) {
	if err := again(func() error { return unix.Flock(d.fd, unix.LOCK_EX) }); err != nil {
		return nil, fmt.Errorf("lock the register of sessions: %w", err)
	}
	return func() { _ = unix.Flock(d.fd, unix.LOCK_UN) }, nil
}

// register lets List and ByProgram find the folder.
func (f *Folder) register(repo, program string) error {
	if program != "" {
		file, err := programFile(program)
		if err != nil {
			return err
		}
		if err := f.point(file, 0o700); err != nil {
			return err
		}
	}
	if repo == "" {
		return nil
	}
	home, err := filepath.Abs(filepath.Join(repo, filepath.FromSlash(defaultBelow)))
	if err != nil {
		return fmt.Errorf("find %s: %w", repo, err)
	}
	if filepath.Dir(f.path) == home {
		return nil
	}
	sum := sha256.Sum256([]byte(f.path))
	return f.point(filepath.Join(home, elsewhereName, hex.EncodeToString(sum[:8])), 0o755)
}

// point writes the folder's path into a file atomically.
func (f *Folder) point(file string, mode fs.FileMode) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, mode); err != nil {
		return fmt.Errorf("register the session %s: %w", f.path, err)
	}
	d, err := openFolder(dir)
	if err != nil {
		return fmt.Errorf("register the session %s: %w", f.path, err)
	}
	defer d.close()
	unlock, err := d.lockEntries()
	if err != nil {
		return err
	}
	defer unlock()
	if err := d.replace(filepath.Base(file), []byte(f.path+"\n")); err != nil {
		return fmt.Errorf("register the session %s: %w", f.path, err)
	}
	return d.sync("")
}

// pointed reads such a file; empty: there is none.
func pointed(file string) (path string, err error) {
	d, err := openFolder(filepath.Dir(file))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer d.close()
	text, whole, err := d.read(filepath.Base(file), pointerMax)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	path = strings.TrimSpace(string(text))
	if !whole || !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s does not contain the path of a session; remove the file", file)
	}
	return path, nil
}

// ByProgram returns the dispatch folder of an agent program, by the program's own session id. nil without an
// error: there is none, or it has ended. An error: there is one that cannot be read; an enforcing caller then
// denies.
func ByProgram(id string) (*Folder, error) {
	if id == "" {
		return nil, nil
	}
	file, err := programFile(id)
	if err != nil {
		return nil, err
	}
	path, err := pointed(file)
	if err != nil || path == "" {
		return nil, err
	}
	f, err := Open(path)
	if err != nil {
		return nil, fmt.Errorf("this program's session cannot be read: %w; to continue without it, remove %s", err, file)
	}
	s, err := f.Session()
	if err != nil {
		return nil, fmt.Errorf("this program's session cannot be read: %w; to continue without it, remove %s", err, file)
	}
	if s.Phase == dispatch.Closed {
		f.forget(id)
		return nil, nil
	}
	return f, nil
}

// ByProgramIn is ByProgram for a program that was started in a repository, whose dispatch folders count as well: one that is
// open and belongs to the program is found without its entry in the user's state folder, or with another one's. tie says what
// is wrong with the entry; nil: nothing.
func ByProgramIn(repo, id string) (f *Folder, tie, err error) {
	f, err = ByProgram(id)
	if id == "" || repo == "" || f != nil && err == nil && f.belongs(id) {
		return f, nil, err
	}
	paths, lerr := registered(repo)
	if lerr != nil {
		return f, nil, errors.Join(err, lerr)
	}
	for _, path := range paths {
		own := &Folder{path: path}
		if own.names(id) && own.belongs(id) {
			return own, untied(own, id, f, err), nil
		}
	}
	return f, nil, err
}

// belongs reports whether the folder's dispatch is open and a program's.
func (f *Folder) belongs(id string) bool {
	s, err := f.Session()
	return err == nil && s.Program == id && s.Phase != dispatch.Closed
}

// names reports whether the first line of the folder's history holds a program's id, or cannot be read. Most folders of a
// repository are another's, and only this line of theirs is read.
func (f *Folder) names(id string) bool {
	d, err := openFolder(f.path)
	if err != nil {
		return false
	}
	defer d.close()
	file, err := d.open(stateName, unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer file.Close()
	line, _, err := wholeLine(bufio.NewReaderSize(io.NewSectionReader(file, 0, linesBytesMax), lookBytes))
	return err == nil && (bytes.Contains(line, encode.JSON(id)) || !json.Valid(line))
}

// untied says why a program's entry does not lead to its dispatch.
func untied(f *Folder, id string, other *Folder, err error) error {
	file, ferr := programFile(id)
	if ferr != nil {
		return ferr
	}
	why := "it is missing, or HOME or XDG_STATE_HOME differs from when the dispatch was begun"
	switch {
	case err != nil:
		why = err.Error()
	case other != nil:
		why = "it leads to " + other.path
	}
	return fmt.Errorf("the dispatch in %s is open, but the entry %s does not lead to it: %s", f.path, file, why)
}

// Untied returns for each open dispatch of a repository that belongs to a program what is wrong with its entry.
func Untied(repo string) ([]error, error) {
	all, err := List(repo)
	if err != nil {
		return nil, err
	}
	var wrong []error
	for _, one := range all {
		if !one.Open() || one.Session.Program == "" || one.Session.Host != dispatch.Claude {
			continue
		}
		f, err := ByProgram(one.Session.Program)
		if f == nil || err != nil || !f.is(one.Folder.path) {
			wrong = append(wrong, untied(one.Folder, one.Session.Program, f, err))
		}
	}
	return wrong, nil
}

// List returns a repository's dispatch folders, oldest first: those in the default place, and registered ones
// elsewhere. A folder without a state.jsonl is left out; one that cannot be read has a Fault.
func List(repo string) ([]Found, error) {
	paths, err := registered(repo)
	if err != nil {
		return nil, err
	}
	var all []Found
	for _, path := range paths {
		f, err := Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			all = append(all, Found{Folder: &Folder{path: path}, Fault: err.Error()})
			continue
		}
		s, err := f.Session()
		if err != nil {
			all = append(all, Found{Folder: f, Fault: err.Error()})
			continue
		}
		all = append(all, Found{Folder: f, Session: s})
	}
	slices.SortStableFunc(all, func(a, b Found) int {
		if c := a.Session.Began.Compare(b.Session.Began); c != 0 {
			return c
		}
		return strings.Compare(a.Folder.path, b.Folder.path)
	})
	return all, nil
}

// registered returns the registered paths of a repository.
func registered(repo string) ([]string, error) {
	home, err := filepath.Abs(filepath.Join(repo, filepath.FromSlash(defaultBelow)))
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", repo, err)
	}
	var paths []string
	for _, dir := range []string{home, filepath.Join(home, elsewhereName)} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look for sessions: %w", err)
		}
		entries = entries[max(0, len(entries)-listedMax):]
		for _, e := range entries {
			at := filepath.Join(dir, e.Name())
			switch {
			case strings.HasPrefix(e.Name(), "."):
			case dir == home && e.IsDir():
				paths = append(paths, at)
			case dir != home && e.Type().IsRegular():
				if path, err := pointed(at); err == nil && path != "" && !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
			}
		}
	}
	return paths, nil
}

// Current returns the open dispatch folder of a repository that was created last, or nil.
func Current(repo string) (*Folder, error) {
	all, err := List(repo)
	if err != nil {
		return nil, err
	}
	var latest *Found
	for i := range all {
		if all[i].Open() && (latest == nil || !all[i].Session.Began.Before(latest.Session.Began)) {
			latest = &all[i]
		}
	}
	if latest == nil {
		return nil, nil
	}
	return latest.Folder, nil
}

// is reports whether a path is this folder's, in any spelling.
func (f *Folder) is(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	if abs == f.path {
		return true
	}
	a, errA := os.Stat(abs)
	b, errB := os.Stat(f.path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}
