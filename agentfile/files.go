package agentfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fsnotify/fsnotify"
)

// Kind says what was observed.
type Kind string

// The kinds.
const (
	KindWritten    Kind = "written"    // a complete agent_state.json; State is set
	KindMalformed  Kind = "malformed"  // content that stayed malformed; Fault says why, KeptAs names the copy (C12)
	KindDeleted    Kind = "deleted"    // there is no file (C21), or there never was one (C1)
	KindUnreadable Kind = "unreadable" // a link, a folder or a file without read permission: neither read nor replaced; Fault says what to do
)

// Seen is one observation of one agent_state.json.
type Seen struct {
	Name     string // as given to Add
	Seq      uint64 // increases with each observation; the same observation keeps its Seq
	Kind     Kind
	Bytes    []byte    // written, malformed: the content; read-only. nil if Own
	State    State     // written
	Sum      file.Sum  // of Bytes
	Ident    string    // identifies the write: the same content written again has another Ident; empty if there is no file
	KeptAs   string    // malformed: the name of the copy beside the file; empty if it could not be kept, which Fault says
	Fault    string    // malformed, unreadable: the reason
	At       time.Time // when it was seen, UTC
	Changed  time.Time // when the file was last written, by the file system's clock, UTC; zero without a file
	FromSwap bool      // found in a file that our own write had replaced; the current file is newer
	Own      bool      // written by this Files; only Read returns such observations
}

var (
	// ErrChanged is the error of a Write that found a change by another program. errors.As gives the
	// *Changed.
	ErrChanged = errors.New(FileName + " was changed by another program; decide again")
	// ErrClosed is the error of all methods after Close.
	ErrClosed = errors.New("the watch over the state files is closed")
)

// Changed is the error of a Write when the file holds content that the caller has not confirmed with Took.
// The same observation is sent on Seen, with the same Seq.
type Changed struct{ Seen Seen }

func (c *Changed) Error() string {
	return fmt.Sprintf("%s of %s was %s by another program; decide again", FileName, c.Seen.Name, c.Seen.Kind)
}

// Is makes errors.Is(err, ErrChanged) true.
func (c *Changed) Is(target error) bool { return target == ErrChanged }

const (
	goneFor         = 50 * time.Millisecond  // an unlink followed by a rename takes less time
	swappedForMax   = 10 * time.Second       // after this, a writer that never finishes is ignored
	rewatchAfter    = 250 * time.Millisecond // how often to retry the watch of a missing folder
	underWayMax     = 5 * time.Second        // how long Read and Write wait for a write by another program to finish
	waitingSeenMax  = 1024                   // above this no file is read until the consumer catches up; nothing is lost
	swappedMax      = 64                     // replaced files per agent that stay open
	writeRoundsMax  = 8                      // retries of one Write while the file appears and disappears
	lockGlance      = time.Millisecond       // the watching goroutine does not wait for locks
	lockRetryEvery  = 5 * time.Millisecond   // flock has no queue
	swapLookEvery   = 100 * time.Millisecond // looks at a replaced file whose writes the watch reports
	eventsBuffer    = 64                     // events that are taken over at once; the system keeps more
	settleEvery     = 500 * time.Microsecond // how often Read and Write look while another program writes
	foreignLockWait = 10 * time.Second       // another Fairlead process holds the lock during a write, which takes milliseconds
)

// Files watches and writes the agent_state.json files of one team, with one watch for all folders, one
// goroutine that reads and one that sends. All methods may be called concurrently.
type Files struct {
	log    *slog.Logger
	notify *fsnotify.Watcher // nil if the system has no watch; then the files are polled
	seen   chan Seen
	queue  queue
	asked  chan struct{} // ask is not empty
	done   chan struct{}
	closed sync.Once
	ran    sync.WaitGroup

	mu       sync.Mutex
	byName   map[string]*stateFile
	byFolder map[string]*stateFile
	byID     map[file.FolderID]*stateFile // by the folder that is there, whatever its path
	ask      map[*stateFile]bool          // files to look at

	exchange func(dir int, a, b string) error // replaced in tests
	poll     time.Duration                    // PollEvery, except in tests
	swapLook time.Duration                    // swapLookEvery, except in tests
}

