package exchange

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// What the tests of all contents need of the inside.

const (
	GoneFor        = goneFor
	SwappedMax     = swappedMax
	CorruptMax     = corruptMax
	SwapLookEvery  = swapLookEvery
	UnconfirmedMax = unconfirmedMax
)

type Folder[T any] = folder[T]

// NewFiles watches nothing before Begin, so that a test says when to look.
func NewFiles[T any](content Content[T], log *slog.Logger) *Files[T] { return newFiles(content, log) }

func (w *Files[T]) Begin() { w.ran.Go(w.run) }

func (w *Files[T]) UseWatch() (err error) {
	w.notify, err = fsnotify.NewBufferedWatcher(eventsBuffer)
	return err
}

func (w *Files[T]) SetExchange(exchange func(dir int, a, b string) error) { w.exchange = exchange }
func (w *Files[T]) SetSync(sync func(dir int) error)                      { w.sync = sync }
func (w *Files[T]) SetSwapLook(every time.Duration)                       { w.swapLook = every }
func (w *Files[T]) SetPoll(every time.Duration)                           { w.poll = every }

func (w *Files[T]) LookAt(f *Folder[T], now time.Time) time.Time { return w.lookAt(f, now) }
func (w *Files[T]) Stale(f *Folder[T]) bool                      { return w.stale(f) }
func (w *Files[T]) Folders() []*Folder[T]                        { return w.all() }

func (w *Files[T]) Known(f *Folder[T]) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.files)
}

func (w *Files[T]) Now(name string) Seen[T] {
	o, err := w.file(name)
	if err != nil {
		return Seen[T]{}
	}
	return o.now
}

func (f *folder[T]) Swapped() int          { return len(f.swapped) }
func (f *folder[T]) Writers() int          { return len(f.turn) }
func (f *folder[T]) Lock() (unlock func()) { f.mu.Lock(); return f.mu.Unlock }
func (f *folder[T]) SetWatched(is bool)    { f.mu.Lock(); defer f.mu.Unlock(); f.watched = is }
func (w *Files[T]) LockName() string       { return "." + w.content.Name + lockEnding }

func (w *Files[T]) IsLock(folder string, side *os.File) bool {
	dir, _, err := file.OpenFolder(folder)
	if err != nil {
		return false
	}
	defer file.CloseFolder(dir)
	return isLock(dir, w.LockName(), side)
}

// LockAside takes the lock of a folder like another process.
func (w *Files[T]) LockAside(ctx context.Context, path string) (unlock func(), err error) {
	return w.lock(ctx, &folder[T]{path: path, turn: make(chan struct{}, 1)})
}

func (w *Files[T]) LockSide(ctx context.Context, f *Folder[T]) (*os.File, error) {
	return w.lockSide(ctx, f)
}

// PlaceNew is Write after it found no file.
func (w *Files[T]) PlaceNew(name string, content []byte) (placed bool, err error) {
	o, err := w.file(name)
	if err != nil {
		return false, err
	}
	o.in.mu.Lock()
	defer o.in.mu.Unlock()
	var state T
	p, err := w.prepare(o, content, state)
	if err != nil {
		return false, err
	}
	defer p.drop(true)
	return w.place(o, Seen[T]{Name: name, Kind: KindDeleted}, p)
}

// Marks are the beginnings of names beside a file.
func Marks(base string) (fresh, swap, corrupt string) {
	return "." + base + newMark, "." + base + swapMark, filepath.Base(base) + corruptMark
}

// SumOf is a shorthand.
func SumOf(content string) file.Sum { return file.SumOf([]byte(content)) }
