package exchange

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// run is the goroutine that looks at files. It does not wait: a folder that is being written by us is looked at
// a moment later.
func (w *Files[T]) run() {
	var events <-chan fsnotify.Event
	var faults <-chan error
	if w.notify != nil {
		events, faults = w.notify.Events, w.notify.Errors
	}
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	alarm := time.NewTimer(w.poll)
	defer alarm.Stop()
	due := map[*folder[T]]time.Time{} // which folders to look at, and when
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
			w.log.Warn("file watch lost events; all files are looked at", "file", w.content.Name, "error", err)
			for _, f := range w.all() {
				due[f] = time.Time{}
			}
		case <-w.asked:
			for f := range w.asking() {
				due[f] = time.Time{}
			}
		case <-poll.C:
			for _, f := range w.all() {
				if w.stale(f) {
					due[f] = time.Time{}
				}
			}
		case <-alarm.C:
		}
		alarm.Reset(w.visit(due))
	}
}

// visit looks at all folders that are due, and returns when the next one is.
func (w *Files[T]) visit(due map[*folder[T]]time.Time) time.Duration {
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

// lookAt looks once at a folder's files and at their replaced versions. It returns when to look again; zero means only
// after an event.
func (w *Files[T]) lookAt(f *folder[T], now time.Time) time.Time {
	soon := now.Add(file.LookAgainAfter)
	if !f.mu.TryLock() {
		return soon
	}
	defer f.mu.Unlock()
	if f.removed {
		return time.Time{}
	}
	settled := w.lookAll(f, now)
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

// note marks the folder that an event is about as due. Our own renames of replaced files are no news; a write into one is.
func (w *Files[T]) note(ev fsnotify.Event, due map[*folder[T]]time.Time) {
	path, base := filepath.Split(ev.Name)
	_, mark := w.content.beside(base)
	swapped := mark == swapMark && ev.Has(fsnotify.Write)
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.byFolder[ev.Name] // the folder itself was created, removed or renamed; usually nil
	if swapped || w.content.is(base) {
		f = cmp.Or(w.byFolder[filepath.Clean(path)], f)
	}
	if f == nil {
		return
	}
	if swapped {
		f.swapWritten.Store(true)
	}
	due[f] = time.Time{}
}

// askToLook asks the watching goroutine to look at the folder.
func (w *Files[T]) askToLook(f *folder[T]) {
	w.mu.Lock()
	w.ask[f] = true
	w.mu.Unlock()
	select {
	case w.asked <- struct{}{}:
	default: // a request is pending already
	}
}

func (w *Files[T]) asking() map[*folder[T]]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ask := w.ask
	w.ask = map[*folder[T]]bool{}
	return ask
}

// stale reports whether a poll finds something that the watch missed. An unchanged file costs one stat; a folder of
// many files is always listed. A replaced folder has another file or none.
func (w *Files[T]) stale(f *folder[T]) bool {
	if !f.mu.TryLock() {
		return true
	}
	defer f.mu.Unlock()
	if !f.watched || w.content.Ending != "" {
		return true
	}
	there, err := file.IdentityAt(unix.AT_FDCWD, filepath.Join(f.path, f.only.base))
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.only.now.Kind == KindDeleted:
		dir, id, err := file.OpenFolder(f.path) // is it still the folder that is watched?
		if err == nil {
			file.CloseFolder(dir)
		}
		return err != nil || id != f.id
	case err != nil:
		return true
	}
	return !f.only.atRest(there)
}

// atRest reports whether the file is as it was read. One that was read within a second of its modification may have
// been written again within the same tick of the file system's clock.
func (o *watched[T]) atRest(there file.Identity) bool {
	return there == o.nowID && o.nowRead.UnixNano()-there.Mtime >= int64(time.Second)
}

