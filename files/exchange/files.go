package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fsnotify/fsnotify"
)

// Content describes the files of one kind.
type Content[T any] struct {
	Name   string                  // the file's name; with Ending, what errors call a file
	Ending string                  // if set, each file of the folder whose name ends so belongs to it, except hidden ones
	Most   int                     // bytes; of a longer file, which is malformed, one byte more is given to Parse
	Parse  func([]byte) (T, error) // the error says why content is malformed
	Copies bool                    // malformed content is copied beside the file before it is reported; else the caller uses PutAside

	// Projection: the file shows what its one writer knows and can write again, and is written often. It is not watched: only Read
	// and Write look at it. A write is neither parsed, locked nor synced. What another program wrote into the file that a write
	// replaces is kept under another name, which the report has as KeptAs. What cannot be read is an observation like malformed
	// content, so that PutAside can make room.
	Projection bool
}

// is reports whether a name in a folder is one of its files.
func (c *Content[T]) is(base string) bool {
	if c.Ending == "" {
		return base == c.Name
	}
	return strings.HasSuffix(base, c.Ending) && base != c.Ending && base[0] != '.'
}

// parse is Parse for what was read of a file, or is to be written.
func (c *Content[T]) parse(b []byte) (T, error) {
	state, err := c.Parse(b)
	if err == nil && len(b) > c.Most {
		err = fmt.Errorf("it has more than %d bytes, which are the most for %s", c.Most, c.Name)
	}
	return state, err
}

// Kind says what was observed.
type Kind string

// The kinds.
const (
	KindWritten   Kind = "written"   // complete content; State is set
	KindMalformed Kind = "malformed" // content that stayed malformed; Fault says why, KeptAs names the copy (C12)
	KindDeleted   Kind = "deleted"   // there is no file (C21), or there never was one (C1)
	// a link, a folder or a file without read permission: neither read nor replaced; Fault says what to do
	KindUnreadable Kind = "unreadable"
)

// Seen is one observation of one file.
type Seen[T any] struct {
	Name     string // as given to Add; with Content.Ending the file's name without it
	Seq      uint64 // increases with each observation; the same observation keeps its Seq
	Kind     Kind
	Bytes    []byte    // written, malformed: the content; read-only. nil if Own
	State    T         // written: what the content says
	Sum      file.Sum  // of Bytes
	Ident    string    // identifies the write: the same content written again has another Ident; empty if there is no file
	KeptAs   string    // malformed: the name of the copy beside the file; empty if there is none, and Fault says it if none could be made
	Fault    string    // malformed, unreadable: the reason
	At       time.Time // when it was seen, UTC
	Changed  time.Time // when the file was last written, by the file system's clock, UTC; zero without a file
	Wrote    time.Time // the same, but no program can set it: also the time of the last rename
	FromSwap bool      // found in a file that our own write had replaced; the current file is newer
	Own      bool      // written or put aside by this Files; only Read returns such observations
}

var (
	// ErrChanged is the error of Write and PutAside that found a change by another program. After Write, errors.As gives
	// the *Changed.
	ErrChanged = errors.New("the file was changed by another program; decide again")
	// ErrClosed is the error of all methods after Close.
	ErrClosed = errors.New("the watch over the files is closed")
)

// Changed is the error of a Write when the file holds content that the caller has not confirmed with Confirm.
// The same observation is delivered, with the same Seq.
type Changed[T any] struct {
	Seen Seen[T]
	what string
}

func (c *Changed[T]) Error() string {
	return fmt.Sprintf("%s of %s was %s by another program; decide again", c.what, c.Seen.Name, c.Seen.Kind)
}

// Is makes errors.Is(err, ErrChanged) true.
func (c *Changed[T]) Is(target error) bool { return target == ErrChanged }

