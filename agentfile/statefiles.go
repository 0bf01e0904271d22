package agentfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fsnotify/fsnotify"
)

// Kind says what was seen.
type Kind string

// What can be seen at a file's place.
const (
	KindWritten    Kind = "written"    // a whole agent_state.json; State is set
	KindMalformed  Kind = "malformed"  // bytes that stayed nonsense; Fault says why, KeptAs where they are kept (C12)
	KindDeleted    Kind = "deleted"    // no file, and it stayed away (C21); also a file that never was (C1)
	KindUnreadable Kind = "unreadable" // a link, a folder, no permission: not looked at, not written over; Fault says what to do
)

// Seen is one observation of one agent_state.json.
type Seen struct {
	Name     string // the agent's, as given to Add
	Seq      uint64 // grows with each observation of these Files; the same one again has the same Seq
	Kind     Kind
	Bytes    []byte    // written, malformed: what the file held; nobody may change them
	State    State     // written
	Sum      file.Sum  // of Bytes
	Ident    string    // which write this was: the same bytes written again have another one; empty where nothing lies there
	KeptAs   string    // malformed: the name of the copy beside the file; empty where none could be kept, which Fault says
	Fault    string    // malformed, unreadable: in words
	At       time.Time // when it was seen, UTC
	FromSwap bool      // it was in a file that our own write had replaced: the path holds something newer of ours
	Own      bool      // this Files wrote it; only Read gives such ones
}

var (
	// ErrChanged is what Write's refusal is: somebody else changed the file. errors.As gives the *Changed.
	ErrChanged = errors.New(FileName + " was changed by somebody else; decide anew")
	// ErrClosed is given by a Files after Close.
	ErrClosed = errors.New("the watch over the state files is closed")
)

// Changed is Write's answer where the file holds something that its caller has not taken
// in. It comes over Seen, too, with the same Seq.
type Changed struct{ Seen Seen }

func (c *Changed) Error() string {
	return fmt.Sprintf("%s of %s was %s by somebody else; decide anew", FileName, c.Seen.Name, c.Seen.Kind)
}

// Is makes errors.Is(err, ErrChanged) true.
func (c *Changed) Is(target error) bool { return target == ErrChanged }

const (
	goneFor         = 50 * time.Millisecond  // who replaces by unlink and rename is away for less
	swappedForMax   = 10 * time.Second       // somebody who still scribbles there after this will not finish
	rewatchAfter    = 250 * time.Millisecond // a folder that vanished comes back by hand, not in a loop
	underWayMax     = 5 * time.Second        // Read and Write wait this long for one whole content
	waitingSeenMax  = 1024                   // then files are not read until the consumer has caught up; nothing is lost
	swappedMax      = 64                     // files swapped out and still watched, per agent; each holds a descriptor
	writeRoundsMax  = 8                      // file comes, goes and comes under one Write
	lockGlance      = time.Millisecond       // the goroutine that looks does not wait for locks
	lockRetryEvery  = 5 * time.Millisecond   // flock has no queue to wait in
	settleEvery     = 500 * time.Microsecond // how often Read and Write look while a foreign write is under way
	foreignLockWait = 10 * time.Second       // another Fairlead holds the lock for a write, which takes milliseconds
)

// Files watches and writes the agent_state.json of one team: one watch on all the
// folders, one goroutine that looks, one that hands out. All methods may be called from
// many goroutines.
type Files struct {
	log    *slog.Logger
	notify *fsnotify.Watcher // nil where the system gave none: then it is polled
	seen   chan Seen
	queue  queue
	asked  chan struct{} // somebody is in ask
	done   chan struct{}
	closed sync.Once
	ran    sync.WaitGroup

	mu       sync.Mutex
	byName   map[string]*stateFile
	byFolder map[string]*stateFile
	ask      map[*stateFile]bool // to be looked at

	exchange func(dir int, a, b string) error // tests put a file system without it here
	poll     time.Duration                    // pollEvery but in tests
}

// stateFile is one agent_state.json.
type stateFile struct {
	name   string
	folder string // absolute, without links
	path   string // of the file; it begins with folder
	took   took
	turn   chan struct{} // holds one token: whose turn it is to write, within this process

	mu        sync.Mutex // everything below
	removed   bool
	id        file.FolderID
	watched   bool
	unswept   bool      // what an earlier run left here was not looked for yet
	warned    bool      // that it cannot be watched
	watchNext time.Time // not watched: when to try again
	now       Seen      // what we last reported or wrote: what the world knows to lie there
	nowID     file.Identity
	nowRead   time.Time
	doubt     doubt
	swapped   []*swapped
	swapLook  time.Time // when all of them are looked at again
}

// doubt is something that is believed only after it stayed as it is for a while.
type doubt struct {
	what  suspicion
	since time.Time
}

type suspicion struct {
	kind  Kind
	id    file.Identity
	sum   file.Sum
	fault string
}

// certain notes what is suspected and says whether it has been so for long enough.
func (d *doubt) certain(s suspicion, now time.Time, after time.Duration) bool {
	if d.what != s {
		*d = doubt{s, now}
	}
	return now.Sub(d.since) >= after
}

func (d *doubt) clear() { *d = doubt{} }

// Watch begins to watch; Add names the files. Where the system has no watch to
// give it says so in the log and polls. log may be nil. The error is always nil so far.
func Watch(log *slog.Logger) (*Files, error) {
	w := newFiles(log)
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		w.log.Warn("no file watch; state files are polled", "every", rewatchAfter, "error", err,
			"way out", "raise fs.inotify.max_user_instances")
	} else {
		w.notify = notify
	}
	w.begin()
	return w, nil
}

