package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fsnotify/fsnotify"
)

const (
	SessionsFolder   = ".claude/agent-state-machine" // of the repository (seed 002)
	RegisteredFolder = ".elsewhere"                  // of folders that were asked for by --path
	registeredMax    = 1024                          // registered folders that are looked at
	registeredBytes  = 4096                          // of a path
	SessionsPoll     = 2 * time.Second               // interval for finding changes where the file system does not report them
	HistoryName      = "state.jsonl"
	InboxFolder      = "inbox"
	foldersSeenAtMax = 10_000 // entries of the folder that are looked at: far more than the sessions that people start
)

// SessionFolders follows the session folders of a repository.
type SessionFolders struct {
	Repo    string
	log     *slog.Logger
	Notify  *fsnotify.Watcher // nil: this system gives none, and we look every now and then
	Changed chan struct{}
	done    chan struct{}
	ran     sync.WaitGroup

	Mu      sync.Mutex
	Watched map[string]bool
	told    map[string]bool // of what cannot be watched
}

// WatchSessions follows the session folders below a repository, and those that are registered there.
// Where the system gives no watch they are looked at every 2 s.
func WatchSessions(repo string, log *slog.Logger) (*SessionFolders, error) {
	repo, err := sessions.SettledDir(repo)
	if err != nil {
		return nil, err
	}
	w := &SessionFolders{
		Repo: repo, log: log, Changed: make(chan struct{}, 1), done: make(chan struct{}), Watched: map[string]bool{},
		told: map[string]bool{},
	}
	if w.Notify, err = fsnotify.NewWatcher(); err != nil {
		log.Warn("session folders cannot be watched; they are looked at every 2 s", "error", err)
		w.Notify = nil
	}
	w.Watch(nil)
	w.ran.Go(w.run)
	return w, nil
}

// Close ends it.
func (w *SessionFolders) Close() error {
	close(w.done)
	w.ran.Wait()
	if w.Notify == nil {
		return nil
	}
	return w.Notify.Close()
}

// News has something in it where a folder may have changed.
func (w *SessionFolders) News() <-chan struct{} { return w.Changed }

func (w *SessionFolders) run() {
	var events <-chan fsnotify.Event
	var faults <-chan error
	if w.Notify != nil {
		events, faults = w.Notify.Events, w.Notify.Errors
	}
	poll := time.NewTicker(SessionsPoll)
	defer poll.Stop()
	for {
		select {
		case <-w.done:
			return
		case event, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			if !w.concerns(event.Name) {
				continue
			}
		case _, ok := <-faults: // some events were lost: everything is looked at anyway
			if !ok {
				faults = nil
				continue
			}
		case <-poll.C:
		}
		w.Say()
	}
}

// concerns is false for a file beside the folders on the way to the root: an agent may write many in its repository.
func (w *SessionFolders) concerns(name string) bool {
	return !strings.HasPrefix(w.Root(), filepath.Dir(name)+"/") || strings.HasPrefix(w.Root()+"/", name+"/")
}

// Say notifies the reader that a folder changed.
func (w *SessionFolders) Say() {
	select {
	case w.Changed <- struct{}{}:
	default: // a look is already due and will find this, too
	}
}

// Root is the folder that holds the dispatch folders.
func (w *SessionFolders) Root() string { return filepath.Join(w.Repo, SessionsFolder) }

// Watch follows these folders, and the places where new ones come.
func (w *SessionFolders) Watch(paths []string) {
	if w.Notify == nil {
		return
	}
	want := map[string]bool{}
	for dir := filepath.Join(w.Root(), RegisteredFolder); len(dir) >= len(w.Repo); dir = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			want[dir] = true
			if dir == w.Root() || len(dir) < len(w.Root()) {
				break // what lies above it can come and go without us
			}
		}
	}
	for _, path := range paths {
		want[path] = true
		if info, err := os.Lstat(filepath.Join(path, InboxFolder)); err == nil && info.IsDir() {
			want[filepath.Join(path, InboxFolder)] = true
		}
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	for dir := range w.Watched {
		if !want[dir] {
			_ = w.Notify.Remove(dir) // it may be gone, and with it the watch
			delete(w.Watched, dir)
		}
	}
	for dir := range want {
		// Asked again each time: a folder that was made anew under its old name has a new watch.
		err := w.Notify.Add(dir)
		if err == nil {
			if !w.Watched[dir] {
				w.Say() // changes before the watch was set were not reported
			}
			w.Watched[dir] = true
			continue
		}
		if !w.told[dir] && !errors.Is(err, fs.ErrNotExist) {
			w.told[dir] = true
			w.log.Warn("a session folder cannot be watched; it is looked at every 2 s", "folder", dir, "error", err)
		}
	}
}

// Paths are the session folders that are there, the one written to last first.
func (w *SessionFolders) Paths() ([]string, error) {
	names, err := readNames(w.Root(), foldersSeenAtMax)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range names {
		if name[0] != '.' {
			all = append(all, filepath.Join(w.Root(), name))
		}
	}
	more, err := w.registered()
	if err != nil {
		return nil, err
	}
	return newestFirst(append(all, more...)), nil
}

// registered are the folders that were asked for by --path, wherever they lie.
func (w *SessionFolders) registered() (paths []string, err error) {
	dir := filepath.Join(w.Root(), RegisteredFolder)
	names, err := readNames(dir, registeredMax)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		file := filepath.Join(dir, name)
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := sessions.ReadUpTo(file, registeredBytes)
		if path := string(trimLine(text)); err == nil && filepath.IsAbs(path) {
			paths = append(paths, filepath.Clean(path))
		}
	}
	return paths, nil
}

func trimLine(text []byte) []byte {
	for len(text) > 0 && (text[len(text)-1] == '\n' || text[len(text)-1] == '\r') {
		text = text[:len(text)-1]
	}
	return text
}

// readNames lists a folder that Fairlead manages. A missing folder counts as empty; a symbolic link
// is not followed.
func readNames(dir string, most int) ([]string, error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for session folders: %w", err)
	case !info.IsDir():
		return nil, nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("look for session folders: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(most)
	if err != nil && len(names) == 0 && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("look for session folders: %w", err)
	}
	return names, nil
}

// newestFirst keeps those that are folders with a history, in the order of their last line.
func newestFirst(paths []string) []string {
	type found struct {
		path string
		at   time.Time
	}
	var list []found
	for _, path := range paths {
		dir, err := os.Lstat(path)
		if err != nil || !dir.IsDir() {
			continue
		}
		if info, err := os.Lstat(filepath.Join(path, HistoryName)); err == nil && info.Mode().IsRegular() {
			list = append(list, found{path, info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b found) int {
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.path, a.path))
	})
	sorted := make([]string, 0, len(list))
	for i, one := range list {
		if i == 0 || one.path != list[i-1].path { // the same one may be registered besides
			sorted = append(sorted, one.path)
		}
	}
	return sorted
}