const (
	goneFor         = 50 * time.Millisecond  // an unlink followed by a rename takes less time
	swappedForMax   = 10 * time.Second       // after this, a writer that never finishes is ignored
	rewatchAfter    = 250 * time.Millisecond // how often to retry the watch of a missing folder
	underWayMax     = 5 * time.Second        // how long Read and Write wait for a write by another program to finish
	unconfirmedMax  = 32 << 20               // bytes of one folder that were delivered and not confirmed; above this, no more is read
	swappedMax      = 64                     // replaced files per folder that stay open
	writeRoundsMax  = 8                      // retries of one Write while the file appears and disappears
	lockGlance      = time.Millisecond       // the watching goroutine does not wait for locks
	lockRetryEvery  = 5 * time.Millisecond   // flock has no queue
	swapLookEvery   = 100 * time.Millisecond // looks at a replaced file whose writes the watch reports
	eventsBuffer    = 64                     // events that are taken over at once; the system keeps more
	settleEvery     = 500 * time.Microsecond // how often Read and Write look while another program writes
	foreignLockWait = 10 * time.Second       // another Fairlead process holds the lock during a write, which takes milliseconds
	FolderMode      = 0o700                  // of a folder of many files, which may be private
)

// Files watches and writes files of one kind, with one watch for all folders and one goroutine. All methods
// may be called concurrently.
type Files[T any] struct {
	content Content[T]
	log     *slog.Logger
	notify  *fsnotify.Watcher // nil if the system has no watch; then the files are polled
	to      func(Seen[T])
	seq     atomic.Uint64 // of the last observation
	asked   chan struct{} // ask is not empty
	done    chan struct{}
	closed  sync.Once
	ran     sync.WaitGroup

	mu       sync.Mutex
	byName   map[string]*watched[T]
	byFolder map[string]*folder[T]
	byID     map[file.FolderID]*folder[T] // by the folder that is there, whatever its path
	ask      map[*folder[T]]bool          // folders to look at

	exchange func(dir int, a, b string) error // replaced in tests
	sync     func(dir int) error              // the same, of a folder
	poll     time.Duration                    // PollEvery, except in tests
	swapLook time.Duration                    // swapLookEvery, except in tests
}

// folder is a folder with one file, or with all files of an ending.
type folder[T any] struct {
	name        string
	path        string        // absolute, links resolved
	turn        chan struct{} // holds one token; the writer in this process takes it
	swapWritten atomic.Bool   // the watch reported a write into a replaced file

	mu         sync.Mutex // guards everything below
	removed    bool
	id         file.FolderID
	watched    bool
	unswept    bool                   // files left by an earlier run were not looked for yet
	warned     bool                   // the missing watch was logged
	watchNext  time.Time              // when to retry the watch
	only       watched[T]             // of a folder with one file
	files      map[string]*watched[T] // of a folder with many, by their names in it
	swapped    []*swapped[T]
	swapLooked time.Time // when we last looked at the replaced files
}

// watched is one file. The mutex of its folder guards it.
type watched[T any] struct {
	in       *folder[T]
	base     string        // its name in the folder
	confirms confirmations // has its own lock

	now     Seen[T] // what we last reported or wrote
	nowID   file.Identity
	nowRead time.Time
	doubt   doubt
}

// confirmed reports whether the current content may be replaced.
func (o *watched[T]) confirmed() bool { return o.now.Own || o.confirms.upTo(o.now.Seq) }

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

// Watch starts watching, except for a Projection; Add adds files. If the system has no watch, Watch logs it and polls. log may be nil.
func Watch[T any](content Content[T], log *slog.Logger) *Files[T] {
	w := newFiles(content, log)
	if content.Projection {
		return w
	}
	notify, err := fsnotify.NewBufferedWatcher(eventsBuffer)
	if err != nil {
		w.log.Warn("no file watch; the files are polled", "file", content.Name, "every", rewatchAfter, "error", err,
			"way out", "raise fs.inotify.max_user_instances")
	} else {
		w.notify = notify
	}
	w.ran.Go(w.run)
	return w
}

