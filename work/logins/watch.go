package logins

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/fairlead-dev/fairlead/files/login"
)

const (
	each    = 30 * time.Second      // a refreshed token is needed again in minutes
	gather  = 50 * time.Millisecond // a file that is written in parts is one change
	saidMax = 1000                  // sentences that are remembered; more are not said
)

// Watch keeps the logins of all stores below state, the folder .fairlead, until ctx ends.
func Watch(ctx context.Context, state string, log *slog.Logger) {
	if err := os.MkdirAll(filepath.Join(state, login.Dir), 0o700); err != nil {
		log.Warn("logins that sessions refresh reach your files when a session ends, or within half a minute", "error", err)
	}
	w := &watcher{state: state, log: log, said: map[string]bool{}, folders: map[string]bool{}}
	var events <-chan fsnotify.Event
	var faults <-chan error
	if notify, err := fsnotify.NewWatcher(); err != nil {
		log.Warn("changes of logins are not told, so each is looked at twice a minute", "error", err)
	} else {
		defer notify.Close()
		w.notify, events, faults = notify, notify.Events, notify.Errors
	}
	tick := time.NewTicker(each)
	defer tick.Stop()
	soon := time.NewTimer(0)
	defer soon.Stop()
	due := true
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			if !due && w.concerns(e.Name) {
				due = true
				soon.Reset(gather)
			}
		case err := <-faults:
			w.say("changes of logins were lost, so all are looked at", err.Error())
			due = true
			soon.Reset(gather)
		case <-soon.C:
			due = false
			w.look(false)
		case <-tick.C:
			w.look(true)
		}
	}
}

type watcher struct {
	state   string
	log     *slog.Logger
	notify  *fsnotify.Watcher // nil: there is none
	stores  []login.Store
	folders map[string]bool // watched
	said    map[string]bool
}

// concerns reports whether a file is one of a login, or a new store.
func (w *watcher) concerns(path string) bool {
	name := filepath.Base(path)
	for _, s := range w.stores {
		if login.Files(s.Program)[name] {
			return true
		}
	}
	return filepath.Ext(name) == ".json" && filepath.Dir(path) == filepath.Join(w.state, login.Dir)
}

// look syncs all logins.
func (w *watcher) look(settled bool) {
	var err error
	if w.stores, err = login.Stores(w.state); err != nil {
		w.say("the logins of sessions cannot be looked for", err.Error())
	}
	w.follow(filepath.Join(w.state, login.Dir))
	for _, s := range w.stores {
		w.follow(s.Folder)
		w.follow(s.Person)
		said, err := s.Sync(settled)
		for _, why := range said {
			w.say("a login that a session changed is not taken whole", why)
		}
		if err != nil {
			w.say("a login is not kept fresh", err.Error())
		}
	}
}

// follow watches a folder. One that is missing is tried at the next look.
func (w *watcher) follow(folder string) {
	if w.notify == nil || w.folders[folder] {
		return
	}
	if err := w.notify.Add(folder); err == nil {
		w.folders[folder] = true
	}
}

// say logs a sentence once.
func (w *watcher) say(what, why string) {
	if w.said[why] || len(w.said) >= saidMax {
		return
	}
	w.said[why] = true
	w.log.Warn(what, "why", why)
}