// lookAll looks once at all files of a folder. settled means that nothing is left for another look. The caller holds f.mu.
func (w *Files[T]) lookAll(f *folder[T], now time.Time) (settled bool) {
	if w.content.Ending == "" {
		return w.look(&f.only, now)
	}
	dir, err := w.open(f, now)
	if err == nil {
		defer file.CloseFolder(dir)
		names, err := file.NamesIn(f.path)
		if err != nil {
			return false
		}
		for _, base := range names {
			if w.content.is(base) {
				w.oneOf(f, base)
			}
		}
	}
	settled = true
	room := unconfirmedMax
	for _, base := range slices.Sorted(maps.Keys(f.files)) {
		o := f.files[base]
		if o.confirmed() {
			o.now.Bytes = nil // they were delivered
		}
		room -= len(o.now.Bytes)
		switch {
		case err != nil:
			settled = w.missed(o, err, now) && settled
		case o.isAtRest(dir):
		case room <= 0:
			settled = false // the consumer has to catch up
		default:
			room += len(o.now.Bytes)
			settled = w.lookIn(o, dir, now) && settled
			room -= len(o.now.Bytes)
		}
		if o.now.Kind == KindDeleted && o.doubt.what == nil && o.confirmed() {
			w.drop(o)
		}
	}
	return settled
}

func (o *watched[T]) isAtRest(dir int) bool {
	there, err := file.IdentityAt(dir, o.base)
	return err == nil && o.atRest(there)
}

// drop forgets a file of many that is gone, unless a replaced version of it is still watched.
func (w *Files[T]) drop(o *watched[T]) {
	if slices.ContainsFunc(o.in.swapped, func(s *swapped[T]) bool { return s.of == o }) {
		return
	}
	delete(o.in.files, o.base)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byName, o.now.Name)
}

// look reads a file once and reports new content that is certain. settled means that o.now is the current
// content. The caller holds the folder's mutex.
func (w *Files[T]) look(o *watched[T], now time.Time) (settled bool) {
	dir, err := w.open(o.in, now)
	if err != nil {
		return w.missed(o, err, now)
	}
	defer file.CloseFolder(dir)
	return w.lookIn(o, dir, now)
}

func (w *Files[T]) lookIn(o *watched[T], dir int, now time.Time) (settled bool) {
	if w.content.Projection && o.now.Own {
		if there, err := file.IdentityAt(dir, o.base); err == nil && o.atRest(there) {
			return true
		}
	}
	s, err := file.Read(dir, o.base, int64(w.content.Most))
	if err != nil {
		return w.missed(o, err, now)
	}
	sum := file.SumOf(s.Bytes)
	held := o.now.Kind == KindWritten || o.now.Kind == KindMalformed
	if held && o.now.Sum == sum && !s.Moved {
		o.doubt = doubt{}
		o.nowID, o.nowRead = s.ID, now
		return true
	}
	seen, certain := w.judge(o, &o.doubt, source{dir: dir}, s, now, file.TornFor)
	if !certain {
		return false
	}
	o.doubt = doubt{}
	o.nowID, o.nowRead = s.ID, now
	o.now = w.report(o, seen, now)
	return true
}

// judge decides what content is, once that is certain: content must stay malformed for as long as after, and
// is copied before it is reported.
func (w *Files[T]) judge(
	o *watched[T], d *doubt, from source, s file.Version, now time.Time, after time.Duration,
) (seen Seen[T], certain bool) {
	seen, err := w.seenOf(s)
	if err == nil && !s.Moved {
		return seen, true
	}
	if !d.certain(suspicion{kind: KindMalformed, id: s.ID, sum: seen.Sum}, now, after) || err == nil {
		return Seen[T]{}, false
	}
	if !w.content.Copies {
		return seen, true
	}
	seen.KeptAs, err = w.keepAside(o, from, s)
	switch {
	case errors.Is(err, errMoved):
		return Seen[T]{}, false
	case err != nil:
		seen.Fault += "; and " + err.Error()
	}
	return seen, true
}

// seenOf describes what was read. The error says why it is malformed.
func (w *Files[T]) seenOf(s file.Version) (seen Seen[T], err error) {
	seen = Seen[T]{
		Kind: KindWritten, Bytes: s.Bytes, Sum: file.SumOf(s.Bytes), Ident: s.ID.String(),
		Changed: time.Unix(0, s.ID.Mtime).UTC(), Wrote: time.Unix(0, s.Ctime).UTC(),
	}
	if seen.State, err = w.content.parse(s.Bytes); err != nil {
		seen.Kind, seen.Fault = KindMalformed, err.Error()
	}
	return seen, err
}