// newFiles returns Files without a goroutine that watches; tests call it directly.
func newFiles[T any](content Content[T], log *slog.Logger) *Files[T] {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Files[T]{
		content: content, log: log, to: func(Seen[T]) {}, asked: make(chan struct{}, 1), done: make(chan struct{}),
		byName: map[string]*watched[T]{}, byFolder: map[string]*folder[T]{}, byID: map[file.FolderID]*folder[T]{},
		ask:      map[*folder[T]]bool{},
		exchange: file.Exchange, sync: file.SyncFolder, poll: file.PollEvery, swapLook: swapLookEvery,
	}
}

// Deliver sets the function that receives every content written by another program: once, and for each file in
// order. Call it before Add. Files of the folder are not looked at while the function runs, so it may wait for room but
// not for a call of Files. Confirm with Confirm what was stored durably.
func (w *Files[T]) Deliver(to func(Seen[T])) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = to
}

// Close stops watching. Content that was not confirmed is still in its file.
func (w *Files[T]) Close() error {
	var err error
	w.closed.Do(func() {
		close(w.done)
		if w.notify != nil {
			err = w.notify.Close()
		}
		w.ran.Wait()
		for _, f := range w.all() {
			f.mu.Lock()
			w.letGo(f)
			f.mu.Unlock()
		}
	})
	return err
}

func (w *Files[T]) isClosed() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// Add watches a folder. Its current content is delivered. Files that an earlier Fairlead replaced before it was
// killed are delivered too, with FromSwap: only the caller knows whether they are its own. A folder with one file must
// exist, and no two names can share it; a folder of many files may be made later.
func (w *Files[T]) Add(name, path string) error {
	fail := func(err error) error { return fmt.Errorf("watch %s of %s: %w", w.content.Name, name, err) }
	real, err := filepath.Abs(path)
	if err == nil {
		real, err = w.resolve(real)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fail(fmt.Errorf("there is no folder %s; make it: %w", path, err))
	}
	if err != nil {
		return fail(err)
	}
	f := &folder[T]{name: name, path: real, turn: make(chan struct{}, 1)}
	dir, id, err := file.OpenFolder(real)
	switch {
	case err == nil:
		file.CloseFolder(dir)
		f.id = id
	case w.content.Ending == "" || !errors.Is(err, fs.ErrNotExist):
		return fail(err)
	}
	if err := w.enter(f); err != nil {
		return fail(err)
	}
	if w.content.Ending != "" { // the caller then knows all files that are whole
		f.mu.Lock()
		w.lookAll(f, time.Now())
		f.mu.Unlock()
	}
	w.askToLook(f)
	return nil
}

// resolve follows the links of a path; a folder of many files need not exist.
func (w *Files[T]) resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if w.content.Ending == "" || !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return path, nil //nolint:nilerr // nothing is there yet
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

func (w *Files[T]) enter(f *folder[T]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isClosed() {
		return ErrClosed
	}
	if _, twice := w.byName[f.name]; twice {
		return errors.New("it is watched already")
	}
	if other := cmp.Or(w.byFolder[f.path], w.byID[f.id]); other != nil {
		return fmt.Errorf("%s is the workspace of %s already; give each agent its own", f.path, other.name)
	}
	w.byFolder[f.path] = f
	if f.id != (file.FolderID{}) {
		w.byID[f.id] = f
	}
	if w.content.Ending == "" {
		f.only.in, f.only.base, f.only.now = f, w.content.Name, Seen[T]{Name: f.name, Kind: KindDeleted}
		w.byName[f.name] = &f.only
	} else {
		f.files = map[string]*watched[T]{}
	}
	return nil
}

// oneOf returns a file of the folder, and begins to watch it. The caller holds f.mu.
func (w *Files[T]) oneOf(f *folder[T], base string) *watched[T] {
	if w.content.Ending == "" {
		return &f.only
	}
	o := f.files[base]
	if o == nil {
		o = &watched[T]{in: f, base: base, now: Seen[T]{Name: strings.TrimSuffix(base, w.content.Ending), Kind: KindDeleted}}
		f.files[base] = o
		w.mu.Lock() // within f.mu, never the other way round
		defer w.mu.Unlock()
		w.byName[o.now.Name] = o
	}
	return o
}