// stateFile is one agent_state.json.
type stateFile struct {
	name   string
	folder string // absolute, links resolved
	path   string // path of the file; it begins with folder
	took   took
	turn   chan struct{} // holds one token; the writer in this process takes it

	mu          sync.Mutex // guards everything below
	removed     bool
	id          file.FolderID
	watched     bool
	unswept     bool        // files left by an earlier run were not looked for yet
	warned      bool        // the missing watch was logged
	swapWritten atomic.Bool // the watch reported a write into a replaced file; needs no lock
	watchNext   time.Time   // when to retry the watch
	now         Seen        // what we last reported or wrote
	nowID       file.Identity
	nowRead     time.Time
	doubt       doubt
	swapped     []*swapped
	swapLooked  time.Time // when we last looked at the replaced files
}

// doubt is an observation that is reported only after it has stayed the same for a while.
type doubt struct {
	what  *suspicion // nil: none
	since time.Time
}

type suspicion struct {
	kind  Kind
	id    file.Identity
	sum   file.Sum
	fault string
}

// certain records a suspicion and reports whether it has lasted long enough.
func (d *doubt) certain(s suspicion, now time.Time, after time.Duration) bool {
	if d.what == nil || *d.what != s {
		*d = doubt{&s, now}
	}
	return now.Sub(d.since) >= after
}

// Watch starts watching; Add adds files. If the system has no watch, Watch logs it and polls. log may be nil.
// The error is always nil for now.
func Watch(log *slog.Logger) (*Files, error) {
	w := newFiles(log)
	notify, err := fsnotify.NewBufferedWatcher(eventsBuffer)
	if err != nil {
		w.log.Warn("no file watch; state files are polled", "every", rewatchAfter, "error", err,
			"way out", "raise fs.inotify.max_user_instances")
	} else {
		w.notify = notify
	}
	w.begin()
	return w, nil
}

// newFiles returns Files without a goroutine that watches; tests call it directly.
func newFiles(log *slog.Logger) *Files {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w := &Files{
		log: log, seen: make(chan Seen), asked: make(chan struct{}, 1), done: make(chan struct{}),
		byName: map[string]*stateFile{}, byFolder: map[string]*stateFile{}, byID: map[file.FolderID]*stateFile{}, ask: map[*stateFile]bool{},
		exchange: file.Exchange, poll: file.PollEvery, swapLook: swapLookEvery,
	}
	w.queue.wake = make(chan struct{}, 1)
	return w
}

func (w *Files) begin() {
	w.ran.Go(w.run)
	w.ran.Go(w.handOut)
}

// Seen returns the channel on which every content written by another program arrives, once and in order.
// Confirm with Took what was stored durably. Close closes the channel.
func (w *Files) Seen() <-chan Seen { return w.seen }

// Close stops watching. Content that was not confirmed is still in its file.
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

// Add watches the agent_state.json of an agent in a folder that must exist; the file need not exist. Its
// current content is sent on Seen. Files that an earlier Fairlead replaced before it was killed are sent too,
// with FromSwap: only the caller knows whether they are its own. Two agents cannot share a folder.
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
	if other := cmp.Or(w.byFolder[f.folder], w.byID[f.id]); other != nil {
		return fmt.Errorf("%s is the workspace of %s already; give each agent its own", f.folder, other.name)
	}
	w.byName[f.name], w.byFolder[f.folder], w.byID[f.id] = f, f, f
	return nil
}

// Remove stops watching one agent's file. The file stays.
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
	w.mu.Lock() // last, so that a concurrent Add keeps its watch
	defer w.mu.Unlock()
	delete(w.byName, f.name)
	delete(w.byFolder, f.folder)
	w.forget(f)
	return nil
}

// forget removes a file from those by folder. The caller holds w.mu.
func (w *Files) forget(f *stateFile) {
	if w.byID[f.id] == f {
		delete(w.byID, f.id)
	}
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

// Read returns the current content, seen before or not. It waits for a write that is in progress (up to 250
// ms for content that stays malformed). New content is also sent on Seen, with the same Seq. KindDeleted
// means that there is no file. The error is for a file that cannot be read.
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

// Took confirms that an observation was stored durably or needs no storing. Only then may Write replace it,
// and only then is a replaced file removed.
func (w *Files) Took(seen Seen) {
	if f, err := w.file(seen.Name); err == nil {
		f.took.note(seen)
	}
}

// took records which observations the consumer confirmed. A replaced file is confirmed separately, because
// that may happen after newer content of the current file was confirmed.
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

// upTo reports whether content of the current file was confirmed.
func (t *took) upTo(seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.place >= seq
}

// sheet reports whether a report about a replaced file was confirmed; 0 stands for none, which is always
// confirmed.
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