// missed handles a file that does not exist or cannot be read.
func (w *Files[T]) missed(o *watched[T], err error, now time.Time) (settled bool) {
	s, after := suspicion{kind: KindDeleted}, goneFor
	if !errors.Is(err, fs.ErrNotExist) {
		s, after = suspicion{kind: KindUnreadable, fault: err.Error()}, file.TornFor
	}
	if o.now.Kind == s.kind && o.now.Fault == s.fault {
		o.doubt = doubt{}
		return true
	}
	if !o.doubt.certain(s, now, after) {
		return false
	}
	o.doubt = doubt{}
	o.nowID = file.Identity{}
	seen := Seen[T]{Kind: s.kind, Fault: s.fault}
	if there, err := file.IdentityAt(unix.AT_FDCWD, filepath.Join(o.in.path, o.base)); err == nil && s.kind == KindUnreadable {
		seen.Ident = there.String()
	}
	o.now = w.report(o, seen, now)
	return true
}

// open opens a folder, and watches it again if it was replaced.
func (w *Files[T]) open(f *folder[T], now time.Time) (dir int, err error) {
	dir, id, err := file.OpenFolder(f.path)
	if err != nil {
		if f.watched {
			w.unwatch(f)
			f.watchNext = now
		}
		if !f.watchNext.After(now) {
			f.watchNext = now.Add(w.rewatch())
		}
		return -1, err
	}
	if f.watched && f.id == id {
		return dir, nil
	}
	if f.id != id {
		if real, err := filepath.EvalSymlinks(f.path); err != nil || real != f.path {
			file.CloseFolder(dir)
			return -1, &file.Unreadable{
				Fault: f.path + " is a symbolic link now, and Fairlead does not follow it; put a folder there",
				Err:   err,
			}
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

// rewatch is how often to look for a folder that is missing, or that has no watch. A folder of many files is often not made at all.
func (w *Files[T]) rewatch() time.Duration {
	if w.content.Ending != "" {
		return w.poll
	}
	return rewatchAfter
}

// moved notes that another folder is there now.
func (w *Files[T]) moved(f *folder[T], id file.FolderID) {
	w.mu.Lock() // within f.mu, never the other way round
	defer w.mu.Unlock()
	w.forget(f)
	f.id = id
	w.byID[id] = f
}

// watch adds a watch for the folder, and has files of an earlier run looked for.
func (w *Files[T]) watch(f *folder[T], now time.Time) {
	f.unswept = true
	f.watchNext = now.Add(w.rewatch())
	if w.notify == nil {
		return
	}
	err := w.notify.Add(f.path)
	f.watched = err == nil
	if err != nil && !f.warned && !w.isClosed() {
		f.warned = true
		w.log.Warn("the file is polled: its folder cannot be watched", "file", w.content.Name, "of", f.name, "folder", f.path,
			"every", w.rewatch(), "error", err, "way out", "raise fs.inotify.max_user_watches")
	}
}

// unwatch removes the watch on a path whose folder was replaced or removed.
func (w *Files[T]) unwatch(f *folder[T]) {
	f.watched = false
	if w.notify != nil {
		_ = w.notify.Remove(f.path) // it is usually gone with its folder
	}
}

// report delivers an observation, with its number.
func (w *Files[T]) report(o *watched[T], s Seen[T], now time.Time) Seen[T] {
	s.Name, s.At, s.Seq = o.now.Name, now.UTC(), w.seq.Add(1)
	w.mu.Lock()
	to := w.to
	w.mu.Unlock()
	to(s)
	return s
}

// beside splits the name of a new or a replaced file.
func (c *Content[T]) beside(name string) (base, mark string) {
	for _, mark := range []string{newMark, swapMark} {
		if at := strings.LastIndex(name, mark); at > 0 && name[0] == '.' && c.is(name[1:at]) {
			return name[1:at], mark
		}
	}
	return "", ""
}