// Remove stops watching one folder's file. The file stays.
func (w *Files[T]) Remove(name string) error {
	o, err := w.file(name)
	if err != nil {
		return err
	}
	f := o.in
	f.mu.Lock()
	f.removed = true
	w.letGo(f)
	w.unwatch(f)
	f.mu.Unlock()
	w.mu.Lock() // last, so that a concurrent Add keeps its watch
	defer w.mu.Unlock()
	delete(w.byName, name)
	delete(w.byFolder, f.path)
	w.forget(f)
	return nil
}

// forget removes a folder from those by identity. The caller holds w.mu.
func (w *Files[T]) forget(f *folder[T]) {
	if w.byID[f.id] == f {
		delete(w.byID, f.id)
	}
}

func (w *Files[T]) file(name string) (*watched[T], error) {
	w.mu.Lock()
	o := w.byName[name]
	var only *folder[T] // the folder of many files
	if o == nil && w.content.Ending != "" && w.content.is(name+w.content.Ending) && filepath.Base(name) == name {
		for _, only = range w.byFolder {
		}
	}
	w.mu.Unlock()
	switch {
	case o != nil:
		return o, nil
	case only == nil:
		return nil, fmt.Errorf("no %s of %s is watched; Add it first", w.content.Name, name)
	}
	only.mu.Lock()
	defer only.mu.Unlock()
	return w.oneOf(only, name+w.content.Ending), nil
}

func (w *Files[T]) all() []*folder[T] {
	w.mu.Lock()
	defer w.mu.Unlock()
	folders := make([]*folder[T], 0, len(w.byFolder))
	for _, f := range w.byFolder {
		folders = append(folders, f)
	}
	return folders
}

// Read returns the current content, seen before or not. It waits for a write that is in progress (up to 250
// ms for content that stays malformed). New content is also delivered, with the same Seq, and so is whole content of files
// that an earlier Fairlead replaced. KindDeleted means that there is no file. The error is for a file that cannot be read.
func (w *Files[T]) Read(name string) (Seen[T], error) {
	o, err := w.file(name)
	if err != nil {
		return Seen[T]{}, err
	}
	f := o.in
	f.mu.Lock()
	defer f.mu.Unlock()
	o = w.oneOf(f, o.base)
	seen, err := w.settle(context.Background(), o)
	if err != nil {
		return Seen[T]{}, fmt.Errorf("read %s of %s: %w", w.content.Name, name, err)
	}
	if f.unswept {
		now := time.Now()
		f.unswept = !w.adopt(f, now)
		f.swapped = w.lookAtSwapped(f, now)
	}
	return seen, nil
}

// Confirm records that an observation was stored durably or needs no storing. Only then may Write replace it,
// and only then is a replaced file removed.
func (w *Files[T]) Confirm(seen Seen[T]) {
	w.mu.Lock()
	o := w.byName[seen.Name]
	w.mu.Unlock()
	if o != nil {
		o.confirms.note(seen.Seq, seen.FromSwap)
	}
}

// took records which observations the consumer confirmed. A replaced file is confirmed separately, because
// that may happen after newer content of the current file was confirmed.
type confirmations struct {
	mu      sync.Mutex
	place   uint64
	swapped map[uint64]bool
}

func (t *confirmations) note(seq uint64, fromSwap bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !fromSwap {
		t.place = max(t.place, seq)
		return
	}
	if t.swapped == nil {
		t.swapped = map[uint64]bool{}
	}
	t.swapped[seq] = true
}

// upTo reports whether content of the current file was confirmed.
func (t *confirmations) upTo(seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.place >= seq
}

// replaced reports whether a report about a replaced file was confirmed; 0 stands for none, which is always
// confirmed.
func (t *confirmations) replaced(seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return seq == 0 || t.swapped[seq]
}

func (t *confirmations) forget(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.swapped, seq)
}