// newFiles watches nothing and looks only when it is told to.
func newFiles(log *slog.Logger) *Files {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w := &Files{
		log: log, seen: make(chan Seen), asked: make(chan struct{}, 1), done: make(chan struct{}),
		byName: map[string]*stateFile{}, byFolder: map[string]*stateFile{}, ask: map[*stateFile]bool{},
		exchange: file.Exchange, poll: file.PollEvery,
	}
	w.queue.wake = make(chan struct{}, 1)
	return w
}

func (w *Files) begin() {
	w.ran.Go(w.run)
	w.ran.Go(w.handOut)
}

// Seen is where every content that somebody else wrote arrives, once and in order. Who has
// kept what it says for good tells so with Took. It is closed by Close.
func (w *Files) Seen() <-chan Seen { return w.seen }

// Close stops watching. Contents that nobody took are still in their files.
func (w *Files) Close() error {
	var err error
	w.closed.Do(func() {
		close(w.done)
		if w.notify != nil {
			err = w.notify.Close()
		}
		w.ran.Wait()
		close(w.seen)
		for _, f := range w.all() {
			f.mu.Lock()
			w.letGo(f)
			f.mu.Unlock()
		}
	})
	return err
}

func (w *Files) isClosed() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// Add watches the agent_state.json of this agent in this folder, which must be there; the
// file need not be. What lies there is reported as Seen. What an earlier Fairlead had
// swapped out when it was killed is reported too, FromSwap: only the caller knows whether
// it is one of his own. Two agents cannot have one folder.
func (w *Files) Add(name, folder string) error {
	fail := func(err error) error { return fmt.Errorf("watch %s of %s: %w", FileName, name, err) }
	path, err := filepath.Abs(folder)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fail(fmt.Errorf("there is no folder %s; make it: %w", folder, err))
	}
	if err != nil {
		return fail(err)
	}
	dir, id, err := file.OpenFolder(path)
	if err != nil {
		return fail(err)
	}
	file.CloseFolder(dir)
	file := filepath.Join(path, FileName)
	f := &stateFile{name: name, folder: file[:len(path)], path: file, id: id, turn: make(chan struct{}, 1)}
	f.now = Seen{Name: name, Kind: KindDeleted}
	if err := w.enter(f); err != nil {
		return fail(err)
	}
	w.askToLook(f)
	return nil
}

func (w *Files) enter(f *stateFile) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isClosed() {
		return ErrClosed
	}
	if _, twice := w.byName[f.name]; twice {
		return errors.New("it is watched already")
	}
	for _, other := range w.byFolder {
		other.mu.Lock()
		same := other.folder == f.folder || other.id == f.id
		other.mu.Unlock()
		if same {
			return fmt.Errorf("%s is the workspace of %s already; give each agent its own", f.folder, other.name)
		}
	}
	w.byName[f.name], w.byFolder[f.folder] = f, f
	return nil
}

// Remove stops watching one agent's file; the file stays.
func (w *Files) Remove(name string) error {
	f, err := w.file(name)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.removed = true
	w.letGo(f)
	w.unwatch(f)
	f.mu.Unlock()
	w.mu.Lock() // last, so that a new Add does not lose its watch to our unwatch
	defer w.mu.Unlock()
	delete(w.byName, f.name)
	delete(w.byFolder, f.folder)
	return nil
}

func (w *Files) file(name string) (*stateFile, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.byName[name]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("no %s of %s is watched; Add it first", FileName, name)
}

func (w *Files) all() []*stateFile {
	w.mu.Lock()
	defer w.mu.Unlock()
	files := make([]*stateFile, 0, len(w.byName))
	for _, f := range w.byName {
		files = append(files, f)
	}
	return files
}

// Read looks now: what lies there, whether it was seen before or not. It waits while a
// write is under way (up to 250 ms for bytes that stay nonsense). New contents come over
// Seen too, with the same Seq.
// KindDeleted means that there is no file. The error is for what cannot be read.
func (w *Files) Read(name string) (Seen, error) {
	f, err := w.file(name)
	if err != nil {
		return Seen{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, err := w.settle(context.Background(), f)
	if err != nil {
		return Seen{}, fmt.Errorf("read %s of %s: %w", FileName, name, err)
	}
	return seen, nil
}

// Took says that what was seen is kept for good (a crash from now on loses nothing of it), or
// is no news. Only then is it written over, and what was swapped out is let go of.
func (w *Files) Took(seen Seen) {
	if f, err := w.file(seen.Name); err == nil {
		f.took.note(seen)
	}
}

// took is what the consumer has kept. What was swapped out is another sheet than what lies in
// the file's place, and may be kept later than something newer there.
type took struct {
	mu      sync.Mutex
	place   uint64
	swapped map[uint64]bool
}

func (t *took) note(seen Seen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !seen.FromSwap {
		t.place = max(t.place, seen.Seq)
		return
	}
	if t.swapped == nil {
		t.swapped = map[uint64]bool{}
	}
	t.swapped[seen.Seq] = true
}

// upTo says whether a content of the file's place was taken.
func (t *took) upTo(seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.place >= seq
}

// sheet says whether a report of a swapped-out sheet was taken; 0 is none, and there is
// nothing to take.
func (t *took) sheet(seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return seq == 0 || t.swapped[seq]
}

func (t *took) forget(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.swapped, seq)
}
