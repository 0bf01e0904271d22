package agentfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// run is the goroutine that looks at files. It does not wait: a file that is being written by us is looked at
// a moment later.
func (w *Files) run() {
	var events <-chan fsnotify.Event
	var faults <-chan error
	if w.notify != nil {
		events, faults = w.notify.Events, w.notify.Errors
	}
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	alarm := time.NewTimer(w.poll)
	defer alarm.Stop()
	due := map[*stateFile]time.Time{} // which files to look at, and when
	for {
		select {
		case <-w.done:
			return
		case ev, ok := <-events:
			if !ok {
				events = nil // Close follows
				continue
			}
			w.note(ev, due)
			for len(events) > 0 { // one look for all of them
				w.note(<-events, due)
			}
		case err, ok := <-faults:
			if !ok {
				faults = nil
				continue
			}
			w.log.Warn("file watch lost events; all state files are looked at", "error", err)
			for _, f := range w.all() {
				due[f] = time.Time{}
			}
		case <-w.asked:
			for f := range w.asking() {
				due[f] = time.Time{}
			}
		case <-poll.C:
			for _, f := range w.all() {
				if f.stale() {
					due[f] = time.Time{}
				}
			}
		case <-alarm.C:
		}
		alarm.Reset(w.visit(due))
	}
}

// visit looks at all files that are due, and returns when the next one is.
func (w *Files) visit(due map[*stateFile]time.Time) time.Duration {
	now := time.Now()
	next := now.Add(w.poll)
	for f, at := range due {
		if !at.After(now) {
			at = w.lookAt(f, now)
		}
		if at.IsZero() {
			delete(due, f)
			continue
		}
		due[f] = at
		if at.Before(next) {
			next = at
		}
	}
	return max(0, time.Until(next))
}

// lookAt looks once at a file and at its replaced versions. It returns when to look again; zero means only
// after an event.
func (w *Files) lookAt(f *stateFile, now time.Time) time.Time {
	soon := now.Add(file.LookAgainAfter)
	if !f.mu.TryLock() {
		return soon
	}
	defer f.mu.Unlock()
	if f.removed {
		return time.Time{}
	}
	if w.queue.full() {
		return soon
	}
	settled := w.look(f, now)
	if f.unswept {
		f.unswept = !w.adopt(f, now)
	}
	if !w.swapDue(f).After(now) { // not at every event, because there may be many and a caller may wait for f.mu
		f.swapWritten.Store(false)
		f.swapped = w.lookAtSwapped(f, now)
		f.swapLooked = now
	}
	switch {
	case !settled || f.unswept:
		return soon
	case len(f.swapped) > 0:
		return w.swapDue(f)
	case !f.watched:
		return f.watchNext
	}
	return time.Time{}
}

// note marks the file that an event is about as due. Our own renames of replaced files are no news; a write into one is.
func (w *Files) note(ev fsnotify.Event, due map[*stateFile]time.Time) {
	folder, base := filepath.Split(ev.Name)
	swapped := strings.HasPrefix(base, swapPrefix) && ev.Has(fsnotify.Write)
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.byFolder[ev.Name] // the folder itself was created, removed or renamed; usually nil
	if base == FileName || swapped {
		f = cmp.Or(w.byFolder[filepath.Clean(folder)], f)
	}
	if f == nil {
		return
	}
	if swapped {
		f.swapWritten.Store(true)
	}
	due[f] = time.Time{}
}

// askToLook asks the watching goroutine to look at the file.
func (w *Files) askToLook(f *stateFile) {
	w.mu.Lock()
	w.ask[f] = true
	w.mu.Unlock()
	select {
	case w.asked <- struct{}{}:
	default: // a request is pending already
	}
}

func (w *Files) asking() map[*stateFile]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ask := w.ask
	w.ask = map[*stateFile]bool{}
	return ask
}

// stale reports whether a poll finds something that the watch missed. Unchanged files cost one stat. A
// replaced folder has another file or none. A file that was read within a second of its modification may have
// been written again within the same tick of the file system's clock.
func (f *stateFile) stale() bool {
	if !f.mu.TryLock() {
		return true
	}
	defer f.mu.Unlock()
	if !f.watched {
		return true
	}
	there, err := file.IdentityAt(unix.AT_FDCWD, f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.now.Kind == KindDeleted:
		dir, id, err := file.OpenFolder(f.folder) // is it still the folder that is watched?
		if err == nil {
			file.CloseFolder(dir)
		}
		return err != nil || id != f.id
	case err != nil:
		return true
	}
	return there != f.nowID || f.nowRead.UnixNano()-there.Mtime < int64(time.Second)
}

// look reads the file once and reports new content that is certain. settled means that f.now is the current
// content. The caller holds f.mu.
func (w *Files) look(f *stateFile, now time.Time) (settled bool) {
	dir, err := w.open(f, now)
	if err != nil {
		return w.missed(f, err, now)
	}
	defer file.CloseFolder(dir)
	s, err := file.Read(dir, FileName, file.BytesMax)
	if err != nil {
		return w.missed(f, err, now)
	}
	sum := file.SumOf(s.Bytes)
	held := f.now.Kind == KindWritten || f.now.Kind == KindMalformed
	if held && f.now.Sum == sum && !s.Moved {
		f.doubt = doubt{}
		f.nowID, f.nowRead = s.ID, now
		return true
	}
	seen, certain := w.judge(f, &f.doubt, dir, s, sum, now, file.TornFor)
	if !certain {
		return false
	}
	f.doubt = doubt{}
	f.now, f.nowID, f.nowRead = w.report(f, seen, now), s.ID, now
	return true
}

