package login

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// Store has the login files of a program for the sessions of one team, and knows the person's.
type Store struct {
	Program string `json:"program"`
	Person  string `json:"person"` // the folder of the person's files
	Folder  string `json:"folder"` // and of the sessions'
	InPlace bool   `json:"in_place,omitempty"`

	record string
}

// Dir is the folder of all stores, below .fairlead.
const Dir = "logins"

const (
	recordExt = ".json"
	storesMax = 256 // of one team: each is read every half minute
	lockTries = 100 // each 10 ms: another daemon holds the lock for some milliseconds
	turnsMax  = 3   // a person's file that changes again and again is looked at later

	writingMax = 2 * time.Second // a program that has truncated its file has written it by then
)

// In is the store of the sessions that share a login. With inPlace each file is mounted by itself, so it must stay the same file.
func In(state, program, person string, inPlace bool) Store {
	s := Store{Program: program, Person: person, InPlace: inPlace}
	s.record = filepath.Join(state, Dir, s.name()+recordExt)
	s.Folder = filepath.Join(state, Dir, s.name())
	return s
}

// Beside is the store of sessions that have the files in a folder of their own, because nothing can be mounted.
func Beside(state, program, person, own string) Store {
	s := Store{Program: program, Person: person, Folder: own}
	s.record = filepath.Join(state, Dir, s.name()+recordExt)
	return s
}

// name tells logins of one program apart: each person's folder has one.
func (s Store) name() string {
	sum := sha256.Sum256([]byte(s.Person + "\x00" + s.Folder))
	return s.Program + "-" + hex.EncodeToString(sum[:6])
}

// Names are the files of the store that the person has.
func (s Store) Names() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(formats[s.Program])) {
		if info, err := os.Stat(filepath.Join(s.Person, name)); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	return names
}

// Keep makes the store, so that [Stores] finds it also after a crash.
func (s Store) Keep() error {
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return err
	}
	if _, err := os.Lstat(s.record); err == nil {
		return nil
	}
	dir := filepath.Dir(s.record)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	switch all, err := Stores(filepath.Dir(dir)); {
	case err != nil:
		return err
	case len(all) >= storesMax:
		return fmt.Errorf("%d logins are kept in %s, which is the limit; remove those of former agents there", storesMax, dir)
	}
	return file.StoreJSON(s.record, s)
}

// Stores are all stores below .fairlead. One whose folder is gone is forgotten.
func Stores(state string) (all []Store, err error) {
	entries, err := os.ReadDir(filepath.Join(state, Dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), recordExt) || len(all) == storesMax {
			continue
		}
		s := Store{record: filepath.Join(state, Dir, e.Name())}
		if err := file.LoadJSON(s.record, &s); err != nil {
			return nil, err
		}
		if _, err := os.Stat(s.Folder); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(s.record)
			continue
		}
		all = append(all, s)
	}
	return all, nil
}

// Sync makes both files of each login have the freshest tokens. Settled says that what is not whole, or no token, is not about to
// become so: the sessions' file then becomes the person's again, with the freshest tokens, and is removed where the person has
// signed out. said is what a session wrote that was not taken.
func (s Store) Sync(settled bool) (said []string, err error) {
	release, err := file.Lock(strings.TrimSuffix(s.record, recordExt) + ".lock")
	if err != nil {
		return nil, err
	}
	defer release()
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(formats[s.Program])) {
		refused, err := s.sync(name, settled)
		for _, why := range refused {
			said = append(said, fmt.Sprintf("%s of %s was changed in a session, and not taken: %s", name, s.Program, why))
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("keep the login %s of %s fresh: %w", filepath.Join(s.Person, name), s.Program, err))
		}
	}
	return said, errors.Join(faults...)
}

// version is a file at one moment.
type version struct {
	path string
	info fs.FileInfo // nil: there is none, or it is no ordinary file
	text []byte
}

func (v version) side() (side, error) {
	if v.info == nil {
		return side{}, errNotWhole
	}
	t, err := parse(v.text)
	return side{t, v.info.ModTime()}, err
}

// look reads a file. A program may put a link or a pipe in its place.
func look(path string) (version, error) {
	v := version{path: path}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO):
		return v, nil
	case err != nil:
		return v, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return v, err
	}
	v.info = info
	v.text, err = io.ReadAll(io.LimitReader(f, bytesMax+1))
	return v, err
}

