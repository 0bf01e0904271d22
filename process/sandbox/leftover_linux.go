package sandbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pointsFolder   = ".points" // no session has such a name
	pointsLock     = "lock"
	pointSuffix    = ".point"
	pointsPatience = 2 * time.Second // what is done under the lock takes microseconds
	pointsPause    = time.Millisecond
)

// Points are the folders that were made for a view, because a mount needs one ([Place.Make]). Each has a file in a common
// folder that names it. Every process that uses the folder holds a lock of the file, which a kill releases too. The last one
// removes the folder: where it vanished earlier, the kernel would remove the mounts of the other views.
type Points struct {
	dir  string
	held []*os.File
}

// MakePoints makes the folders of a view that are missing. dir is the same for all sessions of a workspace, and is in no view.
func MakePoints(dir string, v View) (*Points, error) {
	p := &Points{dir: filepath.Join(dir, pointsFolder)}
	places := slices.DeleteFunc(slices.Clone(v.Places), func(p Place) bool { return !p.Make })
	if len(places) == 0 {
		return p, nil
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockPoints(p.dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	for _, place := range places {
		at := cmp.Or(place.From, place.Path)
		if err := p.hold(at); err != nil {
			_ = p.remove()
			return nil, fmt.Errorf("make %s for a view: %w", at, err)
		}
	}
	return p, nil
}

// Files hold the locks. A process that has them open, too, keeps the folders after this one has ended.
func (p *Points) Files() []*os.File {
	if p == nil {
		return nil
	}
	return p.held
}

// Remove removes those of the folders that are empty and that no other session uses.
func (p *Points) Remove() error {
	if p == nil || len(p.held) == 0 {
		return nil
	}
	lock, err := lockPoints(p.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	return p.remove()
}

func (p *Points) remove() error {
	var errs []error
	for _, f := range slices.Backward(p.held) { // what lies in another one was made after it
		f.Close() // and with it the lock
		errs = append(errs, removePoint(f.Name()))
	}
	p.held = nil
	return errors.Join(errs...)
}

// RemovePoints removes the folders that processes made which are gone, however they ended.
func RemovePoints(dir string) error {
	dir = filepath.Join(dir, pointsFolder)
	files, err := filepath.Glob(filepath.Join(dir, "*"+pointSuffix))
	if err != nil || len(files) == 0 {
		return err
	}
	lock, err := lockPoints(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	at := make(map[string]string, len(files))
	for _, file := range files {
		text, _ := os.ReadFile(file) // it is removed below
		at[file] = string(text)
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(at[b], at[a]) }) // the innermost first
	var errs []error
	for _, file := range files {
		errs = append(errs, removePoint(file))
	}
	return errors.Join(errs...)
}

// lockPoints lets one process at a time make or remove folders.
func lockPoints(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, pointsLock), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(pointsPatience); ; time.Sleep(pointsPause) {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return f, nil
		}
		if time.Now().After(deadline) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w; find who holds it with lslocks", f.Name(), err)
		}
	}
}

// hold makes a folder, and those above it, where they are missing, and holds those that were made for views.
func (p *Points) hold(at string) error {
	sum := sha256.Sum256([]byte(at))
	file := filepath.Join(p.dir, hex.EncodeToString(sum[:16])+pointSuffix)
	if slices.ContainsFunc(p.held, func(f *os.File) bool { return f.Name() == file }) {
		return nil
	}
	there, made := exists(at), exists(file)
	if there && !made {
		return nil // it was there before all views
	}
	if above := path.Dir(at); above != at {
		if err := p.hold(above); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	p.held = append(p.held, f)
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		_, err = f.WriteAt([]byte(at), 0) // before the folder is there
	}
	if err == nil && !there {
		err = changeFolder(at, makePoint)
	}
	return err
}

// removePoint removes the folder that a file names, and the file, if no process holds it. A folder that is not empty stays.
func removePoint(file string) error {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil //nolint:nilerr // another session uses it, and removes it
	}
	at, err := os.ReadFile(file)
	if err == nil && plain(string(at)) {
		err = changeFolder(string(at), func(above int, name string) error { return unix.Unlinkat(above, name, unix.AT_REMOVEDIR) })
	}
	switch {
	case err == nil, errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return os.Remove(file)
	}
	return fmt.Errorf("remove %s, which was made for a view: %w", at, err)
}

// makePoint makes a folder for the owner of the one above.
func makePoint(above int, name string) error {
	if err := unix.Mkdirat(above, name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(above, &st); err != nil || os.Geteuid() != 0 {
		return err
	}
	return unix.Fchownat(above, name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW)
}

// changeFolder makes or removes a folder without following a link, and gives the one above its times back.
func changeFolder(at string, change func(above int, name string) error) error {
	above, err := unix.Openat2(unix.AT_FDCWD, path.Dir(at),
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: noLinks})
	if err != nil {
		return err
	}
	defer unix.Close(above)
	var st unix.Stat_t
	if err := unix.Fstat(above, &st); err != nil {
		return err
	}
	if err := change(above, path.Base(at)); err != nil {
		return err
	}
	_ = unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", above), []unix.Timespec{st.Atim, st.Mtim}, 0) // it is for looks
	return nil
}
