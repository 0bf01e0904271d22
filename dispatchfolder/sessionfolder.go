package dispatchfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
)

// Folder is a session's folder. It holds no open files, and may be used by several goroutines.
type Folder struct {
	path string // absolute

	mu    sync.Mutex
	first *first
	rules map[string]policy.Rules // by their text
}

// Path is the folder's, absolute.
func (f *Folder) Path() string { return f.path }

// Name is the folder's base name.
func (f *Folder) Name() string { return filepath.Base(f.path) }

// NotASession says why a folder is none.
type NotASession struct {
	Path string
	Why  string // with a way out
	Err  error  // may be nil
}

func (e *NotASession) Error() string { return e.Path + " is no session: " + e.Why }
func (e *NotASession) Unwrap() error { return e.Err }

// notASession says of a folder or its state that it is not there, or what it is instead.
func (f *Folder) notASession(err error) error {
	var odd *notPlain
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &NotASession{Path: f.path, Why: "it has no state.jsonl; begin one there with fairlead dispatch start --path", Err: err}
	case errors.As(err, &odd):
		return &NotASession{Path: f.path, Why: odd.fault, Err: err}
	}
	return err
}

// Open finds a session's folder. The error is a *NotASession where it is none.
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

// Do tells the session something: under the lock (it waits 10 s at most), after what a crash left was
// mended. The changes are on disk when it returns; none and no error: it was so already. A refusal is
// a *machine.Refusal. Times are kept to the microsecond.
func (f *Folder) Do(at time.Time, actor Actor, in dispatch.Input) ([]dispatch.Change, dispatch.Dispatch, error) {
	var s dispatch.Dispatch
	d, err := openFolder(f.path)
	if err != nil {
		return nil, s, f.notASession(err)
	}
	defer d.close()
	unlock, err := d.lock()
	if err != nil {
		return nil, s, err
	}
	defer unlock()
	if err := d.mend(); err != nil {
		return nil, s, fmt.Errorf("mend %s after a crash: %w", f.path, err)
	}
	if size, half, err := d.end(stateName); err == nil && half { // somebody's line is ended before it is read
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
	after := s
	parts, err := f.parts(d, &after, changes, actor)
	if err != nil {
		return nil, s, err
	}
	if err := d.commit(parts); err != nil {
		return nil, s, err
	}
	if after.Phase == dispatch.Closed && after.Program != "" {
		forgetProgram(after.Program) // what is left of it is seen through by ByProgram
	}
	return changes, after, nil
}

// decide asks the machine, and takes the number of a conversation that begins: its folder is made
// here, since whoever makes it has the number. A folder that is there and empty was left by a crash.
func (f *Folder) decide(d opened, s *dispatch.Dispatch, at time.Time, in dispatch.Input) ([]dispatch.Change, error) {
	if begins(in) {
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
			if ch.Event != dispatch.InputCame && ch.Event != dispatch.MessageTaken {
				continue
			}
			mine, err := d.claim(ch.Body.Conversation)
			if err != nil {
				return nil, err
			}
			if !mine {
				taken = ch.Body.Conversation
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

// begins says whether an input can begin a conversation.
func begins(in dispatch.Input) bool {
	switch in.(type) {
	case dispatch.UserInput, dispatch.Message, dispatch.Respond, dispatch.Interrupt, dispatch.MainEnded, dispatch.TaskEnded:
		return true
	}
	return false
}

// highest is the highest number of a conversation whose folder holds something (seed 002 counts the
// folders), or made, whichever is higher. Empty ones above it were left by a crash.
func (d opened) highest(made int) (int, error) {
	names, err := d.names(conversationsName, conversationsMax)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) { // of a folder that others made
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

// empty says whether a conversation's folder holds nothing but, perhaps, an empty outputs/. What is
// no folder is not empty.
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

// claim makes a conversation's folder. mine is false where somebody has put something there.
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
	return true, nil // what is to be on disk of it, the commit syncs
}