// moved reports whether the file is another one by now, or was written.
func (v version) moved() bool {
	info, err := os.Lstat(v.path)
	if err != nil || !info.Mode().IsRegular() {
		return v.info != nil
	}
	return v.info == nil || !os.SameFile(info, v.info) || info.Size() != v.info.Size() || !info.ModTime().Equal(v.info.ModTime())
}

// sync does it for one file.
func (s Store) sync(name string, settled bool) (refused []string, err error) {
	path, err := filepath.EvalSymlinks(filepath.Join(s.Person, name))
	if errors.Is(err, fs.ErrNotExist) {
		if settled {
			err = os.Remove(filepath.Join(s.Folder, name))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	unlock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	for range turnsMax {
		var again bool
		if refused, again, err = s.exchange(path, filepath.Join(s.Folder, name), settled); !again {
			break
		}
	}
	return refused, err
}

// exchange compares the two files once. Again says that one was written meanwhile.
func (s Store) exchange(person, session string, settled bool) (refused []string, again bool, err error) {
	theirs, err := look(person)
	if err != nil || theirs.info == nil {
		return nil, false, err
	}
	ours, err := look(session)
	if err != nil {
		return nil, false, err
	}
	if ours.info != nil && time.Since(ours.info.ModTime()).Abs() < writingMax {
		settled = false
	}
	changed := ours.info == nil || theirs.info.ModTime().After(ours.info.ModTime()) // by the person
	mine, faultOfPerson := theirs.side()
	inside, faultOfSession := ours.side()
	if faultOfPerson != nil || faultOfSession != nil {
		if !settled && (faultOfPerson != nil || !changed) {
			return nil, false, nil //nolint:nilerr // a program may be about to write the rest
		}
		if faultOfPerson == nil && !changed && len(ours.text) > 0 {
			refused = []string{faultOfSession.Error()}
		}
		switch {
		case bytes.Equal(ours.text, theirs.text) && ours.info != nil:
			return nil, false, nil
		case ours.moved():
			return nil, true, nil
		}
		return refused, false, s.put(ours, theirs.text)
	}
	m := merge(mine, inside, formats[s.Program][filepath.Base(session)], time.Now())
	text, err := format(m.tree)
	if err != nil {
		return nil, false, err
	}
	if m.fromSession {
		if theirs.moved() {
			return nil, true, nil
		}
		if err := replacePerson(theirs, text, ours.info.ModTime()); err != nil {
			return nil, false, err
		}
	}
	differs := m.other || len(m.refused) > 0
	if differs && !changed {
		refused = m.refused
		if m.other && len(refused) == 0 {
			refused = []string{"more than tokens differs"}
		}
	}
	switch {
	case !m.fromPerson && !(differs && (changed || settled)):
		return refused, false, nil
	case ours.moved():
		return refused, true, nil
	}
	return refused, false, s.put(ours, text)
}

// put writes the sessions' file.
func (s Store) put(ours version, text []byte) error {
	if !s.InPlace {
		if info, err := os.Lstat(ours.path); err == nil && info.IsDir() {
			if err := os.RemoveAll(ours.path); err != nil {
				return err
			}
		}
		return file.Replace(ours.path, text, 0o600)
	}
	f, err := os.OpenFile(ours.path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	// First the text, then the size: a reader at this moment finds an old or a new file, or one with a rest that is no JSON.
	_, err = f.WriteAt(text, 0)
	return errors.Join(err, f.Truncate(int64(len(text))), f.Close())
}

// replacePerson writes the person's file, with its mode and its owner. It has the time of the sessions' file, so that what else
// differs there is not taken for a change of the person.
func replacePerson(before version, text []byte, at time.Time) error {
	if err := file.Replace(before.path, text, before.info.Mode().Perm()); err != nil {
		return err
	}
	if now := time.Now(); at.After(now) || !at.After(before.info.ModTime()) {
		at = now // programs read again when the time has changed
	}
	err := os.Chtimes(before.path, time.Time{}, at)
	if was, is := before.info.Sys().(*syscall.Stat_t); is && int(was.Uid) != os.Geteuid() {
		err = errors.Join(err, os.Lchown(before.path, int(was.Uid), int(was.Gid))) // root keeps the login of another user
	}
	return err
}

// lockFolder keeps daemons of other teams from the person's files.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for range lockTries {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("another program holds a lock of %s; end it: %w", dir, err), f.Close())
	}
	return func() { f.Close() }, nil
}
