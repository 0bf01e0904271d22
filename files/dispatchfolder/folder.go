package dispatchfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Folder is a dispatch folder. It holds no open files, and may be used concurrently.
type Folder struct {
	path string // absolute

	mu    sync.Mutex
	first *first
	rules map[string]policy.Rules // by their text
}

// Path is the folder's absolute path.
func (f *Folder) Path() string { return f.path }

// Name is the folder's base name.
func (f *Folder) Name() string { return filepath.Base(f.path) }

// NotASession says why a folder is not a dispatch folder.
type NotASession struct {
	Path string
	Why  string // with advice
	Err  error  // may be nil
}

func (e *NotASession) Error() string { return e.Path + " is no session: " + e.Why }
func (e *NotASession) Unwrap() error { return e.Err }

// notASession explains what is missing or wrong about a folder or its state.
func (f *Folder) notASession(err error) error {
	var odd *file.Unreadable
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &NotASession{Path: f.path, Why: "it has no state.jsonl; begin one there with fairlead dispatch start --path", Err: err}
	case errors.As(err, &odd):
		return &NotASession{Path: f.path, Why: odd.Fault, Err: err}
	}
	return err
}

// Open opens a dispatch folder. The error is a *NotASession if it is not one.
func Open(path string) (*Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	f := &Folder{path: abs}
	d, err := openFolder(abs)
	if err != nil {
		return nil, f.notASession(err)
	}
	defer d.close()
	file, err := d.open(stateName, unix.O_RDONLY)
	if err != nil {
		return nil, f.notASession(err)
	}
	return f, file.Close()
}

// writing opens the folder for a writer: it takes the lock (it waits at most 10 s) and completes an interrupted commit.
// done gives the lock back.
func (f *Folder) writing() (d opened, done func(), err error) {
	if d, err = openFolder(f.path); err != nil {
		return d, nil, f.notASession(err)
	}
	unlock, err := d.lock()
	if err != nil {
		d.close()
		return d, nil, err
	}
	release := func() { unlock(); d.close() }
	whole := false
	defer func() {
		if !whole {
			release()
		}
	}()
	if err := d.repair(); err != nil {
		return d, nil, fmt.Errorf("repair %s after a crash: %w", f.path, err)
	}
	whole = true
	return d, release, nil
}

// Do decides and applies an event, under the lock, after an interrupted commit was
// completed. The changes are on disk when it returns; no changes and no error mean that nothing had to
// change. A refusal is a *machine.Refusal. Times are kept in microseconds.
func (f *Folder) Do(at time.Time, actor change.Actor, in dispatch.Input) ([]change.Change, dispatch.Dispatch, error) {
	var s dispatch.Dispatch
	d, done, err := f.writing()
	if err != nil {
		return nil, s, err
	}
	defer done()
	if size, half, err := d.end(stateName); err == nil && half { // another program's incomplete line is ended before it is read
		if err := d.commit([]part{{File: stateName, At: size, Text: []byte{'\n'}}}); err != nil {
			return nil, s, err
		}
	}
	if s, err = f.session(d); err != nil {
		return nil, s, err
	}
	changes, err := f.decide(d, &s, at.UTC().Truncate(time.Microsecond), in)
	if err != nil || len(changes) == 0 {
		return nil, s, err
	}
	for i := range changes {
		changes[i].Actor = actor
	}
	after := s
	parts, err := f.parts(d, &after, changes)
	if err != nil {
		return nil, s, err
	}
	if err := d.commit(parts); err != nil {
		return nil, s, err
	}
	if after.Phase == dispatch.Closed && after.Program != "" {
		f.forget(after.Program)
	}
	return changes, after, nil
}

// decide asks the machine, and reserves the number of a conversation that starts by creating its folder. An
// existing empty folder was left by a crash.
func (f *Folder) decide(d opened, s *dispatch.Dispatch, at time.Time, in dispatch.Input) ([]change.Change, error) {
	if in.Subject().Starts {
		made, err := d.highest(s.Made)
		if err != nil {
			return nil, err
		}
		s.Made = made
	}
	for {
		changes, err := s.Decide(at, in)
		if err != nil {
			return nil, err
		}
		taken := 0
		for _, ch := range changes {
			if event := dispatch.Event(ch.Trigger); event != dispatch.InputCame && event != dispatch.MessageTaken {
				continue
			}
			n := change.As[dispatch.Body](ch.Body).Conversation
			mine, err := d.claim(n)
			if err != nil {
				return nil, err
			}
			if !mine {
				taken = n
			}
		}
		if taken == 0 {
			return changes, nil
		}
		if taken >= conversationsMax {
			return nil, fmt.Errorf("begin a conversation in %s: there are %d already; begin a new session", f.path, taken)
		}
		s.Made = taken
	}
}

// highest is the highest conversation number whose folder holds something (seed 002 counts the folders), or
// was reserved. Empty folders above it were left by a crash.
func (d opened) highest(made int) (int, error) {
	names, err := d.names(conversationsName, conversationsMax)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) { // the folder was created by another program
			_, err = d.mkdir(conversationsName)
		}
		return made, err
	}
	for _, name := range names {
		n := conversationNumber(name)
		if n <= made {
			continue
		}
		empty, err := d.empty(n)
		if err != nil {
			return made, err
		}
		if !empty {
			made = n
		}
	}
	logged, err := d.lastLogged()
	return max(made, logged), err
}

// empty reports whether a conversation's folder holds nothing, or only an empty outputs/. An entry that is
// not a folder is not empty.
func (d opened) empty(n int) (bool, error) {
	rel := conversationPath(n)
	if mode, err := d.kind(rel); err != nil || mode != unix.S_IFDIR {
		return false, err
	}
	names, err := d.names(rel, 2)
	if err != nil || len(names) == 0 {
		return err == nil, err
	}
	if len(names) > 1 || names[0] != outputsName {
		return false, nil
	}
	if mode, err := d.kind(rel + "/" + outputsName); err != nil || mode != unix.S_IFDIR {
		return false, err
	}
	names, err = d.names(rel+"/"+outputsName, 1)
	return len(names) == 0, err
}

// claim creates a conversation's folder. mine is false if another program put something there.
func (d opened) claim(n int) (mine bool, err error) {
	rel := conversationPath(n)
	existed, err := d.mkdir(rel)
	if err != nil {
		return false, err
	}
	if existed {
		if empty, err := d.empty(n); err != nil || !empty {
			return false, err
		}
	}
	if _, err := d.mkdir(rel + "/" + outputsName); err != nil {
		return false, err
	}
	return true, nil // the commit syncs it
}