// judge decides what content is, once that is certain: content must stay malformed for as long as after, and
// is copied before it is reported.
func (w *Files) judge(f *stateFile, d *doubt, dir int, s file.Version, sum file.Sum, now time.Time, after time.Duration) (seen Seen, certain bool) {
	state, err := Parse(s.Bytes)
	if err == nil && !s.Moved {
		return Seen{Kind: KindWritten, Bytes: s.Bytes, State: state, Sum: sum, Ident: s.ID.String(), Changed: time.Unix(0, s.ID.Mtime).UTC()}, true
	}
	if !d.certain(suspicion{kind: KindMalformed, id: s.ID, sum: sum}, now, after) || err == nil {
		return Seen{}, false
	}
	seen = Seen{Kind: KindMalformed, Bytes: s.Bytes, Sum: sum, Ident: s.ID.String(), Changed: time.Unix(0, s.ID.Mtime).UTC()}
	seen.Fault = err.Error()
	seen.KeptAs, err = keepAside(f.folder, dir, s)
	switch {
	case err != nil:
		seen.Fault += "; and " + err.Error()
	case len(s.Bytes) > agentStateBytesMax:
		seen.Fault += fmt.Sprintf("; the first %d bytes are kept", agentStateBytesMax)
	}
	return seen, true
}

// missed handles a file that does not exist or cannot be read.
func (w *Files) missed(f *stateFile, err error, now time.Time) (settled bool) {
	s, after := suspicion{kind: KindDeleted}, goneFor
	if !errors.Is(err, fs.ErrNotExist) {
		s, after = suspicion{kind: KindUnreadable, fault: err.Error()}, file.TornFor
	}
	if f.now.Kind == s.kind && f.now.Fault == s.fault {
		f.doubt = doubt{}
		return true
	}
	if !f.doubt.certain(s, now, after) {
		return false
	}
	f.doubt = doubt{}
	f.now, f.nowID = w.report(f, Seen{Kind: s.kind, Fault: s.fault}, now), file.Identity{}
	return true
}

// open opens the file's folder, and watches it again if it was replaced.
func (w *Files) open(f *stateFile, now time.Time) (dir int, err error) {
	dir, id, err := file.OpenFolder(f.folder)
	if err != nil {
		if f.watched {
			w.unwatch(f)
			f.watchNext = now
		}
		if !f.watchNext.After(now) {
			f.watchNext = now.Add(rewatchAfter)
		}
		return -1, err
	}
	if f.watched && f.id == id {
		return dir, nil
	}
	if f.id != id {
		if real, err := filepath.EvalSymlinks(f.folder); err != nil || real != f.folder {
			file.CloseFolder(dir)
			return -1, &file.Unreadable{Fault: f.folder + " is a symbolic link now, and Fairlead does not follow it; put a folder there", Err: err}
		}
		w.unwatch(f)
		w.moved(f, id)
		f.watchNext, f.warned = now, false
	}
	if !f.watchNext.After(now) {
		w.watch(f, now)
	}
	return dir, nil
}

// moved notes that another folder is there now.
func (w *Files) moved(f *stateFile, id file.FolderID) {
	w.mu.Lock() // within f.mu, never the other way round
	defer w.mu.Unlock()
	w.forget(f)
	f.id = id
	w.byID[id] = f
}

// watch adds a watch for the folder, and has files of an earlier run looked for.
func (w *Files) watch(f *stateFile, now time.Time) {
	f.unswept = true
	f.watchNext = now.Add(rewatchAfter)
	if w.notify == nil {
		return
	}
	err := w.notify.Add(f.folder)
	f.watched = err == nil
	if err != nil && !f.warned && !w.isClosed() {
		f.warned = true
		w.log.Warn("state file is polled: its folder cannot be watched", "agent", f.name, "folder", f.folder,
			"every", rewatchAfter, "error", err, "way out", "raise fs.inotify.max_user_watches")
	}
}

// unwatch removes the watch on a path whose folder was replaced or removed.
func (w *Files) unwatch(f *stateFile) {
	f.watched = false
	if w.notify != nil {
		_ = w.notify.Remove(f.folder) // it is usually gone with its folder
	}
}

// queue holds observations until the consumer receives them. Reading stops at waitingSeenMax, and a Write
// adds at most two, so the queue needs no limit of its own.
type queue struct {
	mu    sync.Mutex
	seq   uint64
	items []waiting
	wake  chan struct{}
}

type waiting struct {
	seen Seen
	file *stateFile
}

func (q *queue) number() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	return q.seq
}

func (q *queue) pop() (waiting, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return waiting{}, false
	}
	item := q.items[0]
	q.items[0] = waiting{} // lets the bytes be collected
	q.items = q.items[1:]
	return item, true
}

func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) >= waitingSeenMax
}

// handOut sends observations to the consumer.
func (w *Files) handOut() {
	for {
		item, ok := w.queue.pop()
		if !ok {
			select {
			case <-w.queue.wake:
				continue
			case <-w.done:
				return
			}
		}
		select {
		case w.seen <- item.seen:
		case <-w.done:
			return
		}
	}
}

// report queues an observation, with its number.
func (w *Files) report(f *stateFile, s Seen, now time.Time) Seen {
	q := &w.queue
	q.mu.Lock()
	q.seq++
	s.Name, s.At, s.Seq = f.name, now.UTC(), q.seq
	q.items = append(q.items, waiting{s, f})
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return s
}
